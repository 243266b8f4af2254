"""A table as its files hold it, and its cells as numbers, dates, truths or texts.

Cells of a CSV file are texts until somebody asks for another kind, so that several files of one table agree. Errors
name the file, the column and the row; rows count from 1, without the header.
"""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pushcen.errors import DataError

_LARGEST = 1e30  # its square is a float32 no more
_DAY = 86_400_000_000  # microseconds
_TRUTHS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, eq=False)
class Sheet:
    """Rows of one or more files with the same columns; `index` names those that were an index of pandas.

    >>> import pyarrow
    >>> sheet = Sheet("a.csv", pyarrow.table({"age": ["31", None, "old"]}), ("a.csv",), np.zeros(3, int), np.arange(3))
    >>> sheet.numbers("age")
    Traceback (most recent call last):
    pushcen.errors.DataError: a.csv, column age, row 3: 'old': must be a number
    """

    where: str
    table: Any
    files: tuple[str, ...]
    file: NDArray[np.int64]  # of each row
    row: NDArray[np.int64]  # in its file, from 0
    index: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.table)

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return list(self.table.column_names)

    def take(self, rows: NDArray[np.int64]) -> "Sheet":
        """Return some of its rows; they are still called by their numbers in the file."""
        return replace(self, table=self.table.take(rows), file=self.file[rows], row=self.row[rows])

    def column(self, name: str, role: str = "column") -> Any:
        """Return a column; where there is none, the error names those that are near."""
        if name not in self.table.column_names:
            raise DataError(f"{self.where}: has no {role} {name!r}. {near(name, self.names)}")
        return self.table.column(name)

    def refuse(self, name: str, at: int, why: str) -> DataError:
        """Return the error for one cell."""
        return DataError(f"{self.place(at, name)}: {why}")

    def place(self, at: int, name: str = "") -> str:
        """Return where a row is: its file and number, and which column is meant."""
        return f"{self.files[self.file[at]]}{f', column {name}' if name else ''}, row {self.row[at] + 1}"

    def kind(self, name: str) -> str:
        """Return what all cells of a column can be read as: number, boolean, date or category; or missing."""
        import pyarrow.types as types

        column = self.column(name)
        if column.null_count == len(column):
            return "missing"
        form = column.type
        if types.is_boolean(form):
            return "boolean"
        if types.is_date(form) or types.is_timestamp(form):
            return "date"
        for kind in ("number", "boolean", "date"):
            if (values := _read(column, kind)) is not None:
                return "missing" if np.isnan(values).all() else kind
        return "category"

    def numbers(self, name: str, kind: str = "number") -> NDArray[np.float64]:
        """Return a column of numbers, booleans (0 and 1) or dates (days since 1970); what is missing is NaN."""
        column = self.column(name)
        values = _read(column, kind)
        if values is None:
            wanted = {"boolean": "true or false", "date": "a date such as 2020-12-31"}.get(kind, "a number")
            for at, text in enumerate(self.texts(name)):
                if text is not None and _read(text_column([text]), kind) is None:
                    comma = re.fullmatch(r"[-+]?\d+,\d+", text) and kind == "number"
                    raise self.refuse(name, at, f"{text[:40]!r}: must be {wanted}" + ", with a point" * bool(comma))
            raise DataError(f"{self.where}: column {name} has type {column.type}: must be {wanted} in each row")
        large = np.flatnonzero(np.abs(values) >= _LARGEST)  # of NaN it is false
        if len(large):
            raise self.refuse(name, int(large[0]), f"{values[large[0]]:g}: must be finite, and below {_LARGEST:g}")
        return values

    def texts(self, name: str) -> NDArray[Any]:
        """Return a column of texts, None where one is missing: `3.0` is `3` and `True` is `true`, in every file."""
        import pyarrow

        column = self.column(name)
        if pyarrow.types.is_floating(column.type) or pyarrow.types.is_decimal(column.type):
            written = [None if value != value else repr(value) for value in self.numbers(name).tolist()]
        else:
            try:
                written = column.cast("string").to_pylist()
            except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
                raise DataError(
                    f"{self.where}: column {name} has type {column.type}: must be numbers, dates or texts"
                ) from None
        texts = np.empty(len(written), object)
        texts[:] = [None if text is None else _alike(text) for text in written]
        return texts


def _alike(text: str) -> str:
    if text.endswith("0") and (found := re.fullmatch(r"([-+]?\d+)\.0+", text)):
        return found[1]
    return text.lower() if text.lower() in _TRUTHS else text


def near(name: str, names: Iterable[str]) -> str:
    """Return which name may have been meant, and which there are; the index of pandas has none.

    >>> near("outcom", ["", "age", "outcome"])
    'Did you mean outcome? It has age, outcome'
    """
    there = [one for one in names if one]
    by_case = {one.lower(): one for one in there}
    found = [by_case[one] for one in difflib.get_close_matches(name.lower(), by_case, n=3, cutoff=0.6)]
    guess = f"Did you mean {' or '.join(found)}? " if found else ""
    shown = ", ".join(there)
    return f"{guess}It has {shown if len(shown) <= 300 else shown[:300] + ', ...'}"


def text_column(values: Iterable[str | None]) -> Any:
    """Return texts as a column of a table."""
    import pyarrow

    return pyarrow.chunked_array([pyarrow.array(list(values), pyarrow.string())])


def _read(column: Any, kind: str) -> NDArray[np.float64] | None:
    """Return a column as float64, if all its cells are of the kind; numbers count as truths, and truths as numbers."""
    import pyarrow as pa

    form = column.type
    try:
        if pa.types.is_string(form) or pa.types.is_large_string(form):
            if kind == "boolean":
                texts = [None if text is None else text.lower() for text in column.to_pylist()]
                if not all(text is None or text in _TRUTHS for text in texts):
                    return None
                return np.array([np.nan if text is None else _TRUTHS[text] for text in texts])
            column = _timestamps(column) if kind == "date" else column.cast("float64")
        if kind == "date":
            if not (pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)):
                return None
            since = column.cast(pa.timestamp("us", getattr(column.type, "tz", None)), safe=False).cast("int64")
            return np.asarray(since.cast("float64").to_numpy(), np.float64) / _DAY
        if pa.types.is_temporal(column.type):
            return None
        column = column.cast("uint8") if pa.types.is_boolean(column.type) else column
        return np.array(column.cast("float64", safe=False).to_numpy(), np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _timestamps(column: Any) -> Any:
    import pyarrow as pa

    try:
        return column.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return column.cast(pa.timestamp("us", "UTC"))  # all with a zone
