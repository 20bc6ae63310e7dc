"""Draw the built pages in Chromium: `python docs/check_drawn.py docs/_build/html`.

On a phone and on a desk no page is wider than the screen (tables and code scroll in their own
boxes), text stands out from what is behind it in the light and in the dark theme (4.5:1, WCAG 2.2
AA), and every formula is drawn. Without a Chromium this says so, and does nothing. The pages are
served on this machine only, to be read by one frame of one page, ``check_drawn.js``.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SCRIPT = Path(__file__).with_suffix(".js")
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--no-proxy-server", "--window-size=1400,1000"),
)
#: A page that takes longer than this will not come.
SECONDS = 120


class Handler(SimpleHTTPRequestHandler):
    """Serve the site, the list of its pages, the script; and take the script's reports."""

    def __init__(self, *args, pages, reports, **options):
        self.pages, self.reports = pages, reports
        super().__init__(*args, **options)

    def do_GET(self):
        """Answer with what is asked for."""
        if self.path == "/pages":
            self.answer(json.dumps(self.pages), "application/json")
        elif self.path == "/check":
            page = f'<iframe style="height: 900px"></iframe><script>{SCRIPT.read_text()}</script>'
            self.answer(page, "text/html; charset=utf-8")
        else:
            super().do_GET()

    def do_POST(self):
        """Take a report."""
        self.reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer("", "text/plain")

    def answer(self, text, kind):
        """Send a text."""
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing of requests."""


def reports(browser, folder, pages):
    """Yield each page and what is wrong with it."""
    received = queue.Queue()
    handler = partial(Handler, directory=str(folder), pages=pages, reports=received)
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/check"
        # A port for remote control keeps it running until it is told to stop.
        command = [browser, *OPTIONS, f"--user-data-dir={profile}", "--remote-debugging-port=0"]
        process = subprocess.Popen([*command, address], stderr=subprocess.DEVNULL)
        try:
            while (report := received.get(timeout=SECONDS)) is not None:
                yield report
        finally:
            process.terminate()
            process.wait(timeout=30)
            server.shutdown()


def main():
    """Check the pages whose path has one of the given words, or all; return if any is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        print("no Chromium here: pages were not drawn (say where one is by CHROMIUM=...)")
        return 0
    folder = given.site.resolve()
    paths = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.html"))
    pages = [
        f"/{path}"
        for path in paths
        if not path.startswith("_") and (not given.words or any(w in path for w in given.words))
    ]
    found = 0
    for page, problems in reports(browser, folder, pages):
        found += len(problems)
        for problem in problems:
            print(f"{page}: {problem}", flush=True)
    print(f"{len(pages)} pages drawn, {found} problems")
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())
