"""What a peer measures of itself, for Prometheus and for its own `metrics.jsonl`."""

import contextlib
import socket
import threading
from collections.abc import Mapping
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, make_wsgi_app

from pushcen.errors import AddressError

_READERS = 8  # that are answered at a time
_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000)


class _Counters(Counter):
    """A counter for each of a few labels, which are found without being checked again."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._known: dict[tuple[Any, ...], Counter] = {}
        super().__init__(*arguments, **options)

    def labels(self, *labels: Any) -> Any:  # type: ignore[override]
        """Return the counter of a label."""
        found = self._known.get(labels)
        if found is None:
            found = self._known[labels] = super().labels(*labels)
        return found


class Metrics:
    """One peer's figures, in a registry of their own."""

    def __init__(self, peer: str) -> None:
        self.registry = registry = CollectorRegistry()
        self._server: WSGIServer | None = None
        Gauge("pushcen_peer_info", "Which peer this is.", ["peer"], registry=registry).labels(peer).set(1)
        self.bytes = _Counters(
            "pushcen_payload_bytes", "Payload bytes, by direction.", ["direction"], registry=registry
        )
        self.pushes = _Counters("pushcen_pushes", "Pushes, by what became of them.", ["outcome"], registry=registry)
        self.received = _Counters("pushcen_received", "Envelopes taken in, by kind.", ["kind"], registry=registry)
        self.refusals = _Counters("pushcen_refusals", "What was refused, by reason.", ["reason"], registry=registry)
        self.references = _Counters("pushcen_references", "References, by direction.", ["direction"], registry=registry)
        self.exchanges = _Counters("pushcen_exchanges", "Exchanges, by how far they came.", ["step"], registry=registry)
        self.hosted = Gauge("pushcen_hosted_peers", "Peers that are reached through this one.", registry=registry)
        self.tunnel_bytes = Counter("pushcen_tunnel_bytes", "Bytes carried for others.", registry=registry)
        self.events = Counter("pushcen_compute_events", "Compute events finished.", registry=registry)
        self.failed_events = Counter("pushcen_failed_events", "Compute events that failed.", registry=registry)
        self.disk_waits = Counter("pushcen_disk_waits", "Writes that the disk refused for now.", registry=registry)
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
        self.figures = Gauge("pushcen_metric", "Metrics other than accuracy, by name.", ["name"], registry=registry)
        self.loss = Gauge("pushcen_training_loss", "The mean training loss of the last event.", registry=registry)
        self.mass = Gauge("pushcen_mass", "Mass in units, by place.", ["place"], registry=registry)
        self.mailbox = Gauge("pushcen_mailbox_models", "Models that wait in the mailbox.", registry=registry)
        self.neighbours = Gauge("pushcen_neighbours", "Peers known, by state.", ["state"], registry=registry)
        self.links = Gauge("pushcen_unsettled_links", "Links on which mass is in doubt.", registry=registry)
        self.generation = Gauge("pushcen_generation", "How often the network was founded anew.", registry=registry)
        self.certificate = Gauge(
            "pushcen_certificate_end_timestamp_seconds", "When the certificate ends; +Inf if there is none.",
            registry=registry,
        )  # fmt: skip
        self.problems = Gauge("pushcen_problems", "What is wrong now, by how bad it is.", ["level"], registry=registry)
        self.last_news = Gauge(
            "pushcen_last_news_timestamp_seconds", "When a push was last news here; 0: never.", registry=registry
        )
        self.revision = Gauge("pushcen_revoked_list", "Number of the list of revoked certificates.", registry=registry)

    def score(self, values: Mapping[str, float]) -> None:
        """Set what an evaluation on the peer's own test data gave, by metric; what is not accuracy has its own name."""
        if "accuracy" in values:
            self.accuracy.set(values["accuracy"])
        else:
            with contextlib.suppress(KeyError):
                self.registry.unregister(self.accuracy)  # there is none
        for name, value in values.items():
            if name != "accuracy":
                self.figures.labels(name).set(value)

    def refused(self) -> dict[str, int]:
        """Return how much was refused, by reason."""
        return {reason: int(one._value.get()) for (reason,), one in self.refusals._known.items()}

    def serve(self, address: str) -> int:
        """Serve them over HTTP; return the port."""
        host, _, port = address.rpartition(":")
        host = host.strip("[]") or "127.0.0.1"
        kind = _Server6 if ":" in host else _Server
        try:
            server = make_server(host, int(port), make_wsgi_app(self.registry), kind, _Request)
        except OSError as error:
            raise AddressError(f"metrics = {address}: cannot be listened on: {error.strerror or error}") from error
        self._server = server
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return int(server.server_port)

    def close(self) -> None:
        """Serve them no more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Server(ThreadingMixIn, WSGIServer):
    """Answers a few at a time; who says nothing makes room for others soon. The rest waits in the system's queue."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._room = threading.BoundedSemaphore(_READERS)

    def server_bind(self) -> None:
        """Listen, without asking for this machine's full name, which takes long where no name server answers."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._room.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: somebody hung up."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Request(WSGIRequestHandler):
    timeout = 2.0

    def log_message(self, *arguments: Any) -> None:
        """Log nothing."""
