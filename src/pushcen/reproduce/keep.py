"""Finished runs, to be kept in a repository: config, metrics and summary; no checkpoint."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from pushcen.folder import CONFIG, METRICS, SUMMARY
from pushcen.reproduce.plan import Planned, RunStore


def keep(runs: Sequence[Planned], store: RunStore, folder: Path) -> int:
    """Copy what is finished and not in `folder` yet; return how many runs that were."""
    there = RunStore(folder)
    copied = 0
    for planned in runs:
        run = store.find(planned.config)
        if run is None or not run.finished or there.find(planned.config) is not None:
            continue
        into = there.folder(planned)
        into.mkdir(parents=True)
        for name in (CONFIG, METRICS, SUMMARY):
            shutil.copyfile(run.folder / name, into / name)
        copied += 1
    return copied
