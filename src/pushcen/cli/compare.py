"""`pushcen compare`: several methods in the same world, one table, one figure."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pushcen.cli import options as o

FIVE = "pushcen,async-dfedavg,swift,divshare,independent"


def compare(
    config: o.ConfigFile = "digits",
    methods: Annotated[str, typer.Option(help="Names, with commas between them.")] = FIVE,
    set_: o.Set = None,
    task: o.Task = None,
    data: o.Data = None,
    alpha: o.Alpha = None,
    clients: o.Clients = None,
    horizon: o.Horizon = None,
    seed: o.Seed = None,
    workers: o.Workers = None,
    name: o.Name = None,
    runs: o.Runs = Path("runs"),
    track: o.Track = None,
    strict: o.Strict = False,
) -> None:
    """Run several methods in the same world: same data, same join times, same first weights.

    What is finished is not run again, what was interrupted goes on. An option `method.X` goes to the methods that have
    it, `methods.NAME.X` to the one of that name.
    """
    from pushcen.analysis import comparison, draw_accuracy, group
    from pushcen.analysis.figures import accuracy
    from pushcen.cli.simulate import watched
    from pushcen.drawing import save
    from pushcen.runs import folder_for, folder_name, launch, plan_comparison

    changed = o.settings(
        set_, task=task, data=data, alpha=alpha, clients=clients, horizon=horizon, seed=seed, workers=workers
    )
    special = {key: value for key, value in changed.items() if key.startswith("method.")}
    load = o.loader(config, {key: value for key, value in changed.items() if key not in special})
    names = [method.strip() for method in methods.split(",") if method.strip()]
    configs = {folder_name(label): c for label, c in plan_comparison(load, names, special).items()}
    first = next(iter(configs.values()))
    folder = runs / name if name else folder_for(runs, folder_name(f"compare-{first.task_name}"), configs)
    done = []
    for at, (label, chosen) in enumerate(configs.items(), 1):
        again, start = (
            "the same command; what is finished is not run again",
            partial(launch, strict=strict, then=draw_accuracy),
        )
        done.append(
            watched(
                chosen,
                folder / label,
                f"{label} ({at} of {len(configs)})",
                track or [],
                again,
                start,
            )
        )
    groups = group(done)
    console = Console(highlight=False)
    console.print(comparison(groups, f"{first.task_name}, {first.clients} clients, the same world for all").rich())
    if figure := accuracy(groups):
        files = save(figure, folder, "accuracy")
        console.print(f"figure: {files[0]}", soft_wrap=True, markup=False)
    console.print(f"more figures and a page: pushcen report {folder}", soft_wrap=True, markup=False)
