"""Reads a page as a browser would: a tree of elements with their texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

__all__ = ["Element", "read", "tables"]

_VOID = ("meta", "input", "br", "img", "link")


@dataclass
class Element:
    name: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    def all(self, name: str | None = None, **wanted: str) -> Iterator[Element]:
        """This element and those below it, of a name and with attributes (class_ is one of its classes)."""
        classes = self.attributes.get("class", "").split()
        fits = all(
            wanted_value in classes if key == "class_" else self.attributes.get(key) == wanted_value
            for key, wanted_value in wanted.items()
        )
        if fits and name in (None, self.name):
            yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.all(name, **wanted)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {key: value or "" for key, value in attrs})
        self.open[-1].children.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> ends <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(text: str) -> Element:
    """The tree of a page. Fails where an element is not closed, or closed by another's end."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].name}> is not closed"
    return reader.root


def tables(page: Element) -> list[list[list[str]]]:
    """The cells of each leaderboard, headings first."""
    found = []
    for table in page.all("table", class_="board"):
        heads = [next(head.all("button")).text for head in table.all("th")]
        rows = [[cell.text for cell in row.all("td")] for row in table.all("tr")]
        found.append([heads, *(row for row in rows if row)])
    return found
