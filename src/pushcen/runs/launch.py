"""Start a run in a folder, or go on with it; the folder's config decides which of the two it is."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pushcen.config import Config, differences
from pushcen.errors import RunError
from pushcen.folder import CONFIG, Folder
from pushcen.runs.run import Run
from pushcen.simulation import Observer, simulate_world
from pushcen.tasks import ImageTask
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
) -> Run:
    """Run `config` in `folder` to its end, or until it is interrupted; then draw its accuracy.

    A new folder is made. A run of the same config that is there already goes on, or, if it is finished, is left as it
    is; another run is an error. `task` is the task function itself, where its name cannot be imported. If `strict`,
    a client whose training diverges ends the run.
    """
    there = Run.open(folder) if (folder / CONFIG).is_file() else None
    done = carry_out(config, folder, task=task, observers=observers, track=track, strict=strict)
    if there is None or not there.finished:
        draw(done)
    return done


def carry_out(
    config: Config,
    folder: Path,
    *,
    task: "TaskFunction | None" = None,
    observers: Sequence[Observer] = (),
    track: Iterable[str] = (),
    strict: bool = False,
) -> Run:
    """Do what `launch` does, and draw nothing: whoever shows a table first need not wait for matplotlib."""
    resume = (folder / CONFIG).is_file()
    if resume:
        there = Run.open(folder)
        check_same(there, config)
        if there.finished:
            return there
    elif folder.is_dir() and any(folder.iterdir()):
        raise RunError(f"{folder}: is not empty, and not a run; choose another folder")
    function = task or config.task_function()
    told = Many([*observers, *trackers(track, folder, config.plain())])
    if not resume:
        Folder(folder).write_config(config.plain())
    test = _global_test(config, function)
    simulate_world(config, function, folder, told, resume=resume, global_test=test, strict=strict)
    return Run.open(folder)


def _global_test(config: Config, function: "TaskFunction") -> Callable[[], Any] | None:
    """Return what loads the global test set, if it is asked for and there is one."""
    if not config.evaluation.global_test or not isinstance(function, ImageTask):
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
        raise RunError(f"{there.folder}: holds another run: {shown}{more}. Another name would do")


def draw(done: Run) -> None:
    """Draw the accuracy into the run's folder."""
    from pushcen.analysis.figures import accuracy
    from pushcen.analysis.groups import group
    from pushcen.drawing import save

    if figure := accuracy(group([done])):
        save(figure, done.folder, "accuracy")


def folder_name(label: str) -> str:
    """Turn a label into the name of a folder.

    >>> folder_name("method.clusters=8, data.source=some/file")
    'method.clusters=8,data.source=some_file'
    """
    return "".join(letter if letter.isalnum() or letter in "=.,-" else "_" for letter in label.replace(", ", ","))


def free_folder(runs: Path, name: str) -> Path:
    """Return `runs/name`, or the first of `runs/name-2`, `runs/name-3`, ... that is not taken.

    >>> free_folder(Path("no/such"), "digits").as_posix()
    'no/such/digits'
    """
    return next(folder for folder in numbered(runs, name) if not folder.exists())


def numbered(runs: Path, name: str) -> Iterator[Path]:
    """Yield `runs/name`, `runs/name-2`, `runs/name-3`, ...: what a folder may be called, in the order of choice."""
    yield runs / name
    yield from (runs / f"{name}-{number}" for number in itertools.count(2))
