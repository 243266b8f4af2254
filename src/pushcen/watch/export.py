"""The page: its files put together, for a server, or with all data inside as one file that needs none."""

import base64
import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pushcen.files import write_whole
from pushcen.watch.source import Update, Watch

PAGE = Path(__file__).parent / "page"
SCRIPTS = (
    "replay.js",
    "network.js",
    "chart.js",
    "curves.js",
    "book.js",
    "matrix.js",
    "log.js",
    "peers.js",
    "now.js",
    "main.js",
)
STYLE = "style.css"
MOST = 5_000_000
"""Bytes of a page that is one file; of runs that would take more, fewer events are in it."""
_BY_BORN = {"m": 3, "s": 3, "a": 4, "l": 4, "d": 4}  # where an event has the number of its compute event


def write_page(watch: Watch, file: Path) -> tuple[int, int]:
    """Write runs as one file that plays from disk; return its bytes, and n: one in n events is in it."""
    updates, every = watch.whole(), 1
    while len(page := whole_page(updates).encode()) > MOST and every < 1 << 16:
        every *= 2
        updates = [_thinned(update, every) for update in updates]
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, page)
    return len(page), every


def served_page() -> str:
    """Return the page that asks a server for its data."""
    scripts = "".join(f'<script src="{name}" defer></script>\n' for name in SCRIPTS)
    return _page(f'<link rel="stylesheet" href="{STYLE}">\n', scripts)


def whole_page(updates: Sequence[Update]) -> str:
    """Return the page with all data inside. Only its own script may run, and nothing is loaded from anywhere."""
    style = (PAGE / STYLE).read_text("utf-8")
    script = "\n".join((PAGE / name).read_text("utf-8") for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    data = f'<script type="application/json" id="data">{_as_script(updates)}</script>\n'
    return _page(head, f"{data}<script>{script}</script>\n")


def _page(head: str, scripts: str) -> str:
    page = (PAGE / "index.html").read_text("utf-8")
    return page.replace("<!-- head -->\n", head).replace("<!-- scripts -->\n", scripts)


def _as_script(data: Any) -> str:
    """Return JSON that no HTML can be in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _thinned(update: Update, every: int) -> Update:
    """Return an update with half of its compute events and, the second time, with half of its clients' states."""
    head = update.get("facts", {}).get("head")
    if head is None:
        return update
    step = head["every"] * 2
    exchanges = itertools.count()  # which have no number
    kept = [event for event in update.get("events", []) if _stays(event, step, exchanges)]
    whole = [at for at, state in enumerate(update.get("states", [])) if "held" in state]
    dropped = set(whole[-2::-2]) if every > 2 else set()
    states = [state for at, state in enumerate(update.get("states", [])) if at not in dropped]
    facts = update["facts"] | {"head": head | {"every": step}}
    return {**update, "events": kept, "states": states, "facts": facts}


def _stays(event: list[Any], step: int, exchanges: Iterator[int]) -> bool:
    if event[0] == "x":
        return next(exchanges) % 2 == 0
    return event[0] not in _BY_BORN or event[_BY_BORN[event[0]]] % step == 0
