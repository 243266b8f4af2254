# %% [markdown]
# # The codec in another system
# `pushcen.codec` knows nothing of peers or training. Here it makes the messages of a system that has nothing else of
# pushcen: a server that averages what its workers send, round after round, written in plain PyTorch.
#
#     python examples/codec_elsewhere.py
#
# It is done in a few seconds.

# %%
import torch
from torch import nn

from pushcen.codec import Accumulator, Centroids, Dense, Payload, PayloadError, Schema, accumulate, encode

WORKERS, ROUNDS = 4, 5


def model() -> nn.Module:
    torch.manual_seed(0)  # everybody starts from the same weights
    return nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 4))


def data(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    inputs = torch.randn(500, 20, generator=random)
    return inputs, inputs[:, :8].reshape(-1, 4, 2).sum(2).argmax(1)


# %% [markdown]
# ## A worker
# It takes the server's weights, trains as it likes, and sends bytes. `encode` is all that it needs.


# %%
def work(worker: int, weights: dict[str, torch.Tensor], codec: Centroids | Dense) -> bytes:
    mine = model()
    mine.load_state_dict(weights)
    optimiser = torch.optim.Adam(mine.parameters(), lr=5e-3)
    inputs, labels = data(1 + worker)
    for _ in range(30):
        optimiser.zero_grad()
        nn.functional.cross_entropy(mine(inputs), labels).backward()
        optimiser.step()
    return encode(mine, codec).data


# %% [markdown]
# ## The server
# What arrives is checked as a whole before anything is made of it, and refused with a `PayloadError` if no encoder can
# have made it. Then it is added straight from its packed bytes: no worker's model is ever held decoded.


# %%
def serve(codec: Centroids | Dense) -> tuple[float, int]:
    """Return the accuracy in the end, and the bytes of a message."""
    ours = model()
    schema = Schema.of(ours)  # which tensors travel
    for _ in range(ROUNDS):
        merged = Accumulator.zeros(schema)
        for worker in range(WORKERS):
            message = work(worker, ours.state_dict(), codec)
            accumulate(Payload.parse(message, schema), 1, into=merged)
        merged.write_mean(ours)
    inputs, labels = data(0)
    return float((ours(inputs).argmax(1) == labels).float().mean()), len(message)


# %% [markdown]
# ## What it costs
# 16 centroids and 4 bits a weight do as well as whole weights here, with messages of about a sixth of the size.

# %%
for name, codec in {"float32": Dense(), "float16": Dense("float16"), "16 centroids": Centroids(clusters=16)}.items():
    accuracy, size = serve(codec)
    print(f"{name:12}  accuracy {accuracy:.1%}  {size:6,} bytes a message")

# %%
damaged = bytearray(encode(model(), Centroids(clusters=16)).data)
damaged[100] ^= 1
try:
    Payload.parse(bytes(damaged), Schema.of(model()))
except PayloadError as error:
    print(f"one bit changed on the way: {error}")
