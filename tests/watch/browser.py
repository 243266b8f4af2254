"""Debian's Chromium, driven by playwright; tests that need it are skipped with a word where either is missing."""

import shutil
import time

import pytest

needs_chromium = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="needs Debian's chromium on the PATH: apt-get install chromium"
)


@pytest.fixture(scope="module")
def chromium():
    """A browser. Its loop is in this thread, so it is gone before tests of another file, which may start one."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


def until(page, true, given=None):
    """Wait until something is true in a page, and return it. (Pages forbid `eval`, by which playwright would wait.)"""
    end = time.monotonic() + 60
    while not (found := page.evaluate(true, given)):
        assert time.monotonic() < end, f"not true in a minute: {true}"
        page.wait_for_timeout(30)
    return found


@pytest.fixture
def open_page(chromium):
    """Open addresses; whatever a page says in its console, or asks of the network, is kept."""
    contexts = []

    def go(address, wait="page.shown && page.frames > 0", **options):
        context = chromium.new_context(viewport={"width": 1300, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(address)
        until(page, wait)
        return page

    yield go
    for context in contexts:
        context.close()
