"""Initial weights from files: what fits is taken whole, what does not is refused whole, nothing in a file is run."""

import pickle

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from pushcen.errors import LearningError
from pushcen.learning import load_weights
from pushcen.models import resnet18
from tests.learning.tasks import tiny_model


def state(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def write(tensors, path):
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    return path


@pytest.mark.parametrize("name", ["w.safetensors", "w.pth", "w.pt"])
def test_weights_come_back_from_a_file(tmp_path, name):
    source, target = tiny_model(1), tiny_model(2)
    load_weights(target, str(write(state(source), tmp_path / name)))
    assert all(torch.equal(tensor, target.state_dict()[key]) for key, tensor in state(source).items())


class Touch:
    """Runs code where a pickle is trusted."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_a_pickle_that_would_run_code_is_refused_and_does_not(tmp_path):
    for number, save in enumerate((torch.save, lambda thing, path: path.write_bytes(pickle.dumps(thing)))):
        trap, path = tmp_path / f"trap{number}", tmp_path / f"evil{number}.pth"
        save({"0.weight": Touch(str(trap))}, path)
        with pytest.raises(LearningError, match="cannot be read"):
            load_weights(tiny_model(), path)
        assert not trap.exists()
    pickle.loads(path.read_bytes())["0.weight"].close()
    assert trap.exists(), "the trap works where a pickle is trusted"


MISFITS = {
    "a wrong shape": ({"0.weight": torch.zeros(3, 3)}, (), r"0.weight is \[3, 3\], not \[8, 6\]"),
    "one missing": ({}, ("2.bias",), "no 2.bias"),
    "one too many": ({"extra": torch.zeros(1)}, (), "extra is not in the model"),
}


@pytest.mark.parametrize("misfit", MISFITS)
@pytest.mark.parametrize("name", ["w.safetensors", "w.pth"])
def test_a_file_that_does_not_fit_is_refused_whole_and_says_where(tmp_path, misfit, name):
    more, less, message = MISFITS[misfit]
    tensors = {key: tensor for key, tensor in (state(tiny_model(1)) | more).items() if key not in less}
    target = tiny_model(2)
    before = state(target)
    with pytest.raises(LearningError, match=f"does not fit the model: {message}"):
        load_weights(target, write(tensors, tmp_path / name))
    assert all(torch.equal(tensor, target.state_dict()[key]) for key, tensor in before.items())


@pytest.mark.parametrize("content", [b"", b"not a file of weights", b"\x80\x02]q\x00."])
@pytest.mark.parametrize("name", ["w.safetensors", "w.pth"])
def test_a_file_that_is_none_is_an_error_that_names_it(tmp_path, content, name):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(LearningError, match=name):
        load_weights(tiny_model(), path)


def test_a_file_of_something_else_than_a_state_dict_is_refused(tmp_path):
    for thing in ([torch.zeros(1)], {"model": state(tiny_model())}, torch.zeros(3)):
        with pytest.raises(LearningError, match="must hold a state dict"):
            load_weights(tiny_model(), write(thing, tmp_path / "w.pth"))


def test_a_resnet18_file_without_batch_norms_counters_loads(tmp_path):
    """As torchvision's own files are, from before there were such counters."""
    source = resnet18(classes=7)
    tensors = {name: tensor for name, tensor in state(source).items() if not name.endswith("num_batches_tracked")}
    target = resnet18(classes=7)
    load_weights(target, write(tensors, tmp_path / "resnet18.pth"))
    assert all(torch.equal(tensor, target.state_dict()[name]) for name, tensor in tensors.items())


def test_a_missing_statistic_of_batch_norm_is_still_a_misfit(tmp_path):
    source = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    tensors = {name: tensor for name, tensor in state(source).items() if name != "1.running_mean"}
    with pytest.raises(LearningError, match=r"no 1\.running_mean"):
        load_weights(source, write(tensors, tmp_path / "w.pth"))
