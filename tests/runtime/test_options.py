"""Options that any method may take, on a real network: what can be done is done, all else is refused by its key."""

import asyncio

import pytest

from pushcen.errors import NetworkError, OptionError
from pushcen.learning import SparsityOptions
from pushcen.methods import AsyncDFedAvg, PushSum
from pushcen.protocol import UNIT, ByBandit
from pushcen.runtime.peer import started
from pushcen.simulation import NeighbourOptions, StalenessOptions
from tests.runtime.world import World, run, until


def test_peers_learn_whom_to_push_to_and_lose_no_mass(tmp_path):
    async def scene():
        world = World(tmp_path, names=[f"p{n}" for n in range(4)], view=3, start_with=3)
        bandit = NeighbourOptions(policy="bandit", explore=0.2, validation=0.3)
        await world.start(*world.names, neighbours=bandit, method=PushSum(receivers=1))
        await until(lambda: all(world.events(name) >= 12 for name in world.names))
        for name in world.names:
            policy = world.drivers[name].shared.members.policy
            assert isinstance(policy, ByBandit)
            known = {other: policy.expected(name, other) for other in world.names if other != name}
            assert any(known.values())
            assert all(-1 <= gain <= 1 for gain in known.values())
        await world.check()

    run(scene())


def test_what_has_waited_for_long_counts_for_less_or_not_at_all(tmp_path):
    async def scene():
        world = World(tmp_path)
        staleness = StalenessOptions(half_life=30.0, oldest=60.0)
        [one, _] = await world.start("p0", "p1", method=AsyncDFedAvg(), staleness=staleness, live=False)
        weigh = world.drivers["p0"].me.client.weigh
        now = asyncio.get_running_loop().time()
        for age, share in ((0, 1.0), (30, 0.5), (59, 2 ** (-59 / 30)), (61, 0.0)):
            assert weigh(UNIT, _At(now - age)) / UNIT == pytest.approx(share, rel=0.01)
        await world.drivers["p0"].me.commit(
            become=lambda: type(one.client)(one.client.peer, one.client.learner, one.client.rng)
        )
        assert world.drivers["p0"].me.client.weigh is weigh  # whoever it becomes
        await world.stop()

    run(scene())


class _At:
    def __init__(self, at):
        self.at = at


def test_sparse_messages_are_taken_in_whatever_their_share(tmp_path):
    async def scene():
        world = World(tmp_path, names=["p0", "p1"])
        shares = {"p0": SparsityOptions(0.5, 0.05, 4), "p1": SparsityOptions(0.01, 1.0, 4)}
        starts = (world.start(name, sparsity=sparsity, method=PushSum()) for name, sparsity in shares.items())
        await asyncio.gather(*starts)

        def news(name):
            return world.drivers[name].shared.metrics.received.labels("news")._value.get()

        await until(lambda: all(world.events(name) >= 8 and news(name) > 2 for name in world.names))
        for name in world.names:
            refused = world.drivers[name].shared.metrics.refusals.collect()[0].samples
            assert not [
                sample for sample in refused if sample.value and sample.labels["reason"] in ("payload", "oversized")
            ]
        await world.check()

    run(scene())


def test_one_that_sends_dense_models_is_told_what_differs(tmp_path):
    async def scene():
        world = World(tmp_path)
        await world.start("p0", "p1", sparsity=SparsityOptions(0.5), method=PushSum())
        with pytest.raises(NetworkError, match="sparsity = top-k there, missing here"):
            await world.start("p2", method=PushSum())
        await world.stop()

    run(scene())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"neighbours": NeighbourOptions(policy="priority")}, "neighbours.policy = 'priority': is the simulator's"),
        ({"staleness": StalenessOptions(ahead=3)}, "staleness.ahead = 3: is the simulator's"),
        (
            {"staleness": StalenessOptions(half_life=3.0)},
            r"staleness.half_life = 3.0: pushcen weighs models by the mass",
        ),
        ({"sparsity": SparsityOptions(0.5)}, r"sparsity.first = 0.5: pushcen does not send whole dense models"),
    ],
)
def test_what_a_real_peer_cannot_do_is_refused_before_it_starts(tmp_path, options, said):
    async def scene():
        world = World(tmp_path)
        with pytest.raises(OptionError, match=said):
            async with started(world.setup("p0", **options)):
                pass

    run(scene())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"listen": "", "advertise": "ward-1.example:443"}, "a peer that does not listen is reached through others"),
        ({"listen": "0.0.0.0:0"}, "say with --advertise HOST:PORT"),
        ({"listen": "", "proxy": "nonsense"}, "must be HOST:PORT"),
    ],
)
def test_mistakes_in_addresses_are_told_before_anything_is_made(tmp_path, options, text):
    world = World(tmp_path, names=("p0", "p1"))
    with pytest.raises(OptionError, match=text):
        run(world.start("p0", **options))
    assert not world.state("p0").exists()
