"""In a notebook, results show themselves, and what runs shows how far it is."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

import pushcen
from pushcen.notebook import in_notebook

SMALL = {"clients": 3, "horizon": 0.5, "executor": {"workers": 1}}


@pytest.fixture
def notebook(monkeypatch):
    """What a kernel looks like from inside; its cells show what is written to stderr."""
    shell = type("ZMQInteractiveShell", (SimpleNamespace,), {})(config={})
    kernel = ModuleType("IPython")
    kernel.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", kernel)


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
