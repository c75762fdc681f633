"""The pages of the references, from Doxygen's XML and from the Python package."""

import collections
import inspect
import xml.etree.ElementTree as xml

ROOMS = {
    "base": "Errors, threads, stop requests, tables and figures, build information",
    "data": "Datasets, selections, generators, .npz and safetensors",
    "attention": "The layer: parameters, heads, losses, gradients, tokens",
    "mirror": "Norms, mirror maps, directions, the fused step",
    "descent": "Optimizers, the training loop, run folders, regularization paths, mirror flow",
    "margin": "Max-margin problems, their solutions and certificates",
    "next_token": "P4: sentences, orders, two-stage training, targets",
    "sweep": "Many runs at once, and their database",
    "report": "Pages, figures and tables",
    "pages": "Pages of runs",
    "papers": "Experiments, findings, verdicts, the landscape of small problems",
    "deep": "Texts and images, networks, optimizers for LibTorch, the trainer",
}
GROUPS = {
    "_data": "Data", "optimizers": "Optimizers", "_settings": "Records", "_descent": "Training", "_objective": "Objectives of your own",
    "_margin": "Max-margin problems", "_compare": "Comparing", "_which_margin": "Which margin", "_attractors": "Attractors", "_theory": "Assumptions of the theorems",
    "_study": "Studies",
    "_paths": "Regularization paths and mirror flow", "_next_token": "Next-token prediction", "_sweep": "Sweeps",
    "_reproduce": "Experiments and reports", "classifier": "scikit-learn", "_errors": "Errors", "": "The library itself",
}


def headers_of(doxygen):
    """{room: [(header, Doxygen's name of it)]}, of the public headers."""
    rooms = collections.defaultdict(list)
    for compound in xml.parse(doxygen / "index.xml").getroot().findall("compound"):
        if compound.get("kind") != "file":
            continue
        path = xml.parse(doxygen / f"{compound.get('refid')}.xml").getroot().find("compounddef/location").get("file")
        path = path.split("include/", 1)[-1]
        parts = path.split("/")
        if len(parts) == 3:
            rooms[parts[1]].append((path, compound.findtext("name")))
    return rooms


def classes_of(doxygen, path):
    """Directives for the classes and structs of one header."""
    directives = []
    for compound in xml.parse(doxygen / "index.xml").getroot().findall("compound"):
        if compound.get("kind") not in ("class", "struct"):
            continue
        location = xml.parse(doxygen / f"{compound.get('refid')}.xml").getroot().find("compounddef/location")
        if location.get("file").endswith(path) and compound.findtext("name").count("::") == 1:
            directives += [f".. doxygen{compound.get('kind')}:: {compound.findtext('name')}", "   :members:", ""]
    return directives


def cpp_pages(doxygen, write):
    """Writes a page per room; returns the list of them."""
    rooms = headers_of(doxygen)
    unknown = sorted(set(rooms) - set(ROOMS))
    if unknown:
        raise SystemExit(f"references.py: no description of the room {unknown[0]}: add it to ROOMS")
    names = collections.Counter(name for headers in rooms.values() for _, name in headers)
    entries = []
    for room, what in ROOMS.items():
        if room not in rooms:
            continue
        lines = [f"# attmirror/{room}", "", f"{what}.", ""]
        for path, name in sorted(rooms[room]):
            # Breathe finds a file by its name alone; of headers with the same name it is told the classes.
            directives = [f".. doxygenfile:: {name}"] if names[name] == 1 else classes_of(doxygen, path)
            lines += [f"## {path}", "", "```{eval-rst}", *directives, "```", ""]
        write(f"reference/cpp/{room}.md", "\n".join(lines))
        entries.append(f"cpp/{room}")
    return "\n".join(["```{toctree}", ":hidden:", "", *entries, "```"])


def python_pages(write):
    """Writes a page per group of names; returns the list of them."""
    import attmirror  # the installed package
    from sphinx.ext.autodoc.mock import mock

    groups = collections.defaultdict(list)
    for name in attmirror.__all__:
        with mock(["sklearn"]):  # which the site does without
            thing = getattr(attmirror, name)
        if inspect.ismodule(thing):
            continue
        module = getattr(thing, "__module__", "attmirror").removeprefix("attmirror").lstrip(".")
        groups["optimizers" if name in attmirror.optimizers.__all__ else module].append(name)
    unknown = sorted(set(groups) - set(GROUPS))
    if unknown:
        raise SystemExit(f"references.py: no title for the Python module {unknown[0]}: add it to GROUPS")
    entries, table = [], []
    for module, title in GROUPS.items():
        if not groups[module]:
            continue
        slug = module.strip("_").replace("_", "-") or "library"
        lines = [f"# {title}", "", "```{eval-rst}", ".. currentmodule:: attmirror", ""]
        for name in sorted(groups[module], key=str.lower):
            if name == "AttentionClassifier" or inspect.isclass(getattr(attmirror, name)):
                lines += [f".. autoclass:: attmirror.{name}", "   :members:", ""]
            else:
                lines += [f".. autofunction:: attmirror.{name}", ""]
        lines += ["```", ""]
        write(f"reference/python/{slug}.md", "\n".join(lines))
        entries.append(f"python/{slug}")
        names = ", ".join(f"`{name}`" for name in sorted(groups[module], key=str.lower))
        table.append(f"| [{title}](python/{slug}.md) | {names} |")
    for module, title, names in (("torch", "Optimizers for PyTorch", None), ("optax", "Optimizers for JAX", None)):
        write(f"reference/python/{module}.md",
              f"# {title}\n\n```{{eval-rst}}\n.. automodule:: attmirror.{module}\n   :members:\n   :imported-members:\n```\n")
        entries.append(f"python/{module}")
        table.append(f"| [{title}](python/{module}.md) | `attmirror.{module}` |")
    return "\n".join(["| | |", "| --- | --- |", *table, "", "```{toctree}", ":hidden:", "", *entries, "```"])
