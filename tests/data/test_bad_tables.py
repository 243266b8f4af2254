"""What is wrong with a table is refused with its file, column and row, and with what would be right."""

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pushcen.data import DataError, Iid, load, read_columns, read_table, split_table
from pushcen.data.measuring import measure
from pushcen.data.sheet_files import read_sheet
from tests.data import patients


def refused(path, label="y", **options):
    with pytest.raises(DataError) as caught:
        split_table(read_table(path, label, **options), 1, Iid())
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "a.csv: has no header"),
        (b"x,y\n", "a.csv: has no rows"),
        (b"x,y\n1,a\n2,b,c\n", "a.csv, row 2: has 3 cells, and the header 2"),
        (b"x,y\n1,a\n2\n", "a.csv, row 2: has 1 cells, and the header 2"),
        (b"x,x,y\n1,2,a\n", "a.csv: has two columns 'x'"),
        (b"x,y\n1,a\nM\xfcller,b\n", "a.csv, line 3: is not in UTF-8"),
        ("x,y\n1,a\n".encode("utf-16"), "a.csv: is in UTF-16: must be in UTF-8"),
        (b'x,y\n1,"a\n' + b"2,b\n" * 3_000_000, "a.csv: has a row of more than 4 MB; is a quote not closed?"),
        (b"x,y\n1,a\n" + b"1" * 100_000 + b",a\n", "a.csv, column x, row 2: a cell of 100,000 bytes; is a quote"),
        (b"\nx,y\n1,a\n", "a.csv: has no header"),
        (b"x,z\n1,a\n", "label = 'y': "),
        (b"x,y\n1,\n2,\n", "a.csv: column y, the label, has no value in any row"),
        (b"x,y\n1,0.5\n2,-nan\n3,1.5\n", "a.csv, column y, row 2: must be a number"),
        (b"x,y\n1,a\n2,a\n", "a.csv: column y, the label, is 'a' in each row"),
        (b"x,y\n1,a\ninf,b\n", "a.csv, column x, row 2: inf: must be finite, and below 1e+30"),
        (b"x,y\n1,a\n-1e200,b\n", "a.csv, column x, row 2: -1e+200: must be finite"),
        (b"y\na\nb\n", "no column beside y can be learnt from"),
        (b"x,y\n1,a\n1,b\n", "no column beside y can be learnt from"),
        (
            b"x,y\n" + b"".join(b"%d,p%d\n" % (at % 5, at) for at in range(50)),
            "y, the label, has 50 classes in 50 rows",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_csv_file_that_cannot_be_used_says_where_and_why(tmp_path, data, said):
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    assert said in refused(path)


def test_a_missing_label_column_names_the_near_ones(tmp_path):
    path = patients.write(tmp_path / "p.csv")
    said = refused(path, "Outcom")
    assert "label = 'Outcom': " in said
    assert "has no such column. Did you mean outcome? It has age, sex, ward" in said
    assert "owner = 'hospitals'" in refused(path, "outcome", owner="hospitals")


def test_a_row_with_no_owner_is_named(tmp_path):
    found = patients.rows()
    found[6]["hospital"] = ""
    path = patients.write(tmp_path / "p.csv", found)
    assert "p.csv, column hospital, row 7: is missing" in refused(path, "outcome", owner="hospital")


def columns_of(tmp_path):
    path = patients.write(tmp_path / "p.csv")
    measure(read_sheet([path]), "outcome", "hospital").write(tmp_path / "columns.json")
    return path, str(tmp_path / "columns.json")


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("age", "1e25", "q.csv, column age, row 5: 1e+25: is 7.4e+23 deviations from the mean: must be below 1e+06"),
        ("age", "old", "q.csv, column age, row 5: 'old': must be a number"),
        ("age", "61,5", "q.csv, column age, row 5: '61,5': must be a number, with a point"),
        ("smokes", "perhaps", "q.csv, column smokes, row 5: 'perhaps': must be true or false"),
        ("admitted", "31/12/2020", "q.csv, column admitted, row 5: '31/12/2020': must be a date such as 2020-12-31"),
        ("outcome", "dead", "q.csv, column outcome, row 5: 'dead': must be one of the classes ill, well"),
    ],
)
def test_a_cell_that_is_not_what_the_columns_file_says_is_named(tmp_path, column, value, said):
    _, columns = columns_of(tmp_path)
    found = patients.rows()
    found[4][column] = value
    assert said in refused(patients.write(tmp_path / "q.csv", found), "outcome", columns=columns)


