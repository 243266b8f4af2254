"""Methods down, alphas across: every number of the table is what the runs say, and what is missing is said."""

import csv
import io
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np
import pytest
from scipy import stats

from pushcen.analysis import cross, crossed
from pushcen.errors import OptionError, RunError
from pushcen.runs import Run

BASE = {"swift": 0.5, "pushcen": 0.6, "independent": 0.3}


def made(folder, method, alpha, seed, value, **options):
    config = {"seed": seed, "clients": 10, "method": {"name": method, **options}, "data": {"alpha": alpha}}
    rows = [{"time": t, "bytes_sent": 100.0 * t, "steps": 10 * t, "accuracy": value} for t in (0.0, 1.0, 2.0)]
    return Run(folder / f"{method}-{alpha}-{seed}", config, tuple(rows), {"final": rows[-1]})


@pytest.fixture
def runs(tmp_path):
    def value(method, alpha, seed):
        return BASE[method] + alpha / 10 + 0.02 * seed + 0.003 * (hash_of(method, alpha) * seed % 5)

    return [
        made(tmp_path, method, alpha, seed, value(method, alpha, seed))
        for method in BASE
        for alpha in (1.0, 0.1)
        for seed in range(3)
    ]


def hash_of(*parts):
    return sum(map(ord, str(parts)))


def rows_of(table):
    return list(csv.DictReader(io.StringIO(table.to("csv"))))


def test_a_cell_is_mean_and_sd_and_the_paired_difference_to_the_base_at_the_same_point(runs):
    table = crossed(runs, "method", ["data.alpha"], base="swift")
    rows = rows_of(table)
    assert [row["method"] for row in rows] == ["SWIFT", "PushCen", "Independent"]
    for name, row in zip(BASE, rows, strict=True):
        for alpha, title in ((0.1, "alpha 0.1"), (1.0, "alpha 1")):
            mine, its = (
                [run.number("accuracy") for run in runs if run.method == m and run.config["data"]["alpha"] == alpha]
                for m in (name, "swift")
            )
            numbers = {
                part: row[f"accuracy, {title}, {part}"] for part in ("mean", "SD", "n", "difference", "low", "high")
            }
            assert (float(numbers["mean"]), float(numbers["SD"])) == pytest.approx((fmean(mine), stdev(mine)))
            assert numbers["n"] == "3"
            if name == "swift":
                assert numbers["difference"] == numbers["low"] == ""
            else:
                low, high = stats.ttest_rel(mine, its).confidence_interval(0.95)
                assert (float(numbers["low"]), float(numbers["high"])) == pytest.approx((low, high))
    assert [column.title for column in table.columns] == ["method", "alpha 0.1", "alpha 1", "to SWIFT, all points"]
    assert "± 2." in table.cells()[0][1]


def test_the_best_is_bold_and_what_cannot_be_told_from_it(runs):
    table = crossed(runs, "method", "data.alpha")
    assert table.strong() == [[False] * 3, [False, True, True], [False] * 3]
    assert "**6" in table.to("markdown")


def test_of_a_metric_that_falls_the_lowest_is_best(runs):
    metric = {"metric": {"name": "rmse", "higher_is_better": False}}
    rmse = [replace(run, rows=tuple(row | metric | {"rmse": row["accuracy"]} for row in run.rows)) for run in runs]
    table = crossed(rmse, "method", "data.alpha")
    assert table.strong() == [[False] * 3, [False] * 3, [False, True, True]]
    assert table.columns[1].group == "RMSE, lower is better"
    with pytest.raises(RunError, match="must have the same first metric"):
        crossed([*rmse, runs[0]], "method", "data.alpha")


def test_what_is_missing_is_a_dash_or_counted(runs):
    lacking = [run for run in runs if not (run.method == "swift" and run.config["data"]["alpha"] == 0.1)]
    table = crossed(lacking[:-1], "method", "data.alpha", base="swift")
    assert table.cells()[0][1] == "-"
    assert "0 of 3 seeds: SWIFT at alpha 0.1." in table.notes
    assert "2 of 3 seeds: Independent at alpha 0.1." in table.notes
    assert "\n" not in table.cells()[1][1]  # there is nothing to be compared with
    assert table.cells()[1][-1].endswith("]\n1 of 2 points")


