"""Runs are called what readers call them."""

import sys

import pytest

from pushcen.analysis import group
from pushcen.analysis.labels import labels, option, title
from pushcen.methods import Method, methods
from pushcen.runs import Run
from tests.runs.made import make_run


def called(tmp_path, *options, method="pushcen"):
    return [
        g.label
        for g in group([Run.open(make_run(tmp_path / str(i), method, options=o)) for i, o in enumerate(options)])
    ]


def test_every_method_has_a_title_of_its_own():
    titles = {name: title(name) for name in methods()}
    assert len(set(titles.values())) == len(titles)
    assert titles["pushcen"], titles["swift-random"] == ("PushCen", "SWIFT, random receivers")


def test_a_method_of_ones_own_has_its_class_name_or_the_title_it_says(monkeypatch):
    class Prox(Method):
        pass

    class Half(Prox):
        title = "Prox, half precision"

    class Quarter(Half):
        pass

    assert [kind.title for kind in (Prox, Half, Quarter)] == ["Prox", "Prox, half precision", "Quarter"]
    monkeypatch.setitem(sys.modules, "mine", type("module", (), {"Half": Half, "Wrong": int})())
    assert title("mine:Half") == "Prox, half precision"
    assert (title("mine:Wrong"), title("mine:_Gone")) == ("Wrong", "Gone")


def test_a_report_imports_nothing_that_a_run_folder_names(tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert called(tmp_path, {"pull": 0.1}, {"pull": 0.2}, method="evil:Prox") == ["Prox, pull 0.1", "Prox, pull 0.2"]


def test_groups_of_one_method_are_told_apart_by_what_differs(tmp_path):
    assert called(tmp_path, {"clusters": 8}, {"clusters": 16}) == ["PushCen, K 8", "PushCen, K 16"]


def test_labels_say_no_more_than_it_takes(tmp_path):
    options = [{"limit": 4, "strength": 0.1}, {"limit": 8, "strength": 0.2}, {"limit": 8, "strength": 0.1}]
    assert called(tmp_path / "two", *options[:2]) == ["PushCen, lambda 0.1", "PushCen, lambda 0.2"]
    expected = ["PushCen, L 4, lambda 0.1", "PushCen, L 8, lambda 0.2", "PushCen, L 8, lambda 0.1"]
    assert called(tmp_path / "three", *options) == expected
    twice = [{"method.limit": 4, "clients": 4}, {"method.limit": 4, "clients": 4}, {"method.limit": 8, "clients": 8}]
    assert labels(["pushcen"] * 3, twice) == ["PushCen, L 4", "PushCen, L 4", "PushCen, L 8"]


def test_the_papers_rules_say_more_than_what_comes_with_them(tmp_path):
    ours, strong = {"profile": "default", "strength": 0.01}, {"profile": "default", "strength": 0.1}
    paper = {"profile": "paper", "strength": 0.1}
    assert called(tmp_path / "two", paper, ours) == ["PushCen, the paper's rules", "PushCen"]
    expected = ["PushCen, lambda 0.01", "PushCen, lambda 0.1", "PushCen, the paper's rules"]
    assert called(tmp_path / "three", ours, strong, paper) == expected


def test_two_methods_of_one_title_are_told_apart(tmp_path):
    runs = [Run.open(make_run(tmp_path / name, f"{name}:Prox")) for name in ("mine", "yours")]
    assert [g.label for g in group(runs)] == ["Prox, mine:Prox", "Prox, yours:Prox"]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("method.mask", False, "no mask"),
        ("method.feedback", True, "feedback"),
        ("method.mass", "drop", "mass dropped"),
        ("method.receivers", 5, "receivers 5"),
        ("method.full_after", 0, "full after 0"),
        ("data.alpha", 1.0, "alpha 1"),
        ("method.clusters", "8", "K 8"),
        ("method.name", "swift", "SWIFT"),
    ],
)
def test_an_option_is_said_in_words(key, value, said):
    assert option("pushcen", key, value) == said
    assert "=" not in said


def test_an_option_of_somebody_elses_method_keeps_its_name():
    assert option("mine:Prox", "method.strength", 0.1) == "strength 0.1"
    assert option("mine:Prox", "data.alpha", 0.1) == "alpha 0.1"
