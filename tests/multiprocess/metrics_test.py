#!/usr/bin/env python3
"""Tests `unisono top --metrics` on jobs that run, hang and lose a rank.

  metrics_test.py UNISONO LAUNCHED

LAUNCHED is launched.cc. The answers are read by Prometheus' own parsers for Python.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

try:
    import prometheus_client
except ImportError:  # Debian packages it for its own Python, which may differ from ours
    sys.path.append("/usr/lib/python3/dist-packages")
    import prometheus_client  # noqa: F401
import prometheus_client.openmetrics.parser
import prometheus_client.parser

UNISONO = ""
LAUNCHED = ""
LIMIT_S = 120  # bounds a hang, no more
CONTRIB = pathlib.Path(__file__).resolve().parents[2] / "contrib/grafana"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("UNISONO_")}
    return kept | {"XDG_CONFIG_HOME": "/nonexistent"} | more


class Exporter:
    def __init__(self, test, *words):
        self.process = subprocess.Popen([UNISONO, "top", "--metrics", "0", *words], stdout=subprocess.PIPE, text=True,
                                        env=environment())
        test.addCleanup(self.process.communicate, timeout=LIMIT_S)
        test.addCleanup(self.process.terminate)
        self.url = re.match(r"(http://127\.0\.0\.1:\d+/metrics): ", self.process.stdout.readline())[1]

    def get(self, accept):
        request = urllib.request.Request(self.url, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    def scrape(self, world):
        """Returns {name: {labels: value}} of one world, without the labels of the world and the host."""
        kind, text = self.get(OPENMETRICS)
        assert kind == OPENMETRICS + "; charset=utf-8", kind
        return values(prometheus_client.openmetrics.parser.text_string_to_metric_families(text), world)


def values(families, world):
    found = {}
    for family in families:
        for sample in family.samples:
            labels = dict(sample.labels)
            if labels.pop("world", None) == world:
                assert labels.pop("host") == os.uname().nodename
                found.setdefault(sample.name, {})[tuple(sorted(labels.items()))] = sample.value
    return found


def total(found, name, **labels):
    return sum(value for series, value in found.get(name, {}).items() if labels.items() <= set(series))


def counters(found):
    return {(name, labels): value for name, series in found.items() if name.endswith("_total")
            for labels, value in series.items()}


class Job:
    def __init__(self, test):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.step = pathlib.Path(folder.name) / "step"
        self.end = pathlib.Path(folder.name) / "end"
        self.process = subprocess.Popen(
            [UNISONO, "run", "-n", "4", "--", LAUNCHED, "counts"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
            env=environment(LAUNCHED_STEP=str(self.step), LAUNCHED_END=str(self.end)))
        test.addCleanup(self.process.communicate, timeout=LIMIT_S)
        test.addCleanup(self.process.terminate)

    def await_ready(self):
        for _ in range(4):
            self.process.stdout.readline()

    def seen_by_top(self):
        seen = subprocess.run([UNISONO, "top", "--once", "--json"], stdout=subprocess.PIPE, check=True, timeout=LIMIT_S,
                              env=environment())
        return next(one for one in json.loads(seen.stdout)["jobs"]
                    if f"LAUNCHED_END={self.end}".encode() in
                    pathlib.Path(f"/proc/{one['ranks'][0]['pid']}/environ").read_bytes())


class Metrics(unittest.TestCase):
    def test_count_what_the_ranks_did_and_whom_they_wait_for(self):
        exporter = Exporter(self)
        self.assertEqual(exporter.scrape("no such world"), {})  # the job's processes are new to it
        job = Job(self)
        job.await_ready()
        name = job.seen_by_top()["job"]
        before = exporter.scrape(name)
        self.assertEqual(total(before, "unisono_world_ranks"), 4)
        self.assertEqual(total(before, "unisono_world_groups"), 3)
        self.assertEqual(sorted(dict(labels)["ranks"] for labels in before["unisono_group_info"]), ["0,2", "0-3", "1,3"])
        for rank in "0123":
            self.assertEqual(total(before, "unisono_calls_total", rank=rank, operation="all_reduce"), 0)
            gathers = {labels: value for labels, value in before["unisono_calls_total"].items()
                       if {("rank", rank), ("operation", "all_gather")} <= set(labels) and ("group", "world") not in labels}
            self.assertEqual(list(gathers.values()), [5])
            self.assertEqual(total(before, "unisono_call_bytes_total", rank=rank, operation="all_gather") -
                             total(before, "unisono_call_bytes_total", rank=rank, operation="all_gather", group="world"),
                             5 * 80)
            self.assertEqual(total(before, "unisono_label_info", rank=rank, label='layer 3 "attention"\n'), 1)
            self.assertEqual(total(before, "unisono_rank_state", rank=rank, state="alive"), 1)
            self.assertEqual(total(before, "unisono_rank_state", rank=rank), 1)

        job.step.touch()
        job.await_ready()
        after = exporter.scrape(name)
        for rank in "0123":
            self.assertEqual(total(after, "unisono_calls_total", rank=rank, operation="all_reduce"), 100)
            self.assertEqual(total(after, "unisono_call_bytes_total", rank=rank, operation="all_reduce"), 400_000)
            self.assertGreater(total(after, "unisono_moving_seconds_total", rank=rank, operation="all_reduce"), 0)
        self.assertEqual(total(after, "unisono_calls_total", operation="send"), 1)
        self.assertEqual(total(after, "unisono_call_bytes_total", rank="1", operation="recv"), 8)
        self.assertEqual(total(after, "unisono_world_groups"), 1)
        self.check_that_no_counter_fell(before, after)

        # Ranks 1 to 3 hang in a barrier.
        self.assertEqual(total(after, "unisono_caused_waiting_seconds_total", rank="4"), 0)
        hang = self.scrape_until(exporter, name, lambda found: len(found.get("unisono_wait_seconds", {})) == 3 and
                                 min(found["unisono_wait_seconds"].values()) > 0.2)
        for rank in "123":
            labels = {"rank": rank, "operation": "barrier", "group": "world"}
            self.assertEqual(hang["unisono_wait_for_rank"][tuple(sorted(labels.items()))], 0)
            more = self.scrape_until(exporter, name,
                                     lambda found, labels=labels: total(found, "unisono_waiting_seconds_total", **labels)
                                     > total(hang, "unisono_waiting_seconds_total", **labels))
            self.check_that_no_counter_fell(hang, more)
        caused = total(hang, "unisono_caused_waiting_seconds_total", rank="0")

        kind, text = exporter.get("text/plain")
        self.assertEqual(kind, "text/plain; version=0.0.4; charset=utf-8")
        plain = values(prometheus_client.parser.text_string_to_metric_families(text), name)
        self.assertEqual(plain["unisono_calls_total"], hang["unisono_calls_total"])
        self.assertIn("\n# TYPE unisono_calls_total counter\n", text)
        printed = subprocess.run([UNISONO, "top", "--metrics", "-", name], stdout=subprocess.PIPE, text=True, check=True,
                                 timeout=LIMIT_S, env=environment()).stdout
        once = values(prometheus_client.parser.text_string_to_metric_families(printed), name)
        self.assertEqual(total(once, "unisono_calls_total", operation="all_reduce"), 400)

        # One rank is killed while no other rank can act.
        pids = [rank["pid"] for rank in job.seen_by_top()["ranks"]]
        held = [job.process.pid, *(pids[rank] for rank in (0, 1, 3))]
        for pid in held:
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(lambda pid=pid: os.path.exists(f"/proc/{pid}") and os.kill(pid, signal.SIGCONT))
        os.kill(pids[2], signal.SIGKILL)
        lost = self.scrape_until(exporter, name,
                                 lambda found: total(found, "unisono_rank_state", rank="2", state="gone") == 1 and
                                 total(found, "unisono_rank_state", state="stopped") == 3)
        self.check_that_no_counter_fell(hang, lost)
        self.assertGreaterEqual(total(lost, "unisono_caused_waiting_seconds_total", rank="0"), caused)
        for pid in held:
            os.kill(pid, signal.SIGCONT)
        self.assertNotEqual(job.process.wait(timeout=LIMIT_S), 0)
        self.scrape_until(exporter, name, lambda found: found == {})

    def scrape_until(self, exporter, name, enough):
        while True:
            found = exporter.scrape(name)
            if enough(found):
                return found

    def check_that_no_counter_fell(self, before, after):
        now = counters(after)
        for series, value in counters(before).items():
            self.assertGreaterEqual(now[series], value, series)

    def test_are_served_to_this_host_only_at_one_path(self):
        exporter = Exporter(self)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(exporter.url.replace("/metrics", "/"), timeout=LIMIT_S)
        self.assertEqual(refused.exception.code, 404)
        refused.exception.close()
        for wrong in ("nowhere", "127.0.0.1", "99999", ""):
            done = subprocess.run([UNISONO, "top", "--metrics", wrong], capture_output=True, text=True, timeout=LIMIT_S,
                                  env=environment())
            self.assertEqual(done.returncode, 2, wrong)
            self.assertIn(f"--metrics: '{wrong}' is no port or address", done.stderr)


class Contributed(unittest.TestCase):
    """The dashboard and the rules use only metrics and labels that exist."""

    def setUp(self):
        exporter = Exporter(self)
        job = Job(self)
        job.await_ready()
        job.step.touch()
        job.await_ready()
        name = job.seen_by_top()["job"]
        self.known = {}
        found = {}
        while len(found.get("unisono_wait_for_rank", {})) < 3:
            found = exporter.scrape(name)
        for name, series in found.items():
            self.known[name] = {"world", "host", "instance", "job"}.union(*(dict(labels) for labels in series))

    def check(self, expression):
        names = set(re.findall(r"\bunisono_\w+", expression))
        self.assertTrue(names, expression)
        for name in names:
            self.assertIn(name, self.known, expression)
        labels = {label for inside in re.findall(r"\{([^}]*)\}", expression) for label in re.findall(r"(\w+)\s*[=!]", inside)}
        for inside in re.findall(r"\b(?:by|on|group_left)\s*\(([^)]*)\)", expression):
            labels |= set(re.findall(r"\w+", inside))
        self.assertLessEqual(labels, set().union(*(self.known[name] for name in names)), expression)

    def test_dashboard(self):
        dashboard = json.loads((CONTRIB / "unisono.json").read_text())
        panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
        self.assertGreater(len(panels), 5)
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]))
        for panel in panels:
            for target in panel["targets"]:
                self.check(target["expr"])
                for label in re.findall(r"\{\{\s*(\w+)", target.get("legendFormat", "")):
                    self.assertIn(label, set().union(*self.known.values()))

    def test_rules(self):
        rules = (CONTRIB / "unisono-rules.yml").read_text()
        expressions = re.findall(r"^ +expr: (?:>-\n)?((?:.+\n)+?)(?= +(?:for|labels|annotations):)", rules, re.M)
        self.assertEqual(len(expressions), rules.count("- alert:"))
        for expression in expressions:
            self.check(expression)

    @unittest.skipUnless(shutil.which("promtool"), "promtool of Prometheus is not here")
    def test_rules_by_prometheus(self):
        done = subprocess.run(["promtool", "check", "rules", CONTRIB / "unisono-rules.yml"], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = subprocess.run(["promtool", "test", "rules", CONTRIB / "unisono-rules-test.yml"], capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    UNISONO, LAUNCHED = sys.argv[1:3]
    del sys.argv[1:3]
    unittest.main()
