"""Start a run in a folder, or go on with it, as the config in the folder decides."""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pushcen.config import Config, differences
from pushcen.errors import RunError
from pushcen.folder import CONFIG, Folder
from pushcen.runs.run import Run
from pushcen.simulation import ExecutorOptions, Observer, simulate_world
from pushcen.tasks import ImageTask, TableTask
from pushcen.tracking import Many, trackers

if TYPE_CHECKING:
    from pushcen.learning import TaskFunction


def launch(
    config: Config,
    folder: Path,
    *,
    task: "TaskFunction | None" = None,
    executor: ExecutorOptions | None = None,
    observers: Sequence[Observer] = (),
    track: Iterable[str] = (),
    strict: bool = False,
    then: Callable[[Run], object] | None = None,
) -> Run:
    """Run `config` in `folder` to its end, or until it is interrupted; then call `then` with it.

    A new folder is made. A run of the same config that is there already goes on, or, if it is finished, is left as it
    is, without calling `then`; another run is an error. `task` is the task function itself, where its name cannot be
    imported; `executor` is what to compute on, if not what the config says. If `strict`, a client whose training
    diverges ends the run.
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
    world = replace(config, executor=executor or config.executor)
    simulate_world(world, function, folder, observer, resume=resume, global_test=test, strict=strict)
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
