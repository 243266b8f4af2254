# %% [markdown]
# # A language model, from texts that nobody hands out
# Eight clients have chapters of a handbook each (Python's own, which comes with it) and train a small GPT-2 together,
# byte by byte. Nothing is downloaded:
#
#     python examples/language_model.py
#     pushcen simulate --task examples/language_model.py:task --clients 8
#
# The first takes about two minutes. It needs transformers: `pip install 'pushcen[hf]'`. A pretrained model is taken by
# its name on the Hugging Face hub, or from a folder, with its own tokens:
#
#     MODEL=distilgpt2 pushcen simulate --task examples/language_model.py:task --set training.lr=5e-5

# %%
import copy
import math
import os
from functools import cache
from pydoc_data.topics import topics

import pushcen

MODEL = os.environ.get("MODEL", "")
CLIENTS = int(os.environ.get("CLIENTS", "8"))
HORIZON = float(os.environ.get("HORIZON", "20"))
WIDTH = int(os.environ.get("WIDTH", "64"))
LENGTH = 64  # tokens of a sample
MOST = int(os.environ.get("SAMPLES", "80"))  # of a client

# %% [markdown]
# ## The model
# GPT-2 with two layers: its tokens are bytes, so it needs no tokenizer. `task` makes it anew for each client, and all
# start from the same weights. A pretrained one is loaded once and copied.


# %%
def small_model():
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": 256, "n_positions": LENGTH, "n_embd": WIDTH, "n_layer": 2, "n_head": 4}
    return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=None, eos_token_id=None, loss_type="ForCausalLM"))


@cache
def pretrained():
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(MODEL), AutoTokenizer.from_pretrained(MODEL)


# %% [markdown]
# ## The data
# A sample is a dict, as in `datasets`: tokens and labels, which are the same tokens; the model shifts them itself. The
# last piece of a chapter is shorter. pushcen pads it, and padding counts in no loss.


# %%
def pieces(text: str) -> list[dict]:
    tokens = pretrained()[1](text)["input_ids"] if MODEL else list(text.encode("utf-8"))
    cut = [tokens[begin : begin + LENGTH] for begin in range(0, len(tokens), LENGTH)]
    return [{"input_ids": one, "labels": one} for one in cut if len(one) > 1]


def task(client: int, clients: int) -> pushcen.Task:
    chapters = [text for _, text in sorted(topics.items()) if len(text) > 2000]
    mine = [piece for chapter in chapters[client::clients] for piece in pieces(chapter)][:MOST]
    model = copy.deepcopy(pretrained()[0]) if MODEL else small_model()
    train = [one for at, one in enumerate(mine) if at % 5]
    return pushcen.Task(model, train=train, test=mine[::5], metric=["perplexity", "accuracy"])


# %% [markdown]
# ## Together and alone
# The model returns its loss, so the task brings none: it is a mean over all tokens that are no padding. Perplexity is
# its exponential, here how many bytes it hesitates between; before training, that is 256.

# %%
if __name__ == "__main__":
    world = {"clients": CLIENTS, "horizon": HORIZON, "training": {"batch": 8, "lr": 3e-3}, "evaluation": {"every": 5}}
    results = pushcen.compare(["pushcen", "async-dfedavg", "independent"], world, task=task)
    for name, result in results.items():
        loss, sent = result.frame["loss"].iloc[-1], result.summary["traffic"]["bytes_sent"]
        print(f"{name:14} perplexity {math.exp(loss):6.2f}, sent {sent:,} bytes")
