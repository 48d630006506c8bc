"""A web site on this machine that has zips, or pretends to."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Site:
    """What the site has, and what was asked of it.

    Attributes:
        files: What is at every path.
        missing: How many bytes of every file are promised and not sent.
        status: What every request is answered with, if it is not 200.
        asked: The paths that were asked for.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/sets"
        self.files: dict[str, bytes] = {}
        self.missing = 0
        self.status = 200
        self.asked: list[str] = []


@contextmanager
def serving() -> Iterator[Site]:
    """The site, for as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            content = site.files.get(self.path)
            self.send_response(404 if content is None else site.status)
            self.send_header("Content-Length", str(len(content or b"") + site.missing))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, pytest.MonkeyPatch.context() as patch:
        site = Site(server.server_port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        patch.setenv("no_proxy", "127.0.0.1")
        patch.setattr("bellnet.data.tu.cache.SITE", site.url)
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
