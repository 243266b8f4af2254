"""Samples that are dicts, and models that return a loss: with no library but PyTorch and datasets."""

import collections
import logging
import types

import datasets
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from pushcen.errors import DivergenceError, TaskError
from pushcen.learning import CentroidUpdate, Learner, Task, TrainingOptions, Work
from pushcen.learning.collation import Collation
from pushcen.learning.outputs import opened

WORDS, TOKENS, LONGEST = 11, 7, 12


class Reader(nn.Module):
    """Averages the embeddings of a text's words."""

    def __init__(self, classes=3):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.out = nn.Embedding(WORDS, 6), nn.Linear(6, classes)
        self.seen = []

    def forward(self, input_ids, attention_mask):
        self.seen.append((input_ids, attention_mask))
        kept = attention_mask[..., None].float()
        return self.out((self.words(input_ids) * kept).sum(1) / kept.sum(1))


class Judge(Reader):
    """The same, with a loss of its own; its config says how many words it takes."""

    def __init__(self, form=lambda loss, logits: {"loss": loss, "logits": logits}):
        super().__init__()
        self.form, self.config = form, types.SimpleNamespace(max_position_embeddings=LONGEST, pad_token_id=4)

    def forward(self, input_ids, attention_mask, labels=None):
        logits = super().forward(input_ids, attention_mask)
        return self.form(None if labels is None else 2 * F.cross_entropy(logits, labels), logits)


class Writer(nn.Module):
    """A language model that knows one word of context, and shifts its labels like those of transformers, or not."""

    def __init__(self, shifts=True):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.out, self.shifts = nn.Embedding(WORDS, 6), nn.Linear(6, WORDS), shifts

    def forward(self, input_ids, labels=None):
        logits = self.out(self.words(input_ids))
        if self.shifts:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        else:
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return types.SimpleNamespace(loss=loss, logits=logits)


def texts(count=20, label="labels", shortest=1, seed=0):
    draw = np.random.default_rng(seed)
    lengths = draw.integers(shortest, TOKENS + 1, count)
    return [
        {"input_ids": (ids := draw.integers(1, WORDS, n).tolist()), "attention_mask": [1] * n, label: sum(ids) % 3}
        for n in lengths
    ]


def sentences(count=20, shortest=2, seed=0):
    return [{"input_ids": one["input_ids"], "labels": one["input_ids"]} for one in texts(count, "x", shortest, seed)]


def learner_of(model, train, test=None, batch=8, **task):
    training = TrainingOptions(batch=batch, lr=0.01)
    return Learner(Task(model, train, test, **task), CentroidUpdate(4), training, client="client 7", seed=3)


def step(learner):
    return learner.step(Work(1, [])).payloads[0].data


