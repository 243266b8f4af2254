"""A table has the same content in every form; several lines, bold values and headings are shown as each form can."""

import csv
import io
import re
import shutil
import subprocess

import pytest
from rich.console import Console

from pushcen.analysis import Column, Table

NUMBERS = {"mean": lambda pair: pair[0], "SD": lambda pair: pair[1]}
SCORE = {
    "show": lambda pair: f"{pair[0]} ± {pair[1]}\n-0.5 [-1, +0]",
    "strong": lambda pair: pair[0] > 2,
    "parts": NUMBERS,
}
TABLE = Table(
    "Scores",
    [Column("method_name", left=True), Column("0.1", group="accuracy %", **SCORE), Column("sent & done")],
    [["[a] {b}", (1.5, 0.25), 3], ["100 % ~^\\#", (2.5, 0.5), None]],
    ["a note\nof two lines"],
)


def test_every_form_marks_what_is_bold_and_breaks_lines():
    assert "| **2.5 ± 0.5**<br>-0.5 [-1, +0] |" in TABLE.to("markdown")
    assert "<strong>2.5 ± 0.5</strong><br>-0.5 [-1, +0]</td>" in TABLE.to("html")
    assert r" & \textbf{2.5 $\pm$ 0.5} & None \\" in TABLE.to("latex")
    for form in ("markdown", "html", "latex"):
        assert not re.search(r"(\*\*|<strong>|textbf\{)1\.5", TABLE.to(form))
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard")
    console.print(TABLE.rich())
    shown = console.file.getvalue()
    assert "\x1b[1m2.5 ± 0.5\x1b[0m" in shown
    assert "\x1b[1m1.5" not in shown


def test_columns_of_a_group_have_a_heading_above():
    assert r"\multicolumn{1}{c}{accuracy \%}" in TABLE.to("latex")
    assert r"\cmidrule(lr){2-2}" in TABLE.to("latex")
    assert "<th colspan=1>accuracy %</th>" in TABLE.to("html")
    assert TABLE.to("markdown").startswith("| method_name | accuracy %: 0.1 | sent & done |")


def test_a_second_line_is_a_row_of_its_own_in_latex():
    lines = TABLE.to("latex").splitlines()
    at = next(at for at, line in enumerate(lines) if "1.5" in line)
    assert lines[at : at + 2] == [r"{}[a] \{b\} & 1.5 $\pm$ 0.25 & 3 \\", r" & $-$0.5 [$-$1, +0] &  \\"]
    assert all(line.count("&") - line.count(r"\&") == 2 for line in lines if line.endswith(r"\\"))


def test_csv_and_data_frames_have_numbers_in_columns_of_their_own():
    rows = list(csv.DictReader(io.StringIO(TABLE.to("csv"))))
    assert list(rows[0]) == ["method_name", "mean", "SD", "sent & done"]
    assert (rows[1]["mean"], rows[1]["SD"], rows[1]["sent & done"]) == ("2.5", "0.5", "")
    frame = TABLE.frame()
    assert frame["mean"].tolist() == [1.5, 2.5]
    assert list(frame.columns) == list(rows[0])


def test_no_note_and_no_label_becomes_latex():
    assert TABLE.to("latex").endswith("% a note of two lines")
    hostile = Table("", [Column("a", left=True)], [[r"\input{/etc/passwd}"], ["*x"], ["[2cm]"]])
    text = hostile.to("latex")
    assert r"\textbackslash{}input\{/etc/passwd\}" in text
    assert "\n{}*x" in text
    assert "\n{}[2cm]" in text


TEX = next((name for name in ("tectonic", "pdflatex", "xelatex") if shutil.which(name)), None)


@pytest.mark.skipif(TEX is None, reason="needs a TeX on the PATH: tectonic, pdflatex or xelatex")
def test_latex_compiles(tmp_path):
    page = (
        rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{TABLE.to('latex')}" + "\n\\end{document}"
    )
    (tmp_path / "page.tex").write_text(page, "utf-8")
    options = [] if TEX == "tectonic" else ["-interaction=nonstopmode", "-halt-on-error"]
    subprocess.run([TEX, *options, "page.tex"], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    assert (tmp_path / "page.pdf").stat().st_size > 1000
