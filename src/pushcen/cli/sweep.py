"""`pushcen sweep`: any keys of the config, any number of seeds; differences with their confidence intervals."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pushcen.cli import options as o


def sweep(
    config: o.ConfigFile = "digits",
    over: Annotated[
        list[str] | None, typer.Option(metavar="KEY=A,B,...", help="method.clusters=8,16,32; may be repeated.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from `seed` on.")] = 1,
    figure: Annotated[str, typer.Option(help="What is compared: accuracy, delayed_best, ...")] = "accuracy",
    set_: o.Set = None,
    method: o.Method = None,
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
    """Run every combination of some settings, with several seeds; show paired differences to the first one.

    What is finished is not run again, what was interrupted goes on.
    """
    from pushcen.analysis import Group, draw_accuracy
    from pushcen.analysis import sweep as table
    from pushcen.cli.simulate import watched
    from pushcen.runs import folder_for, folder_name, launch, plan_sweep

    changed = o.settings(
        set_, method=method, task=task, data=data, alpha=alpha, clients=clients, horizon=horizon, seed=seed,
        workers=workers,
    )  # fmt: skip
    points = plan_sweep(o.loader(config, changed), over or [], seeds)
    configs = {f"{folder_name(label)}/seed-{c.seed}": c for label, some in points.items() for c in some}
    first = next(iter(configs.values()))
    folder = runs / name if name else folder_for(runs, folder_name(f"sweep-{first.task_name}"), configs)
    done = {}
    for at, (part, chosen) in enumerate(configs.items(), 1):
        again, start = (
            "the same command; what is finished is not run again",
            partial(launch, strict=strict, then=draw_accuracy),
        )
        done[part] = watched(
            chosen,
            folder / part,
            f"{part} ({at} of {len(configs)})",
            track or [],
            again,
            start,
        )
    groups = {}
    for label, some in points.items():
        members = tuple(done[f"{folder_name(label)}/seed-{c.seed}"] for c in some)
        groups[_said(some[0].method_name, label)] = Group(label, members)
    shown = table(groups, figure)
    console = Console(highlight=False)
    console.print(shown.rich())
    (folder / "sweep.csv").write_text(shown.to("csv"), "utf-8")
    console.print(f"table: {folder / 'sweep.csv'}", soft_wrap=True, markup=False)


def _said(method: str, label: str) -> str:
    """Say a point in words: `method.clusters=8, network.loss=0` is "K 8, loss 0"."""
    from pushcen.analysis.labels import option

    parts = [(part, *part.partition("=")[::2]) for part in label.split(", ")]
    return ", ".join(option(method, key, value) or part if "=" in part else part for part, key, value in parts)
