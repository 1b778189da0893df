"""Checks of unisono run: one function per check; it returns the mistake, or None."""
import os
import re
import signal
import subprocess
import time

from check_tools import LIMIT_S, output


def marked(mark):
    """Processes that have the mark in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if mark.encode() in file.read():
                        found.append(int(entry))
            except OSError:
                pass
    return found


def wait_for_none(mark, seconds=5):
    end = time.time() + seconds
    while marked(mark) and time.time() < end:
        time.sleep(0.02)
    return marked(mark)


def nothing_left(program, scratch, environment):
    """Children and grandchildren end with the job, however it ends."""
    mark = f"CLI_TEST_MARK={os.getpid()}-"
    # A rank with a child in its group, and one that has moved to its own session.
    body = "sleep 61 & setsid sleep 62 & [ $RANK = 1 ] && sleep 0.3 && exit 5; wait"
    job = ["run", "-n", "2", "--env", mark + "a", "--", "sh", "-c", body]
    result = output(program, job, environment)
    if result.returncode != 5 or wait_for_none(mark + "a"):
        return f"after a failure: code {result.returncode}, left {marked(mark + 'a')}"
    result = output(program, ["run", "-n", "2", "--env", mark + "b", "--", "sh", "-c",
                              "sleep 61 & exit 0"], environment)
    if result.returncode != 0 or wait_for_none(mark + "b"):
        return f"after success: code {result.returncode}, left {marked(mark + 'b')}"
    return None


def launcher_signals(program, scratch, environment):
    """The death of the launcher ends the ranks and their children."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        mark = f"CLI_TEST_MARK={os.getpid()}-{number}"
        job = subprocess.Popen([str(program), "run", "-n", "3", "--env", mark, "--", "sh", "-c",
                                "echo up; sleep 63"], env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        if job.stdout.readline() == "":
            return "the job did not start"
        job.send_signal(number)
        job.communicate(timeout=LIMIT_S)
        wanted = -number if number == signal.SIGKILL else 128 + number
        left = wait_for_none(mark)
        if job.returncode != wanted or left:
            return f"signal {number}: code {job.returncode}, wanted {wanted}, left {left}"
    return None


def log_files(program, scratch, environment):
    folder = scratch / "logs"
    output(program, ["run", "-n", "2", "--log-dir", str(folder), "--only", "0", "--", "sh", "-c",
                     "echo out $RANK; echo err $RANK >&2"], environment)
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    wanted = {f"rank-{rank}.{end}": f"{end} {rank}\n" for rank in (0, 1) for end in ("out", "err")}
    return None if texts == wanted else f"{texts}"


def binding(program, scratch, environment):
    """Rank i gets CPU floor(i * CPUs / ranks) of the allowed ones."""
    cpus = sorted(os.sched_getaffinity(0))
    ranks = 2 * len(cpus)
    code = "import os; print(os.environ['RANK'], *sorted(os.sched_getaffinity(0)))"
    for bind in ("core", "none"):
        result = output(program, ["run", "-n", str(ranks), "--bind", bind, "--no-prefix", "--",
                                  "python3", "-c", code], environment)
        got = dict(line.split(" ", 1) for line in result.stdout.splitlines())
        for rank in range(ranks):
            wanted = [cpus[rank * len(cpus) // ranks]] if bind == "core" else cpus
            if got.get(str(rank)) != " ".join(map(str, wanted)):
                return f"--bind {bind}: {got}"
    return None


def job_variables(program, scratch, environment):
    """Each job has its own name, token and port."""
    seen = []
    for _ in range(2):
        text = output(program, ["run", "-n", "2", "--no-prefix", "--", "sh", "-c",
                                "echo $UNISONO_JOB $UNISONO_TOKEN $MASTER_PORT"], environment).stdout
        lines = set(text.splitlines())
        if len(lines) != 1:
            return f"ranks of one job differ: {text}"
        seen.append(lines.pop().split())
    if not re.fullmatch(r"[0-9a-f]{32}", seen[0][1]) or not 0 < int(seen[0][2]) < 65536:
        return f"{seen}"
    return None if seen[0][0] != seen[1][0] and seen[0][1] != seen[1][1] else f"{seen}"


def who_was_ended(program, scratch, environment):
    """The report names the first cause, not a rank that the launcher ended because of it."""
    # Rank 2 fails independently of the others; rank 0 survives the signal that ends rank 1.
    body = ("[ $RANK = 2 ] && { sleep 1; echo fails; exit 7; }; [ $RANK = 0 ] && trap '' INT TERM; "
            "UNISONO_SIZE=2 exec " + str(program) + " bench barrier -n 100000000")
    for world, interrupts in (("shm", False), ("tcp", False), ("shm", True)):
        job = subprocess.Popen([str(program), "run", "-n", "3", "--transport", world, "--", "sh",
                                "-c", body], env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        if interrupts:  # while the other ranks have time to report
            for line in job.stdout:
                if "fails" in line:
                    break
            time.sleep(0.5)
            job.send_signal(signal.SIGINT)
        said = job.communicate(timeout=LIMIT_S)[0]
        ended = (r"rank 1 .*is gone: ended by the launcher after process 2 of the job exited with "
                 r"code 7\n")
        if not re.search(ended, said) or "killed by SIG" in said:
            return f"{world}, interrupts: {interrupts}: {said}"
        if not re.search(r"look at the last output of that process", said):
            return f"{world}, no advice: {said}"
    return None
