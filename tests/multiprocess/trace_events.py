"""Reads a file of the Trace Event Format as its readers do, and keeps to the letter what they leave out.

The rules are those of the format's definition, and what Perfetto's importer makes of them: times are microseconds, of
which whole nanoseconds are kept; slices of a track lie inside of each other, or apart; an arrow belongs to the slice
that began last on its track; names of tracks are looked up by the number of the track alone.
"""


def ns(us):
    return int(us * 1000.0)  # truncates


class Read:
    """`slices` by track, `arrows` as pairs of slices, `faults`: what a reader would leave out, in words."""

    def __init__(self, document):
        self.faults, self.slices, self.arrows, self.names = [], {}, [], {}
        self.processes, self.owner = {}, {}
        if document.keys() - {"traceEvents", "otherData"}:
            self.faults.append("readers stop at keys that they do not know, and displayTimeUnit is not a unit of times")
        self.open, self.flows = {}, {}
        events = document["traceEvents"]
        timed = [event for event in events if event["ph"] != "M"]
        if [ns(event["ts"]) for event in timed] != sorted(ns(event["ts"]) for event in timed):
            self.faults.append("not in the order of time")
        for event in events:
            self.read(event)
        self.faults += [f"{flow} does not arrive" for flow in self.flows]

    def read(self, event):
        kind, track = event["ph"], event["tid"]
        for key, what in (("pid", int), ("tid", int), ("name", str)):
            if not isinstance(event.get(key), what):
                self.faults.append(f"{key} of {event}")
        if self.owner.setdefault(track, event["pid"]) != event["pid"]:
            self.faults.append(f"track {track} is of two processes")
        if kind == "M":
            self.name(event)
            return
        if not isinstance(event["ts"], (int, float)) or event["ts"] < 0:
            self.faults.append(f"ts of {event}")
        if kind == "X":
            self.slice(event)
        elif kind in "sf":
            self.arrow(event)
        else:
            self.faults.append(f"a {kind}")

    def name(self, event):
        if event["name"] == "thread_name":
            self.names[event["tid"]] = event["args"]["name"]
        elif event["name"] == "process_name":
            self.processes[event["pid"]] = event["args"]["name"]
        elif event["name"] not in ("process_sort_index", "thread_sort_index") or not isinstance(
                event["args"]["sort_index"], int):
            self.faults.append(f"metadata {event}")

    def slice(self, event):
        begin, end = ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])
        if event["dur"] < 0:
            self.faults.append(f"dur of {event}")
        stack = self.open.setdefault(event["tid"], [])
        while stack and (stack[-1]["end"] < begin or (stack[-1]["end"] == begin and
                                                      (stack[-1]["begin"] != begin or end != begin))):
            stack.pop()
        if stack and end > stack[-1]["end"]:
            self.faults.append(f"{event} overlaps {stack[-1]}")
            return
        stack.append({"begin": begin, "end": end, "pid": event["pid"], "track": event["tid"], "name": event["name"]})
        self.slices.setdefault(event["tid"], []).append(stack[-1])

    def arrow(self, event):
        flow = (event["id"], event["cat"], event["name"])
        stack = self.open.get(event["tid"])
        if not stack:
            self.faults.append(f"no slice for {event}")
        elif event["ph"] == "s":
            if flow in self.flows:
                self.faults.append(f"{flow} twice")
            self.flows[flow] = stack[-1]
        elif flow not in self.flows or event["bp"] != "e":
            self.faults.append(f"{flow} has no beginning, or no bp")
        else:
            self.arrows.append((flow, self.flows.pop(flow), stack[-1]))
