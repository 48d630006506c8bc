"""Checks the links of the built pages: local targets exist, and no page loads a resource of another site.

    python docs/check_links.py site

Links to other sites are not followed.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key == "id" or (tag, key) == ("a", "name"):
                self.anchors.add(value or "")
            if value and (tag, key) in LOADED | {("a", "href")}:
                self.links.append((tag, key, value))


def problems(site: Path) -> list[str]:
    """Returns a message for each broken link of the pages below a directory."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for tag, key, link in page.links:
            if reason := _problem(pages, path, tag, key, link):
                found.append(f"{path.relative_to(site.resolve())}: {link}: {reason}")
    return found if pages else [f"{site}: no pages"]


def _problem(pages: dict[Path, Page], path: Path, tag: str, key: str, link: str) -> str:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        is_loaded = (tag, key) in LOADED and parts.scheme != "data"
        return "loaded from another site" if is_loaded else ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return "no such file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "no such anchor"
    return ""


if __name__ == "__main__":
    messages = problems(Path(sys.argv[1]))
    print("\n".join(messages) or "All links are valid.")
    sys.exit(bool(messages))
