"""Low-rank adapters (LoRA): a layer's update is a product B A of two narrow matrices, and which of them trains."""

from collections.abc import Collection

from torch import nn

from pushcen.errors import TaskError

LORA_A = ("lora_A", "lora_embedding_B")
"""What `peft` calls the half of an adapter that starts at random, in linear layers and embeddings; the other is 0."""


def freeze_lora_a(model: nn.Module, names: Collection[str] = LORA_A) -> list[str]:
    """Freeze A of each adapter, so that B alone trains and travels (FFA-LoRA); return the names of what it froze.

    The mean of products B A is the product of the means only if all clients have the same A. It is drawn while the task
    function runs, and so the same for all. `names` are those of the modules or parameters that are, or hold, an A.

    Sun et al.: Improving LoRA in Privacy-preserving Federated Learning, https://arxiv.org/abs/2403.12313

    >>> model = nn.ModuleDict({"lora_A": nn.Linear(64, 4, bias=False), "lora_B": nn.Linear(4, 64, bias=False)})
    >>> freeze_lora_a(model), [name for name, one in model.named_parameters() if one.requires_grad]
    (['lora_A.weight'], ['lora_B.weight'])
    >>> freeze_lora_a(nn.Linear(2, 1))
    Traceback (most recent call last):
    pushcen.errors.TaskError: no parameter of the model is called lora_A or lora_embedding_B: names= must say what ...
    """
    found = {name: one for name, one in model.named_parameters() if not set(names).isdisjoint(name.split("."))}
    if not found:
        called = " or ".join(names)
        raise TaskError(f"no parameter of the model is called {called}: names= must say what A is called in it")
    for name, parameter in found.items():
        if not parameter.any():
            raise TaskError(f"{name} is zero: what is frozen must not be, or nothing would come of training the other")
        parameter.requires_grad_(False)
    return list(found)
