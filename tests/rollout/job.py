"""Jobs of examples/rollout whose ranks are started one by one, so that a test has their pipes and process ids."""

import fcntl
import os
import subprocess
import threading

LIMIT_S = 300
PIPE_BYTES = 4096


class Job:
    """Six ranks: 0 to 3 train, 4 and 5 answer. Nobody reads what rank 4 prints, and its pipe is full, so the engine
    comes to a stop at its first answers, until drain()."""

    def __init__(self, rollout, folder, *options):
        self.folder = folder
        meet = {"UNISONO_FILE": os.path.join(folder, "meet"), "UNISONO_SIZE": "6", "UNISONO_COLOR": "never"}
        self.engine_out, engine_in = os.pipe()
        fcntl.fcntl(engine_in, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.write(engine_in, b"\n" * fcntl.fcntl(engine_in, fcntl.F_GETPIPE_SZ))
        self.ranks = []
        for rank in range(6):
            out = {0: subprocess.PIPE, 4: engine_in}.get(rank, subprocess.DEVNULL)
            self.ranks.append(subprocess.Popen([rollout, *options], text=True, stdout=out,
                                               env={**os.environ, **meet, "UNISONO_RANK": str(rank)},
                                               stderr=open(self.error_file(rank), "w")))
        os.close(engine_in)
        self.limit = threading.Timer(LIMIT_S, self.kill)  # bounds a hang
        self.limit.start()

    def kill(self):
        for rank in self.ranks:
            rank.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.limit.cancel()
        self.kill()
        for rank in self.ranks:
            rank.wait()
        self.ranks[0].stdout.close()
        os.close(self.engine_out)

    def error_file(self, rank):
        return os.path.join(self.folder, f"said-{rank}")

    def said(self, rank):
        return open(self.error_file(rank)).read()

    def until(self, text):
        """Reads rank 0's lines up to one with the text. Returns that line, or "" if there is none."""
        return next((line for line in self.ranks[0].stdout if text in line), "")

    def drain(self):
        """Reads what the engine prints until it ends."""
        with os.fdopen(os.dup(self.engine_out)) as out:
            return out.read().strip("\n")

    def codes(self):
        return [rank.wait(LIMIT_S) for rank in self.ranks]
