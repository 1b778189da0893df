"""Tests the report. Run with `python3 -m unittest discover -s bench/report -p '*_test.py'`."""

import os
import tempfile
import time
import unittest
import xml.etree.ElementTree

import history
import plot
import table
from cases import Case, crossed_cases, default_cases, parse_size, size_text, target, tcp_target
from jobs import Job, JobError, in_one_session, launch_commands
from measure import Bench, summarise
from network import Loopback, SharedMemory


def sample(column, median_us, state="near", wrong=0):
    return {"column": column, "median_us": median_us, "state": state,
            "hop_us": 0.04 if state == "near" else 0.2, "wrong": wrong}


class OneSwitch:
    """Replaces the jobs; only the cost of a process switch is requested."""

    network = SharedMemory()

    def one_switch(self):
        return 1.5


def result_of(case, **times):
    samples = [sample(column, time) for column, time in times.items()]
    return summarise(case, samples, OneSwitch())


class Cases(unittest.TestCase):
    def test_sizes_are_read_and_written(self):
        for text, size in (("8", 8), ("4K", 4096), ("4 KiB", 4096), ("128MiB", 128 << 20)):
            self.assertEqual(parse_size(text), size)
        self.assertEqual([size_text(n) for n in (8, 4096, 128 << 20)], ["8 B", "4 KiB", "128 MiB"])

    def test_targets_are_those_of_the_table(self):
        def of(ranks, collective, size, dtype="f32"):
            want = target(Case(ranks, collective, size, True, dtype))
            return want.ordinary, want.registered, want.persistent, want.limit
        self.assertEqual(of(2, "barrier", 8), (0.85, 0.85, 0.75, None))
        self.assertEqual(of(2, "broadcast", 8), (1.0, 1.0, None, None))
        self.assertEqual(of(2, "all_reduce", 4096), (0.75, 0.55, None, None))
        self.assertEqual(of(2, "all_reduce", 65536), (0.8, 0.45, None, None))
        self.assertEqual(of(2, "all_reduce", 1 << 20), (0.95, 0.6, None, None))
        self.assertEqual(of(2, "all_reduce", 16 << 20), (0.8, 0.4, None, 1.3))
        self.assertEqual(of(8, "all_reduce", 8), (0.85, 0.85, None, None))
        self.assertEqual(of(4, "all_reduce", 16 << 20), (0.7, 0.4, None, None))
        self.assertEqual(of(2, "all_reduce", 1 << 19, "bf16"), (0.6, 0.6, None, None))

    def test_default_cases_are_distinct(self):
        cases = default_cases([2, 4, 8], quick=False)
        self.assertEqual(len(cases), len(set(cases)))
        self.assertIn(Case(8, "all_reduce", 128 << 20, True), cases)
        self.assertIn(Case(2, "window", 4096, False), cases)

    def test_barrier_has_one_size(self):
        self.assertEqual(len(crossed_cases([2], ["barrier"], [8, 16], ["f32"], [True])), 1)

    def test_other_dtypes_are_compared_at_the_same_count(self):
        self.assertEqual(Case(2, "all_reduce", 512, True, "bf16").same_count_f32().bytes, 1024)


class Summary(unittest.TestCase):
    case = Case(2, "all_reduce", 4096, True)

    def test_only_one_state_is_compared(self):
        samples = [sample("ordinary", 1.0), sample("openmpi", 9.0, "far"),
                   sample("ordinary", 5.0, "far"), sample("openmpi", 11.0, "far")]
        result = summarise(self.case, samples, OneSwitch())
        self.assertEqual((result["state"], result["times_us"]["ordinary"], result["best_us"]),
                         ("far", 5.0, 10.0))

    def test_best_peer_is_the_fastest_right_one(self):
        samples = [sample("openmpi", 3.0), sample("mpich", 2.0), sample("gloo", 1.0, wrong=4)]
        result = summarise(self.case, samples, OneSwitch())
        self.assertEqual((result["best"], result["wrong"]), ("mpich", ["gloo"]))

    def test_ranks_that_share_a_cpu_pay_for_switches(self):
        result = result_of(Case(64, "all_reduce", 8, True), limit=0.1)
        self.assertGreater(result["limit_us"], 0.1)

    def test_nothing_measured_is_no_result(self):
        result = summarise(self.case, [], OneSwitch())
        self.assertEqual(table.verdict(result), "-")
        self.assertIn("all_reduce", table.line(result))


