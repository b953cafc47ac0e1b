"""Visit every page of the built site with Chromium: ``python tools/site_check.py build/site [--pictures DIR]``.

Each page is opened at the width of a desktop and of a phone. There must be no error on the console, no picture and no
link that leads nowhere, no formula left as text, and nothing wider than the screen. Search must find a word. Links to
other sites are listed, not followed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

WIDTHS = {"desktop": (1280, 800), "phone": (390, 844)}
PICTURES = (
    "index.html",
    "tutorials/quantiles.html",
    "api/generated/saddleback.estimators.Lasso.html",
    "theory/tall.html",
)
SECONDS = 30
"""How long a page may take to show its formulas, or its search results."""

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip

# what the browser has laid out: pictures without pixels, formulas without a layout, and what sticks out of the page
LOOK = """
return {
  pictures: [...document.images].filter(i => i.complete && !i.naturalWidth && i.loading != "lazy").map(i => i.src),
  formulas: [...document.querySelectorAll("span.math, div.math")].filter(m => !m.querySelector("mjx-container")).length,
  failed: document.querySelectorAll("mjx-merror").length,
  width: document.documentElement.scrollWidth,
  screen: window.innerWidth,
};
"""

READY = "return !!(window.MathJax && MathJax.startup && MathJax.startup.promise)"
TYPESET = "const done = arguments[0]; MathJax.startup.promise.then(() => done(), () => done())"


class Links(HTMLParser):
    """The targets of links and pictures of a page, and the names that links can point to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag points to, and its own name."""
        values = {name: value for name, value in attrs if value}
        self.names.update(values[key] for key in ("id", "name") if key in values)
        self.targets.update(values[key] for key in ("href", "src") if key in values and tag in ("a", "img", "source"))


def dead_links(site: Path) -> tuple[list[str], set[str]]:
    """Return links of all pages that lead nowhere, and the links to other sites."""
    pages = {path.resolve(): Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    dead: list[str] = []
    others: set[str] = set()
    for page, links in pages.items():
        for link in links.targets:
            if link.startswith(("http:", "https:")):
                others.add(link)
                continue
            if link.startswith(("mailto:", "data:", "javascript:")):
                continue
            target, name = urldefrag(link)
            file = (page.parent / unquote(target.split("?")[0])).resolve() if target else page
            file = file / "index.html" if file.is_dir() else file
            missing = not file.exists() or (name and file in pages and unquote(name) not in pages[file].names)
            if missing:
                dead.append(f"{page.relative_to(site.resolve())}: {link}")
    return dead, others


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


@contextmanager
def browser(width: int, height: int) -> Iterator[webdriver.Chrome]:
    """Start Chromium with a screen of the given size; a phone is emulated, as windows cannot be that narrow."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
        try:
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            yield driver
        finally:
            driver.quit()


def faults(driver: webdriver.Chrome, address: str) -> list[str]:
    """Return what is wrong with a page."""
    driver.get(address)
    if driver.execute_script("return !!document.querySelector('.math')"):
        WebDriverWait(driver, SECONDS).until(lambda d: d.execute_script(READY))
        driver.execute_async_script(TYPESET)
    seen = driver.execute_script(LOOK)
    found = [f"no picture: {source}" for source in seen["pictures"]]
    found += [f"{seen['formulas']} formulas are not rendered"] * bool(seen["formulas"])
    found += [f"{seen['failed']} formulas have errors"] * bool(seen["failed"])
    found += [f"{seen['width']} pixels wide on a screen of {seen['screen']}"] * (seen["width"] > seen["screen"])
    return found + [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def search_finds(driver: webdriver.Chrome, root: str, word: str) -> bool:
    """Return whether the search of the site finds pages for a word."""
    driver.get(urljoin(root, f"search.html?q={word}"))
    try:
        WebDriverWait(driver, SECONDS).until(lambda d: d.find_elements(By.CSS_SELECTOR, "ul.search li a"))
    except Exception:
        return False
    return True


def main() -> int:
    """Check a site; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("--pictures", type=Path, help="folder for pictures of some pages")
    arguments = parser.parse_args()
    dead, others = dead_links(arguments.site)
    problems = [f"dead link in {link}" for link in dead]
    pages = sorted(str(path.relative_to(arguments.site)) for path in arguments.site.rglob("*.html"))
    pages = [page for page in pages if not page.startswith("_")]
    with served(arguments.site) as root:
        for name, size in WIDTHS.items():
            with browser(*size) as driver:
                for page in pages:
                    problems += [f"{page} on a {name}: {fault}" for fault in faults(driver, urljoin(root, page))]
                    if arguments.pictures and page in PICTURES:
                        arguments.pictures.mkdir(parents=True, exist_ok=True)
                        driver.save_screenshot(str(arguments.pictures / f"{Path(page).stem}-{name}.png"))
                if not search_finds(driver, root, "quantile"):
                    problems.append(f"search on a {name} does not find 'quantile'")
    print(f"{len(others)} links to other sites:", *sorted(others), sep="\n  ")
    print(f"{len(pages)} pages at {len(WIDTHS)} widths, {len(problems)} problems", *problems, sep="\n  ")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
