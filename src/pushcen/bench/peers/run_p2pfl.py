"""p2pfl: nodes in one process, messages in memory, learners on Ray; every node trains in every round.

Its topologies would do with fewer nodes: a star's centre has to pass on more than its settings allow for a hundred.
"""

import sys
import time

import lightning
import networkx
import ray
import torch
import work


def prepare() -> None:
    """Prepare this process, or one of Ray's, for p2pfl."""
    import lightning  # noqa: F401, which must not see it

    work.stand_in_for_torchvision()


prepare()
ray.init(num_cpus=work.CORES, include_dashboard=False, runtime_env={"worker_process_setup_hook": prepare})
from datasets import Dataset, DatasetDict
from p2pfl.communication.protocols.protobuff.memory import MemoryCommunicationProtocol
from p2pfl.learning.dataset.p2pfl_dataset import P2PFLDataset
from p2pfl.learning.frameworks.pytorch.lightning_learner import LightningLearner
from p2pfl.learning.frameworks.pytorch.lightning_model import LightningModel
from p2pfl.management.logger import logger
from p2pfl.node import Node
from p2pfl.settings import Settings
from p2pfl.utils.topologies import TopologyFactory
from p2pfl.utils.utils import wait_convergence, wait_to_finish

clients, rounds = map(int, sys.argv[1:])


class LightningNet(lightning.LightningModule):
    """The LeNet, as Lightning has models."""

    def __init__(self) -> None:
        super().__init__()
        self.net = work.lenet()

    def training_step(self, batch: dict, _: int) -> torch.Tensor:
        """Return the loss."""
        return torch.nn.functional.cross_entropy(self.net(batch["image"]), batch["label"])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimiser."""
        return torch.optim.SGD(self.parameters(), lr=work.RATE)


class NeverEvaluating(LightningLearner):
    """Evaluates nothing, which p2pfl would do twice a round."""

    def evaluate(self) -> dict:
        """Return no metrics."""
        return {}


def images(batch: dict) -> dict:
    """Return the images of some rows."""
    return {"image": work.IMAGES[batch["row"]], "label": work.LABELS[batch["row"]]}


Settings.set_from_dict(  # as in p2pfl's own example of CIFAR-10, but for the level and the pool
    {
        "general": {"log_level": "WARNING", "grpc_timeout": 2, "resource_monitor_period": 1},
        "heartbeat": {"period": 10, "timeout": 60, "wait_convergence": 4},
        "gossip": {
            "period": 1,
            "messages_per_period": 200,
            "amount_last_messages_saved": 1000,
            "models_period": 1,
            "models_per_round": 4,
            "exit_on_x_equal_rounds": 150,
        },
        "training": {"vote_timeout": 60, "aggregation_timeout": 300, "ray_actor_pool_size": work.CORES},
    }
)
logger.set_level(Settings.general.LOG_LEVEL)
rows = Dataset.from_dict({"row": list(range(work.SAMPLES))})
data = P2PFLDataset(DatasetDict({"train": rows, "test": rows}), batch_size=work.BATCH)
data.set_transforms(images)
nodes = []
for client in range(clients):
    model, protocol = LightningModel(LightningNet()), MemoryCommunicationProtocol()
    nodes.append(Node(model, data, addr=f"node-{client}", learner=NeverEvaluating(), protocol=protocol))
    nodes[-1].start()
graph = networkx.random_regular_graph(min(4, clients - 1), clients, seed=0)
TopologyFactory.connect_nodes(networkx.to_numpy_array(graph), nodes)
wait_convergence(nodes, clients - 1, only_direct=False, wait=60)
nodes[0].set_start_learning(rounds=1 + rounds, epochs=1, trainset_size=clients)
while not all(node.state.round for node in nodes):  # the first round warms up
    time.sleep(0.01)
began = time.perf_counter()
wait_to_finish(nodes)
seconds = time.perf_counter() - began
updates = sum(node.learning_workflow.history.count("TrainStage") for node in nodes)
work.report(updates - clients, seconds, "p2pfl", "lightning", "ray")
for node in nodes:
    node.stop()
