"""`pushcen data trace`: made-up days and nights of devices, for `participation.trace`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

Shares = Annotated[
    str,
    typer.Option(metavar="SHARES", help="The share online at each of 24 hours, separated by commas [more at night]."),
]


def trace(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The JSON file to write.")],
    clients: Annotated[int, typer.Option(help="How many devices.")] = 100,
    days: Annotated[int, typer.Option(help="After so many days it begins again.")] = 7,
    seed: Annotated[int, typer.Option(help="The same seed, the same trace.")] = 0,
    online: Shares = "",
    zones: Annotated[str, typer.Option(metavar="HOURS", help="Time zones that devices live in, such as 0,8,-5.")] = "0",
) -> None:
    """Write a made-up trace of when devices are online, by day and night, in FedScale's format as JSON.

    A share between two hours is on a straight line; which devices are online changes from day to day.
    """
    from pushcen.errors import OptionError
    from pushcen.files import write_whole
    from pushcen.simulation.worlds.day_and_night import AT_NIGHT, DAY, day_and_night

    if not out.absolute().parent.is_dir():
        raise OptionError(f"out = {str(out)!r}: there is no folder {str(out.parent)!r}")
    shares = _numbers("online", online) if online else AT_NIGHT
    made = day_and_night(clients, days, seed, shares, _numbers("zones", zones))
    write_whole(out, f"{json.dumps(made)}\n".encode())
    spans = [b - a for one in made.values() for a, b in zip(one["active"], one["inactive"], strict=True)]
    share, hours = sum(spans) / (clients * days * DAY), sum(spans) / len(spans) / 3600
    told = f"{out}: {clients:,} devices, {days:,} days; online {share:.0%} of the time, {hours:.1f} hours at a time"
    Console(highlight=False).print(told, soft_wrap=True, markup=False)


def _numbers(name: str, text: str) -> list[float]:
    from pushcen.errors import OptionError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise OptionError(f"{name} = {text!r}: must be numbers, separated by commas") from None
