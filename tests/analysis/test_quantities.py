"""Every figure of a run has a name, a way to be shown, and a better way only where one is known."""

import pytest

from pushcen.analysis.quantities import quantity
from pushcen.errors import OptionError
from pushcen.runs import Run
from tests.runs.made import make_run


@pytest.fixture
def run(tmp_path):
    return Run.open(make_run(tmp_path / "a"))


@pytest.mark.parametrize(
    ("name", "heading", "shown", "higher"),
    [
        ("", "accuracy %", "50.0", True),
        ("accuracy_worst_tenth", "accuracy worst tenth %", "50.0", True),
        ("accuracy_sd", "accuracy sd %", "50.0", False),
        ("delayed_best", "delayed best %", "50.0", True),
        ("loss", "loss", "0.5", False),
        ("bytes_sent", "bytes sent", "0.5 B", False),
        ("online", "online", "0.5", None),
        ("times.run", "times.run", "0.5", False),
    ],
)
def test_a_figure_is_shown_as_what_it_is(run, name, heading, shown, higher):
    found = quantity([run], name)
    assert (found.heading, found.show(0.5), found.higher_is_better) == (heading, shown, higher)
    assert found.show(0.5, "+") == f"+{shown}"
    assert found.show(None) == "-"


def test_a_figure_that_no_run_has_is_refused_with_those_they_have(run):
    with pytest.raises(OptionError, match=r"figure = 'acuracy': no run has it; they have accuracy, accuracy_sd"):
        quantity([run], "acuracy")


def test_a_metric_that_falls_is_better_below(run):
    metric = {"metric": {"name": "rmse", "higher_is_better": False}, "rmse": 0.25}
    low = Run(run.folder, run.config, tuple(row | metric for row in run.rows), None)
    assert quantity([low]).higher_is_better is False
    assert quantity([low]).spread(0.25, 0.0) == "0.25 ± 0"
    assert quantity([low]).spread(123.456, 12.3) == "123 ± 12"
