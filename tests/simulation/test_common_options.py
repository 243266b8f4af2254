"""Every method with every option that is no method's own: refused before anything runs, or carried out exactly."""

import pytest

from pushcen.errors import OptionError
from pushcen.learning import SparsityOptions
from pushcen.methods import methods
from pushcen.simulation import NeighbourOptions, StalenessOptions
from tests.simulation.worlds import plain, run

OPTIONS = {
    "priority": {"policy": "priority"},
    "bandit": {"policy": "bandit"},
    "half_life": {"staleness": StalenessOptions(half_life=0.5)},
    "oldest": {"staleness": StalenessOptions(oldest=0.5)},
    "ahead": {"staleness": StalenessOptions(ahead=2)},
    "sparsity": {"sparsity": SparsityOptions(first=0.5, last=0.1, over=4)},
    "collect": {"collect": "start"},
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", sorted(methods()))
def test_an_option_is_refused_or_carried_out(name, option):
    given = dict(OPTIONS[option])
    kind = methods()[name]
    policy = given.pop("policy", "random")
    graph = {"kind": "graph", "degree": 2} if kind.needs_graph else {}
    given["neighbours"] = NeighbourOptions(policy=policy, **graph)
    summary, refused = None, ""
    try:
        summary = run(clients=4, horizon=2.0, method=kind(), **given)
    except OptionError as error:
        refused = str(error)
    if summary is None:
        assert "must be" in refused
        return
    assert summary["status"] == "finished"
    assert summary["meters"]["mass"]["exact"]
    assert plain(run(clients=4, horizon=2.0, method=kind(), workers=3, **given)) == plain(summary)
