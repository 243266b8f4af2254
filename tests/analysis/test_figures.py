"""Figures say what the runs say, to every eye, and nothing in them is cut off."""

import itertools
import re
from dataclasses import replace

import pytest

from pushcen.analysis import cross, group
from pushcen.analysis.figures import FIGURES, figures_of
from pushcen.analysis.style import styles
from pushcen.measure import ACCURACY
from pushcen.methods import methods
from pushcen.runs import Run
from tests.analysis.test_analysis import METHODS, TITLES
from tests.runs.made import make_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [Run.open(make_run(folder / f"{m}-{s}", m, s)) for m in METHODS for s in range(3)]


@pytest.fixture(scope="module")
def twelve(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twelve")
    return [Run.open(make_run(folder / str(k), options={"clusters": k})) for k in range(4, 16)]


def draw(name, runs):
    return FIGURES[name][1](group(runs))


def test_methods_are_told_apart_without_colour():
    looks = styles([*methods(), "mine:Mine"])
    for part in ("colour", "line", "marker", "hatch"):
        distinct = {str(getattr(look, part)) for look in looks}
        assert len(distinct) == len(looks) - (part == "line")  # there are as many lines as can be told apart


def test_a_method_looks_the_same_in_every_company():
    pushcen, swift, mine = styles(["pushcen", "swift", "mine:Mine"])
    assert styles(["mine:Mine", "pushcen", "divshare", "pushcen", "swift"])[::4] == [mine, swift]
    assert styles(["pushcen", "pushcen", "pushcen"], paper=[0])[1] == pushcen
    assert styles(["swift", "pushcen", "pushcen"], paper=[2])[2] == styles(["pushcen"] * 3, paper=[0])[0]


def test_methods_of_ones_own_are_told_apart_whatever_their_names():
    names = [f"mine:Method{number}" for number in range(12)]
    looks = dict(zip(names, styles(names), strict=True))
    assert len(set(looks.values())) == 12
    assert dict(zip(names[::-1], styles(names[::-1]), strict=True)) == looks


def test_twelve_curves_of_one_method_are_twelve_curves_to_the_eye(twelve):
    lines = draw("accuracy", twelve).axes[0].lines
    assert len({line.get_marker() for line in lines}) == 12
    assert len({(look.colour, str(look.line)) for look in styles(["pushcen"] * 12)}) == 12
    mixed = styles([*METHODS, *["pushcen"] * 4, "a:A", "b:B", "c:C"])
    assert len({(str(look.line), look.marker) for look in mixed}) == 12


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_with_units_and_a_name_for_each_group(runs, name):
    figure = draw(name, runs)
    axes = figure.axes[-1]
    assert re.search(r"pseudo-time|\([kM]B\)", axes.get_xlabel())
    shown = {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    shown |= {tick.get_text() for tick in axes.get_yticklabels()}
    expected = {"mass": TITLES[:1], "bytes_per_push": TITLES[:4], "accuracy_bytes": TITLES[:4]}.get(name, TITLES)
    assert shown >= set(expected)


@pytest.mark.parametrize(("times", "name", "largest"), [(1, "MB", 76.6), (100, "GB", 7.66)])
def test_what_is_sent_is_shown_in_the_unit_that_it_is(tmp_path, times, name, largest):
    run = Run.open(make_run(tmp_path / "a", "async-dfedavg"))
    rows = tuple(row | {"bytes_sent": times * row["bytes_sent"]} for row in run.rows)
    axes = draw("accuracy_bytes", [Run(run.folder, run.config, rows, None)]).axes[0]
    assert axes.get_xlabel() == f"sent by all clients together ({name})"
    assert max(axes.lines[0].get_xdata()) == pytest.approx(largest)


def test_the_best_for_so_many_bytes_is_marked_where_several_are_compared(runs):
    texts = [text.get_text() for legend in draw("accuracy_bytes", runs).legends for text in legend.get_texts()]
    assert "the best for so many bytes" in texts
    alone = draw("accuracy_bytes", runs[:1])
    assert "the best for so many bytes" not in [text.get_text() for one in alone.legends for text in one.get_texts()]


def is_whole(figure):
    """Tell whether all that is drawn, the legend too, is on the canvas."""
    figure.draw_without_rendering()
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return drawn.x0 >= 0 and drawn.y0 >= 0 and drawn.x1 <= width and drawn.y1 <= height


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off_however_many_and_long_the_labels(runs, twelve, tmp_path, name):
    words = "so many words that one line of a legend has no room for them, and two hardly have"
    wide = [Run.open(make_run(tmp_path / str(at), options={"note": f"{words} {at}"})) for at in range(4)]
    wide.append(Run.open(make_run(tmp_path / "unbroken", options={"note": "x" * 150})))
    wide.append(Run.open(make_run(tmp_path / "own", "a_rather_long_module_name:AMethodWithAVeryLongNameIndeed")))
    for some in (runs, twelve, wide, runs[:1], wide[:2]):
        figure = draw(name, some)
        if figure is not None:
            assert is_whole(figure)


def test_names_of_bars_do_not_touch(tmp_path):
    runs = [Run.open(make_run(tmp_path / str(at), options={"note": f"{at} " * 60})) for at in range(3)]
    figure = draw("bytes_per_push", runs)
    figure.draw_without_rendering()
    boxes = [tick.get_window_extent() for tick in figure.axes[0].get_yticklabels()]
    assert all(upper.y0 > lower.y1 for upper, lower in itertools.pairwise(boxes))


def test_a_long_legend_takes_no_room_from_the_curves(twelve):
    few, many = (draw("accuracy", some) for some in (twelve[:4], twelve))
    assert many.get_figheight() > few.get_figheight()
    for figure in (few, many):
        figure.draw_without_rendering()
    assert many.axes[0].get_window_extent().height > 0.9 * few.axes[0].get_window_extent().height


def test_a_legend_names_curves_that_only_one_panel_has(tmp_path):
    runs = [Run.open(make_run(tmp_path / m, m)) for m in ("pushcen", "swift")]
    rows = [{"time": float(t), "consensus_error": 1.0} for t in range(3)]
    only = Run(runs[1].folder, runs[1].config, tuple(rows), None)
    no_error = [{k: v for k, v in row.items() if k != "consensus_error"} for row in runs[0].rows]
    figure = draw("mass", [Run(runs[0].folder, runs[0].config, tuple(no_error), None), only])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["PushCen", "SWIFT"]


def test_a_figure_with_nothing_to_show_is_none(tmp_path):
    folder = make_run(tmp_path / "a", "independent")
    (folder / "metrics.jsonl").write_text('{"time": 1.0}\n')
    groups = group([Run.open(folder)])
    assert all(function(groups) is None for _, function in FIGURES.values())


def test_delayed_clients_are_drawn_with_the_times_at_which_they_join(runs):
    figure = draw("delayed", runs[:1])
    [marks] = [line for line in figure.axes[0].lines if line.get_label() == "a client joins"]
    assert list(marks.get_xdata()) == sorted(runs[0].joins().values())
    assert sum(line.get_linewidth() < 1 for line in figure.axes[0].lines) == len(runs[0].joins())
    [marks] = [line for line in draw("delayed", runs[:3]).axes[0].lines if "joins" in line.get_label()]
    assert set(marks.get_xdata()) == {time for run in runs[:3] for time in run.joins().values()}


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """Three methods at five points, with two seeds."""
    folder = tmp_path_factory.mktemp("points")
    runs = []
    for method, alpha, seed in itertools.product(
        ("pushcen", "swift", "independent"), (0.1, 0.2, 0.4, 1.0, 2.0), (0, 1)
    ):
        run = Run.open(make_run(folder / f"{method}-{alpha}-{seed}", method, seed))
        runs.append(replace(run, config=run.config | {"data": {"source": "digits", "alpha": alpha}}))
    return runs


@pytest.mark.parametrize("name", ["accuracy", "delayed", "accuracy_bytes"])
def test_points_have_a_panel_each_and_one_legend_in_which_a_label_has_one_look(points, name):
    figure = figures_of(ACCURACY, [60, 90], cross(points, "method", "data.alpha").panels())[name][1](group(points))
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in panels] == [
        f"alpha {alpha}" for alpha in ("0.1", "0.2", "0.4", "1", "2")
    ]
    assert is_whole(figure)
    [legend] = figure.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert len(shown) == len(set(shown))
    for label in ("PushCen", "SWIFT"):
        assert len({line.get_color() for axes in panels for line in axes.lines if line.get_label() == label}) == 1
    assert ("targets 60 %, 90 %" in shown) == (name == "accuracy_bytes")


def test_a_target_is_a_line_where_it_is(runs):
    figure = figures_of(ACCURACY, [60])["accuracy_bytes"][1](group(runs))
    [line] = [line for line in figure.axes[0].lines if line.get_label() == "target 60 %"]
    assert set(line.get_ydata()) == {60}


def test_the_front_is_what_no_run_beats_with_as_few_bytes(points):
    panels = cross(points, "method", "data.alpha").panels()
    axes = figures_of(ACCURACY, (), panels)["accuracy_bytes"][1]([]).axes[0]
    [marked] = [line for line in axes.lines if line.get_label() == "the best for so many bytes"]
    drawn = [(x, y) for line in axes.lines if line.get_label() in TITLES for x, y in zip(*line.get_data(), strict=True)]
    best = {(x, y) for x, y in drawn if not any(a <= x and b >= y and (a, b) != (x, y) for a, b in drawn)}
    assert set(zip(*marked.get_data(), strict=True)) == best
