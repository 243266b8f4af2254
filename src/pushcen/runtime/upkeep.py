"""What a running peer looks after by itself: that its certificate is the newest one, and does not end unnoticed."""

import asyncio
import math
from time import monotonic

from pushcen.errors import CertificateError
from pushcen.runtime.security.trust import utc
from pushcen.runtime.shared import Shared

SOON = 30
"""Days before its end from which a certificate is said to end soon."""
_EVERY = 1.0
_DAY = 86_400.0


class Upkeep:
    """Looks after one peer, once a second, for as long as it runs."""

    def __init__(self, shared: Shared) -> None:
        self._identity, self._log, self._metrics = shared.identity, shared.log, shared.metrics
        self._warned = -math.inf

    async def run(self) -> None:
        """Look after everything until cancelled."""
        while True:
            self._renew()
            self._warn(monotonic())
            await asyncio.sleep(_EVERY)

    def _renew(self) -> None:
        """Take a new certificate over, once it is there."""
        until = self._identity.until
        try:
            if self._identity.renew():
                until, self._warned = self._identity.until, -math.inf
                self._log.say("a new certificate", until=f"{until:%Y-%m-%d}", serial=f"{self._identity.serial:x}")
        except CertificateError as error:  # an operator may be half-way through copying it
            self._log.seldom("certificate", "goes on with the certificate that it has", text=str(error))
        self._metrics.certificate.set(until.timestamp() if until else math.inf)

    def _warn(self, now: float) -> None:
        """Say once a day that the certificate ends soon, or has ended."""
        if self._identity.until is None or now - self._warned < _DAY:
            return
        days = math.floor((self._identity.until - utc()).total_seconds() / _DAY)
        if days < SOON:
            self._warned = now
            event = "its certificate ends soon" if days >= 0 else "its certificate has ended, and nobody lets it in"
            self._log.warn(event, days=days, until=f"{self._identity.until:%Y-%m-%d}", hint="pushcen certs request")