def test_runs_that_are_not_finished_are_left_out_and_named(runs):
    table = crossed([replace(runs[0], summary=None), *runs[1:]], "method", "data.alpha")
    assert "SWIFT at alpha 1: swift-1.0-0 is not finished, and left out" in table.notes
    assert "2 of 3 seeds: SWIFT at alpha 1." in table.notes
    with pytest.raises(RunError, match="no run is finished"):
        crossed([replace(run, summary=None) for run in runs])


def test_below_six_seeds_there_is_no_p_value_and_the_table_says_how_little_it_shows(runs):
    table = crossed(runs, "method", "data.alpha", base="swift")
    assert {row["accuracy to SWIFT, p (Holm)"] for row in rows_of(table)} == {""}
    assert not any("p =" in cell for row in table.cells() for cell in row)
    assert any("3 seeds show little: only a difference of 2.5 times" in note for note in table.notes)
    one = crossed([run for run in runs if run.config["seed"] == 0], "method", "data.alpha", base="swift")
    assert any(note.startswith("One seed: there is no telling") for note in one.notes)
    assert not any(map(any, one.strong()))
    assert one.cells()[1][1].count("±") == 0


def test_with_six_seeds_each_row_has_one_test_over_all_points(tmp_path):
    values = {"swift": 0.5, "pushcen": 0.6, "independent": 0.495}
    runs = [
        made(
            tmp_path,
            method,
            alpha,
            seed,
            value + 0.01 * seed * (method != "independent" or (-1) ** seed) + alpha / 100,
        )
        for method, value in values.items()
        for alpha in (0.1, 1.0)
        for seed in range(6)
    ]
    table = crossed(runs, "method", "data.alpha", base="swift")
    by_row = {row["method"]: row for row in rows_of(table)}
    p = []
    for name in ("pushcen", "independent"):
        mine, its = (
            [[r.number("accuracy") for r in runs if at(r) == (m, s)] for s in range(6)] for m in (name, "swift")
        )
        samples = [fmean(a) - fmean(b) for a, b in zip(mine, its, strict=True)]
        p.append(stats.permutation_test((samples,), np.mean, permutation_type="samples", n_resamples=10**9).pvalue)
    low, high = sorted(p)
    expected = [min(1, 2 * low), max(min(1, 2 * low), high)]
    found = sorted(float(by_row[name]["accuracy to SWIFT, p (Holm)"]) for name in ("PushCen", "Independent"))
    assert found == pytest.approx(expected)
    assert any("p =" in cell for cell in table.cells()[1])
    assert by_row["SWIFT"]["accuracy to SWIFT, p (Holm)"] == ""


def at(run):
    return run.method, run.config["seed"]


def test_any_keys_may_be_rows_and_columns_and_numbers_are_in_order(runs):
    turned = crossed(runs, "data.alpha", "method", base="0.1")
    assert [row[0] for row in turned.rows] == ["alpha 0.1", "alpha 1"]
    assert [column.title for column in turned.columns[1:4]] == ["SWIFT", "PushCen", "Independent"]
    both = crossed(runs, "clients", ["method.name", "data.alpha"])
    assert [column.title for column in both.columns[1:3]] == ["SWIFT, alpha 0.1", "SWIFT, alpha 1"]


