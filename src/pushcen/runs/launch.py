"""Start a run in a folder, or go on with it, as the config in the folder decides; and what such a folder is called."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pushcen.config import Config, differences
from pushcen.errors import RunError
from pushcen.folder import CONFIG, Folder
from pushcen.runs.run import Run, identity_in
from pushcen.simulation import Observer, simulate_world
from pushcen.tasks import ImageTask, TableTask
from pushcen.tracking import Many, trackers

if TYPE_CHECKING:
    from pushcen.learning import TaskFunction


def launch(
    config: Config,
    folder: Path,
    *,
    task: "TaskFunction | None" = None,
    observers: Sequence[Observer] = (),
    track: Iterable[str] = (),
    strict: bool = False,
    then: Callable[[Run], object] | None = None,
) -> Run:
    """Run `config` in `folder` to its end, or until it is interrupted; then call `then` with it.

    A new folder is made. A run of the same config that is there already goes on, or, if it is finished, is left as it
    is, without calling `then`; another run is an error. `task` is the task function itself, where its name cannot be
    imported. If `strict`, a client whose training diverges ends the run.
    """
    resume = (folder / CONFIG).is_file()
    if resume:
        there = Run.open(folder)
        check_same(there, config)
        if there.finished:
            return there
    elif folder.is_dir() and any(folder.iterdir()):
        raise RunError(f"{folder}: is not empty, and not a run; choose another folder")
    function = task or config.task_function()
    observer = Many([*observers, *trackers(track, folder, config.plain())])
    if not resume:
        Folder(folder).write_config(config.plain())
    test = _global_test(config, function)
    simulate_world(config, function, folder, observer, resume=resume, global_test=test, strict=strict)
    done = Run.open(folder)
    if then is not None:
        then(done)
    return done


def _global_test(config: Config, function: "TaskFunction") -> Callable[[], Any] | None:
    """Return a function that loads the global test set, if the config asks for it and there is one."""
    if not config.evaluation.global_test or not isinstance(function, ImageTask | TableTask):
        return None
    if function.common_test(config.clients) is None:
        return None
    return functools.partial(function.common_test, config.clients)


def check_same(there: Run, config: Config) -> None:
    """Refuse a folder with another run, naming the first keys that differ."""
    was, now = there.identity(), config.identity()
    if keys := differences(was, now):
        shown = "; ".join(f"{key} is {was.get(key)!r} there and {now.get(key)!r} here" for key in keys[:3])
        more = f"; and {len(keys) - 3} more" if len(keys) > 3 else ""
        raise RunError(f"{there.folder}: holds another run: {shown}{more}. Choose another name")


def folder_name(label: str) -> str:
    """Return a label as the name of a folder.

    >>> folder_name("method.clusters=8, data.source=some/file")
    'method.clusters=8,data.source=some_file'
    """
    return "".join(letter if letter.isalnum() or letter in "=.,-" else "_" for letter in label.replace(", ", ","))


def numbered(runs: Path, name: str) -> Iterator[Path]:
    """Yield `runs/name`, `runs/name-2`, `runs/name-3`, ...: what a folder may be called, in the order of choice.

    >>> [folder.name for folder in itertools.islice(numbered(Path("runs"), "digits"), 3)]
    ['digits', 'digits-2', 'digits-3']
    """
    yield runs / name
    yield from (runs / f"{name}-{number}" for number in itertools.count(2))


def free_folder(runs: Path, name: str) -> Path:
    """Return `runs/name`, or the first of `runs/name-2`, `runs/name-3`, ... that is not taken.

    >>> free_folder(Path("no/such"), "digits").as_posix()
    'no/such/digits'
    """
    return next(folder for folder in numbered(runs, name) if not folder.exists())


def folder_for(runs: Path, name: str, configs: Mapping[str, Config]) -> Path:
    """Return the first of `name`, `name-2`, ... that is free, or whose runs so far are those of `configs`."""
    return next(folder for folder in numbered(runs, name) if not folder.exists() or _holds(folder, configs))


def _holds(folder: Path, configs: Mapping[str, Config]) -> bool:
    there = {part: folder / part for part in configs if (folder / part / CONFIG).is_file()}
    return bool(there) and all(identity_in(at) == configs[part].identity() for part, at in there.items())
