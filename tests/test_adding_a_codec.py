"""The codec in docs/adding-a-codec.md is a real one: it trains in the simulator and on a real network."""

import random
import re
import sys
from pathlib import Path

import pytest
import torch

from pushcen.codec import Accumulator, Payload, PayloadError, accumulate, payload_size
from pushcen.config import Config
from pushcen.errors import LedgerError, NetworkError, OptionError
from pushcen.learning import Learner, TrainingOptions, Work, build_task
from pushcen.methods import AsyncDFedAvg, PushCen, PushSum, method_named
from pushcen.runtime.fingerprint import describe
from pushcen.simulation import World as SimulatedWorld
from pushcen.simulation import simulate_world
from tests.codec.test_hostile import mutate
from tests.runtime.tasks import digits, tiny
from tests.runtime.world import World, run, until

PAGE = Path(__file__).parents[1] / "docs" / "adding-a-codec.md"
TOPK = "topk:TopK"


@pytest.fixture(autouse=True)
def page(tmp_path, monkeypatch):
    """Let a user have the page's two files in the current folder."""
    codec, method = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(codec.splitlines()) < 60
    (tmp_path / "topk.py").write_text(codec)
    (tmp_path / "sparse.py").write_text(method)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in ("topk", "sparse"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def learner(method, client=0, task=tiny):
    return Learner(build_task(task, client, 2), method.update(), client=str(client), seed=client)


def test_it_is_chosen_by_name_and_sends_a_tenth():
    method = Config.of({"method": {"name": "push-sum", "codec": TOPK}}).method
    one = learner(method)
    [payload] = one.step(Work(1, [])).payloads.values()
    assert len(payload) == payload_size(one.schema, payload.codec) == one.sizes()[0] == 56 + 16 + 8 * 18
    assert type(payload.codec).name == TOPK
    sparse = method_named("sparse:Sparse")(per_mille=20)
    assert learner(sparse).sizes()[0] == 56 + 16 + 8 * 4


def test_what_is_not_sent_is_the_starts_and_comes_later():
    one = learner(PushSum(codec=TOPK))
    start = torch.cat([tensor.detach().flatten() for tensor in one.schema.tensors(one.model)])
    with torch.no_grad():
        for parameter in one.model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    wanted = torch.cat([tensor.detach().flatten() for tensor in one.schema.tensors(one.model)])
    into = Accumulator.zeros(one.schema)
    for turn in range(1, 301):
        payload = Payload.parse(one.encode()[0].data, one.schema)
        if turn == 1:
            single = Accumulator.zeros(one.schema)
            one.add(payload, 1, single)
            assert int((single.total == start).sum()) >= 178 - 18
        one.add(payload, 1, into)
    assert into.weight == 300
    assert ((into.total / 300 - start) - (wanted - start)).norm() < (wanted - start).norm() / 15


def test_it_goes_on_bit_for_bit_after_a_restart():
    def events(one, count):
        return [one.step(Work(1, [])).payloads[0].data for _ in range(count)]

    one, two = learner(PushSum(codec=TOPK)), learner(PushSum(codec=TOPK))
    events(one, 3)
    state = one.save()
    assert "update.left" in state.tensors
    two.restore(state)
    assert events(one, 3) == events(two, 3)


def test_hostile_bytes_are_refused_or_well_formed():
    one, dice = learner(PushSum(codec=TOPK)), random.Random(2)
    data = one.step(Work(1, [])).payloads[0].data
    accepted = 0
    for _ in range(3000):
        into = Accumulator.zeros(one.schema)
        try:
            accumulate(mutate(data, dice), 1, into, reference=next(iter(one.update.references.values())))
        except PayloadError:
            assert not into.total.any()
            continue
        accepted += 1
        assert torch.isfinite(into.total).all()
    assert 0 < accepted < 1500


def test_a_difference_to_another_start_is_refused():
    one, two = learner(PushSum(codec=TOPK)), Learner(tiny(0, 2), PushSum(codec=TOPK).update())
    with pytest.raises(PayloadError, match=r"difference to model \w+: must be to one that it has"):
        one.fold(1, 0, two.encode())
    with pytest.raises(PayloadError, match=r"got part 0 as Dense.*: must be .*TopK"):
        one.fold(1, 0, learner(PushSum()).encode())


def test_a_name_that_is_no_codec_is_refused():
    for name, text in {
        "dens": "did you mean dense",
        "topk:Top": "no Top",
        "math:pi": "is no subclass of pushcen.codec.Codec",
        "fragment": "each of its options must have a default",
        "nowhere:Codec": "nowhere",
    }.items():
        with pytest.raises(OptionError, match=text):
            PushSum(codec=name)


def test_it_trains_in_the_simulator_and_all_mass_is_kept():
    results = {}
    for codec in ("dense", TOPK):
        world = SimulatedWorld(
            PushSum(codec=codec, receivers=3), TrainingOptions(batch=16), clients=4, horizon=4.0, seed=3
        )
        results[codec] = simulate_world(world, digits)
    assert all(result["meters"]["mass"]["exact"] for result in results.values())
    sent = [result["traffic"]["bytes_sent"] for result in results.values()]
    assert sent[1] < sent[0] / 4.9
    accuracy = [result["final"]["accuracy"] for result in results.values()]
    assert accuracy[1] > accuracy[0] - 0.1


def test_it_trains_on_a_real_network_and_survives_a_restart(tmp_path):
    async def story():
        world = World(tmp_path / "world", names=("p0", "p1"))
        method = PushSum(codec=TOPK)
        await world.start("p0", "p1", events=8, method=method, settings={"start_with": 1})
        await until(lambda: all(world.events(name) == 8 for name in world.names))
        for node in map(world.node, world.names):
            await until(lambda node=node: node.metrics.received.labels("news")._value.get() > 0)
            assert node.metrics.refusals.labels("payload")._value.get() == 0
        await world.stop("p1")
        await world.start("p1", events=12, method=method)
        await until(lambda: world.events("p1") == 12)
        await world.check()
        with pytest.raises(LedgerError, match=r"codec\.per_mille = 100 there, 50 here"):
            await world.start("p0", method=method_named("sparse:Sparse")())

    run(story())


def test_without_it_peers_agree_with_those_of_before():
    """An option that was added, at its default, changes neither state folders nor what peers compare."""
    for method in (PushSum(), AsyncDFedAvg(), PushCen()):
        about = describe(method, TrainingOptions(), learner(method), 0)
        assert not [key for key in about if "codec" in key]
    about = describe(PushSum(codec=TOPK), TrainingOptions(), learner(PushSum(codec=TOPK)), 0)
    assert (about["codec"], about["method.codec"]) == ("topk:TopK, number 128", "topk:TopK")
    assert len(about["codec.start"]) == 32


def test_a_codec_of_a_script_has_no_name_that_peers_could_share(monkeypatch):
    one = learner(PushSum(codec=TOPK))
    monkeypatch.setattr(type(one.update.codecs()[0]), "name", "__main__:TopK")
    with pytest.raises(OptionError, match="__main__:TopK: must be in a module of its own"):
        describe(PushSum(codec=TOPK), TrainingOptions(), one, 0)


def test_peers_without_it_are_refused_and_told_why(tmp_path):
    async def story():
        world = World(tmp_path / "world", names=("p0", "p1"))
        await world.start("p0", join=[], method=PushSum(codec=TOPK))
        with pytest.raises(
            NetworkError, match="runs something else: codec = topk:TopK, number 128 there, missing here"
        ):
            await world.start("p1", method=PushSum())
        await world.stop()

    run(story())
