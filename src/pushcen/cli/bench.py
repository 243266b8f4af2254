"""`pushcen bench ...`: measurements, side by side in one process, as a table or as JSON. A file for each."""

import typer

from pushcen.cli.bench_codec import codec
from pushcen.cli.bench_learning import learning
from pushcen.cli.bench_protocol import protocol
from pushcen.cli.bench_runtime import runtime
from pushcen.cli.bench_simulator import simulator
from pushcen.cli.bench_start import start

app = typer.Typer(help="Measure, side by side in one run, on this machine.", no_args_is_help=True)
app.command("codec")(codec)
app.command("learning")(learning)
app.command("protocol")(protocol)
app.command("runtime")(runtime)
app.command("simulator")(simulator)
app.command("start")(start)
