"""The columns of several sites as one, by what each wrote of its own rows: nobody has to see another's table."""

import math
from collections.abc import Sequence
from dataclasses import replace

from pushcen.data.columns import NUMERIC, Columns, TableColumn, Target
from pushcen.data.measuring import category_column, sorted_texts
from pushcen.errors import DataError


def merge_columns(sites: Sequence[tuple[str, Columns]]) -> Columns:
    """Return columns for all sites: every category that one of them has, and the scale of all rows together.

    A column that some sites have left out is as the others say. `sites` has a name, for errors, with each.

    >>> target = Target("ill", "class", ("no", "yes"))
    >>> one = Columns(target, (TableColumn("age", "number", 40.0, 1.0),), rows=10)
    >>> two = Columns(target, (TableColumn("age", "number", 60.0, 1.0, missing=True),), rows=10)
    >>> merge_columns([("a.json", one), ("b.json", two)]).columns
    (TableColumn(name='age', kind='number', mean=50.0, deviation=10.04..., missing=True, ...),)
    """
    first, columns = sites[0]
    for where, other in sites:
        if missing := {one.name for one in columns.columns} ^ {one.name for one in other.columns}:
            raise DataError(f"{where}: column {min(missing)} is in it or in {first} only: must be in both")
        if (other.target.name, other.target.kind) != (columns.target.name, columns.target.kind):
            raise DataError(
                f"{where}: the label is {other.target.name}, a {other.target.kind}, and in {first} "
                f"{columns.target.name}, a {columns.target.kind}: must be the same"
            )
    rows = [max(1, other.rows) for _, other in sites]
    mean, deviation = _pooled([(count, *_scale(other.target)) for count, (_, other) in zip(rows, sites, strict=True)])
    classes = sorted_texts(name for _, other in sites for name in other.target.classes)
    target = replace(columns.target, classes=classes, mean=mean, deviation=deviation)
    merged = []
    for column in columns.columns:
        there = [
            (where, count, next(one for one in other.columns if one.name == column.name))
            for count, (where, other) in zip(rows, sites, strict=True)
        ]
        merged.append(_merged([one for one in there if one[2].inputs] or there[:1]))
    owner = next((other.owner for _, other in sites if other.owner), "")
    return Columns(target, tuple(merged), owner, sum(rows))


def _merged(there: list[tuple[str, int, TableColumn]]) -> TableColumn:
    first, _, column = there[0]
    for where, _, other in there:
        if other.kind != column.kind:
            raise DataError(
                f"{where}: column {column.name} is a {other.kind}, and in {first} a {column.kind}: must be the same; "
                f"--category {column.name}, or --without it, at every site"
            )
    missing = any(other.missing for _, _, other in there)
    if column.kind in NUMERIC:
        mean, deviation = _pooled([(count, *_scale(other)) for _, count, other in there])
        return TableColumn(column.name, column.kind, mean, deviation, missing)
    if column.kind == "category":
        return category_column(column.name, (name for _, _, other in there for name in other.categories), missing)
    return column


def _scale(one: TableColumn | Target) -> tuple[float, float]:
    return one.mean, one.deviation


def _pooled(parts: list[tuple[int, float, float]]) -> tuple[float, float]:
    """Return the mean and deviation of all rows, of which parts have so many, with these means and deviations."""
    rows = sum(count for count, _, _ in parts)
    mean = sum(count * mean for count, mean, _ in parts) / rows
    return mean, math.sqrt(sum(count * (part**2 + (at - mean) ** 2) for count, at, part in parts) / rows)
