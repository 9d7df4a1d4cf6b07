"""A network with a delay, for benchmarks: `delayed.py PORT TARGET MILLISECONDS [MIB_PER_SECOND]`.

Passes what comes to PORT of this machine on to TARGET and back, each byte half a round trip later. It takes bytes at
once, so that only the windows of what runs over it hold a transfer up. Prints a line when it listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

_READ = 1 << 18
_MOST = 1 << 12  # reads on their way


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, late_s: float, rate: float | None) -> None:
    """One direction, to its end or the first fault."""
    loop = asyncio.get_running_loop()
    way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_MOST)

    async def take() -> None:
        data, free = b"-", loop.time()
        while data:
            data = await reader.read(_READ)
            if rate:
                free = max(free, loop.time()) + len(data) / rate
                await asyncio.sleep(free - loop.time())
            await way.put((loop.time() + late_s, data))

    def end() -> None:
        while way.full():  # what a cut connection would have brought
            way.get_nowait()
        way.put_nowait((0.0, b""))

    taking = asyncio.ensure_future(take())
    taking.add_done_callback(lambda done: None if done.cancelled() or done.exception() is None else end())
    try:
        while True:
            due, data = await way.get()
            await asyncio.sleep(due - loop.time())
            if not data:
                return writer.write_eof()
            writer.write(data)
            await writer.drain()
    finally:
        taking.cancel()


async def main(port: int, target: int, late_s: float, rate: float | None) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to_there = await asyncio.open_connection("127.0.0.1", target, limit=_READ)
        ways = [carry(reader, to_there, late_s, None), carry(there, writer, late_s, rate)]
        with contextlib.suppress(OSError):
            await asyncio.gather(*ways)
        for end in (writer, to_there):
            end.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=_READ)
    print("listening", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    PORT, TARGET, MILLISECONDS, *MORE = sys.argv[1:]
    asyncio.run(main(int(PORT), int(TARGET), float(MILLISECONDS) / 2000, float(MORE[0]) * (1 << 20) if MORE else None))
