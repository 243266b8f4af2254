"""`pushcen bench ...`: each measurement as a command, which imports it when it runs and prints a table, or JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from pushcen.analysis import Table

app = typer.Typer(help="Measure pushcen beside plain versions of the same work, on this machine.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command()
def codec(as_json: Json = False) -> None:
    """Measure the codec on a ResNet-18's weights, on one thread (about a minute).

    docs/codec.md explains the figures.
    """
    from pushcen.bench.codec import measure

    with _waiting("training a ResNet-18 a little, then measuring its codec ..."):
        figures = measure()
    goals = {"bits_over_entropy": "<= 1.03", "encode_vs_memcpy": "<= 25", "accumulate_vs_dense_add": "<= 3"}
    rows: list[tuple[str, str, str]] = [
        ("encode_speedup_vs_plain", f"{figures.encode_speedup_vs_plain:.0f}", ">= 100"),
        *((f"distortion_vs_optimum, K = {k}", f"{r:.4f}", "<= 1.02") for k, r in figures.distortion_vs_optimum.items()),
        *((f"zero_in_the_middle, K = {k}", f"{share:.0%}", "") for k, share in figures.zero_in_the_middle.items()),
        ("distortion_vs_plain", f"{figures.distortion_vs_plain:.3f}", "<= 0.3"),
        ("encode_vs_memcpy", f"{figures.encode_vs_memcpy:.2f}", "<= 12"),
        ("accumulate_vs_dense_add", f"{figures.accumulate_vs_dense_add:.2f}", "<= 1.5"),
        ("check_vs_dense_add", f"{figures.check_vs_dense_add:.2f}", ""),
        ("bits_per_weight", f"{figures.bits_per_weight:.3f}", ""),
        ("entropy_bits_per_weight", f"{figures.entropy_bits_per_weight:.3f}", ""),
        *(
            (f"lean, {bits} bits: {name}", f"{value:.3f}", goals.get(name, ""))
            for bits, found in figures.lean.items()
            for name, value in found.items()
        ),
    ]
    title = f"The codec, {figures.weights:,} numbers, K = 32, one thread"
    _show(as_json, figures.as_dict(), title, ("figure", "measured", "goal"), rows)


@app.command()
def protocol(
    as_json: Json = False,
    events: Annotated[int, typer.Option(min=1, help="Compute events in each round of the speed measurement.")] = 15_000,
) -> None:
    """Measure the protocol core alone, at 1,000, 10,000 and 100,000 peers.

    docs/protocol.md explains the figures.
    """
    from pushcen.bench.protocol import run

    found = run(events)
    rates, links = found["events_per_second_by_peers"], found["links_per_peer_by_peers"]
    rows = [
        *((f"events per CPU second, {int(peers):,} peers", f"{rate:,}") for peers, rate in rates.items()),
        *((f"links per peer, {int(peers):,} peers", f"{count:,}") for peers, count in links.items()),
        ("time per event, most peers over fewest", f"{found['time_per_event_growth']:.2f} x"),
        ("bytes per link, both ends", f"{found['bytes_per_link']:.0f}"),
        *(
            (f"spread of 1 after 8 pushes each, {kind}", f"{s:.2e}")
            for kind, s in found["spread_after_8_pushes"].items()
        ),
    ]
    _show(as_json, found, "The protocol core, one process, pure Python", ("figure", "measured"), rows)


@app.command()
def learning(as_json: Json = False) -> None:
    """Measure a compute event beside plain training, on one thread (minutes).

    docs/learning.md explains the figures.
    """
    from pushcen.bench import lora
    from pushcen.bench.learning import BATCHES, measure

    with _waiting("training LeNets and ResNet-18s, plainly and by PushCen ..."):
        figures = measure()
    parts = next(iter(figures.parts_vs_plain.values()))
    rows = [
        (name, BATCHES[name], f"{figures.overhead_vs_plain[name]:.3f} x", *(f"{share:.1%}" for share in found.values()))
        for name, found in figures.parts_vs_plain.items()
    ]
    others = {"lenet_lean": ("lenet, lean", BATCHES["lenet"]), "lora": ("adapters (LoRA)", lora.BATCHES)}
    for key, (name, batches) in others.items():
        rows.append((name, batches, f"{figures.overhead_vs_plain[key]:.3f} x", *[""] * len(parts)))
    title = "A PushCen compute event over plain training of the same batches"
    _show(as_json, figures.as_dict(), title, ("model", "batches of 32", "whole event", *parts), rows)
    if not as_json:
        push, memory, peak = figures.lora.values()
        Console(highlight=False).print(
            f"Adapters: a push is {push:.3f} of what trains; {lora.CLIENTS} clients take {memory:.2f} times the memory "
            f"of one backbone and all adapters with Adam ({peak:.2f} at the peak)"
        )


@app.command()
def runtime(
    as_json: Json = False,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each measurement; the best counts.")] = 25,
) -> None:
    """Measure pushes over TLS beside bare gRPC with the same bytes.

    docs/runtime.md explains the figures.
    """
    from pushcen.bench.runtime import run

    with _waiting("pushing LeNets and ResNet-18s, and the same bytes by gRPC alone ..."):
        found = run(rounds)
    models = {"lenet": "LeNet", "resnet18": "ResNet-18"}
    rows = [(key.replace("_", " "), *(f"{found[model][key]:,}" for model in models)) for key in found["lenet"]]
    _show(as_json, found, "A push over TLS on loopback, beside bare gRPC", ("figure", *models.values()), rows)
    if not as_json:
        through = found["hosted"]
        rows = [(key.replace("_", " "), *(f"{through[model][key]:,}" for model in models)) for key in through["lenet"]]
        _show(False, through, "The same through a host", ("figure", *models.values()), rows)
        share = found["training_run"]
        typer.echo(
            f"CPU of a training run: {share['network_cpu_share']:.1%} network, {share['ledger_cpu_share']:.1%} ledger"
        )


@app.command()
def simulator(as_json: Json = False) -> None:
    """Measure a simulation beside the training in it (about nine minutes).

    docs/simulation.md explains the figures.
    """
    from pushcen.bench.simulator import run

    with _waiting("training LeNets, bare and simulated; then a thousand; then many events ..."):
        found = run()
    rows = [(name.replace("_", " "), str(value)) for name, value in found.items()]
    _show(as_json, found, "The simulator", ("figure", "measured"), rows)


@app.command()
def peers(
    as_json: Json = False,
    only: Annotated[list[str] | None, typer.Option(help="Only this tool; give it again for several.")] = None,
    clients: Annotated[int, typer.Option(min=2, help="How many clients each tool simulates.")] = 100,
    rounds: Annotated[int, typer.Option(min=1, help="Updates of every client, after one to warm up.")] = 3,
    limit: Annotated[float, typer.Option(min=1, help="Seconds after which a tool is given up.")] = 900.0,
) -> None:
    """Measure the same work in Flower, gossipy, p2pfl and pushcen; installs each apart (gigabytes, at first).

    docs/beside.md explains the figures.
    """
    from pushcen.bench import beside

    with _waiting("") as status:
        found = beside.run(clients, rounds, only or (), limit, tell=status.update)
    _print(as_json, found, beside.table(found))


@app.command()
def start(
    as_json: Json = False,
    rounds: Annotated[int, typer.Option(min=1, help="How often each is started; the quickest counts.")] = 3,
) -> None:
    """Measure `pushcen simulate` from the command to the table, with and without compiled kernels.

    Each run has 4 clients, T = 1 and a process of its own. docs/commands.md explains the figures.
    """
    from pushcen.bench.start import GOALS, run

    with _waiting("starting a small run, again and again ..."):
        found = run(rounds)
    rows = [
        (kind, *(f"{seconds:.2f}" for seconds in parts.values()), f"<= {GOALS[kind]:g}")
        for kind, parts in found.items()
    ]
    _show(as_json, found, "Seconds from `pushcen simulate` to its table", ("start", *found["cold"], "goal"), rows)


def _waiting(text: str) -> Any:
    return Console(stderr=True).status(text)


def _show(
    as_json: bool, found: Mapping[str, Any], title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Print what was measured: as JSON, or as a table, whose first column has names and the others numbers."""
    from pushcen.analysis import Column, Table

    first, *others = columns
    _print(as_json, found, Table(title, [Column(first, left=True), *map(Column, others)], rows))


def _print(as_json: bool, found: Mapping[str, Any], table: "Table") -> None:
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        Console(highlight=False).print(table.rich())
