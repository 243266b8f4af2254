"""Start a run in a folder, or go on with it; the folder's config decides which of the two it is."""

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pushcen.config import Config, differences, flat, write_toml
from pushcen.errors import RunError
from pushcen.runs.run import CONFIG, Run
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
) -> Run:
    """Run `config` in `folder` to its end, or until it is interrupted.

    A new folder is made. A run of the same config that is there already goes on, or, if it is finished, is left as it
    is; another run is an error. `task` is the task function itself, where its name cannot be imported.
    """
    values = config.plain()
    resume = (folder / CONFIG).is_file()
    if resume:
        there = Run.open(folder)
        check_same(there, values)
        if there.finished:
            return there
    elif folder.is_dir() and any(folder.iterdir()):
        raise RunError(f"{folder}: is not empty, and not a run; choose another folder")
    function = task or config.task_function()
    told = Many([*observers, *trackers(track, folder, values)])
    if not resume:
        folder.mkdir(parents=True, exist_ok=True)
        write_toml(values, folder / CONFIG)
    simulate_world(config, function, folder, told, resume=resume, global_test=_global_test(config, function))
    done = Run.open(folder)
    draw(done)
    return done


def _global_test(config: Config, function: "TaskFunction") -> Callable[[], Any] | None:
    """Return what loads the global test set, if it is asked for and there is one."""
    if not config.evaluation.global_test or not isinstance(function, ImageTask):
        return None
    if function.common_test(config.clients) is None:
        return None
    return functools.partial(function.common_test, config.clients)


def check_same(there: Run, values: dict[str, Any]) -> None:
    """Refuse a folder whose run has another config, naming the first keys that differ."""
    if keys := differences(there.config, values):
        was, now = flat(there.config), flat(values)
        shown = "; ".join(f"{key} is {was.get(key)!r} there and {now.get(key)!r} here" for key in keys[:3])
        more = f"; and {len(keys) - 3} more" if len(keys) > 3 else ""
        raise RunError(f"{there.folder}: holds another run: {shown}{more}. Another name would do")


def draw(done: Run) -> None:
    """Draw the accuracy into the run's folder."""
    from pushcen.analysis.figures import accuracy
    from pushcen.analysis.groups import group
    from pushcen.analysis.style import save

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
    number, folder = 1, runs / name
    while folder.exists():
        number += 1
        folder = runs / f"{name}-{number}"
    return folder
