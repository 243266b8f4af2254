"""Tables, figures and pages say what the runs say, to every eye, with no network."""

import csv
import io
import re
import shutil
import subprocess
from statistics import fmean, stdev

import pytest
from scipy import stats

from pushcen.analysis import Column, Table, comparison, group, interval, paired, sweep
from pushcen.analysis.figures import FIGURES
from pushcen.analysis.groups import Group
from pushcen.analysis.report import write_report
from pushcen.analysis.style import styles
from pushcen.runs import Run
from tests.runs.made import make_run

METHODS = ("pushcen", "async-dfedavg", "swift", "divshare", "independent")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [Run.open(make_run(folder / f"{m}-{s}", m, s)) for m in METHODS for s in range(3)]


def test_runs_that_differ_in_their_seeds_only_are_one_group(runs):
    groups = group(runs)
    assert [(g.label, len(g.runs)) for g in groups] == [(method, 3) for method in METHODS]
    finals = [run.number("accuracy") for run in groups[0].runs]
    band = groups[0].band("accuracy")
    assert (band.times[-1], band.mean[-1]) == (10.0, pytest.approx(fmean(finals)))
    assert band.high[-1] - band.mean[-1] == pytest.approx(stdev(finals))


def test_groups_of_one_method_are_told_apart_by_what_differs(tmp_path):
    runs = [Run.open(make_run(tmp_path / str(k), options={"clusters": k})) for k in (8, 16)]
    assert [g.label for g in group(runs)] == ["pushcen, clusters=8", "pushcen, clusters=16"]


def test_labels_say_no_more_than_it_takes(tmp_path):
    options = [{"limit": 4, "strength": 0.1}, {"limit": 8, "strength": 0.2}]
    runs = [Run.open(make_run(tmp_path / str(i), options=some)) for i, some in enumerate(options)]
    assert [g.label for g in group(runs)] == ["pushcen, strength=0.1", "pushcen, strength=0.2"]
    runs.append(Run.open(make_run(tmp_path / "both", options={"limit": 8, "strength": 0.1})))
    labels = ["limit=4, strength=0.1", "limit=8, strength=0.2", "limit=8, strength=0.1"]
    assert [g.label for g in group(runs)] == [f"pushcen, {label}" for label in labels]


def test_a_profile_says_more_than_what_comes_with_it(tmp_path):
    options = [{"profile": "paper", "strength": 0.1}, {"profile": "default", "strength": 0.2}]
    runs = [Run.open(make_run(tmp_path / str(i), options=some)) for i, some in enumerate(options)]
    assert [g.label for g in group(runs)] == ["pushcen, profile=paper", "pushcen, profile=default"]


def test_a_long_legend_takes_no_room_from_the_curves(tmp_path):
    runs = [Run.open(make_run(tmp_path / str(k), options={"clusters": k, "limit": k})) for k in range(8, 24)]
    few, many = (FIGURES["accuracy"][1](group(some)) for some in (runs[:6], runs))
    assert many.get_figheight() > few.get_figheight()
    for figure in (few, many):
        figure.canvas.draw()
    assert many.axes[0].get_window_extent().height > 0.9 * few.axes[0].get_window_extent().height


def test_runs_of_different_length_meet_at_the_times_that_both_have(tmp_path):
    runs = [Run.open(make_run(tmp_path / str(t), horizon=t)) for t in (4, 10)]
    assert Group("x", tuple(runs)).band("accuracy").times == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_the_comparison_shows_every_figure_and_csv_has_it_unrounded(runs):
    table = comparison(group(runs))
    rows = list(csv.DictReader(io.StringIO(table.to("csv"))))
    assert [row["method"] for row in rows] == list(METHODS)
    assert float(rows[0]["accuracy %"]) == fmean(run.number("accuracy") for run in runs[:3])
    assert float(rows[1]["sent"]) == 10 * 10 * 766_000
    assert "76.6 MB" in table.to("markdown")


def test_a_run_that_is_not_finished_is_marked(tmp_path):
    run = Run.open(make_run(tmp_path / "a", finished=False))
    assert "not finished: pushcen" in comparison(group([run])).notes


def test_markup_in_a_cell_stays_text():
    table = Table("t", [Column("a|b", left=True)], [["<b>&_$%|[red]"]])
    assert "&lt;b&gt;&amp;" in table.to("html")
    assert r"<b>\&\_\$\%|[red] \\" in table.to("latex")
    assert r"<b>&_$%\|[red]" in table.to("markdown")
    from rich.console import Console

    console = Console(file=io.StringIO(), width=80)
    console.print(table.rich())
    assert "<b>&_$%|[red]" in console.file.getvalue()


