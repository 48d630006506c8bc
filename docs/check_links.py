"""Look at every link of the built pages: what is on this site must be there, and nothing is loaded from elsewhere.

    python docs/check_links.py site

Addresses of other sites are not visited.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """The names that a page gives to its parts, and where it leads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[tuple[str, str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key == "id" or (tag, key) == ("a", "name"):
                self.names.add(value or "")
            if value and (tag, key) in LOADED | {("a", "href")}:
                self.links.append((tag, key, value))


def problems(site: Path) -> list[str]:
    """What is wrong with the links of all pages below a directory."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for tag, key, link in page.links:
            if reason := _problem(pages, path, tag, key, link):
                found.append(f"{path.relative_to(site.resolve())}: {link}: {reason}")
    return found if pages else [f"{site}: there are no pages"]


def _problem(pages: dict[Path, Page], path: Path, tag: str, key: str, link: str) -> str:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        is_loaded = (tag, key) in LOADED and parts.scheme != "data"
        return "it is loaded from another site" if is_loaded else ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return "there is no such file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
        return "that page has no such part"
    return ""


if __name__ == "__main__":
    complaints = problems(Path(sys.argv[1]))
    print("\n".join(complaints) or "All links of the pages lead somewhere.")
    sys.exit(bool(complaints))
