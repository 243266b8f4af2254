"""Where learners do their work: threads of this process, or the actors of a Ray cluster. The results are the same."""

from pushcen.simulation.executors.executor import Collector, Executor, Proxy, Ticket
from pushcen.simulation.executors.host import Host, Make, MakeLearner
from pushcen.simulation.options import ExecutorOptions


def start(options: ExecutorOptions, host: Host) -> Executor:
    """Start the executor that was chosen."""
    if options.kind == "ray":
        from pushcen.simulation.executors.cluster import Cluster

        return Cluster(host, options.size, options.address)
    from pushcen.simulation.executors.threads import Threads

    return Threads(host, options.size)


__all__ = ["Collector", "Executor", "Host", "Make", "MakeLearner", "Proxy", "Ticket", "start"]
