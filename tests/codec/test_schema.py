"""What travels: decided from the module tree."""

import pytest
import torch
from torch import nn

from pushcen.codec import ModelError, Schema, encode
from pushcen.models import LeNet, resnet18
from tests.codec.models import Mixed


def names(schema, clustered):
    return [entry.name for entry in schema.entries if entry.clustered == clustered]


def test_weights_are_clustered_and_the_rest_travels_as_it_is():
    schema = Schema.of(Mixed())
    assert names(schema, True) == [
        "stem.weight",
        "embedding.weight",
        "attention.in_proj_weight",
        "attention.out_proj.weight",
        "frozen.weight",
    ]
    assert sorted(names(schema, False)) == [
        "attention.in_proj_bias",
        "attention.out_proj.bias",
        "head.bias",
        "norm.bias",
        "norm.weight",
        "running",
        "stem.bias",
        "token",
    ]


def test_batchnorm_integers_and_passing_buffers_stay_home():
    travelling = {entry.name for entry in Schema.of(Mixed()).entries}
    assert not {name for name in travelling if name.startswith("odd.")}
    assert not travelling & {"steps", "scratch"}


def test_resnet_sends_no_batchnorm_wherever_it_sits():
    model = resnet18(100)
    home = sum(m.weight.numel() + m.bias.numel() for m in model.modules() if isinstance(m, nn.BatchNorm2d))
    assert home == 9600
    assert Schema.of(model).size == sum(p.numel() for p in model.parameters()) - home
    assert len(Schema.of(model).clustered) == 21


def test_tied_weights_travel_once():
    model = Mixed()
    assert "head.weight" not in {entry.name for entry in Schema.of(model).entries}
    only_head = Schema.of(model, share=lambda name: name.startswith("head"))
    assert [entry.name for entry in only_head.entries] == ["head.weight", "head.bias"]


def test_a_filter_keeps_what_is_left_out_at_home():
    schema = Schema.of(LeNet(10), share=lambda name: not name.startswith("fc3"))
    assert {entry.name.split(".")[0] for entry in schema.entries} == {"conv1", "conv2", "fc1", "fc2"}


def test_parametrised_and_recurrent_weights_are_clustered():
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    assert names(Schema.of(normed), True) == ["parametrizations.weight.original1"]
    assert names(Schema.of(nn.LSTM(4, 3)), True) == ["weight_ih_l0", "weight_hh_l0"]


def test_a_narrow_linear_layer_is_clustered_all_the_same():
    assert names(Schema.of(nn.Linear(8, 1)), True) == ["weight"]


def test_nothing_to_share_is_an_error():
    with pytest.raises(ModelError, match="share= must keep at least one"):
        Schema.of(nn.Linear(2, 2), share=lambda name: False)
    with pytest.raises(ModelError, match="nothing of this model is shared"):
        Schema.of(nn.BatchNorm1d(3))


def test_a_lazy_layer_is_an_error_that_says_what_to_do():
    with pytest.raises(ModelError, match="weight has no shape yet: run the model once"):
        Schema.of(nn.LazyLinear(3))


def test_complex_numbers_can_be_left_out():
    model = nn.Linear(2, 2)
    model.phase = nn.Parameter(torch.ones(2, 2, dtype=torch.complex64))
    with pytest.raises(ModelError, match=r"phase is torch.complex64: .* share="):
        Schema.of(model)
    assert len(Schema.of(model, share=lambda name: name != "phase").entries) == 2


def test_the_fingerprint_tells_names_shapes_dtypes_and_kinds_apart():
    models = [
        nn.Linear(4, 2),
        nn.Linear(2, 4),
        nn.Linear(4, 2).half(),
        nn.Sequential(nn.Linear(4, 2)),
        nn.Conv1d(4, 2, 1),
    ]
    prints = {Schema.of(model).fingerprint for model in models}
    assert len(prints) == len(models)
    assert Schema.of(nn.Linear(4, 2)).fingerprint in prints


def test_a_model_that_does_not_fit_is_refused_by_the_first_difference():
    schema = Schema.of(nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 2)))
    with pytest.raises(ModelError, match=r"1.weight is \[3, 2\] float32 here, and \[2, 2\] float32 in the schema"):
        encode(nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 3)), schema=schema)
    with pytest.raises(ModelError, match=r"the model has no 1.weight"):
        encode(nn.Sequential(nn.Linear(4, 2)), schema=schema)
    with pytest.raises(ModelError, match=r"0.weight is \[2, 4\] float16 here"):
        encode(nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 2)).half(), schema=schema)
    with pytest.raises(ModelError, match=r"differ: 1.weight \[2, 2\] float32 clustered / nothing more"):
        schema.check_same(Schema.of(nn.Sequential(nn.Linear(4, 2))))
    odd = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 2))
    odd.add_module("1", nn.Module())
    odd[1].weight = nn.Identity()  # a module where the schema has a tensor
    with pytest.raises(ModelError, match=r"the model has no 1.weight"):
        encode(odd, schema=schema)
