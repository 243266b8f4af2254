"""Models of transformers and peft, as they are: trained, scored, sent once, alike on any number of workers."""

import datasets
import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from pushcen.codec import decode
from pushcen.errors import TaskError
from pushcen.learning import CentroidUpdate, Learner, Model, Task, TrainingOptions, Work
from tests.learning.test_collation import LONGEST, TEXTS, WORDS, sentences
from tests.simulation.test_determinism import Stops, files
from tests.simulation.worlds import run

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
transformers.logging.set_verbosity_error()

SMALL = {"vocab_size": WORDS, "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}


def gpt2(attention="sdpa", **options):
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_positions=LONGEST, n_embd=8, n_layer=2, n_head=2, **SMALL, **options)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention)


def bert(kind="ForSequenceClassification", **options):
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BertConfig(
        **sizes, **SMALL, **({"max_position_embeddings": LONGEST, "num_labels": 3} | options)
    )
    return getattr(transformers, f"Bert{kind}")(config)


def learner_of(model, train, test=None, **task):
    training = TrainingOptions(batch=8, lr=0.01)
    return Learner(Task(model, train, test, **task), CentroidUpdate(4), training, client="client 7", seed=3)


def columns(samples):
    return datasets.Dataset.from_list(samples)


def test_a_text_classifier_learns_from_a_dataset_as_it_is():
    data = columns([{**one, "labels": one["input_ids"][0] % 3} for one in TEXTS])
    learner = Learner(Task(bert(), data, data), training=TrainingOptions(batch=8, lr=0.03))
    first = learner.evaluate()
    for _ in range(15):
        learner.step(Work(1, []))
    last = learner.evaluate()
    assert last.loss < 0.5 * first.loss
    assert last.metric > 0.8


def test_a_classifier_is_scored_as_one_text_after_the_other():
    learner = learner_of(bert(), TEXTS, TEXTS)
    model = learner.model.eval()
    with torch.no_grad():
        logits = torch.cat([model(torch.tensor([one["input_ids"]])).logits for one in TEXTS])
    labels = torch.tensor([one["labels"] for one in TEXTS])
    score = learner.evaluate()
    assert score.metric == pytest.approx((logits.argmax(1) == labels).float().mean().item())
    assert score.loss == pytest.approx(F.cross_entropy(logits, labels).item(), rel=1e-5)


@pytest.mark.parametrize("make", [gpt2, lambda: bert("LMHeadModel", is_decoder=True)], ids=["gpt2", "bert"])
def test_a_language_models_loss_is_a_mean_over_all_tokens(make):
    samples = sentences(shortest=1)
    learner = learner_of(make(), columns(sentences()), columns(samples))
    learner.step(Work(1, []))
    model, losses = learner.model.eval(), []
    for one in samples:
        ids = torch.tensor([one["input_ids"]])
        with torch.no_grad():
            logits = model(ids).logits
        losses += F.cross_entropy(logits[0, :-1], ids[0, 1:], reduction="none").tolist()
    assert learner.evaluate().loss == pytest.approx(np.mean(losses), rel=1e-5)


def test_a_masked_language_model_is_scored_where_its_labels_are():
    samples = [
        {"input_ids": one["input_ids"], "labels": [-100] * (len(one["input_ids"]) - 1) + one["input_ids"][-1:]}
        for one in sentences()
    ]
    learner = learner_of(bert("ForMaskedLM"), samples, samples)
    model, losses = learner.model.eval(), []
    for one in samples:
        with torch.no_grad():
            logits = model(torch.tensor([one["input_ids"]])).logits[0, -1]
        losses.append(F.cross_entropy(logits, torch.tensor(one["labels"][-1])).item())
    assert learner.evaluate().loss == pytest.approx(np.mean(losses), rel=1e-5)


def tokenizer():
    vocabulary = {"[PAD]": 0, "[MASK]": 1, "[UNK]": 2} | {f"w{at}": at for at in range(3, WORDS)}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, "[UNK]"))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", mask_token="[MASK]", unk_token="[UNK]"
    )


EQUAL = [one for one in TEXTS if len(one["input_ids"]) == 7] * 3
COLLATORS = {
    "DataCollatorWithPadding": (
        columns(TEXTS).add_column("text", ["a"] * len(TEXTS)),
        lambda: transformers.DataCollatorWithPadding(tokenizer()),
    ),
    "default_data_collator": (
        columns(EQUAL).add_column("idx", list(range(len(EQUAL)))),
        lambda: transformers.default_data_collator,
    ),
    "tokenizer.pad": (columns(TEXTS), lambda: lambda some: tokenizer().pad(some, return_tensors="pt")),
    "tokenizer.pad, which gives lists": (columns(TEXTS).add_column("text", ["a"] * 20), lambda: tokenizer().pad),
}


@pytest.mark.parametrize("name", COLLATORS)
def test_the_collators_of_transformers_make_the_same_batches(name):
    samples, make = COLLATORS[name]
    expected, learner = learner_of(bert(), samples), learner_of(bert(), samples, collate=make())
    assert learner.step(Work(1, [])).payloads[0].data == expected.step(Work(1, [])).payloads[0].data


