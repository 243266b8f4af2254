"""Arrow tables, from parquet files or from the Hugging Face hub: encoded images, or columns of numbers, with labels."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pushcen.data.arrays import Arrays, Samples, number
from pushcen.data.images import Named, decode
from pushcen.errors import DataError

TESTS = ("test", "valid", "validation", "val")
_IMAGES, _LABELS, _OWNER = ("image", "img"), ("label", "fine_label"), "owner"
_NOT_FEATURES = {*_LABELS, "coarse_label", _OWNER}


def read_parquet(path: Path, size: int | None = None) -> Arrays:
    """Read a parquet file, or a folder of them: `train*.parquet` and, if there are any, `test*` or `val*`.

    The column `label` (or `fine_label`) is the label and `owner`, if there, tells whose a sample is. A column `image`
    (or `img`) holds encoded images, as bytes or the way Hugging Face stores them; without one, all other columns
    must be numbers. With a `size` each image is made a square of so many pixels a side.

    >>> import tempfile, pyarrow, pyarrow.parquet
    >>> path = Path(tempfile.mkdtemp()) / "flowers.parquet"
    >>> pyarrow.parquet.write_table(pyarrow.table({"length": [5.1, 4.9], "width": [3, 2], "label": ["a", "b"]}), path)
    >>> arrays = read_parquet(path)
    >>> arrays.train.inputs.shape, arrays.train.labels.tolist(), arrays.classes
    ((2, 2), [0, 1], ('a', 'b'))
    """
    import pyarrow
    import pyarrow.parquet

    files = [path] if path.is_file() else sorted(path.glob("*.parquet"))
    tests = [file for file in files if path.is_dir() and file.name.startswith(TESTS)]
    parts = [[file for file in files if file not in tests], tests]
    if not parts[0]:
        raise DataError(f"{path}: no parquet file to train on; test files are those that start with {', '.join(TESTS)}")
    try:
        tables = [pyarrow.concat_tables(map(pyarrow.parquet.read_table, part)) for part in parts if part]
        for table in tables:
            table.validate(full=True)  # strings are UTF-8, offsets lie inside
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: not readable as parquet: {str(error).partition(chr(10))[0]}") from None
    return from_tables(tables, str(path), size)


def from_tables(tables: list[Any], where: str, size: int | None = None) -> Arrays:
    """Convert pyarrow tables (training, and perhaps test) to arrays.

    >>> import pyarrow
    >>> from_tables([pyarrow.table({"x": [1.0]})], "a.parquet")
    Traceback (most recent call last):
    pushcen.errors.DataError: a.parquet: has no column label or fine_label; it has x. label = 'NAME' names ...
    """
    columns: list[str] = tables[0].column_names
    label = _one_of(columns, _LABELS)
    if label is None:
        raise DataError(
            f"{where}: has no column {' or '.join(_LABELS)}; it has {', '.join(columns)[:200]}. label = 'NAME' names "
            "the column to learn of a table"
        )
    for table in tables[1:]:
        if missing := set(columns) - {_OWNER} - set(table.column_names):
            raise DataError(f"{where}: the test table has no column {sorted(missing)[0]}")
    image = _one_of(columns, _IMAGES)
    features = [name for name in columns if name not in _NOT_FEATURES]
    if image:
        inputs: list[NDArray[Any]] = [*decode([_images(table, image, where) for table in tables], size)]
    else:
        inputs = [_features(table, features, where) for table in tables]
    labels, classes = number([_plain(table, label, where) for table in tables], where)
    owners = _plain(tables[0], _OWNER, where) if _OWNER in columns else None
    train, *test = (Samples(x, y) for x, y in zip(inputs, labels, strict=True))
    train = Samples(train.inputs, train.labels, owners)
    return Arrays(where, train, test[0] if test else None, classes or _class_names(tables[0], label))


def _one_of(columns: list[str], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in columns), None)


def _plain(table: Any, name: str, where: str) -> NDArray[Any]:
    column = table[name]
    if column.null_count:
        raise DataError(f"{where}: column {name} has {column.null_count} missing values")
    values = column.to_numpy()
    if values.dtype == object and "string" not in str(column.type):
        raise DataError(f"{where}: column {name} has type {column.type}: must be numbers or strings")
    return values.astype(str) if values.dtype == object else np.asarray(values)


def _features(table: Any, names: list[str], where: str) -> NDArray[np.float32]:
    if not names:
        raise DataError(f"{where}: has no columns besides labels")
    features = np.empty((len(table), len(names)), np.float32)
    for at, name in enumerate(names):
        column = _plain(table, name, where)
        if column.dtype.kind not in "biuf" or not (np.abs(column.astype(np.float64)) < 1e30).all():
            raise DataError(f"{where}: column {name}, of type {column.dtype}: must be numbers, finite and below 1e30")
        features[:, at] = column
    return features


def _images(table: Any, name: str, where: str) -> list[Named]:
    found: list[Named] = []
    for row, value in enumerate(table[name].to_pylist()):
        data = value.get("bytes") if isinstance(value, dict) else value
        if not isinstance(data, bytes):  # a path instead would let a table name any file of this machine
            raise DataError(f"{where}: column {name}, row {row}: must be an encoded image, as bytes")
        found.append((f"{where}, row {row}", data))
    return found


def _class_names(table: Any, label: str) -> tuple[str, ...] | None:
    """Return the names that Hugging Face keeps beside a column of class labels, if it does."""
    from datasets import ClassLabel, Features

    try:
        feature = Features.from_arrow_schema(table.schema).get(label)
    except (ValueError, TypeError, KeyError, AttributeError):  # metadata that is not theirs, or damaged
        return None
    return tuple(feature.names) if isinstance(feature, ClassLabel) else None
