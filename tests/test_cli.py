"""The command line: quick to answer, and true to its version."""

import inspect
import itertools
import json
import subprocess
import sys
from typing import get_type_hints

import pytest
from typer.testing import CliRunner

import pushcen
from pushcen.cli import app
from pushcen.methods import methods

HEAVY = (
    "torch",
    "datasets",
    "flwr_datasets",
    "pyarrow",
    "PIL",
    "ray",
    "grpc",
    "numba",
    "numpy",
    "sklearn",
    "networkx",
    "matplotlib",
    "pandas",
    "pydantic",
    "scipy",
)


@pytest.mark.parametrize("arguments", ["['--help']", "['--version']", "None"])
def test_help_and_version_import_nothing_heavy(arguments):
    program = f"""
import sys
from typing import get_type_hints
from pushcen.cli import app
if {arguments} is not None:
    try:
        app({arguments})
    except SystemExit:
        pass
heavy = [name for name in {HEAVY!r} if name in sys.modules]
sys.exit(f"imported {{heavy}}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_version_is_the_packages():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output.strip() == f"pushcen {pushcen.__version__}"


def test_the_codecs_demonstration_shows_both_models():
    result = CliRunner().invoke(app, ["codec", "demo", "--clusters", "16"])
    assert result.exit_code == 0, result.output
    assert "LeNet" in result.output
    assert "ResNet-18" in result.output
    assert "5.611" in result.output  # MB: four bits for each of a ResNet-18's weights


def test_the_cost_command_prints_the_papers_sizes():
    result = CliRunner().invoke(app, ["codec", "cost"])
    assert result.exit_code == 0, result.output
    for size in ("0.976", "1.298", "1.622", "48.698", "62.511", "76.330", "48.894", "62.771", "76.654", "449.112"):
        assert size in result.output


def test_what_pushcen_refuses_is_one_line_and_no_traceback():
    result = CliRunner().invoke(app, ["codec", "demo", "--clusters", "300"])
    assert result.exit_code == 2
    assert result.stderr == "error: clusters = 300: must be a whole number from 2 to 256\n"


@pytest.mark.slow
def test_the_codecs_benchmark_prints_its_figures_as_one_json_object():
    result = CliRunner().invoke(app, ["bench", "codec", "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert set(figures) == {
        "weights",
        "encode_speedup_vs_plain",
        "distortion_vs_optimum",
        "distortion_vs_plain",
        "zero_in_the_middle",
        "encode_vs_memcpy",
        "accumulate_vs_dense_add",
        "check_vs_dense_add",
        "bits_per_weight",
        "entropy_bits_per_weight",
        "lean",
    }
    assert set(figures["distortion_vs_optimum"]) == {"4", "8", "16", "32"}
    assert max(figures["distortion_vs_optimum"].values()) <= 1.02
    assert figures["distortion_vs_plain"] <= 0.3
    assert figures["entropy_bits_per_weight"] < figures["bits_per_weight"] < 5.01


def _commands(app, path=()):
    """Every command, as a user types it, with the function behind it."""
    for command in app.registered_commands:
        yield (*path, command.name or command.callback.__name__), command.callback
    for group in app.registered_groups:
        yield from _commands(group.typer_instance, (*path, group.name))


@pytest.mark.parametrize(
    ("words", "function"), list(_commands(app)), ids=lambda one: " ".join(one) if isinstance(one, tuple) else ""
)
def test_a_help_text_is_shown_whole(words, function):
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "400"}).output
    texts = [line for line in inspect.getdoc(function).splitlines() if line]
    for hint in get_type_hints(function, include_extras=True).values():
        texts += [info.help for info in getattr(hint, "__metadata__", ()) if getattr(info, "help", None)]
    for text in texts:
        assert text in shown


def test_the_help_of_a_run_names_every_method_that_comes_along():
    shown = CliRunner().invoke(app, ["simulate", "--help"], env={"COLUMNS": "400"}).output
    told = shown.partition("method.name: ")[2].partition(", or module:Class")[0]
    assert [name.split()[0] for name in told.split(", ")] == list(methods())


@pytest.mark.parametrize("words", [words for words, _ in _commands(app)], ids=" ".join)
def test_a_help_text_fits_a_terminal_of_80_columns_and_breaks_only_where_that_ends(words):
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"}).output
    assert "\u2026" not in shown, "something was cut off"
    about = [line.strip() for line in shown.partition("Usage:")[2].partition("\u256d")[0].splitlines()[1:]]
    for line, following in itertools.pairwise(about):
        if line and following:
            assert len(f"{line} {following.split()[0]}") > 77, line
