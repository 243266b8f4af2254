"""CSV and parquet files of tables. Nothing in them is trusted; errors name the file and the row."""

import codecs
import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pushcen.data.sheet import Sheet, text_column
from pushcen.errors import DataError

SUFFIXES = (".csv", ".tsv", ".parquet")
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", "?")
"""Texts that count as a missing value."""
_LONGEST_CELL = 1 << 16  # bytes
_LONGEST_ROW = 1 << 22  # bytes; a quote that is never closed makes a row of the rest of the file
_INDEX = re.compile(r"|Unnamed: \d+(\.\d+)?|__index_level_\d+__")


def read_sheet(paths: Sequence[Path], where: str = "") -> Sheet:
    r"""Read one table out of one or more files, which must have the same columns.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("age;smokes\n31;yes\n;no\n")
    >>> sheet = read_sheet([path])
    >>> sheet.names, sheet.numbers("age"), sheet.kind("smokes")
    (['age', 'smokes'], array([31., nan]), 'category')
    """
    import pyarrow

    tables = []
    for path in paths:
        if not path.is_file():
            raise DataError(f"{path}: no such file")
        if path.suffix.lower() not in SUFFIXES:
            raise DataError(f"{path}: is no table: must end in {', '.join(SUFFIXES)}")
        tables.append(_trimmed(_parquet(path) if path.suffix.lower() == ".parquet" else _csv(path)))
        _check_names(tables[-1], path)
        if missing := [name for name in tables[0].column_names if name not in tables[-1].column_names]:
            raise DataError(f"{path}: has no column {missing[0]!r}, which {paths[0]} has")
        if not len(tables[-1]):
            raise DataError(f"{path}: has no rows")
    index = frozenset().union(*map(_index, tables))
    files = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    rows = np.concatenate([np.arange(len(table)) for table in tables])
    names = list(tables[0].column_names)
    tables = [table.select(names).replace_schema_metadata() for table in tables]
    for at, name in enumerate(names):
        if len({table.column(name).type for table in tables}) > 1:  # a CSV file beside a parquet file
            for which, table in enumerate(tables):
                part = str(paths[which])
                alone = Sheet(part, table, (part,), np.zeros(len(table), np.int64), np.arange(len(table)))
                tables[which] = table.set_column(at, name, text_column(alone.texts(name)))
    whole = pyarrow.concat_tables(tables)
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return Sheet(where or f"{paths[0]}{more}", whole, tuple(map(str, paths)), files, rows, index)


def _csv(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as arrow

    with path.open("rb") as file:
        head = file.read(_LONGEST_ROW)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{path}: is in UTF-16: must be in UTF-8")
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
        first = text.partition("\n")[0]
        delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t|", key=first.count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        names = [name.strip() for name in next(reader)]
        if not names:
            raise csv.Error
    except UnicodeDecodeError as error:
        line = head[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: is not in UTF-8: must be saved in it") from None
    except (csv.Error, StopIteration):
        raise DataError(f"{path}: has no header: its first line must name the columns") from None
    many = [f"{at}" for at in range(len(names))]
    try:
        table = arrow.read_csv(
            str(path),
            arrow.ReadOptions(use_threads=False, block_size=_LONGEST_ROW, column_names=many, skip_rows=reader.line_num),
            arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            arrow.ConvertOptions(column_types=dict.fromkeys(many, pa.string())),
        )
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}{_plainly(str(error), reader.line_num)}") from None
    for name, column in zip(names, table.columns, strict=True):
        lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy()
        if len(lengths) and lengths.max() > _LONGEST_CELL:
            at = f"{path}, column {name}, row {lengths.argmax() + 1}"
            raise DataError(f"{at}: a cell of {lengths.max():,} bytes; is a quote not closed?")
    return table.rename_columns(names)


def _plainly(said: str, header: int) -> str:
    """Return what Arrow says of a CSV file in words for its owner."""
    row = re.search(r"Row #(\d+)", said)
    at = f", row {int(row[1]) - header}" if row else ""
    if counts := re.search(r"Expected (\d+) columns, got (\d+)", said):
        return f"{at}: has {counts[2]} cells, and the header {counts[1]}: must be as many"
    if "UTF8" in said:
        return f"{at}: is not in UTF-8: must be saved in it"
    if "straddl" in said:
        return f": has a row of more than {_LONGEST_ROW >> 20} MB; is a quote not closed?"
    return f"{at}: not readable as CSV: {said.partition(chr(10))[0][:200]}"


def _parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        table = pa.parquet.read_table(path, partitioning=None)
        table.validate(full=True)  # strings are UTF-8, offsets lie inside
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: not readable as parquet: {str(error).partition(chr(10))[0]}") from None
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(field.type.value_type))
    return table


def _trimmed(table: Any) -> Any:
    """Return the table with its texts trimmed, and null where one stands for a missing value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            texts = pc.utf8_trim_whitespace(table.column(at).cast("string"))
            missing = pc.is_in(texts, value_set=pa.array(MISSING))
            table = table.set_column(at, field.name, pc.if_else(missing, pa.scalar(None, pa.string()), texts))
    return table


def _check_names(table: Any, path: Path) -> None:
    names = list(table.column_names)
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise DataError(f"{path}: has two columns {twice[0]!r}: each must have a name of its own")


def _index(table: Any) -> frozenset[str]:
    """Return the columns that are no data but an index that pandas wrote along."""
    try:
        noted = (table.schema.pandas_metadata or {}).get("index_columns", ())
    except (ValueError, TypeError, AttributeError):  # metadata that is not theirs, or damaged
        noted = ()
    named = {name for name in noted if isinstance(name, str)} if isinstance(noted, list) else set()
    return frozenset(name for name in table.column_names if name in named or _INDEX.fullmatch(name))
