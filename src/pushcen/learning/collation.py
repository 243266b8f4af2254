"""Samples become a batch: what the model takes of them, its targets, and texts of many lengths, padded."""

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import default_collate

from pushcen.errors import TaskError
from pushcen.learning.mistakes import form_of
from pushcen.learning.noise import GENERATOR
from pushcen.learning.outputs import IGNORED

Batch = tuple[Any, Any]
Collate = Callable[[list[Any]], Any]

_log = logging.getLogger("pushcen")
_LABELS = ("labels", "label", "label_ids")  # what the targets are called in samples that are dicts
_IDS = ("input_ids", "decoder_input_ids")
_PADDING = {"attention_mask": 0, "decoder_attention_mask": 0, "token_type_ids": 0, "position_ids": 0, "labels": IGNORED}


class Collation:
    """Makes batches, `(inputs, targets)`, of lists of samples: pairs, or dicts whose `labels` are the targets.

    >>> class Reader(nn.Module):
    ...     def forward(self, input_ids, attention_mask): ...
    >>> texts = [{"input_ids": [5, 6, 7], "title": "A", "label": 1}, {"input_ids": [8], "title": "B", "label": 0}]
    >>> inputs, targets = Collation(Reader()).batch(texts, "the data")
    >>> inputs["input_ids"].tolist(), inputs["attention_mask"].tolist(), targets.tolist()
    ([[5, 6, 7], [8, 0, 0]], [[1, 1, 1], [1, 0, 0]], [1, 0])
    """

    def __init__(self, model: nn.Module, collate: Collate | None = None, *, brings_loss: bool = False) -> None:
        model = model.get_base_model() if hasattr(model, "get_base_model") else model  # type: ignore[operator] # of peft
        try:
            parameters = inspect.signature(model.forward).parameters
        except (TypeError, ValueError):  # scripted, say
            parameters = inspect.signature(lambda **inputs: inputs).parameters
        theirs = hasattr(model, "main_input_name")  # transformers: other keywords are options, and no columns
        self._any = not theirs and any(one.kind is one.VAR_KEYWORD for one in parameters.values())
        self._named = frozenset(parameters)
        self._pad = _whole(model, "pad_token_id") or 0
        self._brings_loss = brings_loss
        self._left_out: set[str] = set()
        self.collate = collate
        self.labels = "labels" in self._named
        """Whether the model takes labels, and may return a loss of its own."""
        self.longest = _longest(model)
        """How many tokens a text may have, if the model says so."""

    def batch(self, some: list[Any], what: str, collate: Collate | None = None) -> Batch:
        """Make a batch, by `collate` if it is given; `what` names the data that the samples are of."""
        if collate is not None:
            theirs = str(getattr(collate, "__module__", "")).startswith("transformers.")  # takes no texts
            if theirs and isinstance(some[0], Mapping):
                taken = self._columns(some[0], what)
                some = [{key: _column(one, key, what) for key in taken} for one in some]
            return self._divided(collate(some), f"the collate function gave for {what}")
        if isinstance(some[0], Mapping):
            return self._divided(self._padded(some, what), f"{what} has samples such as")
        if not isinstance(some[0], tuple | list) or len(some[0]) != 2:
            raise TaskError(f"{what} has samples such as {form_of(some[0])}: must be pairs, (input, target), or dicts")
        try:
            inputs, targets = default_collate(some)
        except (TypeError, ValueError, RuntimeError, KeyError) as error:
            odd = next((one for one in some if form_of(one) != form_of(some[0])), some[0])
            raise TaskError(
                f"{what} has samples that make no batch, such as {form_of(some[0])} and {form_of(odd)}: "
                "must be tensors or numbers, all of one shape; pad what has many lengths, or give the Task a collate"
            ) from error
        return inputs, targets

    def check_length(self, tokens: int, what: str) -> None:
        """Refuse a text with more tokens than the model takes; `what` names it."""
        if self.longest is not None and tokens > self.longest:
            raise TaskError(
                f"{what} has {tokens} tokens, and the model takes {self.longest}: must be cut or divided, by "
                f"truncation=True, max_length={self.longest} of the tokenizer, say"
            )

    def _columns(self, sample: Mapping[str, Any], what: str) -> list[str]:
        """Return what the model takes of a sample, and its labels; what is left out is logged once."""
        label = next((name for name in _LABELS if name in sample), None)
        taken = [key for key in sample if key not in _LABELS and (self._any or key in self._named)]
        if not taken:
            raise TaskError(
                f"{what} has samples such as {form_of(dict(sample))}: must be pairs, (input, target), or dicts of what "
                f"the model takes, {', '.join(sorted(self._named)) or 'which is nothing'}, with labels"
            )
        taken += [] if label is None else [label]
        if fresh := [key for key in sample if key not in taken and key not in self._left_out]:
            self._left_out.update(fresh)
            _log.info("%s: left out %s, which the model does not take", what, ", ".join(fresh))
        return taken

    def _padded(self, some: list[Any], what: str) -> dict[str, torch.Tensor]:
        """Stack each column, padded on the right to the longest where they are tokens."""
        found = {}
        for key in self._columns(some[0], what):
            name = "labels" if key in _LABELS else key
            found[name] = self._stacked(name, [_column(one, key, what) for one in some], what)
        lengths = [len(one["input_ids"]) for one in some] if "input_ids" in found else []
        if "attention_mask" in self._named and "attention_mask" not in found and len(set(lengths)) > 1:
            found["attention_mask"] = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
        return found

    def _stacked(self, name: str, values: list[Any], what: str) -> torch.Tensor:
        try:
            tensors = [torch.as_tensor(value) for value in values]
        except (TypeError, ValueError, RuntimeError) as error:
            raise TaskError(
                f"{what} has samples whose {name} is no tensor, such as {form_of(values[0])}: must be numbers; "
                "leave it out, or give the Task a collate"
            ) from error
        if name in _IDS and not all(tensor.numel() for tensor in tensors):
            raise TaskError(f"{what} has a sample whose {name} are empty: must have a token at least")
        if len({tensor.shape for tensor in tensors}) == 1:
            return torch.stack(tensors)
        padding = self._pad if name in _IDS else _PADDING.get(name)
        if padding is None or any(tensor.dim() != 1 for tensor in tensors):
            odd = next(tensor for tensor in tensors if tensor.shape != tensors[0].shape)
            raise TaskError(
                f"{what} has samples whose {name} are {form_of(tensors[0])} and {form_of(odd)}: must be of one shape; "
                "only tokens, their masks and labels are padded; pad it, or give the Task a collate"
            )
        return pad_sequence(tensors, batch_first=True, padding_value=padding)

    def _divided(self, made: Any, what: str) -> Batch:
        """Return a batch as inputs and targets; `what` begins the error."""
        if isinstance(made, tuple | list) and len(made) == 2:
            inputs, targets = made
            inputs = dict(inputs) if isinstance(inputs, Mapping) else inputs
            self._check_batch(inputs, what)
            return inputs, targets
        if not isinstance(made, Mapping):
            raise TaskError(f"{what} {form_of(made)}: must be a pair, (inputs, targets), or a dict with labels")
        inputs = {key: self._stacked(key, one, what) if isinstance(one, list) else one for key, one in made.items()}
        name = next((name for name in _LABELS if name in inputs), None)
        targets = None if name is None else inputs.pop(name)
        if name is None and not self.labels and not self._brings_loss:
            raise TaskError(f"{what} {form_of(inputs)}: must be pairs, (input, target), or dicts with labels")
        self._check_batch(inputs, what)
        return inputs, targets

    def _check_batch(self, inputs: Any, what: str) -> None:
        if (ids := _ids(inputs, 2)) is not None:
            self.check_length(ids.shape[1], f"{what} {form_of(inputs)}: a text")


