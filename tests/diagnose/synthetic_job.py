"""Dumps that a job of PyTorch on NCCL would leave if one given thing were wrong with it.

A job has hosts of several GPUs, groups within a host ("tp") and across hosts ("dp"), and a program
that repeats. Each rank has a host thread, which issues calls ahead of its GPU and waits for it once
a step, and one queue on its GPU. A collective begins on a rank when the queue reaches it, and ends
on all ranks some time after the last one began. All times are computed: nothing is measured.

Formats: the flight recorder as dump_json() and as a pickle writes it (2.9 and 2.10 of the format,
PyTorch 2.13 to 2.15), and NCCL's log with NCCL_DEBUG_SUBSYS=INIT,COLL (NCCL 2.28 to 2.32). A watchdog
looks at the GPU every 100 ms, so times at which it saw calls start and end are late by up to that.
"""

import json
import os
import pickle
import random

STUCK = ("gone", "never called", "other call", "other sizes", "other order", "deadlock")
SLOW = ("slow compute", "slow host", "slow link", "moving straggler", "small calls", "unbalanced experts")
KINDS = STUCK + SLOW

NEVER = float("inf")
POLL_S = 0.1
NCCL_NAMES = {"all_reduce": "AllReduce", "_all_gather_base": "AllGather", "_reduce_scatter_base": "ReduceScatter",
              "all_reduce_barrier": "AllReduce", "broadcast": "Broadcast", "all_to_all": "AlltoAll"}


class Op:
    """One call of the program. axis: "world", "tp", "dp", or a list of groups (of ranks)."""

    def __init__(self, axis, name, elements, compute=0.0, moving=0.0, sync=False):
        self.axis, self.name, self.elements = axis, name, elements
        self.compute, self.moving, self.sync = compute, moving, sync


