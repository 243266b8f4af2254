"""A member with a certificate whose server answers every hello and push with whatever a test makes up."""

import contextlib

import grpc

from pushcen.runtime.security.identity import Certified
from pushcen.runtime.wire import SERVICE, News


@contextlib.asynccontextmanager
async def liar(world, name, say, *, push=None, reference=None):
    """Listen at the address of `name`; `say` makes the answer, a Hello; `push` and `reference` theirs, if given."""
    server = grpc.aio.server()

    async def hello(_request, _context):
        return say().SerializeToString()

    async def gossip(_request, _context):
        return News().SerializeToString()

    def taking(answer):
        async def take(pieces, _context):
            async for _ in pieces:
                pass
            return answer().SerializeToString()

        return grpc.stream_unary_rpc_method_handler(take)

    handlers = {
        "Hello": grpc.unary_unary_rpc_method_handler(hello),
        "Gossip": grpc.unary_unary_rpc_method_handler(gossip),
        "Push": taking(push or say),
        "Reference": taking(reference or say),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    Certified(world.certs(name)).listen(server, world.addresses[name])
    await server.start()
    try:
        yield
    finally:
        await server.stop(0)
