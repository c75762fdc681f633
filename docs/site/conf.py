"""Sphinx's configuration of the site. scripts/docs.sh calls it, with the pages that stage.py prepared."""

import os
import pathlib
import re
import sys

from sphinx import addnodes
from sphinx.ext.autodoc.mock import _MockModule

sys.path.insert(0, str(pathlib.Path(__file__).parent))
root = pathlib.Path(__file__).resolve().parents[2]

project = "attmirror"
author = "the attmirror authors"
release = version = re.search(r"project\(attmirror VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
html_title = f"attmirror {release}"
copyright = author  # noqa: A001

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "breathe", "mathml", "code_links"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = True
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True

breathe_projects = {"attmirror": os.environ["ATTMIRROR_DOXYGEN_XML"]}
breathe_default_project = "attmirror"
cpp_index_common_prefix = ["attmirror::", "attmirror::deep::"]

napoleon_use_ivar = True
autodoc_mock_imports = ["torch", "jax", "optax", "sklearn"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
add_module_names = False

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_math_renderer = "mathml"
html_theme_options = {"top_of_page_buttons": []}
highlight_language = "none"
copybutton_prompt_text = r"\$ |> "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# Every header opens the namespace again, which is not a mistake.
suppress_warnings = ["duplicate_declaration.cpp"]


def escape_marks(app, what, name, thing, options, lines):
    """Docstrings are plain text: |W| is a norm there, not one of reStructuredText's substitutions, and lambda_ no link."""
    literal = None  # the indentation of the line that announced a block of code
    for index, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        if literal is None and ":math:" not in line and not line.lstrip().startswith(">>>"):
            lines[index] = re.sub(r"(?<=\w)_(?=[\s,.:;)]|$)", r"\\_", re.sub(r"(?<!\\)\|", r"\\|", line))
        if line.rstrip().endswith("::"):
            literal = indent


def unwrap_namespaces(app, doctree):
    """Every header opens the namespace attmirror; what stands in it is shown without a box around it."""
    for box in list(doctree.findall(addnodes.desc)):
        if box["domain"] == "cpp" and box[0].astext().startswith("namespace "):
            content = next(child for child in box if isinstance(child, addnodes.desc_content))
            box.parent[box.parent.index(box):box.parent.index(box) + 1] = content.children


def setup(app):
    # attmirror.torch asks for PyTorch's version; the site is built without PyTorch.
    torch = _MockModule("torch")
    torch.__version__ = "2.5.0"
    sys.modules["torch"] = torch
    # Before the table of contents is collected.
    app.connect("doctree-read", unwrap_namespaces, priority=400)
    app.connect("autodoc-process-docstring", escape_marks, priority=600)
