"""What is looked at while a run goes on: evaluation and meters. Neither changes what happens."""

from dataclasses import dataclass

from pushcen.checks import check_flag, check_number
from pushcen.errors import OptionError

METERS = ("mass", "traffic", "events", "mailbox", "kept", "reference", "gradient")


@dataclass(frozen=True)
class EvaluationOptions:
    """How often clients are evaluated, and on what.

    Every `every`, each client online is evaluated on its own test data. `global_test` adds the global test set, and
    `reference` the de-biased reference model (sum of mass times model over total mass, mailboxes and messages under
    way included), on both. `per_client` writes each client's figure into the metrics.
    """

    every: float = 1.0
    global_test: bool = False
    reference: bool = False
    per_client: bool = False

    def __post_init__(self) -> None:
        check_number("evaluation.every", self.every, above=True)
        for name in ("global_test", "reference", "per_client"):
            check_flag(f"evaluation.{name}", getattr(self, name))


@dataclass(frozen=True)
class MeterOptions:
    """Which meters run, by name; docs/simulation.md has the paper's symbol for each figure.

    - `mass`: the audit of Y_tot, y_min and y_max.
    - `traffic`: bytes sent, received and lost, of each client and of a push.
    - `events`: tau, Delta, epsilon_c, gamma_t, c-bar, mask density, the shift of X_tot by compression.
    - `mailbox`: how many messages were replaced, and how many evicted.
    - `kept`: the shift of X_tot by kept mass (dear: compares messages).
    - `reference`: the consensus error (dear: needs the reference model).
    - `gradient`: the gradient's norm at the reference model (dearer: a pass over all training data).
    """

    names: tuple[str, ...] = ("mass", "traffic", "events", "mailbox")

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in METERS:
                raise OptionError(f"meters.names = {name!r}: must be of {', '.join(METERS)}")
