"""Tables, figures and pages say what the runs say, to every eye, with no network."""

import csv
import io
import re
import shutil
import subprocess
from dataclasses import replace
from statistics import fmean, stdev

import pytest
from scipy import stats

from pushcen.analysis import Column, Table, comparison, group, interval, paired, sweep, write_report
from pushcen.analysis.figures import FIGURES
from pushcen.analysis.groups import Group
from pushcen.analysis.report import heading
from pushcen.runs import Run
from tests.runs.made import make_run

METHODS = ("pushcen", "async-dfedavg", "swift", "divshare", "independent")
TITLES = ["PushCen", "Async-DFedAvg", "SWIFT", "DivShare", "Independent"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [Run.open(make_run(folder / f"{m}-{s}", m, s)) for m in METHODS for s in range(3)]


def test_runs_that_differ_in_their_seeds_only_are_one_group(runs):
    groups = group(runs)
    assert [(g.label, len(g.runs)) for g in groups] == [(title, 3) for title in TITLES]
    finals = [run.number("accuracy") for run in groups[0].runs]
    band = groups[0].band("accuracy")
    assert (band.times[-1], band.mean[-1]) == (10.0, pytest.approx(fmean(finals)))
    assert band.high[-1] - band.mean[-1] == pytest.approx(stdev(finals))


def test_runs_of_different_length_meet_at_the_times_that_both_have(tmp_path):
    runs = [Run.open(make_run(tmp_path / str(t), horizon=t)) for t in (4, 10)]
    assert Group("x", tuple(runs)).band("accuracy").times == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_the_comparison_shows_every_figure_and_csv_has_it_unrounded(runs):
    table = comparison(group(runs))
    rows = list(csv.DictReader(io.StringIO(table.to("csv"))))
    assert [row["method"] for row in rows] == TITLES
    assert float(rows[0]["accuracy %"]) == fmean(run.number("accuracy") for run in runs[:3])
    assert float(rows[1]["sent"]) == 10 * 10 * 766_000
    assert "76.6 MB" in table.to("markdown")


def test_a_run_that_is_not_finished_is_marked(tmp_path):
    run = Run.open(make_run(tmp_path / "a", finished=False))
    assert "not finished: PushCen" in comparison(group([run])).notes


def test_markup_in_a_cell_stays_text():
    table = Table("t", [Column("a|b", left=True)], [["<b>&_$%|[red]"]])
    assert "&lt;b&gt;&amp;" in table.to("html")
    assert r"$<$b$>$\&\_\$\%\textbar{}[red] \\" in table.to("latex")
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


def test_a_sweep_says_whose_events_failed_at_which_point(tmp_path):
    failed = {"clients": {"3": {"events": 2, "trains": True, "why": "client 3, event 1: the loss is nan"}}}
    runs = [Run.open(make_run(tmp_path / str(seed), seed=seed)) for seed in (0, 1)]
    runs[1] = replace(runs[1], summary=runs[1].summary | {"failures": failed})
    [_, note] = sweep({"K 8": Group("method.clusters=8", tuple(runs))}).notes
    assert note == "K 8, seed 1: compute events that failed: 2 of client 3 (client 3, event 1: the loss is nan)"


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


def test_a_page_is_titled_by_what_it_compares(runs, tmp_path):
    assert heading(group(runs)) == "PushCen, Async-DFedAvg, SWIFT, DivShare and Independent on digits"
    eight = [Run.open(make_run(tmp_path / str(k), options={"clusters": k})) for k in (4, 8, 12, 16, 20, 24, 28, 32)]
    listed = "K 4, K 8, K 12, K 16, K 20, K 24, K 28 and K 32"
    assert heading(group(eight)) == f"PushCen: {listed} on digits"
    assert heading(group([*eight, *runs[-3:]])) == "PushCen (8 settings) and Independent on digits"
    page = write_report(group(eight), tmp_path / "report", formats=())[0].read_text()
    assert f"<title>PushCen: {listed} on digits</title>" in page
    assert heading(group(runs[:1])) == "PushCen on digits"


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
