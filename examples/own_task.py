# %% [markdown]
# # Your own model and data, among many clients
# A notebook-style script: open it in an editor that knows `# %%` cells, or run it as it is:
#
#     python examples/own_task.py
#
# Thirty clients measure three noisy signals each, in their own mix of kinds, and train one small network together.
# A quarter of them joins late, and one message in ten is lost.

# %%
import os

import torch
from torch import nn

import pushcen

CLIENTS = int(os.environ.get("CLIENTS", "30"))
HORIZON = float(os.environ.get("HORIZON", "10"))

# %% [markdown]
# ## The task
# A function that makes what client number `client` of `clients` has: a model, training data, test data. Everybody's
# model starts from the same weights; nobody sees anybody else's data.


# %%
def signals(client: int, clients: int) -> pushcen.Task:
    """Sine, square or saw: which one is it? Each client mostly sees two of the three kinds."""
    random = torch.Generator().manual_seed(client)
    kinds = torch.tensor([client, client, client, client + 1, client + 1, client + 2])
    labels = kinds[torch.randint(6, (160,), generator=random)] % 3
    time = torch.linspace(0, 6.28, 48) * (1 + torch.rand(160, 1, generator=random))
    wave = torch.sin(time + 6.28 * torch.rand(160, 1, generator=random))
    shapes = torch.stack([wave, wave.sign(), torch.asin(wave * 0.999)], 1)
    inputs = shapes[torch.arange(160), labels] + 0.5 * torch.randn(160, 48, generator=random)
    model = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 3))
    return pushcen.Task(model, (inputs[:128], labels[:128]), (inputs[128:], labels[128:]))


# %% [markdown]
# ## One run

# %%
world = {
    "clients": CLIENTS,
    "horizon": HORIZON,
    "participation": {"delayed": 0.25, "earliest": HORIZON / 5, "latest": HORIZON / 2},
    "network": {"loss": 0.1},
    "evaluation": {"per_client": True},
}
result = pushcen.simulate(world, task=signals, method=pushcen.PushCen(clusters=16, receivers=5))
print(result.frame[["time", "online", "accuracy", "delayed_accuracy", "bytes_sent"]].tail())

# %% [markdown]
# ## The same world without working together, and with dense messages

# %%
results = pushcen.compare(["pushcen", "push-sum", "independent"], world, task=signals)
print(results.table.to("markdown"))

# %%
results.plot().savefig("signals.png", dpi=150)
results.plot("accuracy_bytes").savefig("signals_bytes.png", dpi=150)
