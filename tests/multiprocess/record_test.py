#!/usr/bin/env python3
"""Recordings of real jobs: of one host, of two with different clocks, of jobs that fail or hang.

  record_test.py PROGRAM

PROGRAM is unisono. What needs network and time namespaces is skipped where they cannot be made.
"""

import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import trace_events

PROGRAM = ""
# The offset of the second host's clock.
AHEAD_S = 1000


def call(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=120, **more)


def rows(group):
    return [dict(zip(group, values)) for values in zip(*group.values())]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="unisono-record-")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def record(self, options, *program, code=0):
        path = self.path("run.json")
        done = call(PROGRAM, "run", "--record", path, *options, "--", *program)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn("recorded ", done.stderr)
        self.said = done.stderr
        self.trace = json.loads(pathlib.Path(path).read_text())
        return self.trace

    def check_messages(self):
        """Each message belongs to two operations with its number, and lies within both."""
        ops = {(op["rank"], f"{op['group']} #{op['number']}"): op for op in rows(self.trace["ops"])}
        for message in rows(self.trace["messages"]):
            self.assertLessEqual(message["start_us"], message["end_us"])
            sender = ops[message["from"], message["op"]]
            receiver = ops[message["to"], message["op"]]
            self.assertLessEqual(sender["start_us"], message["start_us"], message)
            if receiver["end_us"] is not None:
                self.assertLessEqual(message["end_us"], receiver["end_us"], message)

    def kinds(self):
        return [finding["kind"] for finding in self.trace["findings"]]

    def replay(self):
        done = call(PROGRAM, "trace", "replay", self.path("run.json"), "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def check_said(self, code):
        """The reason that the ranks printed is the first finding, word for word."""
        first = self.trace["findings"][0]
        self.assertEqual(first["kind"], code)
        text = first["text"].removeprefix(code + ": ")
        self.assertIn(f"error[{code}]: {text}\n", self.said)
        told = call(PROGRAM, "trace", "why", self.path("run.json"))
        self.assertEqual(told.returncode, 1, told.stderr)
        self.assertIn(f"1  {code}  {text}\n", told.stdout)
        abort, = self.trace["aborts"]
        self.assertEqual(abort["text"].split("\n")[0], first["text"])
        self.assertEqual([abort["rank"]], first["ranks"])
        self.assertGreater(abort["at_us"], 0)
        # An operation that the finding names did not end.
        if code in ("timeout", "peer_lost"):
            self.assertTrue(first["ops"])
        for label in first["ops"]:
            self.assertIn(label, {f"{op['group']} #{op['number']}" for op in rows(self.trace["ops"])
                                  if op["end_us"] is None})
        return abort


class OneHost(Case):
    def test_every_message_of_a_ring_is_there(self):
        self.record(["-n", "3"], PROGRAM, "bench", "all_reduce", "--algorithm", "ring", "-b", "64K",
                    "-e", "64K", "-n", "5")
        ring = [op for op in rows(self.trace["ops"]) if op["algorithm"] == "ring"]
        self.assertGreaterEqual(len(ring), 15)
        self.assertEqual(len(ring) % 3, 0)
        own = [m for m in rows(self.trace["messages"]) if m["op"] == f"world #{ring[0]['number']}"]
        expected = {(step, rank, (rank + 1) % 3) for step in range(4) for rank in range(3)}
        self.assertEqual(sorted((m["step"], m["from"], m["to"]) for m in own), sorted(expected))
        self.assertLess(max(self.trace["clock_uncertainty_us"]), 5)
        self.assertEqual(self.trace["findings"], [])
        self.check_messages()
        again = self.replay()
        self.assertEqual((again["wrong"], again["left_out"], again["waits"]), ("", {}, []))
        self.assertEqual(again["operations"], len(self.trace["ops"]["rank"]) // 3)
        self.assertEqual(again["events"], len(self.trace["events"]["op"]))
        self.assertEqual(self.replay(), again)

    def test_a_killed_rank_leaves_what_it_did(self):
        script = f"[ $RANK = 1 ] && (sleep 1; kill -9 $$) & exec {PROGRAM} bench all_reduce -b 8 -e 8 -n 100000000"
        self.record(["-n", "2"], "sh", "-c", script, code=3)
        self.assertEqual(self.trace["ended"], "rank 1 was killed by SIGKILL")
        self.assertEqual(self.kinds(), ["peer_lost", "dropped"])
        self.assertEqual({op["rank"] for op in rows(self.trace["ops"])}, {0, 1})
        self.check_messages()
        self.assertIn("dmesg", self.trace["findings"][0]["next"])
        self.check_said("peer_lost")
        self.assertEqual((self.trace["findings"][0]["ranks"], self.trace["findings"][0]["waiting"]), ([1], [0]))
        # In a replay, rank 0 reaches the same point.
        again = self.replay()
        self.assertEqual(again["wrong"], "")
        was_at = re.search(r"rank 0 was at step (\d+) of (\w+) #(\d+)", self.said)
        self.assertTrue(was_at, self.said)
        step, collective, number = was_at.groups()
        ended = any(op["rank"] == 0 and op["number"] == int(number) and op["end_us"] is not None
                    for op in rows(self.trace["ops"]))
        wait = f"rank 0 waits for rank 1 at step {step} of world #{number} {collective}"
        self.assertEqual([one for one in again["waits"] if one.startswith("rank 0 ")], [] if ended else [wait])

    def test_a_rank_that_does_not_come_is_named(self):
        self.record(["-n", "2", "--timeout", "1s", "--env", "UNISONO_CONNECT_TIMEOUT_MS=60000"], "sh", "-c",
                    f"[ $RANK = 1 ] && kill -STOP $$; exec {PROGRAM} bench barrier", code=4)
        self.assertIn("no rank left a recording", self.trace["findings"][0]["text"])

    def test_a_hang_is_explained(self):
        script = (f"[ $RANK = 1 ] && (sleep 1; kill -STOP $$) & "
                  f"exec {PROGRAM} bench all_reduce -b 1K -e 1K -n 100000000")
        self.record(["-n", "3", "--timeout", "3s"], "sh", "-c", script, code=4)
        self.assertEqual(self.trace["ended"], "stopped after 3 s, as --timeout says")
        # The finding depends on the rank's operation when it was stopped.
        self.assertIn(self.kinds()[0], ("stopped", "deadlock"))
        self.assertTrue(self.trace["findings"][0]["text"])
        # From the stop at 1 s to the end at 3 s; less if a busy machine started late.
        unended = [op for op in rows(self.trace["ops"]) if op["end_us"] is None]
        self.assertGreater(max(op["waiting_us"] for op in unended), 0.5e6)
        exported = call(PROGRAM, "trace", "export", self.path("run.json"), "-o", "-")
        slices = [event for event in json.loads(exported.stdout)["traceEvents"]
                  if event["name"].endswith("(not ended)")]
        self.assertEqual(len(slices), len(unended))
        self.assertGreater(max(event["dur"] for event in slices), 0.5e6)
        # The terminal shows the same text, without advice that applies only to living processes.
        self.assertIn(self.trace["findings"][0]["text"], self.said)
        self.assertNotIn("kill -CONT", self.said)
        self.assertNotIn("gdb -p", self.said)

    def test_a_timeout_of_the_ranks_is_told(self):
        # Rank 0 prints the head of its table after all ranks have connected.
        script = (f"[ $RANK = 0 ] && exec > {self.path('table')}; "
                  f"[ $RANK = 1 ] && (until grep -qs algbw {self.path('table')}; do sleep 0.1; done; sleep 1; "
                  f"kill -STOP $$) & "
                  f"exec {PROGRAM} bench all_reduce -b 1K -e 1K -n 100000000")
        self.record(["-n", "3", "--env", "UNISONO_TIMEOUT_MS=3000"], "sh", "-c", script, code=4)
        abort = self.check_said("timeout")
        self.assertIn(abort["raised_by"], (0, 2))
        self.assertEqual(abort["rank"], 1)
        self.assertTrue(self.trace["findings"][0]["ops"])

    def test_a_mismatch_is_told(self):
        self.record(["-n", "3"], "sh", "-c", f"exec {PROGRAM} bench all_reduce -b $((64 << RANK / 2)) -e "
                    "$((64 << RANK / 2)) -n 10", code=1)
        self.check_said("mismatch")

    def test_what_chaos_kills_is_the_cause(self):
        self.record(["-n", "3", "--chaos", "kill=2@1s,seed=1"], PROGRAM, "bench", "all_reduce", "-b", "8", "-e",
                    "8", "-n", "100000000", code=3)
        gone = self.trace["findings"][self.kinds().index("gone")]
        self.assertEqual((gone["ranks"], gone["text"]), ([2], "rank 2 is gone: killed by --chaos"))
        self.assertNotIn("memory", gone["next"] + self.said)
        self.assertTrue(self.trace["ended"].startswith("--chaos killed rank 2, then rank "))
        failure = self.said[self.said.index("error[rank_failed]"):].splitlines()
        self.assertIn("--chaos killed rank 2, and rank", failure[0])
        self.assertIn("rank 2 ", failure[1])

    def test_the_newest_events_are_kept(self):
        self.record(["-n", "2", "--record-events", "128"], PROGRAM, "bench", "barrier", "-n", "1000")
        self.assertEqual(self.kinds(), ["dropped"])
        self.assertIn(f"dropped {sum(self.trace['dropped_events'])} events", self.said)
        self.assertRegex(self.said, r"--record-events \d+ keeps all")
        self.assertGreater(min(self.trace["dropped_events"]), 1000)
        numbers = [op["number"] for op in rows(self.trace["ops"])]
        self.assertGreater(min(numbers), 1000)

    def test_two_programs_of_one_rank(self):
        program = f"{PROGRAM} bench barrier -n 3"
        self.record(["-n", "2"], "sh", "-c", f"{program} && {program}")
        self.assertEqual(set(self.trace["ops"]["group"]), {"world", "world (2)"})
        self.check_messages()

    def test_another_launcher(self):
        folder = self.path("events")
        os.mkdir(folder)
        job = {"UNISONO_RECORD": folder, "UNISONO_SIZE": "2", "UNISONO_JOB": f"record-{os.getpid()}"}
        ranks = [subprocess.Popen([PROGRAM, "bench", "barrier", "-n", "3"], stdout=subprocess.DEVNULL,
                                  env={**os.environ, **job, "UNISONO_RANK": str(rank)}) for rank in (0, 1)]
        self.assertEqual([rank.wait(60) for rank in ranks], [0, 0])
        done = call(PROGRAM, "trace", "merge", folder, "-o", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.trace = json.loads(done.stdout)
        self.assertEqual(self.trace["ranks"], 2)
        self.assertTrue(self.trace["messages"]["from"])
        self.check_messages()

    def test_nothing_can_be_written_there(self):
        done = call(PROGRAM, "run", "--record", "/no/such/folder/x.json", "--", "true")
        self.assertEqual(done.returncode, 2)

    def bench(self, place, limit="true", ranks=2):
        """Returns the lines on stderr about recordings, of a job that must be right wherever it records."""
        job = f"{limit}; exec {PROGRAM} bench all_reduce -b 4K -e 4K -n 3"
        done = call(PROGRAM, "run", "-n", str(ranks), "--", "sh", "-c", job,
                    env={**os.environ, "UNISONO_RECORD": place})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("all_reduce", done.stdout)
        lines = [line for line in done.stderr.splitlines() if "record" in line]
        self.assertEqual(len(lines), ranks, done.stderr)
        return "\n".join(sorted(lines))

    def test_no_such_folder(self):
        said = self.bench("/no/such/folder/x")
        for rank in (0, 1):
            self.assertIn(f"nothing of rank {rank} is recorded: cannot write to '/no/such/folder/x': "
                          "No such file or directory", said)

    def test_a_limit_of_files(self):
        # 100 MiB: room for the memory that ranks share, and none for 128 MiB of events
        said = self.bench(self.folder.name,
                          limit="ulimit -f 204800; export UNISONO_RECORD_EVENTS=4194304")
        self.assertIn("(ulimit -f), and a recording takes", said)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_a_device(self):
        said = self.bench("/dev/full")
        self.assertIn("nothing of rank 0 is recorded: cannot write to '/dev/full'", said)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))

    def mount(self, options):
        if call("mount", "-t", "tmpfs", "-o", options, "none", self.folder.name).returncode != 0:
            self.skipTest("tmpfs cannot be mounted here")
        self.addCleanup(call, "umount", self.folder.name)

    def test_a_full_disk(self):
        self.mount("size=64k")
        said = self.bench(self.folder.name)
        self.assertIn("No space left on device (a recording takes", said)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_a_disk_that_is_read_only(self):
        self.mount("ro")
        self.assertIn("Read-only file system", self.bench(self.folder.name))

    def test_a_folder_that_is_removed_meanwhile(self):
        folder = self.path("events")
        os.mkdir(folder)
        job = {**os.environ, "UNISONO_RECORD": folder, "UNISONO_SIZE": "2",
               "UNISONO_JOB": f"removed-{os.getpid()}"}
        ranks = [subprocess.Popen([PROGRAM, "bench", "barrier", "-n", "200000"], text=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  env={**job, "UNISONO_RANK": str(rank)}) for rank in (0, 1)]
        for _ in range(1000):
            if len(os.listdir(folder)) == 2:
                break
            time.sleep(0.01)
        shutil.rmtree(folder)
        for rank, process in enumerate(ranks):
            said = process.communicate(timeout=600)[1]
            self.assertEqual(process.returncode, 0, said)
            self.assertIn(f"the recording of rank {rank} is lost: '{folder}/", said)

    def test_a_refused_connection_leaves_nothing(self):
        job = {"UNISONO_RECORD": self.folder.name, "UNISONO_SIZE": "2", "UNISONO_RANK": "0",
               "UNISONO_CONNECT_TIMEOUT_MS": "200", "UNISONO_JOB": f"refused-{os.getpid()}"}
        done = call(PROGRAM, "bench", "barrier", env={**os.environ, **job})
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(os.listdir(self.folder.name), [])


class Chrome(Case):
    def export(self, *options):
        done = call(PROGRAM, "trace", "export", self.path("run.json"), "-o", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        return trace_events.Read(json.loads(done.stdout))

    def test_nothing_is_left_out_by_readers(self):
        for size in ("8", "64K", "1M"):
            self.record(["-n", "3"], PROGRAM, "bench", "all_reduce", "-b", size, "-e", size, "-n", "40")
            read = self.export()
            self.assertEqual(read.faults, [])
            self.assertEqual(read.processes, {rank: f"rank {rank}" for rank in range(3)})
            for track, name in read.names.items():
                self.assertIn(name, ("world", "world at the same time"), track)
            self.assertEqual(sum(len(slices) for slices in read.slices.values()),
                             len(self.trace["ops"]["rank"]) + len(self.trace["events"]["op"]))
            self.check_arrows(read)

    def check_arrows(self, read):
        """Each message is one arrow, from the sending slice to a slice that receives from its sender."""
        self.assertEqual(len(read.arrows), len(self.trace["messages"]["from"]))
        # If two slices begin in the same nanosecond, it may be the other one.
        wrong = 0
        for (row, _, _), departure, arrival in read.arrows:
            sender, receiver = self.trace["messages"]["from"][row], self.trace["messages"]["to"][row]
            self.assertEqual((departure["pid"], arrival["pid"]), (sender, receiver))
            wrong += not departure["name"].startswith("send ") or not arrival["name"].endswith(f" from {sender}")
        self.assertLessEqual(wrong, len(read.arrows) / 100)

    def test_a_job_that_died(self):
        script = f"[ $RANK = 1 ] && (sleep 1; kill -9 $$) & exec {PROGRAM} bench all_reduce -b 8 -e 8 -n 100000000"
        self.record(["-n", "3"], "sh", "-c", script, code=3)
        read = self.export()
        self.assertEqual(read.faults, [])
        self.assertEqual(set(read.processes), {0, 1, 2})


def two_hosts():
    """Creates two network namespaces with a cable, the second with its own clock; None: not permitted."""
    tag = os.getpid() % 250 + 1
    hosts = [f"10.215.{tag}.{i}" for i in (1, 2)]
    ends = [f"r{tag}a", f"r{tag}b"]
    words = [["ip", "netns", "add", host] for host in hosts]
    words.append(["ip", "link", "add", ends[0], "netns", hosts[0], "type", "veth", "peer", "name", ends[1],
                  "netns", hosts[1]])
    for host, end in zip(hosts, ends):
        words += [["ip", "-n", host, "addr", "add", host + "/24", "dev", end],
                  ["ip", "-n", host, "link", "set", end, "up"], ["ip", "-n", host, "link", "set", "lo", "up"]]
    words.append(["unshare", "--time", "--fork", "--monotonic", str(AHEAD_S), "true"])
    try:
        for command in words:
            subprocess.run(command, check=True, capture_output=True, timeout=600)
    except (OSError, subprocess.CalledProcessError):
        remove(hosts)
        return None
    return hosts


def remove(hosts):
    for host in hosts:
        subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)


class OtherHost(Case):
    """A host that is reached through a program, and is this machine."""

    def setUp(self):
        super().setUp()
        self.launcher = self.path("launcher")
        pathlib.Path(self.launcher).write_text('#!/bin/sh\nshift\nexec "$@"\n')
        os.chmod(self.launcher, 0o755)

    def words(self, *program):
        return ["--hosts", "127.0.0.1:2", "--launcher", self.launcher + " {host}", "--", *program]

    def said_folder(self):
        """Returns the folder in which its ranks record, which they write to a file."""
        return pathlib.Path(self.path("folder")).read_text().strip().removesuffix("/.")

    def test_nothing_is_left_there(self):
        script = f"echo $UNISONO_RECORD > {self.path('folder')}; exec {PROGRAM} bench barrier -n 3"
        self.record(self.words()[:-1], "sh", "-c", script)
        self.assertEqual({op["rank"] for op in rows(self.trace["ops"])}, {0, 1})
        self.assertFalse(os.path.exists(self.said_folder()))

    def test_nothing_is_left_there_when_the_launcher_is_killed(self):
        script = f"echo $UNISONO_RECORD > {self.path('folder')}; exec {PROGRAM} bench barrier -n 100000000"
        launcher = subprocess.Popen([PROGRAM, "run", "--record", self.path("run.json"), *self.words("sh", "-c", script)],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(launcher.wait)
        self.addCleanup(launcher.kill)
        self.wait_until(lambda: os.path.exists(self.path("folder")) and os.path.exists(self.said_folder())
                        and len(os.listdir(self.said_folder())) == 2)
        launcher.kill()
        launcher.wait()
        self.wait_until(lambda: not os.path.exists(self.said_folder()))

    def shell(self, does):
        """The first program that connects to the host to fetch the recordings does this instead of "$script"."""
        pathlib.Path(self.launcher).write_text(f"""#!/bin/sh
shift
script=
while IFS= read -r line; do
script="$script$line
"
[ "$line" = '}}' ] && break
done
case $script in *unisono-recordings-end*) if mkdir {self.path("first")} 2>/dev/null; then {does}
fi;; esac
exec "$@" -c "$script"
""")

    # As a connection that is cut while the job runs.
    DIES = "echo unisono-recording-folder $(mktemp -d); exec <&-; : > {gone}; echo >&2; echo Connection reset >&2; exit 255"

    def after_its_death(self, more=""):
        """A program that runs after the shell has died."""
        return ["sh", "-c", f"until [ -e {self.path('gone')} ]; do sleep 0.1; done; {PROGRAM} bench barrier -n 3{more}"]

    def test_a_keeper_that_died_is_started_again(self):
        self.shell(self.DIES.format(gone=self.path("gone")))
        self.record(self.words()[:-1], *self.after_its_death())
        self.assertEqual({op["rank"] for op in rows(self.trace["ops"])}, {0, 1})
        self.assertNotIn("arrived", self.said)

    def test_what_is_lost_is_said(self):
        self.shell(self.DIES.format(gone=self.path("gone")))
        self.record(self.words()[:-1], *self.after_its_death("; rm -rf ${UNISONO_RECORD%/.}"))
        self.assertRegex(self.said, r"no recording arrived: .*\n  it ended too early: Connection reset\n")

    def test_what_came_before_the_end_is_kept(self):
        self.shell('"$@" -c "$script" | { read -r first; echo "$first"; head -c -10; }; exit')
        self.record(self.words()[:-1], PROGRAM, "bench", "barrier", "-n", "3")
        self.assertEqual({op["rank"] for op in rows(self.trace["ops"])}, {0, 1})
        self.assertRegex(self.said, r"perhaps not every recording arrived: .*\n  it ended too early\n")

    def wait_until(self, is_so):
        end = time.monotonic() + 60
        while not is_so():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)


class TwoHosts(Case):
    def test_clocks_are_aligned_by_messages(self):
        hosts = two_hosts()
        if hosts is None:
            self.skipTest("no network and time namespaces here")
        self.addCleanup(remove, hosts)
        launcher = self.path("launcher")
        pathlib.Path(launcher).write_text(f"""#!/bin/sh
host=$1; shift
if [ $host = {hosts[1]} ]; then set -- unshare --time --fork --kill-child --monotonic {AHEAD_S} "$@"; fi
exec ip netns exec $host "$@"
""")
        os.chmod(launcher, 0o755)
        self.record(["--hosts", ",".join(host + ":2" for host in hosts), "--launcher", launcher + " {host}"],
                    PROGRAM, "bench", "all_reduce", "-b", "8", "-e", "64K", "-n", "50")
        self.assertNotIn("missing", self.kinds())
        uncertainty = self.trace["clock_uncertainty_us"]
        self.assertNotIn(None, uncertainty)
        self.assertLess(max(uncertainty), 1000)
        self.assertGreater(max(uncertainty[2:]), max(uncertainty[:2]))
        # Events of one operation are close together on all ranks: not 1000 s apart.
        barrier = [op for op in rows(self.trace["ops"]) if op["collective"] == "barrier"]
        for number in {op["number"] for op in barrier}:
            ops = [op for op in barrier if op["number"] == number]
            begins = max(op["start_us"] for op in ops)
            ends = min(op["end_us"] for op in ops)
            self.assertLessEqual(begins, ends + 2 * max(uncertainty))
        # Both clocks are in fact the same, so the error of the alignment is known.
        self.assertLess(max(self.trace["ops"]["end_us"]), 60e6)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
