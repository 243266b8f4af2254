"""The theorem's terms, as the meters of a run found them."""

from pushcen.analysis.table import Column, Table
from pushcen.analysis.units import number
from pushcen.runs.run import Run

_TERMS = (  # the paper's symbol, what it is, where the summary has it, which meter measures it
    ("Y_tot", "mass destroyed, a share of what was founded", "meters.mass.mass_destroyed", "mass"),
    ("y_min", "the smallest mass that a client held", "meters.events.y_min", "events"),
    ("y_max", "the largest", "meters.events.y_max", "events"),
    ("gamma_t", "the active client's share of the mass, mean", "meters.events.gamma", "events"),
    ("gamma_min", "the same, smallest", "meters.events.gamma_min", "events"),
    ("c-bar", "the share of all mass that an event pushes, mean", "meters.events.c_bar", "events"),
    ("tau", "staleness in compute events, mean", "meters.events.tau", "events"),
    ("tau_max", "the same, largest", "meters.events.tau_max", "events"),
    ("Delta", "how far local training moves the weights, mean", "meters.events.drift", "events"),
    ("Delta_max", "the same, largest", "meters.events.drift_max", "events"),
    ("epsilon_c", "how far a message is from its model, mean", "meters.events.distortion", "events"),
    ("epsilon_c, max", "the same, largest", "meters.events.distortion_max", "events"),
    ("X_tot, compression", "shift by compression, summed", "meters.events.compression_shift_sum", "events"),
    ("X_tot, kept mass", "shift by kept mass, summed", "meters.kept.kept_shift_sum", "kept"),
    ("E_con", "consensus error at the end", "final.consensus_error", "reference"),
    ("|grad F|^2", "at the reference model, mean over time", "meters.gradient.gradient_norm2", "gradient"),
    ("F(w_0)", "the loss at the first look", "meters.gradient.first_objective", "gradient"),
    ("zeta^2", "how far clients' gradients are apart, largest", "meters.gradient.zeta2", "gradient"),
)


def theory_table(run: Run) -> Table:
    """List what a run measured of the paper's convergence theorem; what was not measured says which meter does."""
    rows, off = [], set()
    for symbol, meaning, where, meter in _TERMS:
        value = run.number(where)
        if value is None:
            off.add(meter)
        else:
            rows.append([symbol, meaning, value])
    notes = (
        [f"not measured: meters.names lacks {', '.join(sorted(off))}, or the method has no such term"] if off else []
    )
    columns = [Column("symbol", left=True), Column("what it is", left=True), Column("measured", number)]
    return Table("The theorem's terms, as measured", columns, rows if run.summary else [], notes)
