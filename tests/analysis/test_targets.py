"""What it took to reach a target: held twice in a row, and no seed that did not reach it is left out."""

import math
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.analysis.targets import Spent, costs, reached, target_column
from pushcen.errors import OptionError
from pushcen.measure import ACCURACY, Measure
from pushcen.runs import Run

LOWER = {"metric": {"name": "rmse", "higher_is_better": False}}


def run(values, tmp_path, name="accuracy", sent=10.0, more=()):
    rows = tuple(
        {"time": 2.0 * at, name: value, "bytes_sent": sent * at, "steps": 3 * at, **dict(more)}
        for at, value in enumerate(values)
    )
    return Run(tmp_path, {}, rows, {})


def test_a_target_is_reached_when_two_evaluations_in_a_row_hold_it(tmp_path):
    assert reached(run([0.1, 0.7, 0.5, 0.6, 0.6, 0.2], tmp_path), 60) == Spent(30.0, 9.0, 6.0, None)
    assert reached(run([0.1, 0.7, 0.5, 0.7], tmp_path), 60) is None  # the last one alone holds nothing yet
    assert reached(run([0.7, 0.7], tmp_path), 60) == Spent(0.0, 0.0, 0.0, None)
    assert reached(run([], tmp_path), 60) is None


def test_seconds_are_those_that_were_noted_for_every_row(tmp_path):
    noted = run([0.1, 0.6, 0.6], tmp_path)
    for summary, seconds in (
        ({"times": {"rows": [1.5, 3.0, 4.5]}}, 3.0),
        ({"times": {"rows": [1.5, 3.0]}}, None),
        ({"times": {"rows": [1.5, "3.0", 4.5]}}, None),
        ({"times": {"rows": {"1": 2}}}, None),
        ({"times": None}, None),
        ({"world": "real"}, 2.0),
    ):
        assert reached(replace(noted, summary=summary), 60).seconds == seconds
    assert costs([replace(noted, summary={"times": {"rows": [1.5, 3.0, 4.5]}})], 90).median("seconds") == (4.5, False)


def test_evaluations_without_the_metric_are_none(tmp_path):
    assert reached(run([0.1, 0.6, None, 0.6], tmp_path), 60) == Spent(10.0, 3.0, 2.0, None)


def test_a_metric_that_falls_is_reached_from_above(tmp_path):
    found = reached(run([0.9, 0.5, 0.4, 0.3], tmp_path, "rmse", more=LOWER), 0.4)
    assert found == Spent(20.0, 6.0, 4.0, None)


def test_what_is_exactly_the_target_reaches_it(tmp_path):
    for percent in range(2, 100):
        assert reached(run([percent / 100] * 2, tmp_path), percent) is not None


def test_a_share_is_no_percentage():
    with pytest.raises(OptionError, match=r"target = 0.6: must be in percent, as accuracy is: 60 for 60 %"):
        ACCURACY.check_target(0.6)
    with pytest.raises(OptionError, match="target = 101"):
        ACCURACY.check_target(101)
    with pytest.raises(OptionError, match="target = nan"):
        Measure("rmse").check_target(math.nan)
    Measure("r2").check_target(-0.5)


def test_seeds_that_do_not_reach_it_are_bounds_and_not_left_out(tmp_path):
    quick, slow, never = (run(v, tmp_path) for v in ([0.6] * 4, [0.1, 0.1, 0.6, 0.6], [0.1] * 4))
    found = costs([quick, slow, never], 60)
    assert (found.reached, found.seeds) == (2, 3)
    assert (found.median("bytes_sent"), found.lowest("bytes_sent")) == ((20.0, True), (0.0, True))
    assert found.highest("bytes_sent") == (30.0, False)  # more than what was sent in all
    assert costs([quick, never, never], 60).median("time") == (6.0, False)
    assert costs([never], 60).median("bytes_sent") == (30.0, False)


def test_a_median_that_the_unreached_might_lower_is_a_bound(tmp_path):
    short = run([0.1, 0.1], tmp_path)  # ended after 10 bytes: it may have needed 11
    later = [run([0.1] * at + [0.6, 0.6], tmp_path) for at in (2, 4)]
    assert costs([short, *later], 60).median("bytes_sent") == (20.0, False)


SHOWN = {
    "one": ([[0.6] * 4], "0 B\nT = 0"),
    "one that does not": ([[0.1] * 4], "not reached\n0 of 1"),
    "two": ([[0.1, 0.6, 0.6], [0.1, 0.1, 0.6, 0.6]], "10 B to 20 B\nT = 2 to 4, 2 of 2"),
    "one of two": ([[0.1, 0.6, 0.6], [0.1] * 4], "10 B to > 30 B\nT = 2 to > 6, 1 of 2"),
    "three": ([[0.6] * 4, [0.1, 0.6, 0.6], [0.1, 0.1, 0.6, 0.6]], "10 B (0 B to 20 B)\nT = 2 (0 to 4), 3 of 3"),
    "one of three": ([[0.6] * 4, [0.1] * 4, [0.1] * 4], "> 30 B (0 B to > 30 B)\nT > 6 (0 to > 6), 1 of 3"),
    "none": ([[0.1] * 4] * 3, "not reached\n0 of 3"),
}


@pytest.mark.parametrize("case", SHOWN)
def test_a_cell_says_how_many_reached_it_and_what_it_took(case, tmp_path):
    values, text = SHOWN[case]
    column = target_column(60, ACCURACY)
    assert column.show(costs([run(v, tmp_path) for v in values], 60)) == text
    assert column.show(None) == "-"


def test_numbers_have_columns_of_their_own_and_bounds_are_no_numbers(tmp_path):
    column = target_column(60, ACCURACY, "alpha 0.1")
    found = costs([run([0.6] * 4, tmp_path), run([0.1] * 4, tmp_path)], 60)
    numbers = {title: part(found) for title, part in column.parts.items()}
    assert numbers["until 60 %, alpha 0.1, reached"] == 1
    assert numbers["until 60 %, alpha 0.1, seeds"] == 2
    assert numbers["until 60 %, alpha 0.1, bytes_sent, lowest"] == 0.0
    assert numbers["until 60 %, alpha 0.1, bytes_sent, median"] is None
    assert set(map(type, (part(None) for part in column.parts.values()))) == {type(None)}


@given(st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=7))
def test_what_is_said_is_true_whatever_the_unreached_would_have_needed(tmp_path_factory, cases):
    """A value is the median for every continuation of the runs that ended early; a bound is below all of them."""
    runs = [run([0.1] * end + [0.6 * hit] * 2, tmp_path_factory.getbasetemp(), sent=1.0) for end, hit in cases]
    found = costs(runs, 60)
    value, known = found.median("bytes_sent")
    for extra in (0.001, 1, 30, 1e9):
        truth = statistics.median(end if hit else end + 1 + extra for end, hit in cases)
        assert truth == value if known else truth >= value
    assert found.reached == sum(hit for _, hit in cases)
