"""The same work in pushcen and in other tools: what each takes for an update of a client, beside the training in it."""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pushcen.bench.environments import ToolError, installed, last_line, pip, plain_environment
from pushcen.bench.processes import Watched, watch
from pushcen.checks import check_choice

if TYPE_CHECKING:
    from pushcen.analysis import Table

SCRIPTS = Path(__file__).parent / "peers"
CORES = 2
_QUIET = {  # as for pushcen: a thread of torch's in each worker, no lower priority, nothing reported to anybody
    "OMP_NUM_THREADS": "1",
    "RAY_worker_niceness": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "FLWR_TELEMETRY_ENABLED": "0",
}


@dataclass(frozen=True)
class Tool:
    """A tool: the script that does the work in it, and what pip installs for it. Without a script it is looked up."""

    name: str
    script: str = ""
    arguments: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()


_P2PFL = (  # without its extra `torch`, whose torchvision insists on an old torch; what it uses must be old, too
    *("p2pfl[dp]", "lightning>=2.4,<3", "torchmetrics>=1.3.1,<2"),
    *("pyarrow<20", "huggingface_hub<1"),
)
TOOLS = (
    Tool("pushcen", "run_pushcen.py", ("async-dfedavg",)),
    Tool("pushcen-compressed", "run_pushcen.py", ("pushcen",)),
    Tool("flower", "run_flower.py", requirements=("flwr[simulation]",)),
    Tool("gossipy", "run_gossipy.py", requirements=("gossipy-dfl",)),
    Tool("p2pfl", "run_p2pfl.py", requirements=_P2PFL),
    Tool("decentralizepy"),
    Tool("decentralized-learning-simulator"),
)
BASE = TOOLS[0].name


@dataclass(frozen=True)
class Figures:
    """What was measured of a tool; times are milliseconds for one update of one client, memory is megabytes."""

    versions: dict[str, str]
    updates: int
    start_seconds: float  # until the first update that counts: imports, workers, a round to warm up
    wall: float
    bare_wall: float
    processor: float
    bare_processor: float
    peak: float
    bare_peak: float


