"""The built pages, served over HTTP, and a headless browser to open them in."""

import functools
import http.server
import os
import shutil
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest
from selenium import webdriver

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
AXE = "axe-core@4.14.0"


def need(available: object, what: str) -> None:
    """Without `what`: fail in CI, skip with a reason elsewhere."""
    if not available:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{what} is missing")


@pytest.fixture(scope="session")
def html() -> Path:
    need((HTML / "index.html").exists(), "the built book (make html)")
    return HTML


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves 404.html for whatever is missing, as GitHub Pages does."""

    def send_error(self, code, message=None, explain=None):
        self.error_message_format = (HTML / "404.html").read_text().replace("%", "%%")
        super().send_error(code, message, explain)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def served(html):
    """Address of the book on a local server."""
    handler = functools.partial(Handler, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    binary = next(filter(None, map(shutil.which, names)), None)
    driver = shutil.which("chromedriver")
    need(binary and driver, "Chromium with its driver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    profile = tmp_path_factory.mktemp("profile")
    flags = (
        "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
        f"disable-component-update disable-sync user-data-dir={profile}"
    )
    for flag in flags.split(" "):
        options.add_argument(f"--{flag}")
    service = webdriver.ChromeService(driver)
    browser = webdriver.Chrome(options=options, service=service)
    browser.set_script_timeout(60)
    yield browser
    browser.quit()


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, fetched once by npm as it is configured."""
    folder = ROOT / "_build" / AXE
    script = folder / "axe.min.js"
    if not script.exists():
        npm = shutil.which("npm")
        need(npm, "npm (it comes with Node.js)")
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([npm, "pack", AXE], cwd=folder, capture_output=True, text=True)
        need(done.returncode == 0, f"{AXE} (npm pack said: {done.stderr.strip()[-300:]})")
        with tarfile.open(next(folder.glob("*.tgz"))) as package:
            script.write_bytes(package.extractfile("package/axe.min.js").read())
    return script.read_text(encoding="utf-8")
