"""Links of Markdown pages: a relative one leads to a file or folder of the checkout, and its anchor to a heading there."""

import os
import re
import unicodedata

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\((?P<target>[^)\s]+)\)")
FENCED = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


def blank(match):
    """As many lines as there were, so that later lines keep their numbers."""
    return "\n" * match[0].count("\n")


def slug(heading):
    """The anchor that code hosts, and the site, give a heading."""
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    heading = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return heading.replace(" ", "-")


def anchors_of(text):
    """All anchors of a page; the second of two equal headings ends with -1."""
    anchors, seen = set(), {}
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", FENCED.sub(blank, text), re.MULTILINE):
        name = slug(heading)
        # Raised digits are part of the anchor for some programs and not for others: no link to such a heading is safe.
        if any(unicodedata.category(letter) == "No" for letter in name):
            continue
        count = seen.get(name, 0)
        seen[name] = count + 1
        anchors.add(f"{name}-{count}" if count else name)
    return anchors


def links_of(text):
    """(line, target) of each link outside of code."""
    text = CODE_SPAN.sub(lambda match: "x" + blank(match), FENCED.sub(blank, text))
    return [(text.count("\n", 0, match.start()) + 1, match["target"]) for match in LINK.finditer(text)]


def check_links(source, pages):
    """Sentences about links that lead nowhere."""
    failures, anchors = [], {}
    for page in pages:
        for line, target in links_of((source / page).read_text(encoding="utf-8")):
            if re.match(r"[a-z][a-z+.-]*:", target):
                continue
            path, _, anchor = target.partition("#")
            place = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not (source / place).exists():
                failures.append(f"{page}:{line}: {target}: there is no {place}")
            elif anchor and place.endswith(".md"):
                if place not in anchors:
                    anchors[place] = anchors_of((source / place).read_text(encoding="utf-8"))
                if anchor not in anchors[place]:
                    failures.append(f"{page}:{line}: {target}: {place} has no such heading")
    return failures