def run(
    clients: int = 100,
    rounds: int = 3,
    only: Sequence[str] = (),
    limit: float = 900.0,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure every tool, or `only` those named; return its figures, or why there are none, by its name."""
    for name in only:
        check_choice("only", name, [tool.name for tool in TOOLS])
    if not Path("/proc/self/smaps_rollup").exists():
        raise ToolError("other tools can be measured on Linux only: memory is read from /proc")
    found: dict[str, Any] = {"clients": clients, "rounds": rounds, "load_before": round(os.getloadavg()[0], 2)}
    with _cores() as cores:
        found |= {"cores": cores, "peers": {}}
        for tool in TOOLS:
            if not only or tool.name in only:
                try:
                    found["peers"][tool.name] = asdict(_measure(tool, clients, rounds, limit, tell))
                except ToolError as error:
                    found["peers"][tool.name] = {"failed": str(error)}
    return found


def _measure(tool: Tool, clients: int, rounds: int, limit: float, tell: Callable[[str], None]) -> Figures:
    """Run a tool, and before and after it the bare training, in the same environment and on the same cores."""
    tell(f"{tool.name}: installing ...")
    python = Path(sys.executable) if tool.name.startswith(BASE) else installed(tool.name, tool.requirements)
    if not tool.script:
        pip(python, "index", "versions", tool.name)
        raise ToolError(f"PyPI has a package {tool.name}, but there is no script for it here")
    results = []
    for script, arguments in (("bare.py", ()), (tool.script, tool.arguments), ("bare.py", ())):
        tell(f"{tool.name}: {script}, {clients} clients, {rounds} rounds ...")
        results.append(_result(python, script, (str(clients), str(rounds), *arguments), limit))
    before, own, after = results
    return Figures(
        versions=own.versions,
        updates=own.updates,
        start_seconds=round(own.start, 2),
        wall=round(own.wall, 3),
        bare_wall=round((before.wall + after.wall) / 2, 3),
        processor=round(own.processor, 3),
        bare_processor=round((before.processor + after.processor) / 2, 3),
        peak=round(own.peak, 1),
        bare_peak=round(max(before.peak, after.peak), 1),
    )


@dataclass(frozen=True)
class _Result:
    versions: dict[str, str]
    updates: int
    start: float
    wall: float
    processor: float
    peak: float


def _result(python: Path, script: str, arguments: Sequence[str], limit: float) -> _Result:
    """Run a script in a folder of its own, which is gone afterwards with all that a tool leaves behind."""
    own = python == Path(sys.executable)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        environment = plain_environment() | _QUIET | {"RAY_TMPDIR": folder, "FLWR_HOME": folder, "HF_HOME": folder}
        environment["PYTHONPATH"] = str(SCRIPTS.parents[2] if own else SCRIPTS)  # Ray's workers need the scripts, too
        return read_result(watch([str(python), str(SCRIPTS / script), *arguments], environment, Path(folder), limit))


def read_result(watched: Watched) -> _Result:
    """Take what a script printed last, if it is what it should be; else say why there is nothing."""
    if watched.code is None:
        raise ToolError(f"not finished in time; it last said: {last_line(watched.errors) or 'nothing'}")
    if watched.code:
        raise ToolError(f"failed: {last_line(watched.errors) or f'exit code {watched.code}'}")
    for line in reversed(watched.output.splitlines()):
        if line.startswith("{"):
            break
    else:
        raise ToolError(f"printed no result, but {last_line(watched.output)!r}")
    try:
        said = json.loads(line)
        updates, seconds, began = int(said["updates"]), float(said["seconds"]), float(said["began"])
        versions = {str(name): str(value) for name, value in said["versions"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise ToolError(f"printed no result, but {line[:300]!r}") from None
    if updates < 1 or not (0 < seconds < math.inf) or not (watched.began <= began < math.inf):
        raise ToolError(f"printed a result that cannot be: {line[:300]!r}")
    return _Result(
        versions,
        updates,
        began - watched.began,
        seconds / updates * 1e3,
        watched.processor_seconds(began, began + seconds) / updates * 1e3,
        watched.peak / 1e6,
    )


@contextmanager
def _cores() -> Iterator[int]:
    """Let this process and all that it starts use two cores."""
    before = os.sched_getaffinity(0)
    chosen = sorted(before)[:CORES]
    os.sched_setaffinity(0, chosen)
    try:
        yield len(chosen)
    finally:
        os.sched_setaffinity(0, before)


def table(found: dict[str, Any]) -> "Table":
    """Return the figures as a table, each with its multiple of pushcen's; what could not be measured says why."""
    from pushcen.analysis import Column, Table

    peers = {name: Figures(**figures) for name, figures in found["peers"].items() if "failed" not in figures}
    base = peers.get(BASE)
    rows = []
    for name, own in peers.items():
        over = own.wall - own.bare_wall
        rows.append(
            [
                name,
                own.wall,
                own.bare_wall,
                over,
                _times(over, base.wall - base.bare_wall if base else None),
                own.processor - own.bare_processor,
                own.peak,
                own.bare_peak,
                _times(own.peak, base.peak if base else None),
                own.start_seconds,
                own.updates,
            ]
        )
    titles = ("ms an update", "bare training", "overhead", "x pushcen", "CPU overhead")
    columns = [Column("tool", left=True), *(Column(title, _shown) for title in titles)]
    columns += [Column(title, _shown) for title in ("peak MB", "bare MB", "x pushcen", "start s")]
    notes = [
        *(f"{name}: {', '.join(f'{p} {v}' for p, v in own.versions.items())}" for name, own in peers.items()),
        *(f"{name}: {own['failed']}" for name, own in found["peers"].items() if "failed" in own),
    ]
    title = f"{found['clients']} clients, a LeNet, {found['cores']} cores, load {found['load_before']} before"
    return Table(title, [*columns, Column("updates")], rows, notes)


def _times(value: float, base: float | None) -> float | None:
    """Return the multiple of pushcen's figure; None where that is not above zero, or was not measured."""
    return value / base if base and base > 0 else None


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
