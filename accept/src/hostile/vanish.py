"""Clients that go without a word, as when their machine loses power: TCP_REPAIR has
the kernel forget a connection and send nothing. Started with the ports of servers;
to each one connection that was answered and one with half a request, which is read."""

import socket
import sys

TCP_REPAIR = 19

for port in map(int, sys.argv[1:]):
    for request, reply in [(b"1 a\n", b"1 a\n"), (b"2 b\n3 hal", b"2 b\n")]:
        stream = socket.create_connection(("127.0.0.1", port), timeout=20)
        stream.sendall(request)
        got = b""
        while len(got) < len(reply):
            more = stream.recv(len(reply) - len(got))
            if not more:
                raise SystemExit(f"port {port}: cut off behind {got!r}")
            got += more
        if got != reply:
            raise SystemExit(f"port {port}: {got!r} instead of {reply!r}")
        stream.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        stream.close()
print("gone")
