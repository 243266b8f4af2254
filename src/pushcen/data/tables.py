"""A table as data: read once, divided among clients, encoded by columns that are given or made of training rows."""

import math
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from pushcen.data.clients import ClientShare, Split, split
from pushcen.data.columns import Columns, Target, read_columns
from pushcen.data.data import Data
from pushcen.data.encoding import encode_labels, encode_owners, encode_rows
from pushcen.data.measuring import BY_CHOICE, measure, measure_target
from pushcen.data.merging import merge_columns
from pushcen.data.partitions import Partition
from pushcen.data.sheet import Sheet, near
from pushcen.data.sheet_files import SUFFIXES, read_sheet
from pushcen.data.table import TESTS
from pushcen.errors import DataError

_LABEL = "label"  # the column to learn where none is named


@dataclass(frozen=True, eq=False)
class RawTable:
    """A table before anything is encoded: its rows that have a label, a global test set if there is one, its target."""

    name: str
    sheet: Sheet
    test: Sheet | None
    target: Target
    owner: str
    columns: Columns | None


def read_table(
    source: str | Path,
    label: str = "",
    *,
    owner: str = "",
    target: str = "",
    columns: str = "",
    pool_test: bool = False,
) -> RawTable:
    r"""Read a CSV or parquet file, or a folder of them, in which `test*` and `val*` are a global test set.

    `label` is the column to learn, `owner` the one that says whose a row is; `target` is class or number, if what is
    in the column should not decide. `columns` is a file of `Columns.write`, for all who train together.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "patients.csv"
    >>> _ = path.write_text("age,sex,outcome\n31,f,home\n54,m,ward\n,m,home\n48,f,ward\n61,f,ward\n")
    >>> read_table(path, "outcome").target
    Target(name='outcome', kind='class', classes=('home', 'ward'), mean=0.0, deviation=1.0)
    """
    path, given = Path(source), read_columns(Path(columns)) if columns else None
    files, tests = _files(path)
    if pool_test:
        if not tests:
            raise DataError(f"pool_test = True: {path} has no test set to pool")
        files, tests = files + tests, []
    sheet = read_sheet(files, str(path))
    if given and len(given.target.classes) == 1:
        raise DataError(f"columns = {columns!r}: {of_one_class(given.target)}")
    if given and label not in ("", given.target.name):
        raise DataError(f"label = {label!r}: columns = {columns!r} is of tables with the label {given.target.name!r}")
    if given and target not in ("", given.target.kind):
        raise DataError(f"target = {target!r}: by columns = {columns!r} it is a {given.target.kind}")
    label = label or (given.target.name if given else _LABEL if _LABEL in sheet.names else "")
    if not label:
        raise DataError(f"label = '': must name the column to learn. {near('', sheet.names)}")
    if label not in sheet.names:
        raise DataError(f"label = {label!r}: {path} has no such column. {near(label, sheet.names)}")
    if owner and owner not in sheet.names:
        raise DataError(f"owner = {owner!r}: {path} has no such column. {near(owner, sheet.names)}")
    if owner == label:
        raise DataError(f"owner = {owner!r}: is the label already: must be another column")
    sheet = _labelled(sheet, label)
    found = given.target if given else measure_target(sheet, label, target)
    test = _labelled(read_sheet(tests, str(path)), label) if tests else None
    return RawTable(str(source), sheet, test, found, owner, given)


def split_table(
    table: RawTable,
    clients: int | None,
    partition: Partition | None = None,
    *,
    share: float = 1.0,
    test_share: float = 0.2,
    min_samples: int = 2,
    seed: int = 0,
) -> Split:
    """Divide a table among clients as `split` does; where no columns are given, they are made of all training rows."""
    sheet = table.sheet
    if share < 1:
        order = torch.randperm(len(sheet), generator=torch.Generator().manual_seed(seed))
        sheet = sheet.take(order[: math.ceil(share * len(sheet))].sort().values.numpy())
    owners = encode_owners(sheet, table.owner) if table.owner else None
    labels = encode_labels(sheet, table.target)
    draft = Data(table.name, torch.zeros(len(sheet), 0), labels, table.target.classes, owners=owners)
    divided = split(draft, clients, partition, test_share=test_share, min_samples=min_samples, seed=seed)
    columns = table.columns
    if columns is None:
        columns = _made(table, sheet.take(np.sort(np.concatenate([one.train.rows.numpy() for one in divided]))))
    data = replace(draft, inputs=encode_rows(sheet, columns), columns=columns)
    if table.test is not None:
        tests = encode_rows(table.test, columns), encode_labels(table.test, table.target)
        data = replace(data, test_inputs=tests[0], test_labels=tests[1])
    parts = [
        ClientShare(one.client, replace(one.train, inputs=data.inputs), replace(one.test, inputs=data.inputs))
        for one in divided
    ]
    return Split(data, divided.partition, tuple(parts))


