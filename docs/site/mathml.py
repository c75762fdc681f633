"""A Sphinx extension: formulas as MathML, made when the site is built. Readers need neither a network nor a script."""

import html
import re

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)

# What Docutils' converter does not know, in words that it does.
SYNONYMS = ((r"\\dots\b", r"\\ldots"), (r"\\(Bigg?|bigg?)(?![a-zA-Z])", ""))


def mathml(text, as_block, place=None):
    """The MathML of a formula. One that the converter does not understand is a warning, and so fails the build."""
    for pattern, word in SYNONYMS:
        text = re.sub(pattern, word, text)
    try:
        result = latex2mathml.tex2mathml(text, as_block=as_block)
    except (latex2mathml.MathError, AttributeError, IndexError) as error:
        logger.warning("formula that cannot be typeset: %s (%s)", text, error, location=place)
        return f"<code>{html.escape(text)}</code>"
    # The bars of a norm are no brackets to the converter: one of a pair would grow with its surroundings, the other not.
    return re.sub(r'<mo(?: stretchy="false")?>([|‖])</mo>', r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', result)


def visit_math(translator, node):
    translator.body.append(f'<span class="math">{mathml(node.astext(), False, node)}</span>')
    raise nodes.SkipNode


def visit_math_block(translator, node):
    translator.body.append(f'<div class="math">{mathml(node.astext(), True, node)}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
