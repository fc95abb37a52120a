"""Pages of `postern ui` in a real Chromium, and the web page that would read them."""

import http.server
import shutil
import subprocess
import threading
from contextlib import contextmanager

from waiting import becomes

BROWSERS = ("chromium-headless-shell", "chromium")
# The name of a web page that its owner lets resolve to the loopback.
EVIL = "evil.example"
# Without a sandbox: it would want namespaces, which containers and root do not have.
OPTIONS = ["--no-sandbox", f"--host-resolver-rules=MAP {EVIL} 127.0.0.1"]
PATIENCE = 60_000


class Browser:
    """A Chromium, and where screenshots go."""

    def __init__(self, playwright, pictures):
        program = next(filter(None, map(shutil.which, BROWSERS)))
        self.chromium = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        self.pictures = pictures
        pictures.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def window(self, url, path="", **context):
        """A page that is open at an address; `said` gathers its errors, `asked` what it loads."""
        with self.chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, "timezone_id": "UTC", "locale": "en"} | context) as own:
            page = own.new_page()
            page.set_default_timeout(PATIENCE)
            page.said, page.asked = [], []
            page.on("console", lambda message: page.said.append(message.text))
            page.on("pageerror", lambda error: page.said.append(str(error)))
            page.on("request", lambda request: page.asked.append(request.url))
            page.goto(url + path)
            yield page

    def picture(self, page, name):
        page.screenshot(path=self.pictures / f"{name}.png")


class Server:
    """`postern ui` over a file of lines, or over standard input."""

    def __init__(self, postern, ledger):
        self.ledger = ledger
        self.process = subprocess.Popen([postern, "ui", "--ledger", ledger], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url.startswith("http://127.0.0.1:"):
            raise RuntimeError(f"no address: {self.url!r}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()

    def add(self, lines):
        with self.ledger.open("a") as file:
            file.write(lines)


def shows(page, count):
    """Waits until the page knows so many events."""
    page.wait_for_selector(f'html[data-events="{count}"]', state="attached")


def address(page):
    """What stands behind `#` in the address bar."""
    return page.url.partition("#")[2]


def settles(page, holds):
    """Whether a condition comes to hold in the page."""
    return becomes(holds, seconds=PATIENCE / 1000, pause=0.05)


@contextmanager
def website(content):
    """A web page of somebody else, on a port of its own."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