def test_methods_with_other_settings_are_other_rows(runs, tmp_path):
    paper = [made(tmp_path, "pushcen", 0.1, s, 0.4, profile="paper") for s in range(3)]
    table = crossed([*runs, *paper], "method", "data.alpha", base="PushCen, the paper's rules")
    assert [row[0] for row in table.rows] == ["SWIFT", "PushCen", "Independent", "PushCen, the paper's rules"]
    assert table.rows[-1][-1] is None
    assert crossed([*runs, *paper], "method", "data.alpha", base=" pushcen").rows[1][-1] is None
    other = [made(tmp_path, "pushcen", 0.1, 0, 0.4, clusters=k) for k in (8, 16)]
    with pytest.raises(OptionError, match="base = 'pushcen': may be 'PushCen, K 8' or 'PushCen, K 16'; rows are"):
        crossed(other, "method", "data.alpha", base="pushcen")
    with pytest.raises(OptionError, match=r"PushCen at alpha 0.1: runs differ in method.profile, too"):
        crossed([*runs, *paper], "method.name", "data.alpha")


def test_what_is_not_there_is_refused_with_what_is(runs):
    with pytest.raises(
        OptionError,
        match=r"columns = 'data.alfa': no run has such a key; the runs differ in method, data.alpha, method.name",
    ):
        crossed(runs, "method", "data.alfa")
    with pytest.raises(OptionError, match="alpha 1: runs differ in method, too: name that in rows or columns"):
        crossed(runs, "data.alpha")
    with pytest.raises(OptionError, match="rows = 'seed': seeds are what means are over"):
        crossed(runs, "seed")
    with pytest.raises(OptionError, match="columns = 'method': must not be among the rows, too"):
        crossed(runs, "method", "method")
    with pytest.raises(
        OptionError, match="base = 'sgd': there is no such row; rows are 'SWIFT', 'PushCen', 'Independent'"
    ):
        crossed(runs, "method", "data.alpha", base="sgd")
    with pytest.raises(OptionError, match="figure = 'speed': no run has it"):
        crossed(runs, "method", "data.alpha", figure="speed")


def test_the_same_run_twice_counts_once(runs, tmp_path):
    again = replace(runs[0], folder=tmp_path / "copy")
    table = crossed([*runs, again], "method", "data.alpha")
    assert rows_of(table)[0]["accuracy, alpha 1, n"] == "3"
    assert any("copy is the same run as" in note for note in table.notes)


def test_targets_are_columns_at_every_point(runs):
    table = crossed(runs, "method", "data.alpha", targets=[60])
    assert [column.whole for column in table.columns[3:]] == ["until 60 %: alpha 0.1", "until 60 %: alpha 1"]
    assert [row[3].reached for row in table.rows] == [0, 3, 0]
    assert any(note.startswith("until 60 %: what all clients together had sent") for note in table.notes)


def test_a_data_frame_has_numbers(runs):
    frame = crossed(runs, "method", "data.alpha", base="swift").frame()
    assert frame.set_index("method").loc["PushCen", "accuracy, alpha 1, mean"] == pytest.approx(0.72, abs=0.02)


def test_without_columns_there_is_one(runs):
    alone = [run for run in runs if run.config["data"]["alpha"] == 0.1]
    table = crossed(alone, base="swift")
    assert [column.title for column in table.columns] == ["method", "accuracy %", "to SWIFT"]


def test_figures_are_drawn_point_by_point(runs):
    panels = cross(runs, "method", "data.alpha").panels()
    assert {point: [group.label for group in groups] for point, groups in panels.items()} == {
        "alpha 0.1": ["SWIFT", "PushCen", "Independent"],
        "alpha 1": ["SWIFT", "PushCen", "Independent"],
    }
    assert {len(group.runs) for groups in panels.values() for group in groups} == {3}


def test_a_note_names_few_of_many_cells(tmp_path):
    runs = [made(tmp_path, "pushcen", alpha / 10, seed, 0.5) for alpha in range(1, 9) for seed in range(2)]
    table = crossed([*runs, made(tmp_path, "swift", 0.1, 0, 0.5)], "method", "data.alpha")
    assert (
        "0 of 2 seeds: SWIFT at alpha 0.2; SWIFT at alpha 0.3; SWIFT at alpha 0.4; SWIFT at alpha 0.5 and 3 more cells."
        in (table.notes)
    )
