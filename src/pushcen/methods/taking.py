"""Which methods can take the options that are no method's own: a neighbour policy, weights by age, sparse messages."""

from pushcen.errors import OptionError
from pushcen.learning import SparsityOptions, sparse
from pushcen.methods.method import Method, Place
from pushcen.protocol import Rules


def check_taken(
    method: Method,
    policy: str = "random",
    by_age: tuple[str, float] | None = None,
    sparsity: SparsityOptions | None = None,
) -> None:
    """Refuse what would have no meaning with a method, or spoil it.

    `by_age` is the option of the section `staleness` by which models weigh less with age, and its value.

    >>> from pushcen.methods import PushSum
    >>> check_taken(PushSum(), by_age=("half_life", 2.0))
    Traceback (most recent call last):
    pushcen.errors.OptionError: staleness.half_life = 2.0: push-sum weighs models by the mass that came with them, ...
    """
    name = type(method).name
    if sparsity is not None and sparsity.given:
        sparse(method.update(), sparsity, name)
    if policy != "random" and getattr(_rules(method).outbox, "receivers", None) == 0:
        raise OptionError(
            f"neighbours.policy = {policy!r}: {name} pushes to all its neighbours, and there is none to pick; "
            "must be random"
        )
    if policy == "bandit" and method.exchanges:
        raise OptionError(
            f"neighbours.policy = 'bandit': learns by what an event merges, and {name} merges nothing: it exchanges; "
            "must be random or priority"
        )
    if by_age is None:
        return
    option, value = f"staleness.{by_age[0]}", by_age[1]
    if _rules(method).weights.moves_mass:
        raise OptionError(
            f"{option} = {value!r}: {name} weighs models by the mass that came with them, or their average would not "
            "be that of all; must be 0.0, or the method one without mass, such as async-dfedavg"
        )
    if not method.update().sends_models:
        raise OptionError(
            f"{option} = {value!r}: messages of {name} are no models, and have to be added whole; must be 0.0"
        )


def _rules(method: Method) -> Rules:
    """Return the rules of some client, on a small graph if the method needs one."""
    return method.rules(Place("a", {"a": ("b",), "b": ("a",)} if method.needs_graph else None))
