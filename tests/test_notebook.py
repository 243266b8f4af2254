"""In a notebook, results show themselves, and what runs shows how far it is."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

import pushcen
from pushcen.errors import OptionError
from pushcen.notebook import in_notebook

SMALL = {"clients": 3, "horizon": 0.5, "executor": {"workers": 1}}


@pytest.fixture
def notebook(monkeypatch, tmp_path):
    """What a kernel looks like from inside; its cells show what is written to stderr, and what is in the list."""
    shell = type("ZMQInteractiveShell", (SimpleNamespace,), {})(config={})
    kernel, cell = ModuleType("IPython"), ModuleType("IPython.display")
    kernel.get_ipython = lambda: shell
    shown = []

    def display(picture, display_id=False):
        shown.append([picture])
        return SimpleNamespace(update=shown[-1].append) if display_id else None

    cell.HTML, cell.display, kernel.display = str, display, cell
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", cell)
    monkeypatch.chdir(tmp_path)
    return shown


def test_here_is_no_notebook_and_no_bar(capsys):
    assert not in_notebook()
    pushcen.simulate(**SMALL)
    assert capsys.readouterr().err == ""


def test_a_run_has_a_bar_with_its_accuracy(notebook, capsys):
    assert in_notebook()
    result = pushcen.simulate(**SMALL)
    last = capsys.readouterr().err.split("\r")[-1]
    assert "pushcen 100%" in last
    assert "T 0.5 of 0.5" in last
    assert f"accuracy {100 * result.frame['accuracy'].iloc[-1]:.1f} %" in last


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_comparison_has_bars(notebook, capsys, jobs):
    pushcen.compare(["pushcen", "independent"], jobs=jobs, **SMALL)
    said = capsys.readouterr().err
    for name in ("pushcen", "independent") if jobs == 1 else ("runs",):
        assert f"{name} 100%" in said


def test_a_result_shows_its_table_and_its_figure_and_a_table_itself():
    result = pushcen.simulate(**SMALL)
    shown = result._repr_html_()
    assert "<table>" in shown
    assert '<img alt="the metric over pseudo-time" src="data:image/svg+xml;base64,' in shown
    assert result.table._repr_html_() in shown


def test_runs_go_to_a_folder_that_is_said(notebook, capsys):
    first, again = pushcen.simulate(**SMALL), pushcen.simulate(**SMALL)
    said = capsys.readouterr().out
    for result, name in ((first, "digits-pushcen"), (again, "digits-pushcen-2")):
        assert result.folder.as_posix() == f"runs/{name}"
        assert f"run folder: runs/{name}\n" in said
    results = pushcen.compare(["pushcen", "independent"], **SMALL)
    assert results["pushcen"].folder.parent.as_posix() == "runs/compare-digits"


def test_a_curve_grows_in_the_cell(notebook):
    pushcen.simulate(live=True, **SMALL | {"horizon": 1.5, "evaluation": {"every": 0.5}})
    [pictures] = notebook
    assert len(pictures) >= 2
    assert all(picture.startswith("<img alt=") for picture in pictures)
    assert pictures[0] != pictures[-1]


@pytest.mark.parametrize("jobs", [1, 2])
def test_curves_of_a_comparison_grow_over_each_other(notebook, jobs):
    pushcen.compare(["pushcen", "independent"], live=True, jobs=jobs, **SMALL)
    [pictures] = notebook
    assert len(pictures) >= 2


def test_elsewhere_there_is_no_cell_to_show_it_in():
    with pytest.raises(OptionError, match="is for a notebook's cell"):
        pushcen.simulate(live=True, **SMALL)
