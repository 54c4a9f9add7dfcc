"""Comes to every port for data of the second host as somebody who is not one of ours.

    stranger.py FAR_PID SECONDS

Connects to each port that is listened on there, but for ssh's, and says garbage, or nothing, or
goes at once; says how many connections were made.
"""

import random
import socket
import sys
import time


def ports(pid):
    """Ports that are listened on in the network namespace of a process (proc_net_tcp.rst)."""
    found = set()
    with open(f"/proc/{pid}/net/tcp") as table:
        for line in table.readlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                found.add(int(fields[1].split(":")[1], 16))
    return found - {22}


def main():
    pid, until = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
    made, kept = 0, []
    while time.monotonic() < until:
        for port in ports(pid):
            try:
                stranger = socket.create_connection(("10.77.0.2", port), timeout=0.2)
            except OSError:
                continue
            made += 1
            how = random.randrange(3)
            try:
                if how == 0:
                    stranger.sendall(random.randbytes(random.randrange(1, 4096)))
                if how == 1:
                    kept.append(stranger)
                    continue
            except OSError:
                pass
            stranger.close()
        time.sleep(0.002)
    print(made)


main()
