"""Fine-tuning with adapters: LoRA made by hand, and by peft on a transformer where that is installed."""

import re

import pytest
import torch
from torch import nn

from pushcen.bench.lora import Lora, LoraTransformer
from pushcen.errors import ModelError, TaskError
from pushcen.learning import Learner, Model, Task, TrainingOptions, Work, build_task, correct, freeze_lora_a
from pushcen.methods import AsyncDFedAvg, PushCen
from pushcen.simulation import World, simulate_world
from tests.learning.tasks import digits_of, generator

WORDS, LENGTH, CLASSES = 24, 8, 4


def texts(client, samples=96):
    """Sequences of words, in which one of four words says the class."""
    draw = generator(client)
    words = torch.randint(CLASSES, WORDS, (samples, LENGTH), generator=draw)
    targets = torch.randint(CLASSES, (samples,), generator=draw)
    places = torch.randint(LENGTH, (samples,), generator=draw)
    words[torch.arange(samples), places] = targets
    return words, targets


def by_hand(rank=4):
    return LoraTransformer(hidden=32, layers=1, words=WORDS, rank=rank, classes=CLASSES)


def by_peft(rank=4):
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=WORDS,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=16,
        num_labels=CLASSES,
    )
    model = transformers.BertForSequenceClassification(config)
    lora = peft.LoraConfig(task_type="SEQ_CLS", r=rank, lora_alpha=16, target_modules=["query", "value"])
    return peft.get_peft_model(model, lora)


def scores(outputs):
    return outputs if isinstance(outputs, torch.Tensor) else outputs.logits


def task_of(make, client, ffa=False):
    model = make()
    if ffa:
        freeze_lora_a(model)
    words, targets = texts(client)
    return Task(
        model,
        (words[:64], targets[:64]),
        (words[64:], targets[64:]),
        loss=lambda outputs, targets: nn.functional.cross_entropy(scores(outputs), targets),
        metric=lambda outputs, targets: correct(scores(outputs), targets),
    )


def learner_of(make, client=0, method=None, ffa=False):
    task = build_task(lambda client, _: task_of(make, client, ffa), client, 2, seed=4)
    method = method or PushCen(clusters=8)
    return Learner(task, method.update(), TrainingOptions(batch=16, lr=0.01), client=f"client {client}", seed=client)


BOTH = pytest.mark.parametrize("make", [by_hand, by_peft])


@BOTH
def test_only_what_trains_travels_and_is_saved(make):
    learner = learner_of(make)
    trained = {name for name, one in learner.model.named_parameters() if one.requires_grad}
    assert trained
    assert all("lora" in name or "head" in name or "classifier" in name for name in trained)
    assert {entry.name for entry in learner.schema.entries} == trained
    saved = {name.removeprefix("model.") for name in learner.save().tensors if name.startswith("model.")}
    assert saved == trained
    assert learner.sizes()[0] < sum(one.nbytes for one in learner.frozen.trained)


@BOTH
def test_b_starts_at_zero_and_moves(make):
    learner, other = learner_of(make), learner_of(make, client=1)
    halves = [one for name, one in learner.model.named_parameters() if "lora_B" in name]
    assert halves
    assert not any(half.any() for half in halves)
    for _ in range(3):
        learner.step(Work(1, [Model(1, 0, other.step(Work(1, [])).payloads)]))
    assert all((half != 0).float().mean() > 0.5 for half in halves)


def layers_by_hand(rank):
    return nn.Sequential(Lora(nn.Linear(64, 32), rank), nn.ReLU(), nn.Linear(32, 10).requires_grad_(False))


def layers_by_peft(rank):
    peft = pytest.importorskip("peft")
    base = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return peft.get_peft_model(base, peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=["0"]))


def accuracy(make, method, ffa):
    def task(client, clients):
        model = make(rank=16 if ffa else 4)
        if ffa:
            freeze_lora_a(model)
        inputs, targets = digits_of(client, clients, 120)
        return Task(model, (inputs[:80], targets[:80]), (inputs[80:], targets[80:]))

    world = World(method, TrainingOptions(batch=16, lr=0.01), clients=6, horizon=12.0)
    return simulate_world(world, task)["final"]["accuracy"]


@pytest.mark.parametrize("make", [layers_by_hand, layers_by_peft])
@pytest.mark.parametrize("ffa", [False, True], ids=["A and B train", "B trains"])
def test_adapters_learn_as_with_dense_averaging(make, ffa):
    ours, dense = (accuracy(make, method, ffa) for method in (PushCen(), AsyncDFedAvg()))
    assert dense > 0.5
    assert ours > dense - 0.1


