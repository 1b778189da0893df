#!/usr/bin/env python3
"""Ranks on two hosts: network namespaces that are connected by a cable.

  hosts_test.py PROGRAM RESHARDED

PROGRAM is unisono, RESHARDED built from resharded.cc. Needs the right to make network namespaces; without it the test is skipped (77).
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = ""
RESHARDED = ""
HOSTS = []


def call(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True, timeout=600)


def make_hosts():
    """Two namespaces, each named after its address."""
    tag = os.getpid() % 250 + 1
    hosts = [f"10.213.{tag}.{i}" for i in (1, 2)]
    for host in hosts:
        call("ip", "netns", "add", host)
    ends = [f"u{tag}a", f"u{tag}b"]
    call("ip", "link", "add", ends[0], "netns", hosts[0], "type", "veth", "peer", "name", ends[1],
         "netns", hosts[1])
    for host, end in zip(hosts, ends):
        for words in (["addr", "add", host + "/24", "dev", end], ["link", "set", end, "up"],
                      ["link", "set", "lo", "up"]):
            call("ip", "-n", host, *words)
    return list(zip(hosts, ends))


def remove_hosts(hosts):
    for host, _ in hosts:
        call("ip", "netns", "del", host, check=False)


def await_link(host, device):
    """UCX sees only devices that are up, and a cable takes a moment to come up."""
    for _ in range(100):
        if "LOWER_UP" in call("ip", "-n", host, "link", "show", device).stdout:
            return
        time.sleep(0.05)


def bytes_sent(host, device):
    shown = call("ip", "-n", host, "-s", "-j", "link", "show", device).stdout
    return json.loads(shown)[0]["stats64"]["tx"]["bytes"]


def run(ranks, *program, environment=None, timeout=120, launcher="ip netns exec {host}"):
    """Runs the job's ranks side by side on both hosts; ranks is the number on each."""
    hosts = ",".join(f"{host}:{ranks}" for host, _ in HOSTS)
    return subprocess.run(
        [PROGRAM, "run", "--hosts", hosts, "--launcher", launcher, "--", *program],
        capture_output=True, text=True, timeout=timeout, env={**os.environ, **(environment or {})})


def ranks_of(listed):
    """Returns the ranks of a list such as 0-2,5."""
    ranks = set()
    for part in listed.split(","):
        first, _, last = part.partition("-")
        ranks |= set(range(int(first), int(last or first) + 1))
    return ranks