class Verdict(unittest.TestCase):
    case = Case(2, "all_reduce", 4096, True)

    def test_ok_at_the_target_and_miss_above(self):
        self.assertEqual(table.verdict(result_of(self.case, openmpi=1.0, ordinary=0.75)), "ok")
        self.assertEqual(table.verdict(result_of(self.case, openmpi=1.0, ordinary=0.76)),
                         "miss: ordinary")

    def test_the_limit_counts_for_registered_memory(self):
        case = Case(2, "all_reduce", 16 << 20, True)
        self.assertEqual(table.verdict(result_of(case, openmpi=10.0, registered=1.3, limit=1.0)),
                         "ok")
        self.assertIn("of the limit", table.verdict(
            result_of(case, openmpi=10.0, registered=1.4, limit=1.0)))

    def test_wrong_results_are_never_ok(self):
        samples = [sample("openmpi", 1.0), sample("ordinary", 0.1, wrong=1)]
        result = summarise(self.case, samples, OneSwitch())
        self.assertTrue(table.verdict(result).startswith("WRONG"))

    def test_dtypes_are_compared_with_f32(self):
        case = Case(2, "all_reduce", 1 << 19, True, "bf16")
        result = result_of(case, ordinary=5.0, registered=7.0, **{"f32": 10.0,
                                                                 "f32 registered": 10.0})
        self.assertEqual(table.verdict(result), "miss: registered")


class Networks(unittest.TestCase):
    def test_open_mpi_is_held_to_tcp(self):
        (command, environment), = launch_commands("openmpi", "program", 2, "here", Loopback())
        self.assertIn("tcp,self", command)
        self.assertEqual(command[-3:], ["program", "--directory", "here"])
        (command, environment), = launch_commands("mpich", "program", 2, "here", Loopback())
        self.assertEqual(environment["UCX_TLS"], "tcp,self")
        (command, environment), = launch_commands("openmpi", "program", 2, "here", SharedMemory())
        self.assertNotIn("tcp,self", command)

    def test_targets_over_tcp(self):
        self.assertEqual(tcp_target(Case(2, "all_reduce", 8, True), 2).ordinary, 0.9)
        self.assertEqual(tcp_target(Case(2, "all_reduce", 65536, True), 2).limit, 1.15)
        self.assertEqual(tcp_target(Case(4, "all_reduce", 8, True), 2).ordinary, 0.7)
        self.assertEqual(Case(2, "all_reduce", 8, True).exchange().bytes, 8)
        self.assertEqual(Case(4, "all_reduce", 4096, True).exchange().bytes, 6144)
        result = {**result_of(Case(2, "all_reduce", 65536, False), openmpi=10.0, limit=4.0,
                              ordinary=5.0), "network": "tcp"}
        self.assertEqual(table.verdict(result), "miss: 1.25 of the limit")


class Turns(unittest.TestCase):
    def test_samples_that_straddle_a_change_of_state_are_dropped(self):
        hops = iter([0.04, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2])

        class Faked(Bench):
            def hop(self):
                return next(hops)

            def _ask(self, case, implementation, row):
                return {"median_us": 1.0, "wrong": 0}

        bench = Faked({"openmpi": "", "mpich": ""}, 1, 1, lambda *_: None, SharedMemory())
        samples = bench.measure(Case(2, "barrier", 8, True))
        # The first sample began near and ended far, so another turn replaces it.
        self.assertEqual([s["column"] for s in samples], ["mpich", "mpich", "openmpi"])
        self.assertEqual({s["state"] for s in samples}, {"far"})


