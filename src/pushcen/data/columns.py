"""How the columns of a table become inputs: kinds, categories and scales, the same for all who train together."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pushcen.checks import is_finite
from pushcen.errors import DataError

NUMERIC = ("number", "boolean", "date")
KINDS = (*NUMERIC, "category", "left out")
TARGETS = ("class", "number")
_FORMAT = "pushcen columns 1"
_LARGEST_FILE = 1 << 26


@dataclass(frozen=True)
class TableColumn:
    """A column: a number (a date is days since 1970), a category, or left out, and `why`.

    `missing` says that a missing value is told, by an input of its own beside the mean or as one more category.
    """

    name: str
    kind: str
    mean: float = 0.0
    deviation: float = 1.0
    missing: bool = False
    categories: tuple[str, ...] = ()
    embedded: int = 0
    """The length of the vector that stands for a category; 0: one input for each of them."""
    why: str = ""

    def __post_init__(self) -> None:
        sound = self.kind in KINDS and isinstance(self.missing, bool) and _finite(self.mean, self.deviation)
        if not sound or self.deviation <= 0 or type(self.embedded) is not int or not 0 <= self.embedded <= 1024:
            raise DataError(f"column {self.name}: must be of a kind ({', '.join(KINDS)}), with a mean and a deviation")
        if (self.kind == "category") != bool(self.categories) or not _different(self.categories):
            raise DataError(f"column {self.name}: must have categories, all different texts, if it is a category")
        if (self.embedded and not self.categories) or not isinstance(self.why, str):
            raise DataError(f"column {self.name}: only categories are embedded, and a reason is a text")

    @property
    def choices(self) -> int:
        """How many categories there are, with that of a missing value."""
        return len(self.categories) + self.missing

    @property
    def inputs(self) -> int:
        """How many inputs it makes; a category that is embedded makes one, its index."""
        if self.kind == "category":
            return 1 if self.embedded else self.choices
        return 1 + self.missing if self.kind in NUMERIC else 0


@dataclass(frozen=True)
class Target:
    """What is learnt: a class, or a number in the unit of its column."""

    name: str
    kind: str
    classes: tuple[str, ...] = ()
    mean: float = 0.0
    deviation: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in TARGETS or not _finite(self.mean, self.deviation) or self.deviation <= 0:
            raise DataError(f"label {self.name}: must be a class or a number, with a mean and a deviation")
        if (self.kind == "class") != bool(self.classes) or not _different(self.classes):
            raise DataError(f"label {self.name}: must have classes, all different texts, if it is a class")


@dataclass(frozen=True)
class Columns:
    """All columns of a table, in the order of its inputs, and its target.

    >>> age = TableColumn("age", "number", 50.0, 9.0, missing=True)
    >>> columns = Columns(Target("ill", "class", ("no", "yes")), (age,))
    >>> columns.inputs, columns.about()
    (2, {'label.ill': 'class 9b2be3ec66ec', 'column.age': 'number e8308c618dc1'})
    """

    target: Target
    columns: tuple[TableColumn, ...]
    owner: str = ""
    rows: int = 0
    """Of how many rows it was made."""

    def __post_init__(self) -> None:
        if not self.used:
            raise DataError(f"no column beside {self.target.name} can be learnt from")
        if not _different([self.target.name, *(column.name for column in self.columns)]):
            raise DataError("columns: must have names of their own, all different texts")

    @property
    def used(self) -> tuple[TableColumn, ...]:
        """Those that make inputs."""
        return tuple(column for column in self.columns if column.inputs)

    @property
    def embedded(self) -> tuple[tuple[int, int], ...]:
        """Categories and length of each column that is embedded: their indices are the last inputs."""
        return tuple((column.choices, column.embedded) for column in self.used if column.embedded)

    @property
    def inputs(self) -> int:
        """How many inputs there are."""
        return sum(column.inputs for column in self.used)

    def about(self) -> dict[str, str]:
        """Return what must agree among peers, by column, in few words and a fingerprint."""
        found = {f"label.{self.target.name}": f"{self.target.kind} {_digest(asdict(self.target))[:12]}"}
        for at, column in enumerate(self.used):
            plain = {**asdict(column), "why": "", "at": at}
            found[f"column.{column.name}"] = f"{column.kind} {_digest(plain)[:12]}"
        return found

    @property
    def fingerprint(self) -> str:
        """The same for all who encode alike."""
        return _digest(self.about())[:32]

    def write(self, path: Path) -> None:
        """Write it as JSON, a line for each column, for `read_columns`."""
        head = {"format": _FORMAT, "fingerprint": self.fingerprint, "rows": self.rows, "owner": self.owner}
        lines = [f'"{name}": {json.dumps(value, ensure_ascii=False)},' for name, value in head.items()]
        lines += [f'"label": {json.dumps(_plain(self.target), ensure_ascii=False)},', '"columns": [']
        columns = ",\n".join(json.dumps(_plain(column), ensure_ascii=False) for column in self.columns)
        path.write_text("\n".join(["{", *lines, columns, "]}", ""]), "utf-8")


def read_columns(path: Path) -> Columns:
    """Read what `Columns.write` wrote; a file that was changed by hand must have no fingerprint any more.

    >>> read_columns(Path("nowhere.json"))
    Traceback (most recent call last):
    pushcen.errors.DataError: columns = 'nowhere.json': no such file; `pushcen data columns` writes it
    """
    if not path.is_file():
        raise DataError(f"columns = {str(path)!r}: no such file; `pushcen data columns` writes it")
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise ValueError(f"{path.stat().st_size} bytes")
        plain = json.loads(path.read_text("utf-8"))
        if not isinstance(plain, dict) or plain.get("format") != _FORMAT:
            raise ValueError(f"its format must be {_FORMAT!r}")
        made = Columns(
            _made(Target, plain["label"]),
            tuple(_made(TableColumn, one) for one in plain["columns"]),
            str(plain.get("owner", "")),
            int(plain.get("rows", 0)),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        said = f"has no {error}" if isinstance(error, KeyError) else f"{error}"
        raise DataError(f"columns = {str(path)!r}: not a file of columns: {said}") from None
    if plain.get("fingerprint", made.fingerprint) != made.fingerprint:
        raise DataError(
            f"columns = {str(path)!r}: its fingerprint is that of another content; if it was changed on purpose, "
            "remove the fingerprint"
        )
    return made


def _finite(*values: Any) -> bool:
    return all(map(is_finite, values))


def _different(names: Iterable[Any]) -> bool:
    there = list(names)
    return all(isinstance(name, str) for name in there) and len(set(there)) == len(there)


def _digest(plain: Any) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _plain(one: Any) -> dict[str, Any]:
    """Return what is not as usual."""
    usual = {field.name: field.default for field in fields(one)}
    return {name: value for name, value in asdict(one).items() if value != usual[name]}


def _made(kind: Any, plain: Any) -> Any:
    if not isinstance(plain, dict):
        raise TypeError(f"{plain!r:.40} is no column")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()})
