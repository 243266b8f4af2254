"""Plans of several runs: which there are, in which worlds, in which folders."""

import shutil

import pytest

from pushcen.config import load_config
from pushcen.errors import ConfigError, OptionError, RunError
from pushcen.folder import Folder
from pushcen.runs import base_of, folder_for, method_settings, parse_axes, place, plan_comparison, plan_sweep

THREE = ["pushcen", "swift", "independent"]


def load(more):
    return load_config("digits", more)


def compared(methods=THREE, over=(), seeds=1, **given):
    return plan_comparison(load, method_settings(methods, given), parse_axes(over), seeds)


def write(planned, folder):
    """Make the folders of some runs, as if they had begun."""
    for run in planned:
        Folder(folder / run.name).write_config(run.config.plain())


def test_every_method_runs_at_every_point_with_every_seed_and_a_seed_is_the_same_world_for_all():
    planned = compared(over=["data.alpha=0.1,1.0", "network.loss=0,0.1"], seeds=3)
    assert len({run.name for run in planned}) == len(planned) == 3 * 2 * 2 * 3
    worlds = {}
    for run in planned:
        of_method = ("method.", "neighbours.kind")  # SWIFT has a fixed graph
        world = {key: value for key, value in run.config.identity().items() if not key.startswith(of_method)}
        worlds.setdefault((str(run.point), run.config.seed), []).append((run.config.method_name, world))
    assert len(worlds) == 12
    for members in worlds.values():
        assert [name for name, _ in members] == THREE
        assert all(world == members[0][1] for _, world in members)
    assert [run.config.seed for run in planned] == [0] * 12 + [1] * 12 + [2] * 12  # the first make a whole table


def test_a_folder_says_what_is_in_it_and_a_single_world_is_called_by_its_method():
    assert [run.name for run in compared()] == THREE
    assert [run.name for run in compared(["swift"], seeds=2)] == ["swift-seed-0", "swift-seed-1"]
    [run] = compared(["swift"], ["data.alpha=0.1"])
    assert run.name == "data.alpha=0.1/swift-seed-0"
    assert run.config.data.alpha == 0.1


def test_more_seeds_points_and_methods_use_what_is_there(tmp_path):
    write(compared(), tmp_path / "compare-digits")
    planned = compared([*THREE, "divshare"], ["data.alpha=0.4,1.0"], seeds=2)  # the preset has alpha 0.4
    assert folder_for(tmp_path, "compare-digits", {run.name: run.config for run in planned}).name == "compare-digits"
    jobs = place(planned, tmp_path / "compare-digits")
    there = {job.name: job.folder for job in jobs if job.folder.exists()}
    assert there == {f"data.alpha=0.4/{name}-seed-0": tmp_path / "compare-digits" / name for name in THREE}
    assert len({job.folder for job in jobs}) == len(jobs) == 16


def test_another_run_in_its_place_is_refused_or_another_folder_taken(tmp_path):
    planned = compared(seeds=2)
    write(planned, tmp_path / "compare-digits")
    other = plan_comparison(
        lambda more: load_config("digits", {"horizon": 3.0} | more), method_settings(THREE, {}), {}, 2
    )
    assert folder_for(tmp_path, "compare-digits", {run.name: run.config for run in other}).name == "compare-digits-2"
    with pytest.raises(RunError, match=r"horizon is 10\.0 there and 3\.0 here"):
        place(other, tmp_path / "compare-digits")


def test_settings_that_make_no_other_run_still_have_folders_of_their_own(tmp_path):
    planned = plan_sweep(load, parse_axes(["executor.workers=1,2"]), 1)
    write(planned[:1], tmp_path)
    assert [job.folder.parent.name for job in place(planned, tmp_path)] == ["executor.workers=1", "executor.workers=2"]


def test_an_option_goes_to_the_methods_that_have_it_at_every_point():
    planned = compared(over=["data.alpha=0.1,1.0"], seeds=2, **{"method.clusters": 8})
    assert {run.settings.get("method.clusters") for run in planned if run.config.method_name != "pushcen"} == {None}
    assert {run.config.method.clusters for run in planned if run.config.method_name == "pushcen"} == {8}


@pytest.mark.parametrize(
    ("over", "said"),
    [
        (["seed=0,1"], "say how many with --seeds"),
        (["method.name=pushcen,swift"], "--methods says which"),
        (["methods.pushcen.clusters=8,16"], "points are the same for all methods"),
        (["method.clusters=8,16"], "swift has no such option"),
        (["data.alpha=0.1,0.10"], r"data\.alpha=0\.10/pushcen-seed-0 is the same run as data\.alpha=0\.1/pushcen-seed"),
        (["data.alpha=0.1", "data.alpha=1.0"], "data.alpha is given twice"),
        (["data.alpha=0.1,,1.0"], "must be KEY=VALUE,VALUE"),
        (["data.alpha"], "must be KEY=VALUE,VALUE"),
        (["data.alfa=1"], "Did you mean data.alpha"),
        (["data.alpha=-1"], "data.alpha"),
        (["task.weights=a/b,a_b"], "two runs would have this folder"),
        (["task.weights=" + "a" * 300], "too long for the name of a folder"),
    ],
)
def test_points_that_cannot_be_compared_are_refused_by_name(over, said):
    with pytest.raises((OptionError, ConfigError), match=said):
        compared(over=over)


@pytest.mark.parametrize(
    ("methods", "said"),
    [([], "at least one"), (["swift", "swift"], "named twice"), (["pushcan"], "did you mean pushcen")],
)
def test_methods_that_cannot_be_compared_are_refused(methods, said):
    with pytest.raises(OptionError, match=said):
        compared(methods)


def test_seeds_are_no_axis_of_a_sweep():
    with pytest.raises(OptionError, match="--seeds"):
        plan_sweep(load, parse_axes(["seed=0,1,2"]), 1)


def test_a_sweep_is_paired_within_a_world_where_the_method_changes_and_else_with_the_first_point():
    axes = parse_axes(["method.name=pushcen,swift", "data.alpha=0.1,1.0"])
    bases = {run.name: base_of(run.point, axes) for run in plan_sweep(load, axes, 1)}
    assert bases["method.name=swift,data.alpha=1.0/seed-0"] == {"method.name": "pushcen", "data.alpha": "1.0"}
    assert bases["method.name=swift,data.alpha=0.1/seed-0"] == {"method.name": "pushcen", "data.alpha": "0.1"}
    assert base_of({"network.loss": 0.2}, {"network.loss": [0, 0.2]}) == {"network.loss": 0}


def test_a_damaged_config_in_a_runs_place_is_told(tmp_path):
    planned = compared(["swift"])
    write(planned, tmp_path)
    (tmp_path / "swift" / "config.toml").write_text("clients = ")
    with pytest.raises(RunError, match=r"swift/config\.toml"):
        place(planned, tmp_path)
    shutil.rmtree(tmp_path / "swift")
    assert place(planned, tmp_path)[0].folder == tmp_path / "swift"
