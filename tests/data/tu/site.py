"""A local web site with zips."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Site:
    """The files of the site and the requests that it received.

    Attributes:
        files: The content of each path.
        missing: The number of bytes of each file that are announced and not sent.
        status: The status of each response.
        requested: The requested paths.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/sets"
        self.files: dict[str, bytes] = {}
        self.missing = 0
        self.status = 200
        self.requested: list[str] = []


@contextmanager
def serving() -> Iterator[Site]:
    """The site, for as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requested.append(self.path)
            content = site.files.get(self.path)
            self.send_response(404 if content is None else site.status)
            self.send_header("Content-Length", str(len(content or b"") + site.missing))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *words: object) -> None:
            """Writes no log."""

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
