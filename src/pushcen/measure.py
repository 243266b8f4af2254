"""What a metric is called, which way is better, and how its values are shown: plain facts, which rows carry along."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from pushcen.checks import check_number
from pushcen.errors import OptionError

_TITLES = {
    "top5": "top-5 accuracy",
    "f1": "F1 (macro)",
    "auroc": "AUROC",
    "rmse": "RMSE",
    "mse": "MSE",
    "mae": "MAE",
    "r2": "R2",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,59}")


class Measure(NamedTuple):
    """The facts of one metric; its name is the key of its mean in rows.

    >>> rmse = Measure("rmse", higher_is_better=False, percent=False, pooled=True)
    >>> rmse.heading, rmse.show(0.123456), rmse.best([0.5, 0.25])
    ('RMSE, lower is better', '0.1235', 0.25)
    >>> ACCURACY.heading, ACCURACY.show(0.93216), ACCURACY.show(None)
    ('accuracy %', '93.2', '-')
    """

    name: str
    higher_is_better: bool = True
    percent: bool = False
    """Whether it is a share of one, shown in percent."""
    pooled: bool = False
    """Whether rows have it over all clients' outputs together, too: `NAME_pooled`."""

    @property
    def title(self) -> str:
        """What people call it."""
        return _TITLES.get(self.name, self.name.replace("_", " "))

    @property
    def direction(self) -> str:
        """Which way is better, in words."""
        return f"{'higher' if self.higher_is_better else 'lower'} is better"

    @property
    def heading(self) -> str:
        """The title of a column: with the sign where values are in percent, and the way that is better where not."""
        shown = f"{self.title} %" if self.percent else self.title
        return shown if self.percent and self.higher_is_better else f"{shown}, {self.direction}"

    @property
    def scale(self) -> int:
        """What values are multiplied by to be shown."""
        return 100 if self.percent else 1

    def show(self, value: float | None, sign: str = "") -> str:
        """Return a value as people read it, without the sign for percent; a `sign` of "+" shows one for all values."""
        if value is None:
            return "-"
        return f"{100 * value:{sign}.1f}" if self.percent else f"{value:{sign}.4g}"

    def says(self, value: float | None) -> str:
        """Return name and value, for a line of text.

        >>> ACCURACY.says(0.5), Measure("rmse", higher_is_better=False).says(0.5)
        ('accuracy 50.0 %', 'RMSE 0.5')
        """
        return f"{self.title} {self.show(value)}{' %' if self.percent else ''}"

    def better(self, one: float, other: float) -> bool:
        """Return whether `one` is better than `other`."""
        return one > other if self.higher_is_better else one < other

    def best(self, values: Iterable[float]) -> float | None:
        """Return the best of some values, if there are any."""
        return (max if self.higher_is_better else min)(values, default=None)

    def check_target(self, target: float, key: str = "target") -> None:
        """Refuse what cannot be a target, as it is shown: a share where that is in percent, too.

        >>> ACCURACY.check_target(0.6)
        Traceback (most recent call last):
        pushcen.errors.OptionError: target = 0.6: must be in percent, as accuracy is: 60 for 60 %
        """
        if self.percent and 0 < target <= 1:
            shown = f"{100 * target:g}"
            raise OptionError(f"{key} = {target:g}: must be in percent, as {self.title} is: {shown} for {shown} %")
        check_number(key, target, 0.0 if self.percent else -math.inf, 100.0 if self.percent else math.inf)

    def held(self, target: float, values: Sequence[float | None]) -> int | None:
        """Return which value is the first of two in a row that hold a target, as it is shown; None is no value.

        >>> ACCURACY.held(60, [0.5, 0.61, 0.59, None, 0.6, 0.62])
        4
        """
        wanted = target / self.scale
        known = [(at, value) for at, value in enumerate(values) if value is not None]
        for (at, value), (_, after) in pairwise(known):
            if not self.better(wanted, value) and not self.better(wanted, after):
                return at
        return None

    def worst_tenth(self, values: Iterable[float]) -> list[float]:
        """Return the worst tenth of some values, the worst first: one at least, if there are any.

        >>> Measure("rmse", higher_is_better=False).worst_tenth([0.5, 2.0, 1.0])
        [2.0]
        """
        ordered = sorted(values, reverse=not self.higher_is_better)
        return ordered[: math.ceil(len(ordered) / 10)]


ACCURACY = Measure("accuracy", higher_is_better=True, percent=True)
"""What runs are measured by, unless they say otherwise."""


def is_name(name: object) -> bool:
    """Return whether a metric may be called so: it becomes a key of rows and the name of a file.

    >>> is_name("f1"), is_name("<lambda>"), is_name("../x")
    (True, False, False)
    """
    return isinstance(name, str) and bool(_NAME.fullmatch(name))


def written(measures: Sequence[Measure]) -> dict[str, Any]:
    """Return what rows and summaries say of their metrics; nothing, if accuracy is all they have.

    >>> written([ACCURACY])
    {}
    >>> written([Measure("mae", False)])
    {'metric': {'name': 'mae', 'higher_is_better': False, 'percent': False, 'pooled': False}}
    """
    if list(measures) == [ACCURACY]:
        return {}
    first, *others = [measure._asdict() for measure in measures]
    return {"metric": first, **({"metrics": others} if others else {})}


def read(values: Any) -> list[Measure]:
    """Return the metrics that a row or a summary names, the first one first; accuracy, if it names none that can be.

    >>> read({"metric": {"name": "mae", "higher_is_better": False}})[0].heading
    'MAE, lower is better'
    >>> read({}) == read({"metric": {"name": "../../etc"}}) == [ACCURACY]
    True
    """
    if not isinstance(values, Mapping) or (first := _measure(values.get("metric"))) is None:
        return [ACCURACY]
    others = values.get("metrics")
    found = [_measure(other) for other in others] if isinstance(others, list) else []
    return [first, *(measure for measure in found if measure is not None)]


def _measure(values: Any) -> Measure | None:
    if not isinstance(values, Mapping) or not is_name(values.get("name")):
        return None
    given = {name: values[name] for name in Measure._fields[1:] if isinstance(values.get(name), bool)}
    return Measure(values["name"], **given)
