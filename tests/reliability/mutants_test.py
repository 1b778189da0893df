#!/usr/bin/env python3
"""Breaks one line of the engine, of a transport or of the calls at a time: some test must fail.

  mutants_test.py SOURCE [NAME...]      those whose name contains one of the words; by default all

Works in a copy of the source tree, with a build directory of its own there; what ccache remembers of
an earlier copy serves this one.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ENGINE, COMBINE, WAITS = "src/engine/segmented_run.cc", "src/engine/execution.cc", "src/comm/point_to_point.cc"
SEND, TCP_LANE, LANE = "src/transport/tcp/outbox.cc", "src/transport/tcp/lane.h", "src/transport/shm/lane.h"
# Name, file, original text, replacement.
MUTANTS = [
    ("sends_out_of_turn", ENGINE, "if (sequence != lane.sequence || limit <= state.done)", "if (limit <= state.done)"),
    ("ignores_dependencies", ENGINE, "limit = std::min(limit, state.finished ? pass.bytes : state.done)",
     "limit = std::min(limit, pass.bytes)"),
    ("gives_shared_memory_back_early", ENGINE, "if (!run_.transport.drained(lane.lane, state.mark))",
     "if (!run_.transport.drained(lane.lane, state.mark) && false)"),
    ("ends_without_flush", ENGINE, "if (kept == 0 && run_.flushed())", "if (kept == 0)"),
    ("takes_any_signature", ENGINE, "if (message.signature != run_.signature_of(pass, state.done, message.bytes) ||",
     "if ("),
    ("reads_a_message_from_its_beginning", ENGINE, "arriving.message.data += bytes;", ";"),
    ("never_takes_the_next_turn", ENGINE, "++arriving.sequence;", ";"),
    ("cuts_elements", "src/transport/send.h", "bytes = std::min(bytes, limits.slot_bytes);\n  std::byte* slot",
     "bytes = std::min(bytes, limits.slot_bytes - 1);\n  std::byte* slot"),
    ("copies_one_byte_less", COMBINE, "kernels::copy(targets[i], sources[0], bytes, store);",
     "kernels::copy(targets[i], sources[0], bytes - 1, store);"),
    ("forwards_from_another_place", ENGINE, "const bool level = states_[i].done == state.done &&",
     "const bool level = (states_[i].done == state.done || true) &&"),
    ("releases_too_much", LANE, "head_->cells.store(next_ - 1, std::memory_order_release);\n    return true;",
     "head_->cells.store(next_, std::memory_order_release);\n    return true;"),
    ("begins_a_frame_within_another", SEND, "to.waiting == 1 && !to.writer.has_partial()", "to.waiting == 1"),
    ("sends_beyond_the_window", SEND, "  lane.unreleased.add(bytes);\n", ""),
    ("tells_of_more_room_than_there_is", SEND, "          .number = number,\n          .released = lane.next,",
     "          .number = number,\n          .released = lane.next + 1,"),
    ("loses_credits", TCP_LANE, "unreleased.remove(outgoing(released).bytes);", ";"),
    ("mistakes_the_tag", WAITS, "return one.tag == tag;", "return one.tag == tag || true;"),
    ("serves_half_a_stored_message", WAITS, "if (found->done == found->data.size()) {", "if (true) {"),
    ("takes_another_size", WAITS, "if (wanted->bytes != envelope.bytes) {", "if (wanted == nullptr) {"),
    ("frees_a_send_that_waits", WAITS, "if (!transport_.flush(peer)) {", "if (!transport_.flush(peer) && false) {"),
    ("divides_a_parted_job", "src/membership/quorum.cc", "return present > absent;", "return present >= absent - 1;"),
    ("forgets_the_order", "src/comm/operations.cc", "mix(prepared.signature ^ latest_.sequence ^ salt)", "mix(salt)"),
    ("lets_two_threads_in", "src/comm/call_queue.cc", "if (used_.exchange(true)) {", "if (used_.exchange(false)) {"),
]  # fmt: skip
TARGETS = ["engine_test", "engine_chaos_test", "cut_writes_test", "transport_test", "comm_test", "bootstrap_test", "membership_test", "error_test", "collective_progress",
           "collective_forms", "random_collectives"]  # fmt: skip
# The sooner a test finds mistakes, the earlier it runs. Each draws fewer cases than in make test.
TESTS = [
    ("src/engine/engine_test", []),
    ("tests/collectives/engine_chaos_test", ["--count", "400"]),
    ("src/transport/cut_writes_test", []),
    ("src/transport/transport_test", []),
    ("tests/error/error_test", ["tests/error/expected"]),
    ("tests/collectives/collective_progress", []),
    ("tests/collectives/random_collectives", ["--count", "1000"]),
    ("tests/collectives/random_collectives", ["--count", "300"], "tcp"),
    ("tests/collectives/collective_forms", []),
    ("src/comm/comm_test", []),
    ("src/bootstrap/bootstrap_test", []),
    ("src/membership/membership_test", []),
]
SECONDS = 300  # the limit for a run without a mutant


def copy_of(source, target):
    names = subprocess.run(["git", "-C", source, "ls-files", "-z"], capture_output=True, check=True).stdout
    for name in names.decode().split("\0"):
        if name and (source / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name)


def build(tree, targets):
    words = ["cmake", "--build", tree / "build/dev", "--target", *targets]
    anywhere = os.environ | {"CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1"}
    return subprocess.run(words, capture_output=True, text=True, env=anywhere)


def who_notices(tree, tests, limits):
    """The first test that fails; None: all pass. A test that takes longer than its limit hangs: that is noticed as
    well. One without a limit gets three times what it takes now, and half a minute at least."""
    for i, (program, arguments, *world) in enumerate(tests):
        environment = os.environ | ({"UNISONO_TEST_WORLD": world[0]} if world else {})
        begin = time.monotonic()
        test = subprocess.Popen([tree / "build/dev" / program, *arguments], cwd=tree, env=environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        try:
            if test.wait(limits.get(i, SECONDS)) != 0:
                return program
        except subprocess.TimeoutExpired:
            os.killpg(test.pid, signal.SIGKILL)  # and the ranks that it has forked
            test.wait()
            return program + " (it hangs)"
        limits.setdefault(i, max(30, 3 * (time.monotonic() - begin)))
    return None


def run(source, words, mutants, targets, tests):
    """Prints who notices each of the mutants whose name contains one of the words; returns how many there were, and
    the names of those that nobody noticed."""
    chosen = [mutant for mutant in mutants if not words or any(word in mutant[0] for word in words)]
    with tempfile.TemporaryDirectory(prefix="mutants") as folder:
        tree = pathlib.Path(folder)
        copy_of(source, tree)
        subprocess.run(["cmake", "--preset", "dev"], cwd=tree, capture_output=True, check=True)
        done = build(tree, targets)
        limits = {}
        if done.returncode != 0 or (failed := who_notices(tree, tests, limits)):
            sys.exit(f"without a mutant: {done.stdout[-2000:] if done.returncode else failed}")
        alive = []
        for name, file, before, after in chosen:
            text = (tree / file).read_text()
            if text.count(before) != 1:
                sys.exit(f"{name}: {file} has what it changes {text.count(before)} times, not once")
            (tree / file).write_text(text.replace(before, after))
            done = build(tree, targets)
            by = "the compiler" if done.returncode != 0 else who_notices(tree, tests, limits)
            (tree / file).write_text(text)
            print(f"{name}: {'noticed by ' + by if by else 'NOT NOTICED'}", flush=True)
            alive += [] if by else [name]
    print(f"{len(chosen) - len(alive)} of {len(chosen)} noticed")
    return len(chosen), alive


if __name__ == "__main__":
    count, missed = run(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:], MUTANTS, TARGETS, TESTS)
    sys.exit(len(missed) * 20 > count)
