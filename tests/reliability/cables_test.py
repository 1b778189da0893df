#!/usr/bin/env python3
"""Networks that break between hosts, which here are network namespaces: cables_test.py UNISONO

Needs the right to make network namespaces; without it the test is skipped (77).
"""

import os
import pathlib
import subprocess
import sys
import time
import unittest

import jobs

PROGRAM = ""
HOSTS = []
WORK = ["bench", "all_reduce", "-b", "64K", "-e", "64K", "-n", "100000000"]


def make_hosts():
    """Four, two each at one of two switches in a fifth namespace, which a trunk connects."""
    tag = os.getpid() % 250 + 1
    switch = f"unisono-switch-{tag}"
    hosts = [f"10.214.{tag}.{i}" for i in range(1, 5)]
    commands = [f"netns add {switch}",
                f"-n {switch} link add trunk0 type veth peer name trunk1"]
    for i in range(2):
        commands += [f"-n {switch} link add s{i} type bridge", f"-n {switch} link set s{i} up",
                     f"-n {switch} link set trunk{i} master s{i}", f"-n {switch} link set trunk{i} up"]
    for i, host in enumerate(hosts):
        commands += [f"netns add {host}",
                     f"link add e{i} netns {switch} type veth peer name eth netns {host}",
                     f"-n {switch} link set e{i} master s{i // 2}", f"-n {switch} link set e{i} up",
                     f"-n {host} addr add {host}/24 dev eth", f"-n {host} link set eth up",
                     f"-n {host} link set lo up"]
    for command in commands:
        done = jobs.call("ip", *command.split())
        if done.returncode != 0:
            remove_hosts(switch, hosts)
            jobs.skip(
                f"no network namespaces here: ip {command}: {done.stderr}\n"
                "run as root, or with CAP_NET_ADMIN and CAP_SYS_ADMIN, with iproute2 installed"
            )
    return switch, hosts


def remove_hosts(switch, hosts):
    for name in [*hosts, switch]:
        jobs.call("ip", "netns", "del", name)


def start(hosts):
    return subprocess.Popen(
        [PROGRAM, "run", "--hosts", ",".join(hosts), "--launcher", "ip netns exec {host}", "--", PROGRAM,
         *WORK], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=jobs.environment())


class Cables(unittest.TestCase):
    def setUp(self):
        self.switch, self.hosts = HOSTS

    def cable(self, name, state):
        jobs.call("ip", "-n", self.switch, "link", "set", name, state, check=True)

    def port(self, name, state):
        number = {"disabled": "0", "forwarding": "3"}[state]
        jobs.call("ip", "netns", "exec", self.switch, "bridge", "link", "set", "dev", name, "state", number,
                  check=True)

    def begin(self, hosts):
        job = start(hosts)
        self.addCleanup(job.kill)
        self.assertIn("ranks over the network", job.stdout.readline())
        time.sleep(1)
        return job

    def end(self, job, seconds=40):
        said, _ = job.communicate(timeout=seconds)
        return said

    def test_a_cable_that_is_in_again_soon_is_no_alarm(self):
        # The switch keeps everything back: the system takes up to a second to see that a cable is in
        # again, and two seconds of silence are the limit.
        job = self.begin(self.hosts)
        self.port("e3", "disabled")
        time.sleep(0.3)
        self.port("e3", "forwarding")
        time.sleep(2.5)
        self.assertIsNone(job.poll(), "the job has ended")
        job.terminate()
        self.end(job)

    def test_a_parted_network_ends_the_world_on_both_sides(self):
        """C3: nobody goes on alone."""
        job = self.begin(self.hosts)
        self.cable("trunk0", "down")
        begin = time.monotonic()
        said = self.end(job)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(job.returncode, 3, said)
        # Both sides, and each blames somebody of the other.
        self.assertRegex(said, r"(:[01]|\[ranks 0,1\]) error.*rank [23] is gone: the connection to rank")
        self.assertRegex(said, r"(:[23]|\[ranks 2,3\]) error.*rank [01] is gone: the connection to rank")
        self.assertNotIn("stopped by the launcher", said)

    def test_a_connection_that_the_system_kills_is_named(self):
        """C2: ss -K is a reset at both ends, out of nothing."""
        job = self.begin(self.hosts[:2])
        done = jobs.call("ip", "netns", "exec", self.hosts[0], "ss", "-K", "dst", self.hosts[1])
        if done.returncode != 0 or "not supported" in done.stderr:
            job.kill()
            self.skipTest(f"this system kills no sockets: {done.stderr}")
        said = self.end(job, 20)
        self.assertEqual(job.returncode, 3, said)
        self.assertRegex(said, r"rank [01] is gone: the connection to rank [01]")


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    HOSTS = make_hosts()
    try:
        result = unittest.main(exit=False).result
    finally:
        remove_hosts(*HOSTS)
    sys.exit(0 if result.wasSuccessful() else 1)