def test_a_columns_file_is_of_one_label(tmp_path):
    path, columns = columns_of(tmp_path)
    assert "is of tables with the label 'outcome'" in refused(path, "days", columns=columns)
    assert "target = 'number': by columns" in refused(path, "outcome", columns=columns, target="number")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda plain: plain["columns"][0].update(mean=1.0), "its fingerprint is that of another content"),
        (lambda plain: plain["columns"][0].update(deviation=0, fingerprint=1), "not a file of columns"),
        (lambda plain: plain["columns"][0].update(mean=float("nan")), "not a file of columns: column age"),
        (lambda plain: plain["columns"][0].update(kind="code"), "not a file of columns: column age"),
        (lambda plain: plain["columns"][1].update(categories=["f", "f"]), "not a file of columns: column sex"),
        (lambda plain: plain["columns"][1].update(categories=[1]), "not a file of columns: column sex"),
        (lambda plain: plain["columns"].append(plain["columns"][0]), "must have names of their own"),
        (lambda plain: plain["columns"][0].update(embedded=3), "column age: only categories are embedded"),
        (lambda plain: plain["columns"][0].update(why=3), "column age: only categories"),
        (lambda plain: plain["label"].update(classes=[]), "label outcome: must have classes"),
        (lambda plain: plain["label"].update(kind="number"), "label outcome: must have classes"),
        (lambda plain: plain.pop("label"), "has no 'label'"),
        (lambda plain: plain.update(columns=3), "not a file of columns"),
        (lambda plain: plain.update(format="pushcen columns 2"), "its format must be 'pushcen columns 1'"),
    ],
)
def test_a_columns_file_that_cannot_be_true_is_refused_with_its_name(tmp_path, change, said):
    _, columns = columns_of(tmp_path)
    plain = json.loads((tmp_path / "columns.json").read_text())
    change(plain)
    (tmp_path / "columns.json").write_text(json.dumps(plain))
    with pytest.raises(DataError) as caught:
        read_columns(tmp_path / "columns.json")
    assert f"columns = {columns!r}: " in str(caught.value)
    assert said in str(caught.value)


def test_a_columns_file_without_its_fingerprint_may_have_been_changed(tmp_path):
    columns_of(tmp_path)
    plain = json.loads((tmp_path / "columns.json").read_text())
    plain["columns"][0]["mean"] = 1.0
    del plain["fingerprint"]
    (tmp_path / "columns.json").write_text(json.dumps(plain))
    assert read_columns(tmp_path / "columns.json").columns[0].mean == 1.0


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"x": [b"\x89"] * 3, "y": ["a", "b", "a"]}, "column x has type binary: must be"),
        ({"x": [[1], [2], [3]], "y": ["a", "b", "a"]}, "column x has type list"),
        ({"x": [1.0, 2.0, float("inf")], "y": ["a", "b", "a"]}, "a.parquet, column x, row 3: inf: must be finite"),
    ],
)
def test_parquet_columns_of_another_kind_are_refused(tmp_path, columns, said):
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert said in refused(tmp_path / "a.parquet")


def test_a_cell_of_a_file_that_is_read_as_texts_is_named_too(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,a\n")
    pyarrow.parquet.write_table(pa.table({"x": [1.0, float("inf")], "y": ["a", "b"]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b.parquet, column x, row 2: inf: must be finite"):
        read_sheet([tmp_path / "a.csv", tmp_path / "b.parquet"])


def test_a_file_without_a_column_that_another_has_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,a\n")
    (tmp_path / "b.csv").write_text("z,y\n1,a\n")
    with pytest.raises(DataError, match=r"b.csv: has no column 'x', which .*a.csv has"):
        read_sheet([tmp_path / "a.csv", tmp_path / "b.csv"])


def test_a_table_is_no_data_set_of_images(tmp_path):
    path = patients.write(tmp_path / "p.csv")
    with pytest.raises(DataError, match=r"p.csv: is a table: name the column to learn, by label = 'NAME'"):
        load(path)
    (tmp_path / "a.txt").write_text("x,y\n")
    assert "a.txt: is no table: must end in .csv, .tsv, .parquet" in refused(tmp_path / "a.txt")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(at=st.integers(0, 10**6), some=st.binary(max_size=3), cut=st.booleans())
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.filterwarnings("ignore")
def test_damaged_tables_are_refused_or_harmless_but_never_another_error(tmp_path, kind, at, some, cut):
    path = tmp_path / f"a.{kind}"
    frame = pd.DataFrame(patients.rows(12))
    frame.to_csv(path, index=False) if kind == "csv" else frame.astype({"age": str}).to_parquet(path)
    data = path.read_bytes()
    at %= len(data)
    path.write_bytes(data[:at] + some + (b"" if cut else data[at + 1 :]))
    try:
        loaded = split_table(read_table(path, "outcome"), 1, Iid()).data
    except DataError:
        return
    assert loaded.inputs.isfinite().all()