def _column(sample: Mapping[str, Any], key: str, what: str) -> Any:
    if key not in sample:
        raise TaskError(f"{what} has samples with {key} and others without it, {form_of(dict(sample))}: must be alike")
    return sample[key]


def _whole(model: nn.Module, name: str) -> int | None:
    """Return a whole number of a model's config, if it is there."""
    value = getattr(getattr(model, "config", None), name, None)
    return value if type(value) is int and value >= 0 else None


def _longest(model: nn.Module) -> int | None:
    """Return how many tokens a model takes; those whose positions begin behind the padding's number take fewer."""
    length = _whole(model, "max_position_embeddings") or _whole(model, "n_positions")
    if length is None:
        return None
    words = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None  # type: ignore[operator]
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module is not words and module.num_embeddings == length:
            length -= 0 if module.padding_idx is None else module.padding_idx + 1
            break
    return length


def _ids(inputs: Any, dimensions: int) -> torch.Tensor | None:
    """Return the tokens among a model's inputs, if there are any."""
    ids = inputs.get("input_ids") if isinstance(inputs, Mapping) else inputs
    known = isinstance(ids, torch.Tensor) and ids.dim() == dimensions and not ids.is_floating_point()
    return ids if known else None


def longest_text(samples: Any) -> tuple[int, int]:
    """Return the number and the tokens of the longest sample; where samples have no tokens, zeros.

    >>> longest_text([{"input_ids": [5, 6], "labels": 1}, {"input_ids": [5, 6, 7], "labels": 0}])
    (1, 3)
    """
    with GENERATOR, torch.random.fork_rng(devices=[]):  # samples may be made at random
        return max(_lengths(samples), key=lambda found: found[1], default=(0, 0))


def _lengths(samples: Any) -> Iterator[tuple[int, int]]:
    if isinstance(samples, tuple):
        if (ids := _ids(samples[0], 2)) is not None:
            yield 0, ids.shape[1]
    elif hasattr(samples, "column_names"):  # of the datasets library, which is faster by columns
        for begin in range(0, len(samples), 1000):
            for at, ids in enumerate(samples[begin : begin + 1000].get("input_ids", ())):
                yield begin + at, len(ids)
    else:
        for at in range(len(samples)):
            sample = samples[at]
            inputs = sample[0] if isinstance(sample, tuple | list) and len(sample) == 2 else sample
            ids = inputs.get("input_ids") if isinstance(inputs, Mapping) else _ids(inputs, 1)
            if ids is None:
                return
            yield at, len(ids)
