"""What a peer measures of itself, for Prometheus and for its own `metrics.jsonl`."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000)


class Metrics:
    """One peer's figures, in a registry of their own."""

    def __init__(self, peer: str) -> None:
        self.registry = registry = CollectorRegistry()
        Gauge("pushcen_peer_info", "Which peer this is.", ["peer"], registry=registry).labels(peer).set(1)
        self.bytes = Counter("pushcen_payload_bytes", "Payload bytes, by direction.", ["direction"], registry=registry)
        self.pushes = Counter("pushcen_pushes", "Pushes, by what became of them.", ["outcome"], registry=registry)
        self.received = Counter("pushcen_received", "Envelopes taken in, by kind.", ["kind"], registry=registry)
        self.refusals = Counter("pushcen_refusals", "What was refused, by reason.", ["reason"], registry=registry)
        self.events = Counter("pushcen_compute_events", "Compute events finished.", registry=registry)
        self.failed_events = Counter("pushcen_failed_events", "Compute events that failed.", registry=registry)
        self.training = Histogram(
            "pushcen_training_seconds", "Time of a compute event's merging, training and encoding.",
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self.commit = Histogram(
            "pushcen_commit_seconds", "Time of a durable commit.", buckets=_SECONDS, registry=registry
        )
        self.wait = Histogram(
            "pushcen_mailbox_seconds", "How long models waited in the mailbox.", buckets=_SECONDS, registry=registry
        )
        self.accuracy = Gauge("pushcen_accuracy", "The metric on the peer's own test data.", registry=registry)
        self.loss = Gauge("pushcen_training_loss", "The mean training loss of the last event.", registry=registry)
        self.mass = Gauge("pushcen_mass", "Mass in units, by place.", ["place"], registry=registry)
        self.mailbox = Gauge("pushcen_mailbox_models", "Models that wait in the mailbox.", registry=registry)
        self.neighbours = Gauge("pushcen_neighbours", "Peers known, by state.", ["state"], registry=registry)
        self.links = Gauge("pushcen_unsettled_links", "Links on which mass is in doubt.", registry=registry)
        self.revision = Gauge("pushcen_revoked_list", "Number of the list of revoked certificates.", registry=registry)

    def serve(self, address: str) -> int:
        """Serve them over HTTP; return the port."""
        host, _, port = address.rpartition(":")
        server, _ = start_http_server(int(port), host.strip("[]") or "127.0.0.1", registry=self.registry)
        return int(server.server_port)
