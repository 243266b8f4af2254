"""The paper's numbers, and what we count beside them."""

import pytest

from pushcen.reproduce import operations, paper, sizes

METHODS = {"independent", "async-dfedavg", "swift", "divshare", "pushcen"}


@pytest.mark.parametrize("dataset", paper.DATASETS)
def test_every_table_is_whole(dataset):
    assert set(paper.rows("table1", dataset)) == set(paper.rows("table5", dataset)) == METHODS
    assert all(set(row) == {"0.1", "0.4", "1.0"} for row in paper.rows("table1", dataset).values())
    assert set(paper.rows("table2", dataset)) == set(paper.rows("table3", dataset)) == METHODS - {"independent"}
    assert list(paper.rows("table6", dataset)) == ["8", "16", "32"]
    assert list(paper.rows("table7", dataset)) == ["0.1", "0.05", "0.01", "0.005", "0.001", "0"]


@pytest.mark.parametrize("dataset", paper.DATASETS)
def test_tables_of_the_paper_agree_where_they_print_the_same_run(dataset):
    [full] = paper.numbers("table4", dataset, "pushcen")
    assert full == paper.numbers("table1", dataset, "pushcen", alpha=0.4)[0]
    assert full == paper.numbers("table6", dataset, "32")[0] == paper.numbers("table7", dataset, "0.1")[0]
    assert paper.numbers("table4", dataset, "no-regulariser") == paper.numbers("table7", dataset, "0")
    assert paper.numbers("table2", dataset, "pushcen")[0] == paper.numbers("table6", dataset, "32")[1]


def test_the_formulas_bytes_are_those_of_table_2_and_what_is_sent_at_most_a_thousandth_more():
    rows = sizes.table2().rows
    assert len(rows) == 12
    for data, method, _, _, difference, _, real in rows:
        assert abs(difference) < 0.005, (data, method)
        assert real < 0.001, (data, method)  # headers, where there is nothing to save
    by_method = {(data, method): real for data, method, *_, real in rows}
    assert by_method["CIFAR-100", "PushCen"] < -0.08
    assert by_method["Tiny-ImageNet", "PushCen"] < -0.08


def test_the_formulas_bytes_are_those_of_table_6():
    rows = [row for row in sizes.table6(("cifar10", "cifar100")).rows if row[3] is not None]
    assert len(rows) == 6
    assert all(abs(row[4]) < 0.005 for row in rows)


def test_no_method_costs_much_more_than_plain_training():
    ratios = {(row[0], row[1]): row[3] for row in operations.table3().rows}
    assert all(0.99 < ratio < 1.05 for ratio in ratios.values())
    for dataset in ("CIFAR-10", "CIFAR-100", "Tiny-ImageNet"):
        assert 1 < ratios[dataset, "PushCen"] < ratios[dataset, "PushCen, three iterations of k-means"]