class Plot(unittest.TestCase):
    def test_every_measured_column_has_its_line(self):
        rows = [result_of(Case(2, "all_reduce", size, True), openmpi=size, ordinary=size / 2,
                          limit=size / 4) for size in (8, 4096, 1 << 20)]
        page = plot.draw(rows, {"openmpi": "4.1.4"})
        xml.etree.ElementTree.fromstring(page)
        self.assertEqual(page.count("<polyline"), 3)
        self.assertIn("Open MPI", page)

    def test_one_size_is_no_line(self):
        page = plot.draw([result_of(Case(2, "barrier", 8, True), openmpi=1.0)], {})
        xml.etree.ElementTree.fromstring(page)
        self.assertEqual(page.count("<polyline"), 0)


class Jobs(unittest.TestCase):
    def test_ranks_that_one_which_fails_leaves_behind_are_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "rank")
            with open(program, "w") as script:  # arguments: --directory FOLDER --rank RANK --size 2
                script.write("""#!/bin/sh
[ "$4" = 0 ] || { sleep 0.2; exit 1; }
echo ready > "$2/answers"
exec sleep 1000
""")
            os.chmod(program, 0o755)
            job = Job("unisono", program, 2, SharedMemory())
            with self.assertRaises(JobError):
                job.ask("all_reduce", 10)
            os.killpg(job.process.pid, 0)  # rank 0 is still running
            job.close()
            end = time.monotonic() + 10
            while time.monotonic() < end:
                try:
                    os.killpg(job.process.pid, 0)
                except ProcessLookupError:
                    return
                time.sleep(0.02)
            self.fail("rank 0 outlives its job")

    def test_secrets_are_on_no_command_line(self):
        commands = launch_commands("unisono", "program", 2, "here", Loopback())
        self.assertTrue(all("UNISONO_TOKEN" in environment for _, environment in commands))
        command, environment = in_one_session(commands)
        self.assertNotIn(commands[0][1]["UNISONO_TOKEN"], " ".join(command))
        self.assertIn(commands[0][1]["UNISONO_TOKEN"], environment["UNISONO_BENCH_JOB"])


class History(unittest.TestCase):
    def kept(self, date, **times):
        result = {**result_of(Case(2, "all_reduce", 4096, True, "f32"), **times), "network": "shm"}
        other = {**result_of(Case(2, "broadcast", 8, True, "f32"), openmpi=1.0, ordinary=4.0), "network": "shm"}
        return history.record([result, other], date=date, machine="Some CPU (R) 7, 2 CPUs, Linux 6.1",
                              unisono="0.1.0 abc", versions={"openmpi": "5.0.8", "unisono": "0.1.0"},
                              options="--quick", load=0.5)

    def test_a_run_is_kept_and_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            first = history.keep(folder, self.kept("2026-11-29", openmpi=2.0, mpich=3.0, ordinary=1.0))
            history.keep(folder, self.kept("2026-11-30", openmpi=2.0, ordinary=4.0, registered=1.0))
            page = history.page(folder)
        self.assertEqual(first.name, "2026-11-29-some-cpu-r-7-2-cpus.json")
        self.assertLess(page.index("2026-11-30"), page.index("2026-11-29"))
        self.assertEqual(page.count("Peers: openmpi 5.0.8. Linux 6.1, load 0.5 at the end, options `--quick`."), 2)
        self.assertEqual(page.count("## Some CPU (R) 7, 2 CPUs\n"), 1)
        # The geometric mean of 0.5 and 4 is 1.41; of 2 and 4 it is 2.83.
        self.assertIn("| shm | 2 | fresh | 2 | 1.41 | - | - | 1 | broadcast 8 B 4.00, all_reduce 4 KiB 0.50 | 0 |", page)
        self.assertIn("| shm | 2 | fresh | 2 | 2.83 | 0.50 | - | 2 | broadcast 8 B 4.00, all_reduce 4 KiB 2.00 | 0 |", page)

    def test_nothing_kept_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("No run has been kept yet.", history.page(folder))


if __name__ == "__main__":
    unittest.main()
