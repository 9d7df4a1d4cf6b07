"""A network that fails on command: `proxy.py PORT TARGET FOLDER` passes what comes to PORT on to TARGET of this machine.

It counts turns: the client speaks after the server did. An order, a JSON object a line of FOLDER/orders, breaks one:
{"what": "cut" | "stall" | "truncate" | "late", "at": TURN, "before": false, "bytes": 0, "seconds": 0}. `before`: what the
client said in that turn never arrives. FOLDER/log gets a line a turn; FOLDER/down refuses new connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path


class Network:
    def __init__(self, target: int, folder: Path) -> None:
        self.target = target
        self.folder = folder
        self.turns = 0

    def turn(self) -> dict | None:
        """Count a turn; the order that breaks it."""
        self.turns += 1
        file = self.folder / "orders"
        orders = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        found = next((one for one in orders if one["at"] <= self.turns), None)
        with (self.folder / "log").open("a") as log:
            print(self.turns, found["what"] if found else "-", file=log)
        if found is not None:
            orders.remove(found)
            part = self.folder / "orders.part"
            part.write_text("".join(f"{json.dumps(one)}\n" for one in orders))
            part.replace(file)
        return found

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (self.folder / "down").exists():
            writer.transport.abort()
            return
        try:
            there = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        await Connection(self, (reader, writer), there).carry()


class Connection:
    def __init__(self, network: Network, client: tuple, server: tuple) -> None:
        self.network = network
        self.client, self.server = client, server
        self.order: dict | None = None
        self.left = 0  # bytes that still pass
        self.client_speaks = False

    async def carry(self) -> None:
        ways = [asyncio.ensure_future(self._up()), asyncio.ensure_future(self._down())]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for _, writer in (self.client, self.server):
            writer.transport.abort() if self.order else writer.close()

    async def _up(self) -> None:
        while data := await self._read(self.client[0]):
            if not self.client_speaks:
                self.client_speaks = True
                self.order = self.order or self.network.turn()
                self.left = self.order["bytes"] if self.order else 0
            if self.order is not None and self.order["before"]:
                if self.order["what"] == "cut":
                    return
                await asyncio.Event().wait()  # for ever
            self.server[1].write(data)
            await self.server[1].drain()

    async def _down(self) -> None:
        while data := await self._read(self.server[0]):
            self.client_speaks = False
            what = self.order["what"] if self.order else None
            if what == "cut":
                return
            if what == "stall":
                await asyncio.Event().wait()
            if what == "truncate":
                self.client[1].write(data[: self.left])
                await self.client[1].drain()
                self.left -= len(data)
                if self.left <= 0:
                    return
                continue
            if what == "late":
                await asyncio.sleep(self.order["seconds"])  # type: ignore[index]
                self.order = None
            self.client[1].write(data)
            await self.client[1].drain()

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        with contextlib.suppress(OSError):
            return await reader.read(1 << 16)
        return b""


async def main(port: int, target: int, folder: Path) -> None:
    network = Network(target, folder)
    server = await asyncio.start_server(network.serve, "127.0.0.1", port)
    (folder / "ready").touch()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