class Job:
    def __init__(self, kind, seed, hosts=None, per_host=None, keep=2000, steps=None, factor=None):
        self.kind = kind
        self.random = random.Random(f"{kind} {seed}")
        rng = self.random
        self.hosts = hosts or rng.choice((2, 3, 4, 6, 8))
        self.per_host = per_host or rng.choice((2, 4, 8))
        self.n = self.hosts * self.per_host
        self.keep = keep
        self.factor = factor  # the slow rank's compute time, as a factor
        self.steps = steps or (rng.randint(8, 12) if kind in STUCK else rng.randint(30, 40))
        self.layers = rng.randint(2, 5)
        self.scale = rng.uniform(0.02, 0.1)  # seconds of compute per layer
        self.host_cost = rng.uniform(0.0001, 0.0003)
        self.same_names = rng.random() < 0.5  # one name for all groups of an axis, as meshes have
        self.offset = [rng.uniform(-0.05, 0.05) for _ in range(self.hosts)]  # of each clock
        self.poll = [POLL_S * rng.uniform(1.001, 1.02) for _ in range(self.n)]
        self.phase = [rng.uniform(0, POLL_S) for _ in range(self.n)]
        self.groups = {}  # members -> (name, desc)
        world = tuple(range(self.n))
        self.world = world
        self.groups[world] = ("0", "default_pg")
        self.axes = {"world": [world],
                     "tp": [tuple(range(h * self.per_host, (h + 1) * self.per_host)) for h in range(self.hosts)],
                     "dp": [tuple(range(p, self.n, self.per_host)) for p in range(self.per_host)]}
        count = 1
        for axis in ("tp", "dp"):
            for members in self.axes[axis]:
                self.groups.setdefault(members, (str(1 + (axis == "dp")) if self.same_names else str(count), f"mesh_{axis}"))
                count += 1
        self.dead = {}  # rank -> (step, place) at which it stops
        self.absent = set()  # ranks that leave no file
        self.culprits = []
        self.entries = [[] for _ in range(self.n)]
        self.seq = {}
        self.seq_p2p = {}
        self.gpu = [0.0] * self.n
        self.host = [0.0] * self.n
        self.stuck = [False] * self.n
        self.blocks = rng.random() < 0.3  # the host waits for each call
        self.make()

    # --- the program -------------------------------------------------------------------------
    def program(self):
        ops = []
        for _ in range(self.layers):
            ops.append(Op("tp", "all_reduce", 1 << 20, self.scale, self.scale * 0.15))
        ops.append(Op("dp", "_reduce_scatter_base", 1 << 22, self.scale, self.scale * 0.5))
        if self.kind == "unbalanced experts":
            ops.append(Op("dp", "all_to_all", 1 << 18, self.scale * 0.5, self.scale * 0.8))
            ops.append(Op("dp", "all_to_all", 1 << 18, 0, self.scale * 0.8))
        ops.append(Op("world", "all_reduce", 256, self.scale * 0.2, 0.00005, sync=True))
        return ops

    def make(self):
        rng = self.random
        kind = self.kind
        program = self.program()
        x = rng.randrange(self.n)
        at = (rng.randint(2, self.steps - 1), rng.randrange(len(program)))
        self.compute_factor = [1.0] * self.n
        self.host_extra = [0.0] * self.n
        self.stall = [0.0] * self.n
        self.moving_factor = {}
        self.tokens = None
        step_s = sum(op.compute + op.moving for op in program)
        if kind in ("gone", "never called"):
            # A whole host can die at once.
            self.culprits = [x]
            if kind == "gone" and rng.random() < 0.3 and self.hosts > 2:
                self.culprits = list(self.axes["tp"][x // self.per_host])
            for rank in self.culprits:
                self.dead[rank] = at
            if kind == "gone":
                self.absent = set(self.culprits)
        elif kind == "slow compute":
            self.culprits = [x]
            factor = rng.uniform(1.2, 2.0)
            self.compute_factor[x] = self.factor or factor
        elif kind == "slow host":
            self.culprits = [x]
            if rng.random() < 0.5:
                self.stall[x] = step_s * rng.uniform(0.25, 1.0)
            else:
                self.host_extra[x] = self.scale * rng.uniform(1.4, 2.2)
        elif kind == "slow link":
            if rng.random() < 0.5 or self.hosts < 3:
                while self.per_host < 3:
                    self.__init__(kind, rng.random(), self.hosts, 4, self.keep, self.steps)
                    return
                group = self.axes["dp"][x % self.per_host]
                self.moving_factor[group] = rng.uniform(3, 6)
                self.culprits = list(group)
            else:
                a = x % (self.n - self.per_host)
                self.moving_factor[(a, a + self.per_host)] = rng.uniform(4, 8)
                self.culprits = [a, a + self.per_host]
                self.with_messages = True
        elif kind == "moving straggler":
            pass
        elif kind == "unbalanced experts":
            self.culprits = [x]
            self.tokens = [1.0] * self.n
            self.tokens[x] = rng.uniform(2.0, 4.0)
        messages = getattr(self, "with_messages", False)
        for step in range(self.steps):
            late = rng.randrange(self.n) if kind == "moving straggler" else -1
            late_at = rng.randrange(len(program) - 1)
            extra = step_s * rng.uniform(0.35, 0.9)
            for rank in range(self.n):
                self.host[rank] += self.stall[rank] * rng.uniform(0.9, 1.1)
            if kind == "small calls":
                for _ in range(rng.randint(20, 30)):
                    self.call(step, -1, Op("tp", "all_reduce", rng.choice((1, 8, 64, 512)), 0.00002, self.scale * 0.08))
            if messages:
                for host in range(self.hosts - 1):
                    for lane in range(self.per_host):
                        a = host * self.per_host + lane
                        self.message(a, a + self.per_host, self.scale * 0.4)
            last = step == self.steps - 1
            order = list(range(len(program)))
            for place in order:
                op = program[place]
                if step == at[0] and place == at[1] and kind in ("other call", "other sizes", "other order", "deadlock"):
                    self.break_at(step, place, program, x)
                    last = None
                    if kind in ("other order", "deadlock"):
                        self.rest(step, place + 1, program)
                        return
                    continue
                self.call(step, place, op, late if place == late_at else -1, extra)
            if last is None or (self.dead and step == at[0]) or all(self.stuck):
                return

    def rest(self, step, place, program):
        for at in range(place, len(program)):
            self.call(step, at, program[at])

    def break_at(self, step, place, program, x):
        rng = self.random
        op = program[place]
        if self.kind in ("other call", "other sizes"):
            groups = self.axes[op.axis]
            mine = next(group for group in groups if x in group)
            if len(mine) < 3:  # with two ranks, the wrong one cannot be determined
                self.culprits = list(mine)
            else:
                self.culprits = [x]
            other = {"all_reduce": "_all_gather_base"}.get(op.name, "all_reduce")
            for group in groups:
                self.collect(group, op, wrong={x: (other, op.elements) if self.kind == "other call"
                                                     else (op.name, op.elements + rng.choice((1, 64, 4096)))})
        elif self.kind == "other order":
            # Two groups that have several ranks in common: tp and world.
            group = self.axes["tp"][x // self.per_host]
            first, second = Op("tp", "all_reduce", 1 << 20, self.scale, self.scale * 0.15), Op("world", "all_reduce", 1 << 16, 0, 0.0001)
            self.culprits = [x] if len(group) > 2 else sorted(group)
            self.culprits = [x]
            pairs = []
            for rank in range(self.n):
                mine = next(g for g in self.axes["tp"] if rank in g)
                calls = [(mine, first), (self.world, second)]
                if rank == x:
                    calls.reverse()
                pairs.append(calls)
            self.issue_in_order(pairs)
        else:
            size = rng.randint(3, min(6, self.n)) if self.n > 2 else 2
            ring = rng.sample(range(self.n), size)
            self.culprits = sorted(ring)
            op = Op(None, rng.choice(("all_reduce", "broadcast")), 1 << 14)
            pairs = [[] for _ in range(self.n)]
            for i, rank in enumerate(ring):
                right = tuple(sorted((rank, ring[(i + 1) % size])))
                left = tuple(sorted((ring[i - 1], rank)))
                for group in (left, right):
                    self.groups.setdefault(group, (str(100 + len(self.groups)), "pair"))
                pairs[rank] = [(right, op), (left, op)]
            self.issue_in_order(pairs)

    # --- running it --------------------------------------------------------------------------
    def is_dead(self, rank, step, place):
        return rank in self.dead and (step, place) >= self.dead[rank]

    def call(self, step, place, op, late=-1, extra=0.0):
        for group in self.axes[op.axis]:
            self.collect(group, op, late=late, extra=extra, step=step, place=place)

    def issue(self, rank, op, late=-1, extra=0.0):
        rng = self.random
        self.host[rank] += self.host_cost * rng.uniform(0.8, 1.2) + self.host_extra[rank] * rng.uniform(0.9, 1.1)
        issued = self.host[rank]
        compute = op.compute * self.compute_factor[rank] * rng.uniform(0.98, 1.02) + (extra if rank == late else 0.0)
        if self.tokens and op.name == "all_to_all" and op.compute == 0:
            compute = self.scale * 0.6 * self.tokens[rank] * rng.uniform(0.98, 1.02)
        return issued, max(self.gpu[rank], issued) + compute

    def collect(self, group, op, wrong=None, late=-1, extra=0.0, step=0, place=0):
        rng = self.random
        arrived = {}
        for rank in group:
            if self.host[rank] == NEVER or self.is_dead(rank, step, place):
                self.host[rank] = NEVER if self.is_dead(rank, step, place) else self.host[rank]
                continue
            arrived[rank] = self.issue(rank, op, late, extra)
        moving = op.moving * self.moving_factor.get(group, 1.0) * rng.uniform(0.97, 1.03)
        if self.tokens and op.name == "all_to_all":
            moving *= max(self.tokens[rank] for rank in group)
        whole = len(arrived) == len(group) and not wrong_in(wrong, group)
        end = max(start for _, start in arrived.values()) + moving if whole and arrived else NEVER
        for rank, (issued, start) in arrived.items():
            name, elements = (wrong or {}).get(rank, (op.name, op.elements))
            self.add(rank, group, name, elements, issued, start, end)
            self.gpu[rank] = end if start != NEVER else NEVER
            if (op.sync or self.blocks) and self.gpu[rank] == NEVER:
                self.host[rank] = NEVER
                self.stuck[rank] = True
            elif op.sync or self.blocks:
                self.host[rank] = max(self.host[rank], self.gpu[rank])

    def issue_in_order(self, pairs):
        """Issues each rank's calls. Calls that all members reach first in their queues would end, but none does."""
        for rank, calls in enumerate(pairs):
            for group, op in calls:
                if self.host[rank] == NEVER:
                    break
                issued, start = self.issue(rank, op)
                self.add(rank, group, op.name, op.elements, issued, start, NEVER)
                self.gpu[rank] = NEVER
                if self.blocks:
                    self.host[rank] = NEVER
        if self.kind == "other order":  # groups without the culprit end, and their ranks wait in world
            x = self.culprits[0]
            mine = next(g for g in self.axes["tp"] if x in g)
            for rank in range(self.n):
                if rank in mine or not pairs[rank]:
                    continue
                group = pairs[rank][0][0]
                mine_entries = self.entries[rank]
                first = next(e for e in reversed(mine_entries) if e["group"] == group)
                first["end"] = max(e["start"] for r in group for e in self.entries[r][-2:] if e["group"] == group) + 0.001
                second = [e for e in mine_entries if e["group"] == self.world and e["end"] == NEVER]
                if second:
                    second[0]["start"] = first["end"] + 0.0001
                elif self.blocks:
                    self.host[rank] = first["end"]
                    issued, _ = self.issue(rank, pairs[rank][1][1])
                    self.add(rank, self.world, pairs[rank][1][1].name, pairs[rank][1][1].elements, issued, issued, NEVER)
                    self.host[rank] = NEVER

    def message(self, a, b, moving):
        op = Op(None, "p2p", 1 << 20, self.scale * 0.05)
        group = (a, b)
        (issued_a, start_a), (issued_b, start_b) = self.issue(a, op), self.issue(b, op)
        end = max(start_a, start_b) + moving * self.moving_factor.get(group, 1.0) * self.random.uniform(0.97, 1.03)
        for rank, name, issued, start in ((a, f"send {a}->{b}", issued_a, start_a), (b, f"recv {b}<-{a}", issued_b, start_b)):
            self.add(rank, self.world, name, op.elements, issued, start, end, p2p=True)
            self.gpu[rank] = end

    def add(self, rank, group, name, elements, issued, start, end, p2p=False):
        counters = self.seq_p2p if p2p else self.seq
        counters[(rank, group)] = counters.get((rank, group), 0) + 1
        self.entries[rank].append({"group": group, "name": name, "elements": elements, "issued": issued, "start": start,
                                   "end": end, "seq": self.seq.get((rank, group), 0),
                                   "p2p_seq": self.seq_p2p.get((rank, group), 0), "p2p": p2p})

    # --- writing it --------------------------------------------------------------------------
    def ns(self, rank, seconds):
        return int((1.79e9 + seconds + self.offset[rank // self.per_host]) * 1e9)

    def seen(self, rank, seconds):
        """Returns the time at which the watchdog noticed the event."""
        if seconds == NEVER:
            return NEVER
        poll = self.poll[rank]
        return (int((seconds - self.phase[rank]) / poll) + 1) * poll + self.phase[rank]

    def dump(self, rank, version, is_json):
        entries = []
        none = 0 if is_json else None
        for index, e in enumerate(self.entries[rank]):
            name, desc = self.groups[e["group"]]
            started, ended = self.seen(rank, e["start"]), self.seen(rank, e["end"])
            size = len(e["group"])
            sizes_in, sizes_out = [[e["elements"]]], [[e["elements"]]]
            if e["name"] == "_reduce_scatter_base":
                sizes_out = [[e["elements"] // size]]
            if e["name"] == "_all_gather_base":
                sizes_out = [[e["elements"] * size]]
            if e["name"] == "all_to_all" and self.tokens:
                share = self.tokens[rank] / sum(self.tokens[r] for r in e["group"]) * size
                sizes_in, sizes_out = [[e["elements"], 16]], [[int(e["elements"] * share), 16]]
            entry = {"record_id": index, "pg_id": 0, "process_group": [name, desc] if is_json else (name, desc),
                     "thread_name": "pt_main_thread", "thread_id": "140735", "collective_seq_id": e["seq"],
                     "p2p_seq_id": e["p2p_seq"], "op_id": index, "profiling_name": "nccl:" + e["name"],
                     "time_created_ns": self.ns(rank, e["issued"]), "input_sizes": sizes_in, "input_dtypes": ["Float"],
                     "output_sizes": sizes_out, "output_dtypes": ["Float"],
                     "state": "completed" if ended != NEVER else "started" if started != NEVER else "scheduled",
                     "time_discovered_started_ns": none if started == NEVER else self.ns(rank, started),
                     "time_discovered_completed_ns": none if ended == NEVER else self.ns(rank, ended),
                     "retired": ended != NEVER, "timeout_ms": 600000, "is_p2p": e["p2p"]}
            if e["end"] != NEVER:
                entry["duration_ms"] = (e["end"] - e["start"]) * 1000
            if not is_json:
                entry["frames"] = [{"name": "step", "filename": "/job/train.py", "line": 120}]
            entries.append(entry)
        config = {}
        for group, (name, desc) in self.groups.items():
            if rank in group:
                config[name] = {"name": name, "desc": desc, "ranks": str(list(group))}
        document = {"version": version, "comm_lib_version": "2.29.3", "pg_config": config, "pg_status": {}}
        if entries or not is_json:
            document["entries"] = entries[-self.keep:]
        return document

    def write_flight_recorder(self, folder, version="2.10", is_json=True):
        for rank in range(self.n):
            if rank in self.absent:
                continue
            document = self.dump(rank, version, is_json)
            with open(os.path.join(folder, f"nccl_trace_rank_{rank}"), "wb") as file:
                if is_json:
                    file.write(json.dumps(document, separators=(",", ":")).encode())
                else:
                    pickle.dump(document, file, protocol=2)

    def write_nccl_log(self, folder):
        for rank in range(self.n):
            if rank in self.absent:
                continue
            host, device = rank // self.per_host, rank % self.per_host
            head = f"node{host}:{700 + device}:{700 + device} [{device}] NCCL INFO "
            lines = []
            for index, group in enumerate(self.groups):
                if rank in group:
                    lines.append(f"{head}ncclCommInitRank comm 0x{rank:x}{index:03x} rank {group.index(rank)} nranks {len(group)} "
                                 f"cudaDev {device} nvmlDev {device} busId {device}000 commId 0x{index + 16:x} - Init COMPLETE")
            names = list(self.groups)
            for e in self.entries[rank]:
                index = names.index(e["group"])
                lines.append(f"{head}{NCCL_NAMES[e['name']]}: opCount {e['seq'] - 1:x} sendbuff 0x7f10 recvbuff 0x7f10 count {e['elements']} "
                             f"datatype 7 op 0 root 0 comm 0x{rank:x}{index:03x} [nranks={len(e['group'])}] stream 0x5599")
            with open(os.path.join(folder, f"nccl.{rank}.log"), "w") as file:
                file.write("\n".join(lines) + "\n")


def wrong_in(wrong, group):
    return bool(wrong) and any(rank in wrong for rank in group)
