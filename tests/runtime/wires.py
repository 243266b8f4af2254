"""Wires between peers that a test can cut, stall or slow down: a TCP proxy for each ordered pair."""

import asyncio
import contextlib

from pushcen.runtime.security.identity import Certified


class Wires:
    def __init__(self, addresses):
        self.names = {address: name for name, address in addresses.items()}
        self.modes = {}  # (from, to) -> "pass", "cut", "stall" or bytes a second
        self.carried = 0
        self._ports, self._servers, self._open = {}, [], {}

    async def lay(self):
        for sender in self.names.values():
            for address, receiver in self.names.items():
                if sender != receiver:
                    pair = (sender, receiver)
                    server = await asyncio.start_server(
                        lambda r, w, p=pair, a=address: self._carry(p, a, r, w), "127.0.0.1"
                    )
                    self._servers.append(server)
                    self._ports[pair] = server.sockets[0].getsockname()[1]

    def route(self, sender, address):
        return f"127.0.0.1:{self._ports[sender, self.names[address]]}"

    def set(self, mode, pairs):
        for pair in pairs:
            self.modes[pair] = mode
            if mode == "cut":
                for writer in self._open.pop(pair, ()):
                    writer.close()

    def between(self, some, others):
        return [(a, b) for a in some for b in others] + [(b, a) for a in some for b in others]

    async def take_up(self):
        for server in self._servers:
            server.close()

    async def _carry(self, pair, address, reader, writer):
        mode = self.modes.get(pair, "pass")
        if mode == "cut":
            writer.close()
            return
        if mode == "stall":
            with contextlib.suppress(ConnectionError):
                while await reader.read(65536):  # takes everything in, says nothing
                    pass
            return
        host, port = address.split(":")
        with contextlib.suppress(OSError):
            onward = await asyncio.open_connection(host, int(port))
            self._open.setdefault(pair, set()).update((writer, onward[1]))
            await asyncio.gather(self._pump(pair, reader, onward[1]), self._pump(pair, onward[0], writer))

    async def _pump(self, pair, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(16384):
                mode = self.modes.get(pair, "pass")
                if mode == "stall":
                    await asyncio.sleep(3600)
                if isinstance(mode, int):
                    await asyncio.sleep(len(data) / mode)
                writer.write(data)
                await writer.drain()
                self.carried += len(data)
        writer.close()


class Wired(Certified):
    """A peer whose calls all go over the wires."""

    def __init__(self, folder, wires):
        super().__init__(folder)
        self._wires = wires

    def channel(self, address, name, options):
        return super().channel(self._wires.route(self.name, address), name, options)
