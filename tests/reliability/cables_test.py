#!/usr/bin/env python3
"""Networks that break between hosts, which here are network namespaces: cables_test.py UNISONO VANISH

Needs the right to make network namespaces; without it the test is skipped (77).
"""

import os
import pathlib
import subprocess
import re
import signal
import sys
import tempfile
import time
import unittest

import jobs

PROGRAM = ""
VANISH = ""
HOSTS = []
WORK = ["bench", "all_reduce", "-b", "64K", "-e", "64K", "-n", "100000000"]


def make_hosts():
    """Four hosts, two at each of two switches in a fifth namespace, which a trunk connects."""
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


def start(hosts, **variables):
    return subprocess.Popen(
        [PROGRAM, "run", "--hosts", ",".join(hosts), "--launcher", "ip netns exec {host}", "--", PROGRAM,
         *WORK], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=jobs.environment(**variables))


class Cables(unittest.TestCase):
    def setUp(self):
        self.switch, self.hosts = HOSTS

    def cable(self, name, state):
        jobs.call("ip", "-n", self.switch, "link", "set", name, state, check=True)

    def port(self, name, state):
        number = {"disabled": "0", "forwarding": "3"}[state]
        jobs.call("ip", "netns", "exec", self.switch, "bridge", "link", "set", "dev", name, "state", number,
                  check=True)

    def begin(self, hosts, **variables):
        job = start(hosts, **variables)
        self.addCleanup(job.kill)
        self.assertIn("ranks over the network", job.stdout.readline())
        time.sleep(1)
        return job

    def end(self, job, seconds=40):
        said, _ = job.communicate(timeout=seconds)
        return said

    def test_a_cable_that_is_in_again_soon_is_no_alarm(self):
        # The switch drops everything: the system takes up to a second to see that a cable is
        # plugged in again, and the limit is two seconds of silence.
        job = self.begin(self.hosts)
        self.port("e3", "disabled")
        time.sleep(0.3)
        self.port("e3", "forwarding")
        time.sleep(2.5)
        self.assertIsNone(job.poll(), "the job has ended")
        job.terminate()
        self.end(job)

    def test_a_longer_silence_that_is_allowed_is_no_alarm(self):
        job = self.begin(self.hosts, UNISONO_SILENCE_MS="20000")
        self.port("e3", "disabled")
        time.sleep(4)
        self.port("e3", "forwarding")
        time.sleep(3)
        self.assertIsNone(job.poll(), "the job has ended")
        job.terminate()
        self.end(job)

    def test_questions_that_get_lost_while_nothing_is_under_way_are_no_alarm(self):
        with tempfile.TemporaryDirectory() as folder:
            ranks = self.meet(folder, "idle", UNISONO_SILENCE_MS="20000")
            self.assertTrue(jobs.wait_for(
                lambda: all(pathlib.Path(folder, f"met{rank}").exists() for rank in ranks)))
            self.port("e3", "disabled")
            time.sleep(4)  # the system asks once a second
            self.port("e3", "forwarding")
            time.sleep(2)
            pathlib.Path(folder, "go").touch()
            for rank, job in ranks.items():
                said, _ = job.communicate(timeout=600)
                self.assertEqual((job.returncode, said), (0, "SAFE\n"), f"rank {rank}")

    def test_a_parted_network_ends_the_world_on_both_sides(self):
        """C3: no side continues alone."""
        job = self.begin(self.hosts)
        self.addCleanup(self.cable, "trunk0", "up")
        self.cable("trunk0", "down")
        begin = time.monotonic()
        said = self.end(job)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(job.returncode, 3, said)
        # Both sides end, and each blames a rank of the other side.
        self.assertRegex(said, r"(:[01]|\[ranks 0,1\]) error.*rank [23] is gone: the connection to rank")
        self.assertRegex(said, r"(:[23]|\[ranks 2,3\]) error.*rank [01] is gone: the connection to rank")
        self.assertNotIn("stopped by the launcher", said)

    def test_a_connection_that_the_system_kills_is_named(self):
        """C2: ss -K causes a reset at both ends."""
        job = self.begin(self.hosts[:2])
        done = jobs.call("ip", "netns", "exec", self.hosts[0], "ss", "-K", "dst", self.hosts[1])
        if done.returncode != 0 or "not supported" in done.stderr:
            job.kill()
            self.skipTest(f"this system kills no sockets: {done.stderr}")
        said = self.end(job, 20)
        self.assertEqual(job.returncode, 3, said)
        self.assertRegex(said, r"rank [01] is gone: the connection to rank [01]")

    # A host that vanishes during the rendezvous. Its network is cut, so that its system cannot
    # report this.

    def meet(self, folder, *words, ranks=range(4), **variables):
        jobs_of = {}
        for rank in ranks:
            host = self.hosts[rank]
            environment = jobs.environment(
                RANK=str(rank), WORLD_SIZE="4", UNISONO_TOKEN="0123456789abcdef", UNISONO_JOB=os.path.basename(folder),
                UNISONO_ADDRESS=f"{self.hosts[0]}:29700", UNISONO_CONNECT_TIMEOUT_MS="60000", **variables)
            jobs_of[rank] = subprocess.Popen(
                ["ip", "netns", "exec", host, VANISH, folder, *map(str, words)], stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, env=environment)
            self.addCleanup(jobs_of[rank].communicate)
            self.addCleanup(jobs_of[rank].kill)
        return jobs_of

    def vanish(self, folder, victim):
        self.addCleanup(self.cable, f"e{victim}", "up")
        self.cable(f"e{victim}", "down")
        pathlib.Path(folder, "cut").touch()

    def check_named(self, ranks, victim):
        """Each of these names it, long before the connect timeout of a minute."""
        for rank, job in ranks.items():
            said, _ = job.communicate(timeout=600)
            found = re.search(r"LOST (-?\d+) (\d+) (.*)", said)
            self.assertIsNotNone(found, f"rank {rank}: {said}")
            print(f"rank {victim} vanished: rank {rank} knew after {found[2]} ms")
            self.assertEqual((int(found[1]), job.returncode), (victim, 3), f"rank {rank}: {said}")
            self.assertLess(int(found[2]), 20_000, f"rank {rank}: {said}")
            self.assertIn(f"rank {victim}", found[3])

    def await_cards(self, folder):
        self.assertTrue(jobs.wait_for(
            lambda: all(pathlib.Path(folder, f"card{rank}").exists() for rank in range(4))))

    def test_a_host_that_vanishes_before_its_rank_is_connected(self):
        for victim in (0, 2, 3):
            with tempfile.TemporaryDirectory() as folder, self.subTest(victim=victim):
                pathlib.Path(folder, "wait").touch()
                ranks = self.meet(folder, "cards", -1)
                self.await_cards(folder)
                ranks.pop(victim).kill()
                self.vanish(folder, victim)
                pathlib.Path(folder, "go").touch()
                self.check_named(ranks, victim)
                self.cable(f"e{victim}", "up")

    def test_a_host_that_vanishes_when_its_rank_waits_for_another(self):
        for victim, late in ((1, 3), (3, 0)):
            with tempfile.TemporaryDirectory() as folder, self.subTest(victim=victim):
                ranks = self.meet(folder, "cards", late)
                self.await_cards(folder)
                time.sleep(1)
                self.vanish(folder, victim)
                last = ranks.pop(late)
                ranks.pop(victim)
                self.check_named(ranks, victim)
                pathlib.Path(folder, "late").touch()
                said, _ = last.communicate(timeout=600)
                self.assertRegex(said, r"LOST \d")  # the others may have ended by then as well
                self.cable(f"e{victim}", "up")

    def test_the_host_of_rank_0_that_vanishes_before_it_tells_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            ranks = self.meet(folder, "lobby", ranks=(0, 1, 2))
            time.sleep(1.5)
            self.vanish(folder, 0)
            ranks.pop(0)
            self.check_named(ranks, 0)

    def test_a_host_that_vanishes_while_rank_0_waits_for_others(self):
        with tempfile.TemporaryDirectory() as folder:
            ranks = self.meet(folder, "lobby", ranks=(0, 1, 2))
            time.sleep(1.5)
            self.vanish(folder, 2)
            ranks.pop(2)
            for rank, job in ranks.items():
                said, _ = job.communicate(timeout=600)
                self.assertIn("rank 2 closed its connection during the rendezvous", said, f"rank {rank}")

    def test_a_rank_that_is_stopped_while_the_others_connect_is_not_taken_for_gone(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "wait").touch()
            ranks = self.meet(folder, "cards", -1)
            self.await_cards(folder)
            ranks[2].send_signal(signal.SIGSTOP)
            pathlib.Path(folder, "go").touch()
            time.sleep(5)
            for rank, job in ranks.items():
                self.assertIsNone(job.poll(), f"rank {rank} has ended: {job.stdout.read() if job.poll() else ''}")
            ranks[2].send_signal(signal.SIGCONT)
            time.sleep(1)
            for job in ranks.values():
                self.assertIsNone(job.poll())


if __name__ == "__main__":
    PROGRAM, VANISH = (str(pathlib.Path(sys.argv.pop(1)).resolve()) for _ in range(2))
    HOSTS = make_hosts()
    try:
        result = unittest.main(exit=False).result
    finally:
        remove_hosts(*HOSTS)
    sys.exit(0 if result.wasSuccessful() else 1)
