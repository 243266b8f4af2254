"""A tunnel's end whose server has stopped ends as one whose connection is gone: nothing goes wrong aloud."""

import asyncio

import grpc

from pushcen.runtime.reach.pipe import pipe


def test_a_pipe_of_a_server_that_stops_ends_without_an_error():
    async def story():
        shown, reader = asyncio.get_running_loop().create_future(), asyncio.StreamReader()
        listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())

        async def carry(_requests, context):
            await context.write(b"ready")
            shown.set_result(context)
            await asyncio.Event().wait()

        server = grpc.aio.server()
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("a.B", {"C": grpc.stream_stream_rpc_method_handler(carry)}),)
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.stream_stream("/a.B/C")()
            assert await call.read() == b"ready"
            context = await shown
            await server.stop(None)
            reader.feed_data(b"more")
            await asyncio.wait_for(pipe(context, reader, writer), 10)
        listener.close()

    asyncio.run(story())
