"""Plain training, and messages of any codec: for methods that let the user choose one."""

import difflib

from pushcen.codec import Codec, codecs
from pushcen.errors import OptionError
from pushcen.learning.update import Update
from pushcen.locate import locate


class CodedUpdate(Update):
    """Sends the whole model by one codec."""

    def __init__(self, codec: Codec) -> None:
        if not codec.whole:
            raise OptionError(f"codec = {codec.name!r}: sends only a part of a model; must send all of it")
        self._codec = codec

    def codecs(self) -> dict[int, Codec]:
        """Send by the codec."""
        return {0: self._codec}


def codec_named(name: str) -> Codec:
    """Make the codec of this name, or of a class `module:Class` of one's own, with its default options.

    >>> codec_named("dense")
    Dense(number='float32')
    >>> codec_named("dens")
    Traceback (most recent call last):
    pushcen.errors.OptionError: codec = 'dens': there is no such codec; did you mean dense? ...
    """
    kind = locate(name, "codec") if ":" in name else codecs().get(name)
    if kind is None:
        known = [name for name in codecs() if ":" not in name]
        near = difflib.get_close_matches(name, known, 2)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise OptionError(
            f"codec = {name!r}: there is no such codec; {hint}There are {', '.join(known)}, or module:Class"
        )
    if not (isinstance(kind, type) and issubclass(kind, Codec)):
        raise OptionError(f"codec = {name!r}: {kind!r:.80} is no subclass of pushcen.codec.Codec")
    try:
        return kind()
    except TypeError as error:
        raise OptionError(f"codec = {name!r}: each of its options must have a default: {error}") from None