def measure_files(
    paths: list[Path], label: str, *, owner: str = "", target: str = "", categories: list[str], without: list[str]
) -> Columns:
    """Return the columns of the table that several files hold, by all their rows; of columns files, those of all."""
    if all(path.suffix == ".json" for path in paths):
        return merge_columns([(str(path), read_columns(path)) for path in paths])
    if not label:
        raise DataError("label = '': must name the column to learn")
    sheet = read_sheet(paths)
    for role, name in (("label", label), ("owner", owner)):
        if name and name not in sheet.names:
            raise DataError(f"{role} = {name!r}: {sheet.where} has no such column. {near(name, sheet.names)}")
    sheet = _labelled(sheet, label)
    what = measure_target(sheet, label, target, fewest=1)  # other sites may have more
    found = measure(sheet, label, owner, target=what, categories=categories, without=without)
    _warn_of(found, sheet.where)
    return found


def of_one_class(target: Target) -> str:
    """Return what to do with columns of a site whose rows are all of one class.

    >>> of_one_class(Target("ill", "class", ("no",)))
    "its label ill has one class only, 'no': make one file of it and those of sites that have others, by ..."
    """
    return (
        f"its label {target.name} has one class only, {target.classes[0][:40]!r}: make one file of it and those of "
        "sites that have others, by `pushcen data columns ONE.json OTHER.json`"
    )


def in_words(columns: Columns) -> str:
    """Return what is learnt from what, in a sentence.

    >>> from pushcen.data.columns import TableColumn
    >>> in_words(Columns(Target("ill", "class", ("no", "yes")), (TableColumn("age", "number"),)))
    'ill is a class, one of 2 (no, yes); 1 input from 1 column (1 number)'
    """
    target, used = columns.target, columns.used
    shown = ", ".join(target.classes[:6]) + (", ..." if len(target.classes) > 6 else "")
    what = f"a class, one of {len(target.classes)} ({shown})" if target.classes else "a number (a regression)"
    kinds = Counter(column.kind for column in used)
    told = ", ".join(_counted(count, kind) for kind, count in kinds.items())
    left = len(columns.columns) - len(used)
    return (
        f"{target.name} is {what}; {_counted(columns.inputs, 'input')} from {_counted(len(used), 'column')} ({told})"
        + (f", {left} left out" if left else "")
    )


def _files(path: Path) -> tuple[list[Path], list[Path]]:
    """Return the files to train on and those to test on."""
    if not path.is_dir():
        if not path.is_file():
            raise DataError(f"{path}: no such file or folder")
        return [path], []
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
    tests = [file for file in files if file.name.startswith(TESTS)]
    if len(files) == len(tests):
        raise DataError(
            f"{path}: no table to train on: must have files that end in {', '.join(SUFFIXES)}; those that start with "
            f"{', '.join(TESTS)} are the test set"
        )
    return [file for file in files if file not in tests], tests


def _labelled(sheet: Sheet, label: str) -> Sheet:
    """Return the rows that have a label; how many have none is told in a warning."""
    there = np.array([text is not None for text in sheet.texts(label)], bool)
    if there.all():
        return sheet
    if not there.any():
        raise DataError(f"{sheet.where}: column {label}, the label, has no value in any row")
    first = int(np.flatnonzero(~there)[0])
    warnings.warn(
        f"{sheet.where}: left out {len(there) - int(there.sum()):,} of {len(there):,} rows, in which {label}, the "
        f"label, is missing (the first is {sheet.place(first)})",
        stacklevel=3,
    )
    return sheet.take(np.flatnonzero(there))


def _made(table: RawTable, training: Sheet) -> Columns:
    target = table.target
    if target.kind == "number":
        target = measure_target(training, target.name, target.kind)
    columns = measure(training, target.name, table.owner, target=target)
    _warn_of(columns, table.name)
    return columns


def _warn_of(columns: Columns, where: str) -> None:
    left = [f"{one.name} ({one.why})" for one in columns.columns if not one.inputs and one.why != BY_CHOICE]
    if left:
        warnings.warn(f"{where}: columns left out: {'; '.join(left)}", stacklevel=3)


def _counted(count: int, noun: str) -> str:
    plural = {"category": "categories", "boolean": "truths"}.get(noun, f"{noun}s")
    return f"{count:,} {noun if count == 1 else plural}"
