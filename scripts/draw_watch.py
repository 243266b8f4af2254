"""Draw docs/pictures/watch.png: `pushcen watch` of a comparison, a moment after a client has joined late.

It needs Debian's chromium, and playwright: `scripts/draw_watch.py runs/compare-digits`.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from pushcen.watch import Watch, write_page

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "watch.png"
MOMENT = "t=6.02&client=15"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        file = Path(folder) / "page.html"
        write_page(Watch([Path(sys.argv[1])]), file)
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1360, "height": 1130}, color_scheme="light")
        page.goto(f"{file.as_uri()}#{MOMENT}")
        page.wait_for_timeout(2000)
        page.screenshot(path=PICTURE)
        browser.close()
    Image.open(PICTURE).convert("RGB").quantize(160, dither=Image.Dither.NONE).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
