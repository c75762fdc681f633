"""A Sphinx extension: `max_margin()` or `am.descend` in the text of a page leads to the reference.

Only whole names between backticks are looked at, of at least four letters, and only those of the library itself: C++ names everywhere, Python names
where they are written with am. or attmirror., and on the pages about Python.
"""

import re

from docutils import nodes

NAME = re.compile(r"(?P<module>am\.|attmirror\.)?(?P<space>attmirror::(?:deep::)?)?(?P<name>[A-Za-z_]\w{3,})(?:\(\)|\{\})?")
PYTHON_PAGES = ("python", "examples/python/")


def targets_of(env):
    """{"py": ..., "cpp": ...}: name -> (page, anchor)."""
    found = {"py": {}, "cpp": {}}
    for name, _, _, page, anchor, _ in env.domains.python_domain.get_objects():
        if name.startswith("attmirror.") and name.count(".") == 1:
            found["py"].setdefault(name.split(".")[1], (page, anchor))
    for name, _, kind, page, anchor, _ in env.domains.cpp_domain.get_objects():
        parts = name.split("::")
        if kind in ("class", "function", "enum", "type") and parts[:1] == ["attmirror"] and len(parts) == (3 if parts[1:2] == ["deep"] else 2):
            found["cpp"].setdefault(parts[-1], (page, anchor))
    return found


def link_names(app, doctree, page):
    if page.startswith(("reference/", "source/")) or not hasattr(app.builder, "get_relative_uri"):
        return
    if not hasattr(app, "attmirror_targets"):
        app.attmirror_targets = targets_of(app.env)
    for literal in list(doctree.findall(nodes.literal)):
        match = NAME.fullmatch(literal.astext())
        inside = literal.parent
        while inside is not None and not isinstance(inside, (nodes.reference, nodes.title)):
            inside = inside.parent
        if match is None or inside is not None:
            continue
        # `train` may be a subcommand or an option: a bare word is a name only where it is one of a type.
        if not (match["module"] or match["space"] or match["name"][0].isupper() or literal.astext().endswith(("()", "{}"))):
            continue
        language = "py" if match["module"] or (page.startswith(PYTHON_PAGES) and not match["space"]) else "cpp"
        target = app.attmirror_targets[language].get(match["name"])
        if target:
            uri = app.builder.get_relative_uri(page, target[0]) + "#" + target[1]
            reference = nodes.reference("", "", internal=True, refuri=uri)
            literal.replace_self(reference)
            reference += literal


def setup(app):
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
