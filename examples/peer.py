# %% [markdown]
# # A peer of a real network, from Python
# What `pushcen peer` does, in a program of your own:
#
#     python examples/peer.py
#
# Three wards train one model together. Here all three run in one process; in practice each is a process on a machine of
# its own, with its own folder of certificates, and calls `asyncio.run(run_peer(...))`. It takes less than a minute.

# %%
import asyncio
import json
import os
import tempfile
from pathlib import Path

import torch

import pushcen
from pushcen.learning import TrainingOptions
from pushcen.protocol import UNIT
from pushcen.runtime import Authority, Certified, RuntimeOptions, Setup, audit_folders, run_peer
from pushcen.runtime.local import free_ports

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
EVENTS = int(os.environ.get("EVENTS", "20"))
FOLDER = Path(tempfile.mkdtemp(prefix="wards-"))
NAMES = ["ward-1", "ward-2", "ward-3"]


# %% [markdown]
# ## What each of them learns
# Each ward sees other measurements vary most; all of them want to know whether the sum is positive.


# %%
def task(client: int, clients: int) -> pushcen.Task:
    random = torch.Generator().manual_seed(client)
    inputs = torch.randn(400, 10, generator=random) * (1 + (torch.arange(10) + client) % clients)
    labels = (inputs.sum(1) > 0).long()
    model = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    return pushcen.Task(model, train=(inputs[100:], labels[100:]), test=(inputs[:100], labels[:100]))


# %% [markdown]
# ## Who belongs
# The authority makes the network and a certificate for each peer. Founders start with one unit of mass each.

# %%
authority = Authority.found(FOLDER / "authority", "wards", NAMES)
for name in NAMES:
    authority.issue(name)  # into FOLDER/authority/name
addresses = [f"127.0.0.1:{port}" for port in free_ports(len(NAMES))]


def setup(client: int) -> Setup:
    name = NAMES[client]
    return Setup(
        Certified(FOLDER / "authority" / name),  # the folder that its machine was given
        task,
        state=FOLDER / name,  # a peer that is started again on it goes on
        listen=addresses[client],
        join=[address for address in addresses if address != addresses[client]],
        method=pushcen.PushCen(clusters=16),
        training=TrainingOptions(lr=5e-3),
        runtime=RuntimeOptions(start_with=2, pause=0.1),
        client=client,
        clients=len(NAMES),
    )


# %% [markdown]
# ## Their lives
# `run_peer` lets a peer train for so many compute events, and then answer others until it is stopped. What it has
# measured is in its state folder, a line for each event.


# %%
def rows(name: str) -> list[dict]:
    file = FOLDER / name / "metrics.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def main() -> None:
    peers = [asyncio.create_task(run_peer(setup(client), EVENTS)) for client in range(len(NAMES))]
    while min(len(rows(name)) for name in NAMES) < EVENTS and not any(peer.done() for peer in peers):
        await asyncio.sleep(0.2)
    for peer in peers:
        peer.cancel()
    for error in await asyncio.gather(*peers, return_exceptions=True):
        if not isinstance(error, asyncio.CancelledError):
            raise error or RuntimeError("a peer was stopped before it was done")


asyncio.run(main())

# %% [markdown]
# ## What came of it
# Expect each of them to be right about its own data nine times in ten, and the books to add up: three units of mass
# were founded, and three are held or on their way.

# %%
for name in NAMES:
    measured = [row["accuracy"] for row in rows(name) if row["accuracy"] is not None]
    sent = rows(name)[-1]["bytes_out"]
    print(f"{name}: {len(rows(name))} compute events, accuracy {measured[-1]:.0%}, sent {sent:,} bytes")
found, _ = audit_folders([FOLDER / name for name in NAMES])
print(f"founded {found.founded / UNIT:g}, held or on links {(found.held + found.on_links) / UNIT:g}")
