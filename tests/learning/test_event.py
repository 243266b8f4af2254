"""One compute event of every method, held against the equations in `plain.py`.

Tolerances: the package works in float32, the twin in float64. A merge of 8 models, a handful of steps and a table's
mean each round a few times at 6e-8 of values below about 2, so 2e-6 is what honest rounding needs; Adam divides by the
root of a second moment, which makes more of a small gradient's rounding, and gets 2e-5. A wrong weight, anchor, mask
or formula is off by 1e-3 and more.
"""

import numpy as np
import pytest
import torch

from pushcen.codec import decode
from pushcen.learning import Model, TrainingOptions, Work
from pushcen.protocol import UNIT
from tests.learning.plain import Plain, PlainFragments
from tests.learning.tasks import tiny_data, tiny_learner, tiny_model

TIGHT, ADAM = 2e-6, 2e-5
SGD = TrainingOptions(epochs=2, batch=8, optimiser="sgd", lr=0.1)
WEIGHTS = [UNIT // 3, 5 * UNIT // 7, UNIT // 11, 2 * UNIT]


class Pair:
    """A learner and its twin, which go through the same events."""

    def __init__(self, method, seed=0, training=SGD, number=torch.float32, **options):
        model, data = tiny_model(seed).to(number), (tiny_data(seed)[0].to(number), tiny_data(seed)[1])
        self.real = tiny_learner(method, seed, model, data, training, **options)
        self.tolerance = TIGHT if training.optimiser == "sgd" else ADAM
        kind = PlainFragments if method == "divshare" else Plain
        if method == "pushcen":
            options["masked"] = options.pop("mask", True)
            options.setdefault("clusters", 32)
        self.twin = kind(model, data, training, seed=seed, **options)

    def close(self, real, plain):
        np.testing.assert_allclose(np.asarray(real.detach()), np.asarray(plain), rtol=0, atol=self.tolerance)

    def send(self):
        """Encode with both; what the real one's receivers will read is what the twin says."""
        return self.sent(self.real.encode())

    def sent(self, payloads):
        tensors, tables = self.twin.encode()
        if 0 in payloads:
            for name, tensor in decode(payloads[0]).items():
                self.close(tensor, tensors[name])
            assert payloads[0].tables().keys() == tables.keys()
            for name, table in payloads[0].tables().items():
                self.close(table, tables[name])
        return payloads, (tensors, tables)

    def event(self, own=UNIT, messages=(), folds=(), adopts=False):
        """`messages` and `folds`: (weight, part, what `send` gave)."""
        for weight, part, (payloads, _) in folds:
            self.real.fold(weight, part, payloads)
        self.real.take()
        outcome = self.real.step(Work(own, [Model(w, part, sent) for w, part, (sent, _) in messages], adopts))
        if isinstance(self.twin, PlainFragments):
            plain = [(part, twin) for _, part, (_, twin) in [*folds, *messages]]
        else:
            plain = [(weight, twin) for weight, _, (_, twin) in [*folds, *messages]]
        loss = self.twin.event(own, plain, adopts)
        assert outcome.loss == pytest.approx(loss, abs=self.tolerance)
        assert outcome.density == pytest.approx(self.twin.kept, abs=1e-12)
        for (name, mine), plain in zip(self.real.model.named_parameters(), self.twin.parameters.values(), strict=True):
            assert mine.shape == plain.shape, name
            self.close(mine, plain.detach())
        if self.twin.clusters:
            dictionary = self.real.update.dictionary
            assert dictionary.keys() == self.twin.dictionary.keys()
            for name, table in dictionary.items():
                self.close(table, self.twin.dictionary[name])
        self.sent(outcome.payloads)


def neighbours(method, count=4, training=SGD, **options):
    """What some others, of different models, send."""
    return [Pair(method, seed, training, **options).send() for seed in range(10, 10 + count)]


def weighed(sent, part=0):
    return [(weight, part, one) for weight, one in zip(WEIGHTS, sent, strict=False)]


PUSHCEN = [
    {},
    {"strength": 0.0},
    {"mask": False},
    {"feedback": False},
    {"strength": 0.0, "mask": False},
    {"strength": 2.0, "scale": "mean"},
    {"strength": 2.0, "scale": "mean", "mask": False},
    {"clusters": 5},
]


def name_of(options):
    return ", ".join(f"{key}={value}" for key, value in options.items()) or "as shipped"


def shipped(options, profile="default"):
    """The paper's rules know no feedback."""
    return {"clusters": 8, "profile": profile, "feedback": profile == "default", **options}


@pytest.mark.parametrize("profile", ["default", "paper"])
@pytest.mark.parametrize("options", PUSHCEN, ids=name_of)
class TestPushCenIsItsEquations:
    def test_with_no_message_yet_the_anchor_is_the_own_table(self, options, profile):
        pair = Pair("pushcen", **shipped(options, profile))
        pair.event()
        assert pair.real.update.dictionary == {}

    def test_the_first_messages_make_the_dictionary_and_unequal_masses_weigh(self, options, profile):
        sent = neighbours("pushcen", **shipped(options, profile))
        pair = Pair("pushcen", **shipped(options, profile))
        pair.event(UNIT // 2, weighed(sent))

    def test_the_own_dictionary_has_its_say_from_the_second_merge_on(self, options, profile):
        sent = neighbours("pushcen", **shipped(options, profile))
        pair = Pair("pushcen", **shipped(options, profile))
        pair.event(UNIT // 2, weighed(sent[:2]))
        pair.event(UNIT // 5, weighed(sent[2:]))

    def test_what_was_folded_weighs_as_if_it_had_waited(self, options, profile):
        sent = neighbours("pushcen", **shipped(options, profile))
        pair = Pair("pushcen", **shipped(options, profile))
        pair.event(UNIT // 2, weighed(sent[:1]))
        pair.event(UNIT // 5, weighed(sent[2:]), folds=weighed(sent[:2]))
        pair.event(UNIT // 7, folds=weighed(sent[1:3]))

    def test_who_adopts_starts_from_what_came_alone(self, options, profile):
        training = TrainingOptions(epochs=2, batch=8, optimiser="sgd", lr=0.1, momentum=0.9)
        sent = neighbours("pushcen", **shipped(options, profile))
        pair = Pair("pushcen", training=training, **shipped(options, profile))
        pair.event(UNIT, weighed(sent[:2]))
        pair.event(0, weighed(sent[2:]), adopts=True)


OPTIMISERS = [
    TrainingOptions(epochs=2, batch=8, optimiser="sgd", lr=0.1, momentum=0.9, weight_decay=0.01),
    TrainingOptions(epochs=2, batch=8, optimiser="adam", lr=0.01, weight_decay=0.01),
    TrainingOptions(epochs=2, batch=8, optimiser="adamw", lr=0.01, weight_decay=0.1),
]


@pytest.mark.parametrize("profile", ["default", "paper"])
@pytest.mark.parametrize("training", OPTIMISERS, ids=lambda training: training.optimiser)
def test_pushcen_with_any_optimiser_over_three_events_is_its_equations(training, profile):
    sent = neighbours("pushcen", **shipped({}, profile))
    pair = Pair("pushcen", training=training, **shipped({}, profile))
    for own in (UNIT, UNIT // 2, UNIT // 9):
        pair.event(own, weighed(sent))
    memory = pair.real._optimiser.state
    for name, parameter in pair.real.model.named_parameters():
        first = memory[parameter]["momentum_buffer" if training.optimiser == "sgd" else "exp_avg"]
        pair.close(first, pair.twin.memory[name]["m"])


def test_pushcen_in_float64_is_its_equations():
    """The passes that are not compiled for float32; merging and clustering stay in float32."""
    pair = Pair("pushcen", number=torch.float64, clusters=8)
    pair.event(UNIT // 2, weighed(neighbours("pushcen", number=torch.float64, clusters=8)))
    assert {p.dtype for p in pair.real.model.parameters()} == {torch.float64}


DENSE = ["push-sum", "async-dfedavg", "swift", "swift-random", "independent"]


@pytest.mark.parametrize("training", [SGD, *OPTIMISERS], ids=["plain sgd", "sgd", "adam", "adamw"])
@pytest.mark.parametrize("method", DENSE)
def test_dense_methods_are_the_weighted_mean_and_plain_training(method, training):
    sent = neighbours(method, training=training)
    pair = Pair(method, training=training)
    pair.event()
    if method != "independent":
        pair.event(UNIT // 2, weighed(sent))
        pair.event(UNIT // 3, weighed(sent[2:]), folds=weighed(sent[:2]))


def test_divshare_averages_each_coordinate_over_itself_and_the_fragments_that_hold_it():
    sent = neighbours("divshare", parts=5, cut_seed=3)
    pair = Pair("divshare", parts=5, cut_seed=3)
    some = [(UNIT, 1, sent[0]), (UNIT, 2, sent[0]), (UNIT, 2, sent[1]), (UNIT, 2, sent[2]), (UNIT, 5, sent[3])]
    pair.event(UNIT, some)
    pair.event(UNIT, [(UNIT, 4, sent[1])])
    pair.event()


def test_the_reported_loss_has_no_regulariser_in_it():
    whole = TrainingOptions(batch=20)
    pulled, free = (Pair("pushcen", training=whole, clusters=8, mask=False, strength=s).real for s in (50.0, 0.0))
    assert pulled.step(Work(1, [])).loss == free.step(Work(1, [])).loss
