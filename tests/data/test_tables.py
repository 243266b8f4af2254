"""Tables: what a column is, how a row is encoded, and that every file of the same rows gives the same inputs."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from pushcen.data import (
    Columns,
    DataError,
    Iid,
    Natural,
    TableColumn,
    Target,
    measure_files,
    read_columns,
    read_table,
    split_table,
)
from pushcen.data.encoding import encode_rows
from pushcen.data.measuring import measure
from pushcen.data.merging import merge_columns
from pushcen.data.sheet_files import read_sheet
from tests.data import patients


def sheet(path, text):
    path = path / "a.csv"
    path.write_text(text, "utf-8")
    return read_sheet([path])


def kinds(columns):
    return {column.name: column.kind for column in columns.columns}


def test_each_column_gets_the_kind_that_all_its_cells_have(tmp_path):
    found = measure(read_sheet([patients.write(tmp_path / "p.csv")]), "outcome", "hospital")
    assert kinds(found) == {
        "age": "number", "sex": "category", "ward": "category", "smokes": "boolean", "admitted": "date",
        "days": "number",
    }  # fmt: skip
    assert {column.name for column in found.columns if column.missing} == {"age"}
    assert found.embedded == ((20, 5),)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path, delimiter):
    assert read_sheet([patients.write(tmp_path / "p.csv", delimiter=delimiter)]).names == list(patients.rows()[0])


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfage,ill\n1,yes\n")
    assert read_sheet([tmp_path / "a.csv"]).names == ["age", "ill"]


def test_csv_and_parquet_of_the_same_rows_give_the_same_inputs(tmp_path):
    path = patients.write(tmp_path / "p.csv")
    pd.read_csv(path, parse_dates=["admitted"]).to_parquet(tmp_path / "p.parquet")
    one, other = (
        split_table(read_table(tmp_path / name, "outcome", owner="hospital"), None, Natural())
        for name in ("p.csv", "p.parquet")
    )
    assert torch.equal(one.data.inputs, other.data.inputs)
    assert torch.equal(one.data.labels, other.data.labels)
    assert one.data.columns.fingerprint == other.data.columns.fingerprint


def test_numbers_are_scaled_and_what_is_missing_is_the_mean_with_a_flag(tmp_path):
    table = sheet(tmp_path, "age,ill\n10,a\n30,b\nNA,a\n")
    assert encode_rows(table, measure(table, "ill")).tolist() == [[-1, 0], [1, 0], [0, 1]]


def test_few_categories_have_an_input_each_and_a_missing_one_has_its_own(tmp_path):
    table = sheet(tmp_path, "city,ill\nrome,a\noslo,b\n,a\nrome,b\n")
    assert encode_rows(table, measure(table, "ill")).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_many_categories_are_an_index_after_all_other_inputs(tmp_path):
    table = sheet(
        tmp_path, "ward,age,ill\n" + "".join(f"w{at % 20:02},{at},{'ab'[at % 2]}\n" for at in range(0, 120, 3))
    )
    found = measure(table, "ill")
    inputs = encode_rows(table, found)
    assert (found.inputs, found.embedded) == (2, ((20, 5),))
    assert inputs[:, 1].tolist() == [1 + 3 * at % 20 for at in range(40)]


def test_a_category_that_is_not_known_has_the_reserved_index_and_one_warning_counts_them(tmp_path):
    city = TableColumn("city", "category", categories=("oslo", "rome"))
    ward = TableColumn("ward", "category", categories=("a", "b"), embedded=2)
    table = sheet(tmp_path, "city,ward,ill\nrome,c,x\nparis,d,y\nbonn,a,y\n")
    with pytest.warns(UserWarning, match="not known: city 2") as caught:
        inputs = encode_rows(table, Columns(Target("ill", "class", ("x", "y")), (city, ward)))
    assert inputs.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert len(caught) == 1
    assert "city 2 (such as 'paris', " in str(caught[0].message)
    assert "ward 2 (such as 'c', " in str(caught[0].message)


def test_a_missing_value_where_none_was_before_is_the_mean_with_a_warning(tmp_path):
    age, table = TableColumn("age", "number", 50.0, 10.0), sheet(tmp_path, "age,ill\n60,x\n,y\n")
    with pytest.warns(UserWarning, match="missing values where none were before.*: age 1"):
        inputs = encode_rows(table, Columns(Target("ill", "class", ("x", "y")), (age,)))
    assert inputs.tolist() == [[1], [0]]


@pytest.mark.parametrize("text", ["", " ", "NA", " NA ", "?", "null", '" "'])
def test_a_missing_value_has_many_names(tmp_path, text):
    assert sheet(tmp_path, f"age,ill\n 31 ,a\n{text},b\n").numbers("age").tolist() == pytest.approx(
        [31, np.nan], nan_ok=True
    )


def test_a_text_is_missing_in_parquet_as_it_is_in_csv(tmp_path):
    pd.DataFrame({"city": ["rome", "", " oslo", "NA"], "x": [np.nan] * 4}).to_parquet(tmp_path / "a.parquet")
    table = read_sheet([tmp_path / "a.parquet"])
    assert table.texts("city").tolist() == ["rome", None, "oslo", None]
    assert table.kind("x") == "missing"


@pytest.mark.parametrize(
    ("values", "kind", "classes"),
    [
        (["yes", "no"] * 8, "class", ("no", "yes")),
        (["True", "False"] * 8, "class", ("false", "true")),
        ([0, 1, 2, 10] * 8, "class", ("0", "1", "2", "10")),
        (["1.0", "2.0", ""] * 8, "class", ("1", "2")),
        ([0.5, 1.0] * 8, "number", ()),
        (list(range(21)), "number", ()),
    ],
)
def test_the_target_is_a_class_or_a_number_by_what_is_in_it(tmp_path, values, kind, classes):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{at},{value}\n" for at, value in enumerate(values)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = read_table(path, "y").target
    assert (found.kind, found.classes) == (kind, classes)


def test_the_target_is_what_it_is_said_to_be(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{at * at},{at % 5}\n" for at in range(40)))
    assert read_table(path, "y", target="number").target.mean == 2.0
    path.write_text("x,y\n" + "".join(f"{at * at},{at % 30}\n" for at in range(90)))
    assert len(read_table(path, "y", target="class").target.classes) == 30


def test_an_index_of_pandas_is_no_feature(tmp_path):
    frame = pd.read_csv(patients.write(tmp_path / "p.csv"))
    frame.to_csv(tmp_path / "indexed.csv")
    pd.read_csv(tmp_path / "indexed.csv").to_csv(tmp_path / "twice.csv")
    frame.set_index(pd.Index(range(7, 7 + len(frame)), name="number")).to_parquet(tmp_path / "named.parquet")
    frame[frame.sex == "f"].to_parquet(tmp_path / "p.parquet")
    for name in ("indexed.csv", "twice.csv", "named.parquet", "p.parquet"):
        assert set(kinds(measure(read_sheet([tmp_path / name]), "outcome"))) == set(frame) - {"outcome"}


def test_columns_that_say_nothing_are_left_out_with_the_reason(tmp_path):
    lines = [f"p{at},{1000 + at},x,,{'long ' * 50 * (at % 3)},{at % 7},{'ab'[at % 2]}" for at in range(40)]
    table = sheet(tmp_path, "name,number,country,empty,note,good,ill\n" + "\n".join(lines))
    found = {column.name: column.why for column in measure(table, "ill").columns}
    assert found == {
        "name": "it has 40 different texts in 40 rows",
        "number": "it numbers the rows",
        "country": "it is the same in each row",
        "empty": "it has no value in any row",
        "note": "it has texts of up to 499 characters",
        "good": "",
    }


def test_codes_that_are_numbers_can_be_categories_and_any_column_left_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        "code,secret,age,ill\n" + "".join(f"{at % 4},{at % 3},{at % 7},{'ab'[at % 2]}\n" for at in range(40))
    )
    found = measure_files([path], "ill", categories=["code"], without=["secret"])
    assert kinds(found) == {"code": "category", "secret": "left out", "age": "number"}


def test_the_scale_is_made_of_training_rows_alone(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age,ill\n" + "".join(f"{at * at},{'ab'[at % 2]}\n" for at in range(50)))
    divided = split_table(read_table(path, "ill"), 3, Iid(), test_share=0.5)
    training = np.concatenate([client.train.rows.numpy() for client in divided])
    ages = np.arange(50.0) ** 2
    assert divided.data.columns.columns[0].mean == pytest.approx(ages[training].mean())
    assert divided.data.columns.rows == len(training) < 50


def test_every_owner_is_a_client_and_the_owner_is_no_feature(tmp_path):
    table = read_table(patients.write(tmp_path / "p.csv"), "outcome", owner="hospital")
    divided = split_table(table, None, Natural())
    assert [len(client) for client in divided] == [40, 40, 40]
    assert "hospital" not in kinds(divided.data.columns)
    for at, client in enumerate(divided):
        assert {table.sheet.texts("hospital")[row] for row in client.train.rows} == {patients.HOSPITALS[at]}


def test_rows_with_no_label_are_left_out_and_counted(tmp_path):
    found = patients.rows()
    found[4]["outcome"] = found[70]["outcome"] = ""
    with pytest.warns(UserWarning, match=r"left out 2 of 120 rows, in which outcome, .*p.csv, row 5\)"):
        table = read_table(patients.write(tmp_path / "p.csv", found), "outcome")
    assert len(table.sheet) == 118


def test_a_folder_of_files_is_one_table_and_its_test_files_a_global_test_set(tmp_path):
    for name, part in (("a.csv", slice(0, 50)), ("b.csv", slice(50, 100)), ("test.csv", slice(100, 120))):
        patients.write(tmp_path / name, patients.rows()[part])
    divided = split_table(read_table(tmp_path, "outcome"), 4, Iid())
    assert (len(divided.data), len(divided.data.test_labels)) == (100, 20)
    pooled = split_table(read_table(tmp_path, "outcome", pool_test=True), 4, Iid())
    assert (len(pooled.data), pooled.data.test_labels) == (120, None)


def test_numbers_are_divided_among_clients_by_tenths(tmp_path):
    table = read_table(patients.write(tmp_path / "p.csv", patients.rows(400)), "days")
    assert table.target.kind == "number"
    divided = split_table(table, 4)
    assert sum(len(client) for client in divided) == 400
    groups, names = divided.data.groups()
    assert len(names) == 10
    assert min(np.bincount(groups)) > 30


def test_a_file_that_mixes_kinds_with_another_is_read_as_texts(tmp_path):
    (tmp_path / "a.csv").write_text("code,ill\n3,a\n4,b\n3,a\n")
    pd.DataFrame({"code": [3.0, np.nan], "ill": ["a", "b"]}).to_parquet(tmp_path / "b.parquet")
    table = read_sheet([tmp_path / "a.csv", tmp_path / "b.parquet"])
    assert table.texts("code").tolist() == ["3", "4", "3", "3", None]


def test_columns_come_back_from_their_file_as_they_were(tmp_path):
    found = measure(read_sheet([patients.write(tmp_path / "p.csv")]), "outcome", "hospital")
    found.write(tmp_path / "columns.json")
    assert read_columns(tmp_path / "columns.json") == found


def test_whatever_changes_the_encoding_changes_the_fingerprint_and_names_its_column():
    age, sex = TableColumn("age", "number", 50.0, 9.0), TableColumn("sex", "category", categories=("f", "m"))
    one = Columns(Target("ill", "class", ("no", "yes")), (age, sex))
    others = [
        dataclasses.replace(one, columns=(dataclasses.replace(age, mean=51.0), sex)),
        dataclasses.replace(one, columns=(age, dataclasses.replace(sex, categories=("m", "f")))),
        dataclasses.replace(one, columns=(sex, age)),
        dataclasses.replace(one, target=Target("ill", "class", ("yes", "no"))),
    ]
    assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 5
    changed = {key for key, fact in one.about().items() if others[0].about()[key] != fact}
    assert changed == {"column.age"}
    unused = TableColumn("id", "left out", why="it is one")
    same = dataclasses.replace(one, rows=7, owner="site", columns=(age, sex, unused))
    assert same.fingerprint == one.fingerprint


TARGET = Target("ill", "class", ("no", "yes"))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            Columns(TARGET, (TableColumn("code", "category", categories=("a",)),)),
            "column code is a category, and in a a",
        ),
        (Columns(TARGET, (TableColumn("cod", "number"),)), "b: column cod is in it or in a only"),
        (Columns(Target("ill", "number"), (TableColumn("code", "number"),)), "b: the label is ill, a number, and in a"),
    ],
)
def test_sites_that_do_not_fit_together_are_named(other, said):
    one = Columns(TARGET, (TableColumn("code", "number"),))
    with pytest.raises(DataError, match=said):
        merge_columns([("a", one), ("b", other)])


def test_what_one_site_has_left_out_is_as_the_others_say():
    used, unused = TableColumn("age", "number", 50.0, 9.0), TableColumn("age", "left out", why="it is the same")
    beside = TableColumn("sex", "category", categories=("f", "m"))
    sites = [("a", Columns(TARGET, (unused, beside), rows=9)), ("b", Columns(TARGET, (used, beside), rows=3))]
    assert merge_columns(sites).columns == (used, beside)


def test_a_site_may_have_more_columns_and_any_order(tmp_path):
    path = patients.write(tmp_path / "p.csv")
    measure(read_sheet([path]), "outcome", "hospital").write(tmp_path / "columns.json")
    frame = pd.read_csv(path)
    frame.assign(extra=1)[["extra", *reversed(frame.columns)]].to_csv(tmp_path / "q.csv", index=False)
    one = split_table(read_table(path, columns=str(tmp_path / "columns.json")), 1, Iid())
    with pytest.warns(UserWarning, match="not used, since the columns file has not: extra"):
        other = split_table(read_table(tmp_path / "q.csv", columns=str(tmp_path / "columns.json")), 1, Iid())
    assert torch.equal(one.data.inputs, other.data.inputs)


def test_a_site_without_a_column_is_refused(tmp_path):
    path = patients.write(tmp_path / "p.csv")
    measure(read_sheet([path]), "outcome", "hospital").write(tmp_path / "columns.json")
    pd.read_csv(path).rename(columns={"ward": "Wards"}).to_csv(tmp_path / "q.csv", index=False)
    with pytest.raises(DataError, match=r"q.csv: has no column 'ward'. Did you mean Wards\?"):
        split_table(read_table(tmp_path / "q.csv", columns=str(tmp_path / "columns.json")), 1, Iid())
