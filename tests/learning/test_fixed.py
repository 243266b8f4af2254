"""What is frozen is written by nobody and saved by nobody: only its fingerprint is."""

import copy

import pytest
import torch
from torch import nn

from pushcen.bench.lora import Lora, LoraTransformer
from pushcen.errors import LearningError, ModelError
from pushcen.learning import Learner, Model, Task, Work, build_task
from pushcen.learning.frozen import Frozen
from pushcen.methods import PushCen
from tests.learning.tasks import tiny_data
from tests.learning.test_frozen import half_frozen, learner_of, positioned
from tests.learning.test_save import same, through_json


def frozen_names(model):
    return {name for name, one in model.named_parameters(remove_duplicate=False) if not one.requires_grad}


def saved_model(learner):
    return {name.removeprefix("model.") for name in learner.save().tensors if name.startswith("model.")}


class Scribbler(nn.Module):
    """A frozen layer and a large frozen buffer; `write` says what its forward pass writes into."""

    write = ""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 8)
        self.inner.register_buffer("table", torch.ones(40, 40))
        self.inner.requires_grad_(False)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        with torch.no_grad():
            if self.write:
                self.inner.get_parameter(self.write).mul_(2) if self.write != "table" else self.inner.table.mul_(2)
        return self.head(self.inner(x) * self.inner.table[0, 0])


@pytest.mark.parametrize("what", ["weight", "bias", "table"])
def test_who_writes_into_something_frozen_is_found_out_before_anything_is_sent(what):
    learner = learner_of(Scribbler())
    learner.step(Work(1, []))
    learner.evaluate()
    learner.model.write = what
    with pytest.raises(LearningError, match=rf"client 7: something wrote into the frozen inner\.{what}, which all"):
        learner.step(Work(1, []))
    assert learner.events == 1


def test_who_writes_into_something_frozen_between_events_is_found_out_before_anything_is_trained():
    learner = learner_of(Scribbler())
    before = learner.model.head.weight.clone()
    learner.model.write = "weight"
    learner.evaluate()
    learner.model.write = ""
    with pytest.raises(LearningError, match=r"something wrote into the frozen inner\.weight"):
        learner.step(Work(1, []))
    assert torch.equal(before, learner.model.head.weight)


def test_what_was_made_in_inference_mode_counts_no_writes_and_is_taken():
    with torch.inference_mode():
        table = torch.ones(40, 40)
    model = Scribbler()
    model.inner.table = table
    learner_of(model).frozen.check()


@pytest.mark.parametrize("make", [half_frozen, positioned, Scribbler, lambda: LoraTransformer(8, 1, 10, 2)])
def test_nothing_frozen_is_saved(make):
    torch.manual_seed(0)
    model = make()
    data = (torch.randint(10, (16, 5)), torch.randint(4, (16,))) if isinstance(model, LoraTransformer) else tiny_data()
    learner = Learner(Task(model, data), PushCen(clusters=4).update(), client="client 7")
    assert frozen_names(model)
    assert not saved_model(learner) & frozen_names(model)
    assert saved_model(learner) >= {name for name, one in model.named_parameters() if one.requires_grad}
    assert learner.save().plain["frozen"] == learner.frozen.base
    assert len(learner.frozen.base) == 32


def test_a_model_of_which_all_trains_saves_what_it_always_has():
    learner = learner_of(nn.Linear(6, 4))
    assert "frozen" not in learner.save().plain
    assert saved_model(learner) == {"weight", "bias"}


def test_a_large_buffer_of_a_frozen_part_is_fixed_and_a_small_one_may_count_and_is_saved():
    assert saved_model(learner_of(Scribbler())) == {"head.weight", "head.bias"}
    learner, again = learner_of(positioned()), learner_of(positioned())
    for _ in range(2):
        learner.step(Work(1, []))
    again.restore(through_json(learner.save()))
    assert again.model[0][0].calls == learner.model[0][0].calls > 0


@pytest.mark.parametrize("make", [half_frozen, positioned, Scribbler])
def test_a_restored_learner_goes_on_bit_for_bit_on_the_same_frozen_part(make):
    torch.manual_seed(1)
    model = make()
    learner, again = learner_of(copy.deepcopy(model)), learner_of(copy.deepcopy(model))
    learner.step(Work(1, []))
    state = through_json(learner.save())
    again.restore(state)
    again.restore(state)
    for one in (learner, again):
        one.step(Work(1, [Model(1, 0, learner_of(copy.deepcopy(model)).encode())]))
    same(learner.save(), again.save())


def test_a_state_that_stands_on_another_frozen_part_is_refused():
    learner, other = learner_of(half_frozen()), learner_of(half_frozen(seed=1))
    before = copy.deepcopy(other.model.state_dict())
    with pytest.raises(ModelError, match=rf"client 7: what was saved stands on the frozen part {learner.frozen.base}"):
        other.restore(learner.save())
    assert all(torch.equal(before[name], tensor) for name, tensor in other.model.state_dict().items())


def test_a_state_on_something_frozen_is_refused_where_all_trains_and_the_other_way_round():
    frozen, free = learner_of(half_frozen()), learner_of(half_frozen().requires_grad_(True))
    with pytest.raises(ModelError, match="and the model's is empty"):
        free.restore(frozen.save())
    free.step(Work(1, []))
    with pytest.raises(ModelError, match=r"client 7: the frozen 0.weight was saved as \[8, 6\] float32 \w+, and here"):
        frozen.restore(free.save())


