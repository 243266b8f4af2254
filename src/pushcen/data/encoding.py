"""A table's rows as inputs: numbers scaled, categories by their index, and what is missing told as such."""

import warnings

import numpy as np
import torch
from numpy.typing import NDArray

from pushcen.data.columns import NUMERIC, Columns, TableColumn, Target
from pushcen.data.sheet import Sheet

FARTHEST = 1e6  # deviations; further off, one value would drown all others


def encode_rows(sheet: Sheet, columns: Columns) -> torch.Tensor:
    """Return the inputs, float32 [rows, inputs]; those that are an index into an embedding, from 0, come last.

    Index 0 is reserved for a category that `columns` does not know, for which all inputs are 0. What it makes of such
    categories, and of missing values where it expects none, is told in one warning each.

    >>> import pyarrow
    >>> sheet = Sheet("a.csv", pyarrow.table({"age": [60.0, None]}), ("a.csv",), np.zeros(2, int), np.arange(2))
    >>> encode_rows(sheet, Columns(Target("ill", "number"), (TableColumn("age", "number", 50.0, 10.0, missing=True),)))
    tensor([[1., 0.],
            [0., 1.]])
    """
    for column in columns.used:
        sheet.column(column.name)
    known = {columns.target.name, columns.owner, *sheet.index, *(column.name for column in columns.columns)}
    if extra := [name for name in sheet.names if name not in known]:
        warnings.warn(f"{sheet.where}: not used, since the columns file has not: {_listed(extra)}", stacklevel=2)
    inputs = np.zeros((len(sheet), columns.inputs), np.float32)
    begin, last = 0, columns.inputs - len(columns.embedded)
    strange, unexpected = [], []
    for column in columns.used:
        if column.kind in NUMERIC:
            values = sheet.numbers(column.name, column.kind)
            missing = np.isnan(values)
            scaled = np.where(missing, 0.0, (values - column.mean) / column.deviation)
            if len(far := np.flatnonzero(np.abs(scaled) >= FARTHEST)):
                why = f"{values[far[0]]:g}: is {np.abs(scaled[far[0]]):.2g} deviations from the mean: must be below"
                raise sheet.refuse(column.name, int(far[0]), f"{why} {FARTHEST:g}")
            inputs[:, begin] = scaled
            if column.missing:
                inputs[:, begin + 1] = missing
        else:
            index, missing, others = _indices(sheet, column)
            if column.embedded:
                inputs[:, last], last = index, last + 1
            else:
                rows = np.flatnonzero(index)
                inputs[rows, begin + index[rows] - 1] = 1.0
            if len(others):
                value = sheet.texts(column.name)[others[0]]
                strange.append(f"{column.name} {len(others):,} (such as {value[:40]!r}, {sheet.place(others[0])})")
        if missing.any() and not column.missing:
            unexpected.append(f"{column.name} {int(missing.sum()):,}")
        begin += 0 if column.embedded else column.inputs
    if strange:
        warnings.warn(
            f"{sheet.where}: categories that are not among the known ones count as one not known: {_listed(strange)}",
            stacklevel=2,
        )
    if unexpected:
        warnings.warn(
            f"{sheet.where}: missing values where none were before, taken as the mean or as a category not known: "
            f"{_listed(unexpected)}",
            stacklevel=2,
        )
    return torch.from_numpy(inputs)


def encode_labels(sheet: Sheet, target: Target) -> torch.Tensor:
    """Return the labels: int64 numbers of classes, or float32 numbers; none may be missing.

    >>> import pyarrow
    >>> sheet = Sheet("a.csv", pyarrow.table({"ill": ["no", "perhaps"]}), ("a.csv",), np.zeros(2, int), np.arange(2))
    >>> encode_labels(sheet, Target("ill", "class", ("no", "yes")))
    Traceback (most recent call last):
    pushcen.errors.DataError: a.csv, column ill, row 2: 'perhaps': must be one of the classes no, yes
    """
    if target.kind == "number":
        values = sheet.numbers(target.name)
        if len(missing := np.flatnonzero(np.isnan(values))):
            raise sheet.refuse(target.name, int(missing[0]), "must be a number")
        return torch.from_numpy(values.astype(np.float32))
    number = {name: at for at, name in enumerate(target.classes)}
    texts = sheet.texts(target.name)
    for at, text in enumerate(texts):
        if text not in number:
            raise sheet.refuse(target.name, at, f"{text[:40]!r}: must be one of the classes {_listed(target.classes)}")
    return torch.tensor([number[text] for text in texts], dtype=torch.int64)


def encode_owners(sheet: Sheet, owner: str) -> torch.Tensor:
    """Return the number of each row's owner, from 0; all must have one."""
    sheet.column(owner, "owner column")
    texts = sheet.texts(owner)
    for at, text in enumerate(texts):
        if text is None:
            raise sheet.refuse(owner, at, "is missing: it must say whose the row is")
    return torch.from_numpy(np.unique(texts.astype(str), return_inverse=True)[1].astype(np.int64))


def _indices(sheet: Sheet, column: TableColumn) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Return the index of each row's category, from 1; where it is missing; and the rows with one that is not known."""
    number = {name: at for at, name in enumerate(column.categories, 1)}
    texts = sheet.texts(column.name)
    missing = np.array([text is None for text in texts], bool)
    index = np.array([number.get(text, 0) for text in texts], np.int64)
    others = np.flatnonzero((index == 0) & ~missing)
    if column.missing:
        index[missing] = column.choices
    return index, missing, others


def _listed(words: "list[str] | tuple[str, ...]", most: int = 8) -> str:
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more