def test_intervals_are_students():
    ours, theirs = [0.71, 0.64, 0.68, 0.70], [0.70, 0.62, 0.665, 0.71]
    low, high = stats.ttest_rel(ours, theirs).confidence_interval(0.95)
    found = paired(ours, theirs)
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx((low, high))
    assert interval([0.5]).half is None


def test_a_sweep_pairs_by_seed_not_by_place(tmp_path):
    one = [Run.open(make_run(tmp_path / f"a{s}", "swift", s)) for s in (0, 1, 2)]
    other = [Run.open(make_run(tmp_path / f"b{s}", "pushcen", s)) for s in (2, 1)]
    table = sweep({"one": Group("one", tuple(one)), "other": Group("other", tuple(other))})
    expected = fmean(b.number("accuracy") - a.number("accuracy") for b, a in zip(other, (one[2], one[1]), strict=True))
    assert table.rows[1][4] == pytest.approx(expected)
    assert table.rows[0][4] is None


def test_methods_are_told_apart_without_colour():
    looks = styles([*METHODS, "push-sum", "swift-random", "mine"])
    for part in ("colour", "line", "marker", "hatch"):
        assert len({str(getattr(look, part)) for look in looks}) == len(looks)


def test_a_method_looks_the_same_in_every_company():
    assert styles(["pushcen", "swift"])[1] == styles(["swift", "mine", "divshare"])[0]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_with_units_and_a_name_for_each_group(runs, name):
    figure = FIGURES[name][1](group(runs))
    axes = figure.axes[-1]
    assert re.search(r"pseudo-time|\(MB\)", axes.get_xlabel())
    legends = [*figure.legends, *(one.get_legend() for one in figure.axes if one.get_legend())]
    shown = " ".join(text.get_text() for legend in legends for text in legend.get_texts())
    shown += " ".join(tick.get_text() for tick in axes.get_yticklabels())
    expected = {"mass": ("pushcen",), "bytes_per_push": METHODS[:4]}.get(name, METHODS)
    assert all(method in shown for method in expected)


def test_a_figure_with_nothing_to_show_is_none(tmp_path):
    folder = make_run(tmp_path / "a", "independent")
    (folder / "metrics.jsonl").write_text('{"time": 1.0}\n')
    groups = group([Run.open(folder)])
    assert all(draw(groups) is None for _, draw in FIGURES.values())


def test_delayed_clients_are_drawn_with_the_times_at_which_they_join(runs):
    figure = FIGURES["delayed"][1](group(runs[:1]))
    [marks] = [line for line in figure.axes[0].lines if line.get_label() == "a client joins"]
    assert list(marks.get_xdata()) == sorted(runs[0].joins().values())
    assert sum(line.get_linewidth() < 1 for line in figure.axes[0].lines) == len(runs[0].joins())
    [marks] = [line for line in FIGURES["delayed"][1](group(runs[:3])).axes[0].lines if "joins" in line.get_label()]
    assert set(marks.get_xdata()) == {time for run in runs[:3] for time in run.joins().values()}


def test_the_same_runs_make_the_same_files(runs, tmp_path):
    for name in ("a", "b"):
        write_report(group(runs[:4]), tmp_path / name, "Same")
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes(), file.name


def test_the_page_needs_no_network_and_no_other_file(runs, tmp_path):
    page = write_report(group(runs), tmp_path, "Five <methods>")[0].read_text()
    assert "Five &lt;methods&gt;" in page
    sources = re.findall(r'(?:src|href)\s*=\s*"?([^">\s]+)', page)
    assert len(sources) == len(FIGURES)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert not re.search(r"<script|@import|url\(", page)


def test_what_a_config_says_cannot_become_markup(tmp_path):
    folder = make_run(tmp_path / "a", options={"note": "<script>alert(1)</script>"})
    page = write_report(group([Run.open(folder)]), tmp_path / "report", "x")[0].read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium on the PATH")
def test_a_browser_shows_the_page(runs, tmp_path):
    page = write_report(group(runs), tmp_path, "Five methods")[0]
    script = (
        "<script>onload = () => document.title = [...document.images].map(i => i.naturalWidth > 100).join()"
        " + document.querySelectorAll('td').length</script>"
    )
    (tmp_path / "probe.html").write_text(page.read_text().replace("</body>", f"{script}</body>"))
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom",
         f"--user-data-dir={tmp_path}/profile", (tmp_path / "probe.html").as_uri()],
        capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    cells = len(METHODS) * len(comparison(group(runs)).columns)
    assert f"<title>{','.join(['true'] * len(FIGURES))}{cells}</title>" in done.stdout
