"""`pushcen data describe`: the table adds up, and the picture is the same for the same split."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.data import Iid, OptionError, draw, load, split
from tests.data import files


def describe(*arguments):
    result = CliRunner().invoke(app, ["data", "describe", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_few_clients_are_listed_one_by_one():
    lines = describe("--clients", 6, "--alpha", 0.5, "--seed", 3).splitlines()
    found = [
        list(map(int, match.groups())) for line in lines if (match := re.match(r" +(\d+) +(\d+) +(\d+) +(\d+) ", line))
    ]
    assert [row[0] for row in found] == list(range(6))
    assert sum(row[1] for row in found) == 1797
    assert all(samples == train + test for _, samples, train, test in found)
    assert "6 clients, Dirichlet(alpha=0.5), seed 3" in "\n".join(lines)


def test_many_clients_are_summed_up_with_the_first_and_last_few():
    text = describe("--clients", 100, "--partition", "iid")
    assert re.search(r"fewest +17 .*\n +median +18 .*\n +most +18 ", text)
    assert [int(number) for number in re.findall(r"^ +(\d+) +1[78] ", text, re.MULTILINE)] == [
        *range(5),
        *range(95, 100),
    ]


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_the_picture_is_the_same_for_the_same_split(tmp_path, suffix, start):
    first, again = tmp_path / f"1.{suffix}", tmp_path / f"2.{suffix}"
    for out in (first, again):
        assert f"picture: {out}" in describe("--clients", 5, "--out", out).replace("\n", "")
    assert first.read_bytes() == again.read_bytes()
    assert first.read_bytes().startswith(start)


def test_names_from_a_file_are_shown_as_they_are(tmp_path):
    strange = np.array(["[/b]$x^", "a\x1b[31m", "c"])
    path = files.npz(tmp_path / "[b]$.npz", y_train=strange[files.labels()])
    text = describe(path, "--clients", 2, "--partition", "shards", "--per-client", 1, "--out", tmp_path / "a.svg")
    assert "\x1b" not in text
    assert "[b]$.npz" in text
    result = CliRunner().invoke(app, ["data", "describe", str(tmp_path / "[b].npz")])
    assert result.stderr == f"error: {tmp_path}/[b].npz: no such file or folder\n"


def test_a_picture_needs_a_folder_to_go_to(tmp_path):
    with pytest.raises(OptionError, match="there is no folder"):
        draw(split(load("digits"), 2, Iid()), tmp_path / "no" / "a.svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cifar"], "error: source = 'cifar': not known. Did you mean cifar10 or cifar100?"),
        (["--partition", "dirichlett"], "error: partition = 'dirichlett': must be one of dirichlet, iid,"),
        (["--partition", "iid", "--alpha", "1"], "error: alpha = 1.0: partition iid has no such option"),
        (["--clients", "5000"], "error: clients = 5000: digits has 1797 samples, enough for 898 clients"),
        (["--partition", "natural"], "error: partition = 'natural': digits does not say who owns its samples"),
    ],
)
def test_what_is_refused_is_one_line(arguments, message):
    result = CliRunner().invoke(app, ["data", "describe", *arguments])
    assert result.exit_code == 2
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