def test_the_collator_for_language_models_makes_the_labels():
    collate = transformers.DataCollatorForLanguageModeling(tokenizer(), mlm=False)
    ids = columns([{"input_ids": one["input_ids"]} for one in sentences()])
    expected, learner = learner_of(gpt2(), sentences()), learner_of(gpt2(), ids, collate=collate)
    assert learner.step(Work(1, [])).loss == pytest.approx(expected.step(Work(1, [])).loss, rel=1e-5)
    with pytest.raises(TaskError, match=r"client 7: the model returns no loss, and the samples have no labels"):
        learner_of(gpt2(), ids).step(Work(1, []))


@pytest.mark.parametrize(
    ("kind", "label"), [("regression", 0.5), ("multi_label_classification", [1.0, 0.0, 1.0])], ids=["one", "several"]
)
def test_heads_with_other_labels_than_classes_have_losses_of_their_own(kind, label):
    def metric(logits, targets):
        return (logits - targets.view_as(logits)).abs().mean(1)

    samples = [{**one, "labels": label} for one in TEXTS]
    model = bert(problem_type=kind, num_labels=1 if kind == "regression" else 3)
    learner = learner_of(model, samples, samples, metric=metric)
    losses = [learner.step(Work(1, [])).loss for _ in range(5)]
    assert losses[-1] < losses[0]
    assert learner.evaluate().samples == len(samples)


def roberta():
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.RobertaConfig(**sizes, vocab_size=WORDS, max_position_embeddings=LONGEST, num_labels=3)
    return transformers.RobertaForSequenceClassification(config)


@pytest.mark.parametrize(("make", "most"), [(bert, LONGEST), (gpt2, LONGEST), (roberta, LONGEST - 2)])
def test_a_text_as_long_as_the_model_takes_is_trained_on_and_a_longer_one_refused(make, most):
    def sample(length):
        return {"input_ids": [5] * length, "labels": [5] * length if make is gpt2 else 1}

    learner_of(make(), [sample(most)]).step(Work(1, []))
    with pytest.raises(TaskError, match=rf"of client 7 has {most + 1} tokens, and the model takes {most}: must be cut"):
        learner_of(make(), [sample(most + 1)])


def test_tied_weights_travel_once_and_stay_tied():
    learner, other = learner_of(gpt2(), sentences()), learner_of(gpt2(), sentences(seed=1))
    for one in (learner, other):
        one.step(Work(1, []))
    sent = decode(other.encode()[0])
    assert "transformer.wte.weight" in sent
    assert "lm_head.weight" not in sent
    learner.step(Work(1, [Model(1, 0, other.encode())]))
    again = learner_of(gpt2(), sentences())
    again.restore(learner.save())
    for one in (learner, again):
        assert one.model.lm_head.weight is one.model.transformer.wte.weight
    assert again.step(Work(1, [])).payloads[0].data == learner.step(Work(1, [])).payloads[0].data


def test_only_numbers_that_train_travel_no_positions_and_no_masks():
    names = {name for model in (gpt2(), bert()) for name, _ in model.named_parameters()}
    for model, samples in ((gpt2(), sentences()), (bert(), TEXTS)):
        assert {entry.name for entry in learner_of(model, samples).schema.entries} <= names
    clustered = {entry.name for entry in learner_of(gpt2(), sentences()).schema.clustered}
    assert {"transformer.wte.weight", "transformer.wpe.weight", "transformer.h.0.attn.c_attn.weight"} <= clustered


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_dropout_draws_from_the_clients_own_stream(attention):
    losses = []
    for seed, disturb in ((3, 0), (3, 5), (4, 0)):
        model = gpt2(attention, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.5)
        learner = Learner(Task(model, sentences()), training=TrainingOptions(batch=20), seed=seed)
        torch.rand(disturb)
        before = torch.get_rng_state()
        losses.append([learner.step(Work(1, [])).loss for _ in range(2)])
        assert torch.equal(torch.get_rng_state(), before)
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


def language_task(client, clients):
    return Task(gpt2(), columns(sentences(seed=client)), columns(sentences(8, seed=100 + client)))


def classifier_task(client, clients):
    return Task(bert(), TEXTS[client::2], TEXTS[client::3])


@pytest.mark.parametrize("task", [language_task, classifier_task])
def test_any_number_of_workers_and_any_interruption_gives_the_same_bytes(tmp_path, task):
    options = {"function": task, "clients": 2, "horizon": 3.0}
    for workers in (1, 2):
        run(tmp_path / str(workers), workers=workers, **options)
    assert run(tmp_path / "parts", observer=Stops(2), **options)["status"] == "interrupted"
    run(tmp_path / "parts", resume=True, **options)
    assert files(tmp_path / "1") == files(tmp_path / "2") == files(tmp_path / "parts")


def test_an_adapted_model_trains_its_adapters_by_its_own_loss():
    peft = pytest.importorskip("peft")
    for kind in ("CAUSAL_LM", None):
        config = peft.LoraConfig(task_type=kind, r=2, target_modules=["c_attn"], fan_in_fan_out=True)
        model = peft.get_peft_model(gpt2(), config)
        learner = learner_of(model, columns(sentences()), columns(sentences()))
        losses = [learner.step(Work(1, [])).loss for _ in range(5)]
        assert losses[-1] < losses[0]
        assert all("lora" in entry.name for entry in learner.schema.entries)
        assert learner.evaluate().samples == 20