class Hosts(unittest.TestCase):
    def check_all_right(self, ranks, environment=None):
        done = run(ranks, PROGRAM, "bench", "all", "-b", "64", "-e", "256K", "-f", "4096",
                   "--time-per-row", "1ms", environment=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [line for line in done.stdout.splitlines() if line and not line.startswith("#")]
        self.assertGreater(len(rows), 20)
        for row in rows:
            self.assertEqual(row.split()[-1], "0", row)

    def test_every_collective_between_one_and_one(self):
        self.check_all_right(1)

    def test_every_collective_between_two_and_two(self):
        self.check_all_right(2)

    def check_reshard(self, environment=None):
        # Both ranks of the second host need all elements, which the ranks of the first host share.
        payload = 4096 * 2048 * 4
        before = bytes_sent(*HOSTS[0])
        done = run(2, RESHARDED, environment=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for rank in (2, 3):
            self.assertIn(f"rank {rank}: all elements are right", done.stdout)
        sent = bytes_sent(*HOSTS[0]) - before
        self.assertGreater(sent, payload)
        self.assertLess(sent, 1.1 * payload)  # headers

    def test_a_reshard_sends_each_byte_once_to_a_host(self):
        self.check_reshard()

    def test_a_reshard_over_ucx(self):
        self.need_ucx()
        self.check_reshard({"UNISONO_NETWORK": "ucx", "UCX_TLS": "tcp,self"})

    def need_ucx(self):
        done = subprocess.run([PROGRAM, "doctor"], capture_output=True, text=True, timeout=600)
        if re.search(r"UCX between hosts +UCX \d", done.stdout) is None:
            self.skipTest("no UCX here")
        for host, end in HOSTS:
            await_link(host, end)

    def test_over_ucx(self):
        self.need_ucx()
        self.check_all_right(2, {"UNISONO_NETWORK": "ucx", "UCX_TLS": "tcp,self"})

    def test_over_ucx_with_two_devices(self):
        self.need_ucx()
        tag = os.getpid() % 250 + 1
        for (host, end), number in zip(HOSTS, (1, 2)):
            for name, network in (("first", 214), ("second", 215)):
                for words in (["link", "add", "link", end, "name", name, "type", "macvlan"],
                              ["addr", "add", f"10.{network}.{tag}.{number}/24", "dev", name],
                              ["link", "set", name, "up"]):
                    call("ip", "-n", host, *words)
                await_link(host, name)
        self.check_all_right(1, {"UNISONO_NETWORK": "ucx", "UCX_TLS": "tcp,self",
                                 "UCX_NET_DEVICES": "first,second",
                                 "UCX_MAX_EAGER_RAILS": "2", "UCX_MAX_RNDV_RAILS": "2"})
        # UCX decides how to divide a message between its devices.
        for host, _ in HOSTS:
            carried = [bytes_sent(host, device) for device in ("first", "second")]
            self.assertGreater(sum(carried), 1_000_000, f"{host}: {carried}")

    def test_over_link_local_addresses(self):
        """Each host has its own name for its end of the cable."""
        shown = {}
        for host, end in HOSTS:
            for _ in range(200):  # until the kernel has checked that the address is unique
                found = json.loads(call("ip", "-n", host, "-j", "-6", "addr", "show", "dev", end, "scope", "link").stdout)
                infos = [info for entry in found for info in entry.get("addr_info", [])]
                if infos and not any(info.get("tentative") for info in infos):
                    break
                time.sleep(0.05)
            else:
                self.skipTest("no IPv6 here")
            shown[host] = infos[0]["local"]
        (first, end), (_, other) = HOSTS
        script = (f"case $(ip netns identify) in {first}) end={end} ;; *) end={other} ;; esac; "
                  f'UNISONO_ADDRESS="[{shown[first]}%$end]:29600" exec {PROGRAM} bench all_reduce -b 64 -e 1M --time-per-row 1ms')
        done = run(2, "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("4 ranks on 2 hosts", done.stdout)

    def test_lines_carry_the_host_of_their_rank(self):
        done = run(1, "sh", "-c", "echo it is here >&2; sleep 0.$RANK")
        said = sorted(done.stderr.splitlines())
        self.assertTrue(said == [f"{host}:{rank} it is here" for rank, (host, _) in enumerate(HOSTS)]
                        or said == ["[ranks 0,1] it is here"], said)

    def test_encrypted_and_with_checksums(self):
        self.check_all_right(2, {"UNISONO_TLS": "1", "UNISONO_CHECKSUM": "1"})

    def make_certificates(self, folder):
        """Creates each host's identity and a folder with both; returns the environment of a job with them."""
        os.mkdir(f"{folder}/trusted")
        for host, _ in HOSTS:
            made = subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                 "1", "-subj", f"/CN={host}", "-keyout", f"{folder}/{host}.key", "-out", f"{folder}/trusted/{host}.crt"],
                capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stderr)
            with open(f"{folder}/{host}.pem", "w") as identity:
                for part in (f"{folder}/trusted/{host}.crt", f"{folder}/{host}.key"):
                    identity.write(pathlib.Path(part).read_text())
        return {"UNISONO_TLS": "1", "UNISONO_TLS_TRUSTED": f"{folder}/trusted"}

    def test_with_certificates_of_hosts(self):
        if shutil.which("openssl") is None:
            self.skipTest("no openssl")
        with tempfile.TemporaryDirectory() as folder:
            environment = self.make_certificates(folder)
            shows = (f"UNISONO_TLS_IDENTITY={folder}/$(ip netns identify).pem "
                     f"exec {PROGRAM} bench all_reduce -b 1M -e 1M --time-per-row 1ms")
            done = run(2, "sh", "-c", shows, environment=environment)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            os.remove(f"{folder}/trusted/{HOSTS[1][0]}.crt")
            begin = time.monotonic()
            done = run(2, "sh", "-c", shows, environment=environment)
            self.assertLess(time.monotonic() - begin, 25)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("it does not trust this host's certificate (UNISONO_TLS_IDENTITY)", done.stderr)

    def test_a_killed_rank_is_named_on_both_hosts(self):
        script = (f"[ $RANK = 3 ] && (sleep 4; kill -9 $$) & "
                  f"exec {PROGRAM} bench all_reduce -b 1M -e 1M -n 1000000")
        begin = time.monotonic()
        done = run(2, "sh", "-c", script)
        self.assertLess(time.monotonic() - begin, 25)
        self.assertNotEqual(done.returncode, 0)
        # Each line begins with its source: a rank, or all ranks that printed the same.
        said_by = set()
        for line in done.stderr.splitlines():
            if found := re.search(r"(?::(\d+)|\[ranks ([\d,-]+)\]) .*rank 3 .*is gone", line):
                said_by |= ranks_of(found[1] or found[2])
        self.assertLessEqual({0, 1, 2}, said_by, done.stderr)

    def test_a_cut_cable_is_noticed(self):
        host, end = HOSTS[1]
        job = subprocess.Popen(
            [PROGRAM, "run", "--hosts", ",".join(host for host, _ in HOSTS), "--launcher",
             "ip netns exec {host}", "--", PROGRAM, "bench", "all_reduce", "-b", "64K", "-e", "64K", "-n",
             "3000000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(2)
        begin = time.monotonic()
        call("ip", "-n", host, "link", "set", end, "down")
        try:
            said, _ = job.communicate(timeout=600)
        finally:
            job.kill()
            call("ip", "-n", host, "link", "set", end, "up")
        self.assertLess(time.monotonic() - begin, 30)
        self.assertNotEqual(job.returncode, 0)
        self.assertRegex(said, r"rank [01] is gone: the connection to rank [01]")

    def test_a_rank_that_ends_before_it_joins_is_named_at_once(self):
        # The launcher notifies rank 0, and rank 0 the others; if rank 0 dies, the launcher notifies
        # all.
        for rank, others in ((1, {0, 2, 3}), (3, {0, 1, 2}), (0, {1, 2, 3})):
            script = f"[ $RANK = {rank} ] && exit 0; exec {PROGRAM} bench barrier"
            done = run(2, "sh", "-c", script, environment={"UNISONO_CONNECT_TIMEOUT_MS": "600000"})
            self.assertNotEqual(done.returncode, 0)
            said_by = set()
            for line in done.stderr.splitlines():
                if found := re.search(rf"(?::(\d+)|\[ranks ([\d,-]+)\]) .*rank {rank} exited with code 0 before it joined",
                                      line):
                    said_by |= ranks_of(found[1] or found[2])
            self.assertEqual(said_by, others, done.stderr)

    def test_a_shell_that_starts_late_hears_of_it_too(self):
        # Its script and the launcher's messages wait for it together.
        with tempfile.TemporaryDirectory() as folder:
            late = pathlib.Path(folder, "late")
            late.write_text(f'[ "$1" = {HOSTS[0][0]} ] || sleep 1\nexec ip netns exec "$@"\n')
            done = run(1, "sh", "-c", f"[ $RANK = 0 ] && exit 0; exec {PROGRAM} bench barrier", launcher=f"sh {late} {{host}}",
                       environment={"UNISONO_CONNECT_TIMEOUT_MS": "600000"}, timeout=60)
            self.assertIn("rank 0 exited with code 0 before it joined", done.stderr)

    def test_a_missing_rank_is_named_by_all(self):
        script = (f"[ $RANK = 1 ] && exec sleep 5; "
                  f"UNISONO_CONNECT_TIMEOUT_MS=1500 exec {PROGRAM} bench barrier")
        done = run(1, "sh", "-c", script)
        self.assertIn("joined 1 of 2; missing rank 1", done.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    RESHARDED = sys.argv.pop(1)
    try:
        HOSTS = make_hosts()
    except (OSError, subprocess.CalledProcessError) as error:
        print("no network namespaces here:", getattr(error, "stderr", "") or error)
        print("run as root, or with CAP_NET_ADMIN and CAP_SYS_ADMIN, with iproute2 installed")
        sys.exit(77)
    try:
        result = unittest.main(exit=False).result
    finally:
        remove_hosts(HOSTS)
    sys.exit(0 if result.wasSuccessful() else 1)
