"""Tiny-ImageNet in two minutes: the real experiment on those of its classes that are at hand."""

import pathlib
import tarfile

import pytest
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.runs import Run

ARCHIVE = pathlib.Path(__file__).parents[3] / "shared" / "data" / "tiny-imagenet-mini.tar"


@pytest.mark.slow
def test_table_1_runs_on_real_images(tmp_path):
    if not ARCHIVE.exists():
        pytest.skip("no tiny-imagenet-mini.tar beside the project")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    settings = [f"data.path={tmp_path / 'tiny-imagenet-mini'}", "data.share=0.2", "clients=4", "horizon=1.5"]
    settings += ["evaluation.every=0.5", "participation.delayed=0.25", "participation.earliest=0.2"]
    settings += ["participation.latest=0.5"]
    command = ["reproduce", "table1", "--dataset", "tiny-imagenet", "--alpha", "1.0", "--rows", "divshare,pushcen"]
    command += [part for setting in settings for part in ("--set", setting)]
    result = CliRunner().invoke(app, [*command, "--runs", str(tmp_path / "runs")])
    assert result.exit_code == 0, result.output
    for row in ("divshare", "pushcen"):
        run = Run.open(tmp_path / "runs" / "tiny-imagenet-small" / f"{row}-alpha1-seed0")
        assert run.finished
        assert run.summary["delayed"]["clients"] == 1
        assert run.number("accuracy") >= 0
        assert run.summary["steps"] >= 10
        assert run.rows[-1]["train_loss"] < run.rows[0]["train_loss"]
    assert "58.04" in (tmp_path / "runs" / "tables" / "table1-tiny-imagenet-small.md").read_text()
