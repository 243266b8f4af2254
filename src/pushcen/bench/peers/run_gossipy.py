"""gossipy: each client pushes its model to a random other, who averages the two and trains. One process, no workers."""

import sys
import time

import torch
import work

work.stand_in_for_torchvision()
from gossipy.core import AntiEntropyProtocol, CreateModelMode, StaticP2PNetwork
from gossipy.data import DataDispatcher
from gossipy.model import TorchModel
from gossipy.model.handler import TorchModelHandler
from gossipy.node import GossipNode
from gossipy.simul import GossipSimulator, SimulationReport

clients, rounds = map(int, sys.argv[1:])
torch.set_num_threads(work.quickest_threads())


class GossipNet(TorchModel):
    """The LeNet, as gossipy has models."""

    def __init__(self) -> None:
        super().__init__()
        self.net = work.lenet()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return a score for each class."""
        return self.net(images)

    def init_weights(self) -> None:
        """Leave them as PyTorch made them."""


class SameForAll(DataDispatcher):
    """The same images for every client; none to evaluate on."""

    def __init__(self) -> None:
        pass

    def __getitem__(self, client: int) -> tuple:
        return (work.IMAGES, work.LABELS), None

    def has_test(self) -> bool:
        """Say that nothing is evaluated."""
        return False


handler = TorchModelHandler(
    net=GossipNet(),
    optimizer=torch.optim.SGD,
    optimizer_params={"lr": work.RATE},
    criterion=torch.nn.functional.cross_entropy,
    local_epochs=1,
    batch_size=work.BATCH,
    create_model_mode=CreateModelMode.MERGE_UPDATE,
)
nodes = GossipNode.generate(
    data_dispatcher=SameForAll(), p2p_net=StaticP2PNetwork(clients), model_proto=handler, round_len=100, sync=True
)
simulator = GossipSimulator(nodes, SameForAll(), delta=100, protocol=AntiEntropyProtocol.PUSH)
messages = SimulationReport()
simulator.add_receiver(messages)
simulator.init_nodes()
simulator.start(n_rounds=1)  # warm up
messages.clear()
began = time.perf_counter()
simulator.start(n_rounds=rounds)
work.report(messages._sent_messages, time.perf_counter() - began, "gossipy-dfl")