TEXTS = texts()
EQUAL = texts(shortest=TOKENS)
COLUMNS = datasets.Dataset.from_list(TEXTS)
FORMS = {
    "a dataset": COLUMNS,
    "with tensors": COLUMNS.with_format("torch"),
    "with arrays": COLUMNS.with_format("numpy"),
    "some of a dataset": datasets.Dataset.from_list(texts(5, seed=9) + TEXTS).select(range(5, 25)),
    "label": texts(label="label"),
    "without masks": [{key: one[key] for key in ("input_ids", "labels")} for one in TEXTS],
    "two labels": [{**one, "label": 2, "label_ids": 5} for one in TEXTS],
    "a subset of a dataset": torch.utils.data.Subset(COLUMNS, range(20)),
    "user dicts": [collections.UserDict(one) for one in TEXTS],
    "arrays": [{key: np.array(value) for key, value in one.items()} for one in TEXTS],
    "other columns": COLUMNS.add_column("text", ["a"] * 20).add_column("idx", list(range(20))),
    "made when asked for": datasets.Dataset.from_dict({"n": range(20)}).with_transform(
        lambda some: {key: [TEXTS[n][key] for n in some["n"]] for key in TEXTS[0]}
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_dicts_of_any_form_train_and_score_alike(form):
    expected, learner = (learner_of(Reader(), samples, samples) for samples in (TEXTS, FORMS[form]))
    assert step(learner) == step(expected)
    assert learner.evaluate() == expected.evaluate()


def test_dicts_train_as_pairs_of_the_same_do():
    pairs = [({key: torch.tensor(one[key]) for key in ("input_ids", "attention_mask")}, one["labels"]) for one in EQUAL]
    expected, learner = (learner_of(Reader(), samples, samples) for samples in (pairs, EQUAL))
    assert step(learner) == step(expected)
    assert learner.evaluate() == expected.evaluate()


def test_tokens_are_padded_with_the_models_own_and_masked():
    learner = learner_of(model := Judge(), [{"input_ids": [1, 2, 3], "labels": 0}, {"input_ids": [5], "labels": 1}])
    step(learner)
    ids, mask = model.seen[0]
    assert sorted(ids.tolist()) == [[1, 2, 3], [5, 4, 4]]
    assert sorted(mask.tolist()) == [[1, 0, 0], [1, 1, 1]]


def test_labels_of_many_lengths_are_padded_with_what_no_loss_counts():
    inputs, labels = Collation(Writer()).batch(
        [{"input_ids": [1, 2], "labels": [1, 2]}, {"input_ids": [3], "labels": [3]}], ""
    )
    assert labels.tolist() == [[1, 2], [3, -100]]
    assert list(inputs) == ["input_ids"]


def test_the_log_names_the_columns_that_are_left_out_once(caplog):
    with caplog.at_level(logging.INFO, "pushcen"):
        step(learner_of(Reader(), FORMS["other columns"]))
    found = [record.getMessage() for record in caplog.records]
    assert found == ["the training data of client 7: left out text, idx, which the model does not take"]


def as_tuple(loss, logits):
    return logits if loss is None else (loss, logits)


class HasLossMethod(torch.Tensor):
    """Outputs that can compute a loss are not outputs that have one."""

    def loss(self): ...


def test_outputs_with_a_function_called_loss_are_left_as_they_are():
    outputs = torch.zeros(2).as_subclass(HasLossMethod)
    assert opened(outputs)[0] is outputs


OUTPUTS = {
    "a dict": lambda loss, logits: {"loss": loss, "logits": logits},
    "an object": lambda loss, logits: types.SimpleNamespace(loss=loss, logits=logits),
    "a named tuple": lambda loss, logits: collections.namedtuple("Out", "loss logits")(loss, logits),
    "a tuple": as_tuple,
}


@pytest.mark.parametrize("form", OUTPUTS)
def test_the_loss_that_a_model_returns_is_the_loss_and_its_logits_are_scored(form):
    expected = learner_of(Reader(), TEXTS, TEXTS, loss=lambda o, y: 2 * F.cross_entropy(o, y))
    learner = learner_of(Judge(OUTPUTS[form]), TEXTS, TEXTS)
    assert step(learner) == step(expected)
    score, other = learner.evaluate(), expected.evaluate()
    assert score.metric == other.metric
    assert score.loss == pytest.approx(other.loss, rel=1e-6)


def test_pairs_train_a_model_with_a_loss_of_its_own_too():
    pairs = [({key: torch.tensor(one[key]) for key in one if key != "labels"}, one["labels"]) for one in EQUAL]
    assert step(learner_of(Judge(), pairs)) == step(learner_of(Judge(), EQUAL))


@pytest.mark.parametrize("form", ["a dict", "an object"])
def test_a_loss_of_the_users_counts_before_the_models_and_gets_logits(form):
    def loss(outputs, targets):
        return F.cross_entropy(outputs, targets)

    learner = learner_of(Judge(OUTPUTS[form]), TEXTS, loss=loss)
    assert step(learner) == step(learner_of(Reader(), TEXTS))


def counted(samples, model):
    """The loss and the hits of each token but the first, with plain loops."""
    losses, hits = [], []
    for one in samples:
        logits = model.out(model.words(torch.tensor(one["input_ids"])))
        for at in range(1, len(one["labels"])):
            if one["labels"][at] != -100:
                losses.append(F.cross_entropy(logits[at - 1], torch.tensor(one["labels"][at])).item())
                hits.append(logits[at - 1].argmax().item() == one["labels"][at])
    return np.mean(losses), np.mean(hits)


@pytest.mark.parametrize("batch", [3, 8, 32])
def test_a_language_model_is_scored_by_token_whatever_the_batches(batch):
    samples = sentences(shortest=1)
    samples[3] = {"input_ids": [1, 2, 3, 4], "labels": [-100, -100, 3, 4]}
    samples[4] = {"input_ids": [1, 2, 3], "labels": [-100] * 3}
    learner = learner_of(Writer(), sentences(), samples, batch=batch)
    for _ in range(3):
        step(learner)
    score, (loss, hits) = learner.evaluate(), counted(samples, learner.model)
    assert score.loss == pytest.approx(loss, rel=1e-5)
    assert score.metric == pytest.approx(hits)
    assert score.samples == len(samples)


def test_a_model_that_does_not_shift_is_scored_where_its_labels_are():
    samples = [{"input_ids": one["input_ids"][:-1], "labels": one["input_ids"][1:]} for one in sentences()]
    learner = learner_of(Writer(shifts=False), samples, samples)
    step(learner)
    score, (loss, hits) = learner.evaluate(), counted(sentences(), learner.model)
    assert score.loss == pytest.approx(loss, rel=1e-5)
    assert score.metric == pytest.approx(hits)


def test_where_no_label_counts_there_is_no_score():
    nothing = [{"input_ids": [1, 2], "labels": [-100, -100]}] * 3
    score = learner_of(Writer(), sentences(), nothing).evaluate()
    assert score.samples == 0
    assert score.loss != score.loss


def test_a_batch_where_no_label_counts_is_an_error_that_says_so():
    with pytest.raises(DivergenceError, match=r"client 7: all labels of a batch are -100, which no loss counts"):
        step(learner_of(Writer(), [{"input_ids": [1, 2], "labels": [-100, -100]}] * 8))


def padded(some):
    longest = max(len(one["input_ids"]) for one in some)
    ids = [one["input_ids"] + [0] * (longest - len(one["input_ids"])) for one in some]
    mask = [one["attention_mask"] + [0] * (longest - len(one["input_ids"])) for one in some]
    return collections.UserDict(
        input_ids=torch.tensor(ids),
        attention_mask=torch.tensor(mask),
        labels=torch.tensor([one["labels"] for one in some]),
    )


def test_a_collate_function_may_make_a_mapping_with_labels():
    assert step(learner_of(Reader(), TEXTS, collate=padded)) == step(learner_of(Reader(), TEXTS))


LONG = [*TEXTS[:12], {"input_ids": [1] * 15, "attention_mask": [1] * 15, "labels": 0}]
TOO_LONG = {
    "dicts": LONG,
    "a dataset": datasets.Dataset.from_list(LONG),
    "pairs": [({"input_ids": one["input_ids"]}, one["labels"]) for one in LONG],
    "tensors": ({"input_ids": torch.ones(13, 15).long()}, torch.zeros(13).long()),
    "pairs of tensors": [(torch.ones(15).long(), 0)] * 8,
    "one tensor": (torch.ones(13, 15).long(), torch.zeros(13).long()),
    "a loader": torch.utils.data.DataLoader(LONG),
}


@pytest.mark.parametrize("form", TOO_LONG)
def test_a_text_longer_than_the_model_takes_is_refused_before_anything_is_trained(form):
    text = r"sample \d+ of the {} data of client 7 has 15 tokens, and the model takes 12: must be cut or divided"
    with pytest.raises(TaskError, match=text.format("training")):
        learner_of(Judge(), TOO_LONG[form])
    with pytest.raises(TaskError, match=text.format("test")):
        learner_of(Judge(), TEXTS, TOO_LONG[form])


def test_a_collate_function_may_cut_what_is_too_long():
    def cut(some):
        return padded([{key: v if key == "labels" else v[:LONGEST] for key, v in one.items()} for one in some])

    step(learner_of(Judge(), LONG, collate=cut))
    text = r"the training data of client 7 .*has 15 tokens, and the model takes 12"
    with pytest.raises(TaskError, match=text):
        learner_of(Judge(), LONG, collate=padded)
    with pytest.raises(TaskError, match=text):
        learner_of(Judge(), TOO_LONG["tensors"], collate=torch.utils.data.default_collate)


def test_looking_for_long_texts_draws_from_no_stream():
    class Drawn:
        def __len__(self):
            return 8

        def __getitem__(self, i):
            return TEXTS[torch.randint(20, ())]

    before = torch.get_rng_state()
    learner_of(Judge(), Drawn())
    assert torch.equal(torch.get_rng_state(), before)


def without(key):
    return [{name: value for name, value in one.items() if name != key} for one in TEXTS[:8]]


REFUSED = {
    "no labels": (
        Reader,
        without("labels"),
        r"such as {input_ids: .*}: must be pairs, \(input, target\), or dicts with lab",
    ),
    "no labels for a loss": (Judge, without("labels"), r"samples have no labels: must have them.*collate"),
    "nothing to take": (
        Reader,
        [{"x": 1.0, "labels": 1}] * 8,
        "of what the model takes, attention_mask, input_ids, with lab",
    ),
    "a text": (Reader, [{**one, "input_ids": "abc"} for one in TEXTS[:8]], "whose input_ids is no tensor, such as str"),
    "no value": (Reader, [{**one, "labels": None} for one in TEXTS[:8]], "whose labels is no tensor, such as NoneType"),
    "nothing": (
        Reader,
        [{**one, "input_ids": []} for one in TEXTS[:8]],
        "whose input_ids are empty: must have a token",
    ),
    "a label at times": (Reader, [*TEXTS[:7], *without("labels")[:1]], "samples with labels and others without it"),
    "two dimensions": (
        Reader,
        [{"input_ids": torch.ones(2, 3 + at % 2).long(), "labels": 0, "attention_mask": 1} for at in range(8)],
        r"input_ids are \[2, [34]\] int64 and \[2, [34]\] int64: must be of one shape",
    ),
}


@pytest.mark.parametrize("form", REFUSED)
def test_dicts_that_make_no_batch_are_refused_by_what_is_wrong(form):
    model, samples, text = REFUSED[form]
    with pytest.raises(TaskError, match=rf"client 7.*{text}"):
        step(learner_of(model(), samples))


@pytest.mark.parametrize("made", [None, 5, (1, 2, 3), "text"])
def test_a_collate_function_that_makes_no_batch_is_refused(made):
    with pytest.raises(
        TaskError, match=r"the collate function gave for the training data of client 7 .*must be a pair"
    ):
        step(learner_of(Reader(), TEXTS, collate=lambda some: made))
    with pytest.raises(TaskError, match="client 7: the task's collate is 5: must be a function"):
        learner_of(Reader(), TEXTS, collate=5)
