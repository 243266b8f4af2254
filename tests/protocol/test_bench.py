"""The benchmark of the protocol core, on small worlds: that it runs, and what does not depend on the machine."""

import json

from typer.testing import CliRunner

from pushcen.bench import protocol
from pushcen.cli import app


def test_a_link_costs_200_bytes_at_most():
    assert protocol.bytes_per_link(peers=200, pushes=200) <= 200


def test_links_per_peer_do_not_grow_with_the_number_of_peers():
    few, many = (protocol.ManyPeers(peers) for peers in (100, 1000))
    for world in (few, many):
        world.run(200 * len(world.peers) // 10)
        assert max(len(peer.sent) for peer in world.peers) <= 40
    assert many.links() / 1000 < 1.5 * few.links() / 100


def test_what_many_links_cost_grows_with_their_number():
    few, many = (protocol.microseconds_per_link(links, rounds=3) for links in (500, 4000))
    for what in few:
        assert many[what] < 4 * few[what], f"{what}: eight times the links must not cost each of them more"


def test_a_bounded_view_mixes_about_as_well():
    afresh, view = (protocol.spread(view=kind, peers=300, pushes=5) for kind in (False, True))
    assert view < 5 * afresh < 0.05


def test_the_command_prints_what_it_measured(monkeypatch):
    monkeypatch.setattr(protocol, "SIZES", (50, 60, 70))
    monkeypatch.setattr(protocol, "LINKS", (10, 20))
    monkeypatch.setattr(protocol, "bytes_per_link", lambda: 150.0)
    monkeypatch.setattr(protocol, "spread", lambda view: 1e-5)
    result = CliRunner().invoke(app, ["bench", "protocol", "--json", "--events", "20"])
    assert result.exit_code == 0, result.output
    measured = json.loads(result.output)
    assert measured["events_per_second"] == measured["events_per_second_by_peers"]["60"] > 0
    table = CliRunner().invoke(app, ["bench", "protocol", "--events", "20"])
    assert "bytes per link" in table.output