@BOTH
def test_with_a_frozen_the_mean_of_products_is_the_product_of_means(make):
    def products(learner):
        state = learner.model.state_dict()
        return [state[name.replace("lora_A", "lora_B")] @ state[name] for name in sorted(state) if "lora_A" in name]

    gaps = {}
    for ffa in (False, True):
        one, other = (learner_of(make, client, AsyncDFedAvg(), ffa) for client in range(2))
        for _ in range(3):
            for learner in (one, other):
                learner.step(Work(1, []))
        means = [(a + b) / 2 for a, b in zip(products(one), products(other), strict=True)]
        sent = other.encode()
        one._merge(Work(1, [Model(1, 0, sent)]))
        gaps[ffa] = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(products(one), means, strict=True))
    assert gaps[True] < 1e-5
    assert gaps[False] > 1e-2


@BOTH
def test_a_frozen_a_is_the_same_for_all_and_halves_the_push(make):
    both, one, other = learner_of(make), learner_of(make, ffa=True), learner_of(make, client=1, ffa=True)
    names = [name for name, _ in both.model.named_parameters() if "lora_A" in name]
    assert set(names) <= set(one.frozen.fingerprints())
    assert one.frozen.fingerprints() == other.frozen.fingerprints()
    assert one.schema.size < both.schema.size
    assert not {entry.name for entry in one.schema.entries} & set(names)


def test_freezing_a_names_what_is_missing_or_zero():
    with pytest.raises(TaskError, match="no parameter of the model is called lora_A or lora_embedding_B: names= must"):
        freeze_lora_a(nn.Linear(2, 2))
    layer = Lora(nn.Linear(6, 6))
    with pytest.raises(TaskError, match=r"lora_B\.weight is zero"):
        freeze_lora_a(layer, names=["lora_B"])
    assert freeze_lora_a(layer) == ["lora_A.weight"]
    assert not layer.lora_A.weight.requires_grad
    assert layer.lora_B.weight.requires_grad


def test_of_an_embeddings_adapter_the_half_that_starts_at_random_is_frozen():
    peft = pytest.importorskip("peft")
    base = nn.Sequential(nn.Embedding(WORDS, 16), nn.Flatten(), nn.Linear(16 * LENGTH, CLASSES))
    model = peft.get_peft_model(base, peft.LoraConfig(r=2, target_modules=["0"]))
    [name] = freeze_lora_a(model)
    assert "lora_embedding_B" in name
    assert [name for name, one in model.named_parameters() if one.requires_grad and "lora_embedding_A" in name]


@BOTH
@pytest.mark.parametrize("ffa", [False, True], ids=["A and B train", "B trains"])
def test_adapters_of_another_rank_are_refused_with_the_tensor_and_both_shapes(make, ffa):
    world = World(PushCen(clusters=8), TrainingOptions(), clients=3, horizon=1.0)
    with pytest.raises(ModelError) as caught:
        simulate_world(world, lambda client, _: task_of(lambda: make(rank=2 if client == 2 else 4), client, ffa))
    text = str(caught.value)
    assert "client 2" in text
    assert re.search(r"lora_[AB]\S*weight \[(4, 32|32, 4)\] .*lora_[AB]\S*weight \[(2, 32|32, 2)\]", text)


def test_clients_whose_a_differs_are_refused_by_name():
    def task(client, _):
        made = task_of(by_hand, client, ffa=True)
        if client == 1:
            nn.init.normal_(made.model.blocks[0].query.lora_A.weight)
        return made

    world = World(PushCen(clusters=8), TrainingOptions(), clients=2, horizon=1.0)
    with pytest.raises(ModelError, match=r"client 1: the frozen blocks\.0\.query\.lora_A\.weight is \[4, 32\] float32"):
        simulate_world(world, task)


@BOTH
def test_a_restored_learner_goes_on_bit_for_bit(make):
    learner, again = learner_of(make), learner_of(make)
    learner.step(Work(1, []))
    again.restore(learner.save())
    sent = [one.step(Work(1, [])).payloads[0].data for one in (learner, again)]
    assert sent[0] == sent[1]


def test_a_language_model_whose_head_is_tied_travels_as_its_adapters():
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
    )
    model = peft.get_peft_model(
        transformers.GPT2LMHeadModel(config), peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True)
    )
    words, _ = texts(0)

    def loss(outputs, targets):
        return nn.functional.cross_entropy(outputs[:, :-1].flatten(0, 1), targets[:, 1:].flatten())

    learner = Learner(Task(model, (words, words), loss=loss), PushCen(clusters=8).update(), TrainingOptions(batch=16))
    assert all("lora_" in entry.name for entry in learner.schema.entries)
    learner.step(Work(1, []))
    learner.restore(learner.save())
