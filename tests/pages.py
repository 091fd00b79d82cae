"""What every HTML page of gapview must be, whatever it shows."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Outline(HTMLParser):
    """Checks that tags close in order; collects ids, references, headings and text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.links, self.labelled, self.text = [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attributes = dict(attrs)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        self.links += [attributes[name] for name in ("href", "src", "xlink:href") if name in attributes]
        self.labelled += [attributes["aria-labelledby"]] if "aria-labelledby" in attributes else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def check_page(text):
    """Check what every page must be."""
    outline = Outline(text)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert len(outline.ids) == len(set(outline.ids))
    inner = [link for link in outline.links if not link.startswith("data:image/png;base64,")]  # part of the page
    assert all(link.startswith("#") for link in inner)
    assert {link[1:] for link in inner} | set(outline.labelled) <= set(outline.ids)
    assert not re.search(r"https?://|@import|javascript:", text)
    assert {"script", "iframe", "link", "object"}.isdisjoint(outline.tags)
    return outline
