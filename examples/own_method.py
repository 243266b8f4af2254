# %% [markdown]
# # A method of your own
# A method is a frozen dataclass whose fields are its options. Its `rules` say what may wait, what it weighs and who
# gets it; its `update` is what happens around training, and what is sent. This one takes the rules of push-sum as they
# are. Its clients clip their gradients and send half-precision weights:
#
#     python examples/own_method.py
#
# It takes about a minute. docs/adding-a-method.md has a method that brings rules of its own, and all hooks.

# %%
import os
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

import pushcen
from pushcen.codec import Dense
from pushcen.learning import Update
from pushcen.methods import PushSum

CLIENTS = int(os.environ.get("CLIENTS", "10"))
HORIZON = float(os.environ.get("HORIZON", "10"))


# %% [markdown]
# ## The learner's side
# Hooks that a compute event calls; those that are left out do nothing.


# %%
class ClippedUpdate(Update):
    """Bounds the norm of each step's gradient, and sends float16."""

    def __init__(self, norm: float) -> None:
        self.norm = norm

    def start(self, model: nn.Module) -> None:
        self.parameters = list(model.parameters())

    def before_step(self) -> None:
        torch.nn.utils.clip_grad_norm_(self.parameters, self.norm)

    def end(self) -> None:
        self.parameters = []

    def codecs(self) -> dict:
        return {0: Dense("float16")}


# %% [markdown]
# ## The method


# %%
@dataclass(frozen=True)
class Clipped(PushSum):
    """Push-sum with clipped gradients and half-precision messages."""

    name: ClassVar[str] = "clipped"

    norm: float = 1.0

    def update(self) -> Update:
        return ClippedUpdate(self.norm)


# %% [markdown]
# ## Beside others, in the same world
# It goes wherever a method's name goes: as `Clipped(norm=0.5)` in Python, and in this folder as
# `pushcen simulate --method own_method:Clipped --set method.norm=0.5`. All methods here see the same data, the same
# first weights and the same join times.
#
# Expect some points more than without working together (`independent`), and half the bytes of push-sum in a message.

# %%
if __name__ == "__main__":
    late = {"delayed": 0.2, "earliest": 1, "latest": HORIZON / 2}
    world = {"clients": CLIENTS, "horizon": HORIZON, "participation": late}
    results = pushcen.compare([Clipped(norm=0.5), "push-sum", "independent"], world)
    print(results.table.to("markdown"))
    mine, theirs = list(results.values())[:2]
    sizes = [result.summary["message_bytes"]["0"] for result in (mine, theirs)]
    print(f"a message: {sizes[0]:,} bytes, of push-sum {sizes[1]:,}")
