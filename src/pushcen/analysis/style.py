"""How curves look: a colour, a line and a marker for each method, the same in every figure, told apart without colour.

Settings of one method have shades of its colour, with lines and markers of their own.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from pushcen.drawing import BLUE, GREEN, INK, ORANGE, PINK, YELLOW


class Style(NamedTuple):
    """The look of one curve, and of the bar that belongs to it."""

    colour: str
    line: Any
    marker: str
    hatch: str


_METHODS = {
    "pushcen": Style(BLUE, "-", "o", ""),
    "pushcen-lean": Style("#5E3C99", (0, (4, 1, 2, 1)), "h", "**"),
    "async-dfedavg": Style(ORANGE, "--", "s", "//"),
    "swift": Style(GREEN, "-.", "^", "xx"),
    "divshare": Style(PINK, ":", "D", ".."),
    "independent": Style(INK, (0, (6, 1, 1, 1, 1, 1)), "v", "\\\\"),
    "push-sum": Style(YELLOW, (0, (8, 2)), "P", "++"),
    "swift-random": Style("#66C5AB", (0, (3, 1)), "X", "--"),
    "epidemic": Style("#A6761D", (0, (1, 1)), "*", "o"),
    "sgp": Style("#B2182B", (0, (7, 1, 1, 1)), "<", "|"),
    "quantized-push-sum": Style("#4D9221", (0, (5, 1, 1, 1, 1, 1)), ">", "-"),
    "rasgp": Style("#7F3B08", (0, (2, 2)), "p", "x"),
    "d-psgd": Style("#C51B7D", (0, (10, 3)), "4", "O/"),
    "choco": Style("#9E9AC8", (0, (3, 2, 1, 2)), "+", "O-"),
    "moniqua": Style("#969696", (0, (1, 3)), "|", "O|"),
    "ad-psgd": Style("#1F78B4", (0, (9, 1, 2, 1)), "1", "/o"),
    "a2cid2": Style("#08306B", (0, (6, 2, 2, 2)), "2", "\\\\o"),
    "dspodfl": Style("#6BAED6", (0, (4, 3)), "3", "-o"),
    "spafl": Style("#0B7A75", (0, (1, 2)), "x", "///"),
    "fedkd": Style("#5B7DB1", (0, (3, 3)), "_", "\\\\\\"),
}
_OTHERS = tuple(
    Style(colour, line, marker, hatch)
    for line, marker, hatch in (("-", "d", "oo"), ((0, (5, 1)), "H", "OO"), ((0, (2, 1)), "8", "oo.."))
    for colour in ("#8A7B00", "#7B4B94", "#8C564B", "#9E2A2B")
)  # for methods that are not in the package
_LINES = ("--", "-.", (0, (5, 1)), ":", (0, (7, 1, 1, 1)), (0, (3, 1, 1, 1, 1, 1)), "-")
_MARKERS = ("*", "p", "<", ">", "h", "x", "+", "1", "2", "3", "4", ".")
_HATCHES = ("|", "///", "\\\\\\", "+", "x", "o", "O", ".", "*", "-", "||", "---")
_SHADES = (0.4, -0.45, 0.0)  # lighter, darker, the same


def styles(methods: Sequence[str], paper: Collection[int] = ()) -> list[Style]:
    """Return a look for each curve: a method's first has the method's own, its others shades of it.

    The look of a method that is not in the package depends on its name alone. `paper` has the places of curves by the
    paper's rules: where a method has other curves too, one shade is reserved for these.

    >>> [style.marker for style in styles(["swift", "pushcen", "pushcen"])]
    ['^', 'o', 'p']
    """
    own = _own(methods)
    several = {method for method, count in Counter(methods).items() if count > 1}
    seen: set[str] = set()
    found, at = [], 0
    for place, method in enumerate(methods):
        apart = place in paper and method in several
        if not apart and method not in seen:
            seen.add(method)
            found.append(own[method])
            continue
        at += not apart
        found.append(_shade(own[method], 0 if apart else at))
    return found


def _own(methods: Sequence[str]) -> dict[str, Style]:
    """Return each method's own look; two names never share one, whatever their order."""
    found: dict[str, Style] = {}
    for method in sorted(set(methods)):
        first = crc32(method.encode())
        turns = [_OTHERS[(first + turn) % len(_OTHERS)] for turn in range(len(_OTHERS))]
        taken, markers = set(found.values()), {style.marker for style in found.values()}
        turns.sort(key=lambda style: (style in taken, style.marker in markers))
        found[method] = _METHODS.get(method, turns[0])
    return found


def _shade(style: Style, at: int) -> Style:
    amount = _SHADES[at % len(_SHADES)]
    parts = (int(style.colour[start : start + 2], 16) for start in (1, 3, 5))
    mixed = (round(part + amount * (255 - part) if amount > 0 else part * (1 + amount)) for part in parts)
    return Style(
        "#" + "".join(f"{part:02X}" for part in mixed),
        _LINES[at % len(_LINES)],
        _MARKERS[at % len(_MARKERS)],
        _HATCHES[at % len(_HATCHES)],
    )
