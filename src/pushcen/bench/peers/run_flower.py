"""Flower's simulation on Ray: FedAvg by a server, all clients in every round."""

import sys
import time

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from work import CORES, SAMPLES, lenet, report, train

clients, rounds = map(int, sys.argv[1:])
client, server = ClientApp(), ServerApp()


@client.train()
def update(message: Message, context: Context) -> Message:  # noqa: ARG001
    """Train the server's model, and send it back."""
    model = lenet()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    train(model)
    metrics = MetricRecord({"num-examples": SAMPLES})
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=message)


@server.main()
def main(grid: Grid, context: Context) -> None:  # noqa: ARG001
    """Run one round to warm up, then those that count."""
    strategy = FedAvg(
        fraction_evaluate=0.0,
        min_train_nodes=clients,
        min_available_nodes=clients,
        train_metrics_aggr_fn=lambda replies, _: MetricRecord({"replies": len(replies)}),
    )
    arrays = strategy.start(grid, ArrayRecord(lenet().state_dict()), num_rounds=1).arrays
    began = time.perf_counter()
    result = strategy.start(grid, arrays, num_rounds=rounds)
    seconds = time.perf_counter() - began
    report(sum(r["replies"] for r in result.train_metrics_clientapp.values()), seconds, "flwr", "ray")


run_simulation(
    server,
    client,
    num_supernodes=clients,
    backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0}, "init_args": {"num_cpus": CORES}},
)
