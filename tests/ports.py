"""Free ports for tests, which no other program is given before the test listens there."""

import pathlib
import random
import socket


def free_port():
    """Returns a port P such that P and P + 1 are free, below the range of outgoing connections."""
    given = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    for _ in range(1000):
        port = random.SystemRandom().randrange(10_000, max(int(given[0]), 12_000) - 1)
        try:
            with socket.create_server(("127.0.0.1", port)), socket.create_server(("127.0.0.1", port + 1)):
                return port
        except OSError:
            continue
    raise OSError("no two ports beside each other are free")
