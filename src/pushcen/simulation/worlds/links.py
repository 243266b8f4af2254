"""The bandwidth and latency of every link, from a file: client by client, or region by region."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pushcen.errors import OptionError
from pushcen.simulation.worlds.sources import read_json, read_npz, read_text
from pushcen.streams import stream
from pushcen.units import Measured

_MEASURES = {"bandwidth": Measured("bandwidth"), "latency": Measured("time")}
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class LinkTable:
    """Matrices by region, from row to column, and the region of each client. A bandwidth of 0 is no limit."""

    bandwidth: Matrix | None
    latency: Matrix | None
    region: Sequence[int]

    def limit(self, sender: int, receiver: int) -> float:
        """Return the bandwidth from one client to another; infinite if there is no limit."""
        if self.bandwidth is None:
            return float("inf")
        return float(self.bandwidth[self.region[sender], self.region[receiver]]) or float("inf")

    def delay(self, sender: int, receiver: int) -> float:
        """Return the latency from one client to another."""
        return 0.0 if self.latency is None else float(self.latency[self.region[sender], self.region[receiver]])


def read_links(path: str, clients: int, seed: int, time_unit: Fraction | None) -> LinkTable:
    """Read the links of a world from a JSON, npz or CSV file; docs/simulation.md has the formats."""
    said = f"network.links = {path!r}"
    read = {".json": _json, ".npz": _npz, ".csv": _csv}.get(Path(path).suffix)
    if read is None:
        raise OptionError(f"{said}: must be a .json, .npz or .csv file (docs/simulation.md#links)")
    found = read(Path(path), said, time_unit)
    matrices = {name: found[name] for name in _MEASURES if found.get(name) is not None}
    if not matrices:
        raise OptionError(f"{said}: must have a matrix bandwidth, latency, or both")
    size = len(next(iter(matrices.values())))
    for name, matrix in matrices.items():
        if matrix.shape != (size, size) or not size:
            raise OptionError(f"{said}: {name}: must be {size} x {size}, and is {' x '.join(map(str, matrix.shape))}")
        wrong = np.argwhere(~np.isfinite(matrix) | (matrix < 0))
        if len(wrong):
            row, column = map(int, wrong[0])
            what = f"{name}, row {row}, column {column}: {matrix[row, column]:g}"
            raise OptionError(f"{said}: {what}: must be a finite number, 0 or more")
    region = _regions(found.get("regions"), found.get("clients"), size, clients, seed, said)
    return LinkTable(matrices.get("bandwidth"), matrices.get("latency"), region)


def _regions(names: Any, where: Any, size: int, clients: int, seed: int, said: str) -> list[int]:
    """Return the row of each client: its own, its region's, or that of a region dealt out by the seed."""
    if names is not None and (not isinstance(names, list) or len(names) != size or len(set(map(str, names))) != size):
        raise OptionError(f"{said}: regions: must be {size} different names, one for each row")
    if where is not None:
        known = {str(name): row for row, name in enumerate(range(size) if names is None else names)}
        if not isinstance(where, list) or len(where) != clients:
            raise OptionError(f"{said}: clients: must be a list with the region of each of the {clients} clients")
        for client, name in enumerate(where):
            if str(name) not in known:
                raise OptionError(
                    f"{said}: clients: client {client}: {name!r:.80}: must be one of {', '.join(known)[:200]}"
                )
        return [known[str(name)] for name in where]
    if names is None:
        if size != clients:
            raise OptionError(
                f"{said}: has {size} rows: must have one for each of the {clients} clients, or say what regions there "
                "are, or in which of them clients are (docs/simulation.md#links)"
            )
        return list(range(clients))
    dealt = [client % size for client in range(clients)]
    stream(seed, "regions").shuffle(dealt)
    return dealt


def _json(path: Path, said: str, time_unit: Fraction | None) -> dict[str, Any]:
    found = read_json(path, said)
    if not isinstance(found, dict):
        raise OptionError(f"{said}: must be an object with bandwidth, latency, or both")
    if unknown := sorted(found.keys() - {"bandwidth", "latency", "regions", "clients"}):
        raise OptionError(f"{said}: {unknown[0]!r:.80}: must be one of bandwidth, latency, regions, clients")
    for name in (name for name in _MEASURES if name in found):
        rows = found[name]
        if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == len(rows) for row in rows):
            raise OptionError(f"{said}: {name}: must be a list of lists, with as many columns as rows")
        cells = [
            [_cell(name, cell, time_unit, f"{said}: {name}, row {r}") for cell in row] for r, row in enumerate(rows)
        ]
        found[name] = np.array(cells, np.float64).reshape(len(rows), len(rows))
    return found


def _npz(path: Path, said: str, _: Fraction | None) -> dict[str, Any]:
    found: dict[str, Any] = dict(read_npz(path, said, {}, {"bandwidth": 2, "latency": 2, "clients": 1}))
    for name in (name for name in _MEASURES if name in found):
        found[name] = found[name].astype(np.float64)
    return found | ({"clients": found["clients"].tolist()} if "clients" in found else {})


def _csv(path: Path, said: str, time_unit: Fraction | None) -> dict[str, Any]:
    """Read lines of from, to, bandwidth, latency; from and to are clients' numbers, or names of regions."""
    try:
        header, *lines = list(csv.reader(read_text(path, said).splitlines())) or [[]]
    except (csv.Error, ValueError) as error:
        raise OptionError(f"{said}: must be a CSV file with lines: {error}") from None
    header = [name.strip() for name in header]
    measures = header[2:]
    if header[:2] != ["from", "to"] or not measures or sorted(set(measures) & set(_MEASURES)) != sorted(measures):
        raise OptionError(f"{said}: line 1: must be from,to,bandwidth,latency, or without one of the last two")
    table: dict[tuple[str, str], list[float]] = {}
    for number, cells in enumerate(lines, 2):
        where = f"{said}: line {number}"
        if not cells:
            continue
        if len(cells) != len(header):
            raise OptionError(f"{where}: must have {len(header)} values, and has {len(cells)}")
        pair = (cells[0].strip(), cells[1].strip())
        if pair in table:
            raise OptionError(f"{where}: the link from {pair[0]} to {pair[1]} was there before")
        texts = zip(measures, cells[2:], strict=True)
        table[pair] = [_cell(name, _number(text.strip()), time_unit, f"{where}: {name}") for name, text in texts]
    names = list(dict.fromkeys(name for pair in table for name in pair))
    if by_client := set(names) == set(map(str, range(len(names)))):
        names.sort(key=int)
    size = len(names)
    if size**2 > 4 * len(table) + 2:
        one, other = next((a, b) for a in names for b in names if a != b and (a, b) not in table)
        raise OptionError(f"{said}: the link from {one} to {other} is missing")
    matrices = np.zeros((len(measures), size, size))
    for row, one in enumerate(names):
        for column, other in enumerate(names):
            if (one, other) in table:
                matrices[:, row, column] = table[one, other]
            elif one != other:
                raise OptionError(f"{said}: the link from {one} to {other} is missing")
    return dict(zip(measures, matrices, strict=True)) | ({} if by_client else {"regions": names})


def _cell(name: str, cell: Any, time_unit: Fraction | None, where: str) -> float:
    if isinstance(cell, str):
        try:
            return _MEASURES[name].number(cell, time_unit)
        except OptionError as error:
            raise OptionError(f"{where}: {error}") from None
    if type(cell) not in (int, float) or abs(cell) > 1e300:
        raise OptionError(f"{where}: {cell!r:.80}: must be a finite number, 0 or more, or have a unit")
    return float(cell)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
