"""What a table's columns are, by what is in its rows: kinds, categories, scales, and what is of no use."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pushcen.data.arrays import MOST_CLASSES
from pushcen.data.columns import NUMERIC, Columns, TableColumn, Target
from pushcen.data.sheet import Sheet
from pushcen.errors import DataError

_ONE_HOT = 16  # categories; more are embedded
_FEW = 20  # whole numbers that are classes; more are numbers
BY_CHOICE = "by choice"
_LONGEST = 200  # characters of a category


def measure(
    sheet: Sheet,
    label: str,
    owner: str = "",
    *,
    target: Target | None = None,
    categories: Iterable[str] = (),
    without: Iterable[str] = (),
) -> Columns:
    """Return the columns of a table by what is in its rows; `categories` are so though they look like numbers.

    >>> import pyarrow
    >>> table = pyarrow.table({"age": [31.0, None, 33.0], "sex": ["f", "m", "f"], "ill": [True, False, True]})
    >>> sheet = Sheet("a.csv", table, ("a.csv",), np.zeros(3, int), np.arange(3))
    >>> columns = measure(sheet, "ill")
    >>> columns.target.classes, [(column.name, column.kind, column.inputs) for column in columns.columns]
    (('false', 'true'), [('age', 'number', 2), ('sex', 'category', 2)])
    """
    as_categories, left_out = set(categories), {*without}
    for name in (*as_categories, *left_out):
        sheet.column(name)
    found = []
    for name in sheet.names:
        if name in (label, owner) or name in sheet.index:
            continue
        if name in left_out:
            found.append(TableColumn(name, "left out", why=BY_CHOICE))
        else:
            found.append(_measured(sheet, name, "category" if name in as_categories else sheet.kind(name)))
    return Columns(target or measure_target(sheet, label), tuple(found), owner, len(sheet))


def measure_target(sheet: Sheet, label: str, kind: str = "", *, fewest: int = 2) -> Target:
    """Return what the label is: a class if it is a text, a truth or one of few whole numbers, and else a number.

    `kind` decides it otherwise. Rows in which it is missing do not count. There must be `fewest` classes at least.
    """
    looks = sheet.kind(label)
    if looks == "missing":
        raise DataError(f"{sheet.where}: column {label}, the label, has no value in any row")
    if not kind:
        values = _known(sheet.numbers(label)) if looks == "number" else np.zeros(0)
        whole = bool((values == np.round(values)).all()) and len(np.unique(values)) <= _FEW
        kind = "number" if looks == "number" and not whole else "class"
    if kind == "number":
        values = _known(sheet.numbers(label))
        if values.min() == values.max():
            raise DataError(f"{sheet.where}: column {label}, the label, is {values[0]:g} in each row: nothing to learn")
        return Target(label, kind, (), float(values.mean()), float(values.std()))
    texts = _told(sheet.texts(label))
    classes = sorted_texts(texts)
    if len(classes) < fewest:
        raise DataError(
            f"{sheet.where}: column {label}, the label, is {classes[0][:40]!r} in each row: nothing to learn"
        )
    if len(classes) > min(MOST_CLASSES, max(_FEW, len(texts) // 2)):
        raise DataError(
            f"{sheet.where}: column {label}, the label, has {len(classes):,} classes in {len(texts):,} rows: must be "
            "few; target = 'number' takes numbers as such"
        )
    return Target(label, kind, classes)


def _measured(sheet: Sheet, name: str, kind: str) -> TableColumn:
    if kind == "missing":
        return TableColumn(name, "left out", why="it has no value in any row")
    if kind in NUMERIC:
        values = sheet.numbers(name, kind)
        known = _known(values)
        missing = len(known) < len(values)
        mean, deviation = float(known.mean()), float(known.std())
        if known.min() == known.max() or deviation <= 1e-12 * abs(mean):
            if not missing:
                return TableColumn(name, "left out", why="it is the same in each row")
            deviation = 1.0
        elif kind == "number" and not missing and _counts(values):
            return TableColumn(name, "left out", why="it numbers the rows")
        return TableColumn(name, kind, mean, deviation, missing)
    texts = sheet.texts(name)
    told = _told(texts)
    there = sorted_texts(told)
    if len(there) == 1 and len(told) == len(texts):
        return TableColumn(name, "left out", why="it is the same in each row")
    if (len(there) == len(told) and len(told) > 2) or len(there) > max(_ONE_HOT, len(told) // 2):
        return TableColumn(name, "left out", why=f"it has {len(there):,} different texts in {len(told):,} rows")
    if (longest := max(map(len, there))) > _LONGEST:
        return TableColumn(name, "left out", why=f"it has texts of up to {longest:,} characters")
    return category_column(name, there, missing=len(told) < len(texts))


def category_column(name: str, categories: Iterable[str], missing: bool) -> TableColumn:
    """Return a column of categories: few have an input each, many are embedded.

    >>> category_column("sex", ["m", "f"], missing=False).categories
    ('f', 'm')
    """
    there = sorted_texts(categories)
    length = 0 if len(there) <= _ONE_HOT else min(16, math.ceil(math.sqrt(len(there))))
    return TableColumn(name, "category", missing=missing, categories=there, embedded=length)


def sorted_texts(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each text once, numbers first and in their own order.

    >>> sorted_texts(["b", "10", "9", "b"])
    ('9', '10', 'b')
    """
    return tuple(sorted(set(texts), key=_order))


def _counts(values: NDArray[np.float64]) -> bool:
    """Return whether the values number the rows, of which some may be elsewhere: whole, all different, close."""
    dense = len(values) > _FEW and np.ptp(values) < 2 * len(values)
    return bool(dense and (values == np.round(values)).all() and len(np.unique(values)) == len(values))


def _known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[~np.isnan(values)]


def _told(texts: Iterable[str | None]) -> list[str]:
    return [text for text in texts if text is not None]


def _order(text: str) -> tuple[float, str]:
    """Order numbers by what they are, and before all words."""
    try:
        value = float(text)
    except ValueError:
        return math.inf, text
    return (value if math.isfinite(value) else math.inf), text