def old(learner):
    """What earlier versions saved: the whole model, and no fingerprint."""
    tensors, plain = through_json(learner.save())
    tensors |= {f"model.{name}": tensor.clone() for name, tensor in learner.model.state_dict().items()}
    return type(learner.save())(tensors, {key: value for key, value in plain.items() if key != "frozen"})


def test_what_an_earlier_version_saved_can_be_read():
    learner, again = learner_of(half_frozen()), learner_of(half_frozen())
    learner.step(Work(1, []))
    again.restore(old(learner))
    for one in (learner, again):
        one.step(Work(1, []))
    same(learner.save(), again.save())


def test_what_an_earlier_version_saved_of_another_frozen_part_is_refused_by_the_first_tensor():
    model = half_frozen()
    with torch.no_grad():
        model[0].bias[3] += 1
    with pytest.raises(
        ModelError, match=r"client 7: the frozen 0\.bias was saved as \[8\] float32 \w+, and here it is"
    ):
        learner_of(half_frozen()).restore(old(learner_of(model)))


def test_a_state_that_lacks_something_that_trains_is_refused():
    learner = learner_of(half_frozen())
    tensors, plain = learner.save()
    with pytest.raises(ModelError, match=r"client 7: what was saved does not fit the model: 4\.bias is not in both"):
        learner.restore(type(learner.save())({k: v for k, v in tensors.items() if k != "model.4.bias"}, plain))


def tied():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False), nn.Linear(6, 4))
    model[1].weight = model[0].weight
    model[0].requires_grad_(False)
    return model


def test_what_is_tied_and_frozen_is_saved_under_no_name():
    learner, again = learner_of(tied()), learner_of(tied())
    assert saved_model(learner) == {"2.weight", "2.bias"}
    again.restore(learner.save())
    again.restore(old(learner))


class EightBit(nn.Module):
    """A frozen layer in few bits, as quantisers make them."""

    def __init__(self, number):
        super().__init__()
        torch.manual_seed(0)
        self.number = number
        weight = (8 * torch.randn(8, 6)).to(number)
        self.inner = nn.Module()
        self.inner.weight = nn.Parameter(weight, requires_grad=False)
        self.inner.register_buffer("scale", torch.tensor(0.1))
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(x @ (self.inner.weight.float() * self.inner.scale).T)


@pytest.mark.parametrize(
    "number", [torch.int8, torch.uint8, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.bool]
)
def test_frozen_numbers_of_any_kind_work_and_differ_by_a_bit(number):
    one, other = (learner_of(EightBit(number)) for _ in range(2))
    assert [entry.name for entry in one.schema.entries] == ["head.weight", "head.bias"]
    assert one.frozen.fingerprints() == other.frozen.fingerprints()
    one.step(Work(1, [Model(1, 0, other.step(Work(1, [])).payloads)]))
    other.restore(one.save())
    held = {}
    for learner in (one, other):
        learner.frozen.share(held)
    assert one.model.inner.weight.data_ptr() == other.model.inner.weight.data_ptr()
    changed = EightBit(number)
    changed.inner.weight.data.view(torch.uint8)[0, 0] ^= 1
    assert Frozen(changed, "client 8").base != one.frozen.base


def test_what_is_shared_is_held_once_and_what_trains_is_not():
    one, other = (learner_of(half_frozen()) for _ in range(2))
    held = {}
    for learner in (one, other):
        learner.frozen.share(held)
    pairs = zip(one.model.named_parameters(), other.model.parameters(), strict=True)
    together = {name for (name, mine), theirs in pairs if mine.data_ptr() == theirs.data_ptr()}
    assert together == frozen_names(one.model)
    assert len(held) == len(together)
    other.step(Work(1, [Model(1, 0, one.step(Work(1, [])).payloads)]))
    same_base = learner_of(half_frozen()).frozen
    assert one.frozen.fingerprints() == same_base.fingerprints()


def test_what_lies_otherwise_in_memory_is_not_shared():
    """The same numbers in another order of memory may be multiplied in another order."""
    one, other = half_frozen(), half_frozen()
    other[0].weight.data = other[0].weight.data.T.contiguous().T
    held = {}
    for model in (one, other):
        Frozen(model, "client 7").share(held)
    assert one[0].weight.data_ptr() != other[0].weight.data_ptr()
    assert one[0].bias.data_ptr() == other[0].bias.data_ptr()


def test_who_writes_into_what_is_shared_is_named():
    held, learners = {}, [learner_of(Scribbler()) for _ in range(2)]
    for learner in learners[1:]:
        learner.model.load_state_dict(learners[0].model.state_dict())
    learners = [learner_of(learner.model) for learner in learners]
    for learner in learners:
        learner.frozen.share(held)
    learners[1].model.write = "weight"
    with pytest.raises(LearningError, match=r"wrote into the frozen inner\.weight"):
        learners[1].step(Work(1, []))
    learners[0].frozen.check()  # it was not this one


def test_an_event_that_diverges_goes_back_and_leaves_what_is_frozen_alone():
    learner = learner_of(Scribbler())
    before = learner.model.head.weight.clone()
    learner.task.train[0].fill_(torch.inf)
    assert learner.attempt(Work(1, [])).failure
    assert torch.equal(before, learner.model.head.weight)
    learner.frozen.check()


def test_the_seed_makes_the_same_frozen_part_for_all():
    def task(client, clients):
        torch.randn(3)
        return Task(nn.Sequential(Lora(nn.Linear(6, 6), rank=2), nn.Linear(6, 4)), tiny_data(client))

    one, other = (Learner(build_task(task, client, 2, seed=5)) for client in range(2))
    assert one.frozen.base == other.frozen.base
