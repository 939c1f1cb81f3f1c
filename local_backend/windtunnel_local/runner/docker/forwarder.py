"""Runs in a job's container, whatever its image: passes each connection of a loopback port to a Unix socket.

    python3 -IS -c TEXT-OF-THIS-FILE PORT SOCKET

Ends once the port is open; a child of it stays. Knows nothing but the standard library.
"""

import asyncio
import errno
import os
import socket
import sys

_CHUNK = 1 << 18


def main(port: int, target: str) -> None:
    """Open the port, and serve it from a process that nobody waits for.

    A port that is taken is left alone: the forwarder of an earlier call has it.
    """
    with socket.socket(socket.AF_UNIX) as knock:
        knock.connect(target)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return
        raise
    listener.listen(128)
    if os.fork():
        return
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    asyncio.run(_serve(listener, target))


async def _serve(listener: socket.socket, target: str) -> None:
    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, requests = await asyncio.open_unix_connection(target)
        except OSError:  # no server runs now: the client tries again
            writer.close()
            return
        sending = asyncio.ensure_future(_pump(reader, requests))
        await _pump(answers, writer)
        sending.cancel()
        writer.close()
        requests.close()

    server = await asyncio.start_server(passed_on, sock=listener)
    await server.serve_forever()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Pass on all there is, and then its end."""
    try:
        while True:
            data = await source.read(_CHUNK)
            if not data:
                break
            sink.write(data)
            await sink.drain()
        sink.write_eof()
    except OSError:
        sink.close()


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), sys.argv[2])
    except OSError as error:
        sys.exit(f"{sys.argv[2]}: {error}")
