"""An HTTP proxy that connects whoever asks for it (CONNECT): `python -m tests.runtime.proxy HOST:PORT`."""

import asyncio
import sys


async def proxy_at(host, port, reached):
    """Start one; it notes in `reached` to where it was asked to connect."""

    async def serve(reader, writer):
        method, target, _ = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)
        assert method == b"CONNECT"
        reached.append(target.decode())
        host, _, port = target.decode().rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def carry(source, sink):
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
            sink.close()

        await asyncio.gather(carry(reader, back), carry(there, writer), return_exceptions=True)

    server = await asyncio.start_server(serve, host, port)
    return server, f"{host}:{server.sockets[0].getsockname()[1]}"


async def main(address):
    host, _, port = address.rpartition(":")
    server, _ = await proxy_at(host, int(port), [])
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
