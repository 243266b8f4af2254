"""Methods by name: those here, those of installed packages (entry points), and `module:Class`."""

import contextlib
import difflib
import sys
import warnings
from importlib.metadata import entry_points

from pushcen.errors import OptionError, PushcenError
from pushcen.locate import locate
from pushcen.methods.a2cid2 import A2Cid2
from pushcen.methods.ad_psgd import AdPsgd
from pushcen.methods.async_dfedavg import AsyncDFedAvg
from pushcen.methods.choco import Choco
from pushcen.methods.d_psgd import DPsgd
from pushcen.methods.divshare import DivShare
from pushcen.methods.dspodfl import DSpodFL
from pushcen.methods.epidemic import Epidemic
from pushcen.methods.fedkd import FedKD
from pushcen.methods.independent import Independent
from pushcen.methods.lean import PushCenLean
from pushcen.methods.method import Method
from pushcen.methods.moniqua import Moniqua
from pushcen.methods.push_sum import PushSum
from pushcen.methods.pushcen import PushCen
from pushcen.methods.quantized_push_sum import QuantizedPushSum
from pushcen.methods.rasgp import Rasgp
from pushcen.methods.sgp import Sgp
from pushcen.methods.spafl import SpaFL
from pushcen.methods.swift import Swift, SwiftRandom

_HERE: tuple[type[Method], ...] = (
    PushCen,
    PushCenLean,
    PushSum,
    AsyncDFedAvg,
    Swift,
    SwiftRandom,
    DivShare,
    Epidemic,
    Sgp,
    QuantizedPushSum,
    Rasgp,
    DPsgd,
    Choco,
    Moniqua,
    AdPsgd,
    A2Cid2,
    DSpodFL,
    SpaFL,
    FedKD,
    Independent,
)
GROUP = "pushcen.methods"
"""The entry-point group by which an installed package adds methods."""


def methods() -> dict[str, type[Method]]:
    """Return every method that has a name: those here first, then those of installed packages.

    >>> list(methods())[:3]
    ['pushcen', 'pushcen-lean', 'push-sum']
    """
    known = {method.name: method for method in _HERE}
    for point in entry_points(group=GROUP):
        if point.name in known:
            continue
        try:
            known[point.name] = _checked(point.load(), point.name)
        except Exception as error:  # somebody's package is broken: the others must work without it
            warnings.warn(f"method {point.name}, installed as {point.value}, cannot be used: {error!r}", stacklevel=2)
    return known


def method_named(name: str) -> type[Method]:
    """Find a method by its name, or by `module:Class` in a file of one's own.

    >>> method_named("pushcen")(clusters=16).clusters
    16
    >>> method_named("pushcan")
    Traceback (most recent call last):
    pushcen.errors.OptionError: method.name = 'pushcan': there is no such method; did you mean pushcen or ...
    """
    if ":" in name:
        return _checked(locate(name, "method.name"), name)
    for method in _HERE:  # before all installed packages are looked through
        if method.name == name:
            return method
    known = methods()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 2)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise OptionError(
        f"method.name = {name!r}: there is no such method; {hint}There are {', '.join(known)}, or module:Class"
    )


def method_name(kind: type[Method]) -> str:
    """Return the name by which `method_named` finds a class.

    >>> method_name(PushCen), method_name(type("Mine", (PushCen,), {"__module__": "mine"}))
    ('pushcen', 'mine:Mine')
    """
    with contextlib.suppress(PushcenError):
        if method_named(kind.name) is kind:
            return kind.name
    return f"{kind.__module__}:{kind.__qualname__}"


def method_loaded(name: str) -> type[Method] | None:
    """Return a method's class if that takes no import: it is one of those here, or somebody has imported it already.

    >>> method_loaded("swift").__name__, method_loaded("antigravity:Mine")
    ('Swift', None)
    """
    for method in _HERE:
        if method.name == name:
            return method
    installed = (point.value for point in entry_points(group=GROUP) if point.name == name)
    module, _, thing = (name if ":" in name else next(installed, "")).partition(":")
    found = getattr(sys.modules.get(module), thing, None)
    return found if isinstance(found, type) and issubclass(found, Method) else None


def _checked(method: object, name: str) -> type[Method]:
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise OptionError(f"method.name = {name!r}: {method!r:.80} is no subclass of pushcen.methods.Method")
    return method
