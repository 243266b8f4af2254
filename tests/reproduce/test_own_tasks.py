"""The tasks that are not images: their data is what the page says, and the committed runs are those of the worlds."""

import csv
import importlib
import pathlib

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def prepare(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments" / "own"))
    return importlib.import_module("prepare")


@pytest.fixture
def measure(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("measure_own_tasks")


def test_a_person_has_one_row_and_nothing_that_the_year_has_cost(prepare, tmp_path):
    names = ["zper", "year", *prepare.KEPT, "mdvis", "meddol"]
    with (tmp_path / "all.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for person, year, visits in ((11, 1, 0), (11, 2, 9), (12, 1, 2), (13, 2, 3)):
            writer.writerow([person, year, *[5] * (len(names) - 4), visits, 100])
    prepare.visits(tmp_path / "all.csv", tmp_path / "made.csv")
    rows = list(csv.DictReader((tmp_path / "made.csv").open()))
    assert [row["visits"] for row in rows] == ["none", "some", "many"]
    assert not {"zper", "year", "mdvis", "meddol"} & set(rows[0])


def test_clients_have_no_definition_of_a_kind_that_the_base_was_trained_on(prepare, tmp_path, monkeypatch):
    monkeypatch.setattr(prepare, "EACH", 3)
    lines = ["  1 a licence"]
    for at in range(200):
        word = chr(97 + at // 26) + chr(97 + at % 26)
        lines.append(f'00001740 {3 + at % 26:02} n 01 entity 0 000 | a thing {word}; "an example"  ')
    (tmp_path / "data.noun").write_text("\n".join(lines))
    prepare.glosses(tmp_path / "data.noun", tmp_path / "glosses.npz")
    parts = np.load(tmp_path / "glosses.npz")
    text, before = (
        {(kind, *words) for kind, words in zip(parts[f"{part}_labels"], parts[f"{part}_words"].tolist(), strict=True)}
        for part in ("text", "before")
    )
    assert len(text) == 30
    assert before
    assert not text & before


def test_every_committed_run_is_one_of_its_world(measure):
    from pushcen.runs import Run

    for task in measure.TASKS:
        planned = measure.planned(task) | measure.planned(task, choose=True)
        for folder in (measure.RESULTS / task).iterdir():
            assert Run.open(folder).identity() == planned[folder.name].identity(), folder


def test_the_learning_rate_of_each_world_is_the_best_of_those_tried(measure):
    for row, task in zip(measure.rates_table().rows, measure.TASKS, strict=True):
        best = max(zip(row[1:], measure.RATES, strict=True))[1]
        assert next(iter(measure.planned(task).values())).training.lr == best
