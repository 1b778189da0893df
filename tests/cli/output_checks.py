"""Checks of the files that a user names: one function per check; it returns the mistake, or None.

Each command writes into devices that the check made itself: one that breaks a device breaks no
other program of the machine. Without the right to make devices and file systems less is checked.
"""
import contextlib
import functools
import os
import stat
import subprocess
import tempfile
import threading

from check_tools import FILES, LIMIT_S, LINK, MEASURED, output

KINETO = [f"kineto_gloo.{rank}.json" for rank in range(3)]
EVENTS = "a folder of recordings"
WRITERS = {
    "view": ["view", "all_reduce/ring", "-n", "2", "--no-open", "-o"],
    "trace export": ["trace", "export", "recording.json", "-o"],
    "sim": ["sim", "all_reduce/ring", "-n", "4", "--link", LINK, "--trace"],
    "plan": ["plan", "--fit", MEASURED, "--only", "dgx-a100", "--save"],
    "tune": ["tune", "--table", "few_times.csv", "-o"],
    "tune --measure": ["tune", "-e", "16", "--time", "100ms", "--measure"],
    "bench": ["bench", "all_reduce", "-e", "8", "-n", "1", "-w", "1", "--plot"],
    "run": ["run", "-n", "1", "--record"],
    "export": ["export", "all_reduce/ring", "-n", "4", "-o"],
    "plan --on": ["plan", "--fit", "few_times.csv", "--on", "dgx_a100", "--save"],
    "plan moe": ["plan", "moe", "--routing", "routing.txt", "-n", "2", "--hidden", "1024", "--save"],
    "plan-model": ["plan-model", "llama3-8b", "--on", "dgx_h100", "--train", "--batch", "64", "--sequence",
                   "4096", "--save"],
    "step sim": ["step", "sim", "llama3-8b", "--layout", "tp=2", "--on", "dgx_h100", "--workload"],
    "trace import": ["trace", "import", *KINETO, "-o"],
    "trace import --workload": ["trace", "import", *KINETO, "-o", "/dev/null", "--workload"],
    "trace merge": ["trace", "merge", EVENTS, "-o"],
    "tune --times": ["tune", "-n", "2", "-e", "8", "--time", "1ms", "-o", "/dev/null", "--times"],
    "bench --table": ["bench", "--main-job", "-n", "2", "-e", "8", "--time-per-row", "1ms", "--table"],
}
SLOW = {"bench --table"}  # some seconds each time


EVENTS_LOCK = threading.Lock()


@functools.cache
def recorded_events(program):
    folder = tempfile.TemporaryDirectory()
    done = subprocess.run([str(program), "run", "-n", "2", "--", str(program), "bench", "barrier", "-n", "3"],
                          env=dict(os.environ, UNISONO_RECORD=folder.name), capture_output=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return folder


def events(program):
    """The recordings of two ranks: one folder for all checks, made by the first check that needs it."""
    with EVENTS_LOCK:
        return recorded_events(program)


def write(program, environment, name, path, **more):
    words = [events(program).name if word == EVENTS else word for word in WRITERS[name]]
    words += [str(path)] + (["--", "true"] if name == "run" else [])
    return output(program, words, environment, cwd=FILES, **more)


@contextlib.contextmanager
def device(folder, name, minor):
    """A memory device (major number 1), or None if it cannot be created or used."""
    path = folder / name
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        path.unlink(missing_ok=True)
        path = None
    try:
        yield path
    finally:
        if path:
            path.unlink()


@contextlib.contextmanager
def small_disk(folder, options):
    """A file system of one page, or None if it cannot be mounted."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
                             capture_output=True).returncode == 0
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


def outputs_into_devices(program, scratch, environment):
    """A device remains a device, even behind a link."""
    with device(scratch, "null", 3) as null:
        if null is None:
            return None
        link = scratch / "to_null"
        link.symlink_to("null")
        for name in WRITERS.keys() - SLOW:
            for path in (null, link):
                result = write(program, environment, name, path)
                if result.returncode != 0 or not stat.S_ISCHR(null.stat().st_mode):
                    return f"{name}: {result.returncode} {result.stderr}"
            if not link.is_symlink() or list(scratch.glob(".unisono-*")):
                return f"{name}: {list(scratch.iterdir())}"
    return None


def outputs_through_links(program, scratch, environment):
    """Links, the mode and the other names of a file are kept; its content is replaced."""
    for name in WRITERS.keys() - SLOW:
        folder = scratch / name.replace(" ", "_")
        (folder / "real").mkdir(parents=True)
        (folder / "link").symlink_to("real/file")
        result = write(program, environment, name, folder / "link")  # to a file that is not there
        real = folder / "real" / "file"
        if result.returncode != 0 or not (folder / "link").is_symlink() or real.is_symlink():
            return f"{name}: a dangling link: {result.stderr}"
        size = real.stat().st_size
        real.write_text("x" * (size + 100))
        real.chmod(0o640)
        if os.geteuid() == 0:
            os.chown(real, 12, 34)
        before = real.stat()
        result = write(program, environment, name, folder / "link")
        after = real.stat()
        kept = ("st_mode", "st_uid", "st_gid")
        if (result.returncode != 0 or real.read_text().endswith("x") or
                any(getattr(before, part) != getattr(after, part) for part in kept)):
            return f"{name}: an old file: {before} {after} {result.stderr}"
        os.link(real, folder / "other_name")
        real.write_text("")
        write(program, environment, name, real)
        if (folder / "other_name").stat().st_size == 0:
            return f"{name}: the second name has the old contents"
        if [path.name for path in sorted(folder.rglob(".unisono-*"))]:
            return f"{name}: left {list(folder.rglob('*'))}"
    return None


def refused(name, result, words):
    if result.returncode == 0 or words not in result.stderr or len(result.stderr) > 400:
        return f"{name}: {words}: {result.returncode} {result.stderr}"
    return None


def outputs_refused(program, scratch, environment):
    """A folder, a missing folder, and a read-only file cause an error of one sentence."""
    closed = scratch / "closed"
    closed.write_text("as it was")
    closed.chmod(0o444)
    for name in WRITERS:
        problem = refused(name, write(program, environment, name, scratch / "closed" / "x"),
                          "there is no folder")
        if name != "run":  # it creates a file in a folder
            problem = problem or refused(name, write(program, environment, name, scratch),
                                         "it is a folder")
        if os.geteuid() != 0:
            problem = problem or refused(name, write(program, environment, name, closed),
                                         "no permission")
        if problem:
            return problem
    with small_disk(scratch / "readable", "ro") as disk:
        for name in WRITERS if disk else ():
            problem = refused(name, write(program, environment, name, disk / "x"), "read-only")
            if problem:
                return problem
    return None if closed.read_text() == "as it was" or os.geteuid() == 0 else "overwritten"


def outputs_on_full_disks(program, scratch, environment):
    """A full disk causes an error, the old content is kept, and no partial file is left."""
    with device(scratch, "full", 7) as full, small_disk(scratch / "disk", "size=4k") as disk:
        if disk:
            (disk / "old").write_text("as it was" * 100)
        for name in WRITERS:
            if name == "run":  # see job_on_a_full_disk
                continue
            if full:
                problem = refused(name, write(program, environment, name, full), "disk is full")
                if problem or not stat.S_ISCHR(full.stat().st_mode):
                    return problem or f"{name}: the device is gone"
            if disk and name not in SLOW | {"tune --measure"}:  # which writes in place, line by line
                for path in (disk / "old", disk / "new"):
                    problem = refused(name, write(program, environment, name, path),
                                      "its disk is full")
                    if problem or [one.name for one in disk.iterdir()] != ["old"]:
                        return problem or f"{name}: left {list(disk.iterdir())}"
                if (disk / "old").read_text() != "as it was" * 100:
                    return f"{name}: the old file is gone"
                os.link(disk / "old", disk / "twin")  # so it is written in place
                result = write(program, environment, name, disk / "old")
                if result.returncode != 0 and (disk / "twin").read_text() != "as it was" * 100:
                    return f"{name}: the old file is gone, which had two names"
                (disk / "twin").unlink()
                (disk / "old").write_text("as it was" * 100)
    return None


def job_on_a_full_disk(program, scratch, environment):
    """A correct job ends with 0 without its logs and its recording; one line reports this."""
    job = ["--", "sh", "-c", "head -c 20000 /dev/zero | tr '\\0' x; exit $CODE"]
    with small_disk(scratch / "disk", "size=4k") as disk, device(scratch, "full", 7) as full:
        for code in ("0", "7"):
            words = {}
            if disk:
                words["are missing in"] = ["--log-dir", str(disk)]
            if full:
                words["the recording is lost: cannot write"] = ["--record", str(full)]
            for words_of, options in words.items():
                result = output(program, ["run", "-n", "1", "--quiet"] + options + job,
                                dict(environment, CODE=code))
                lines = [line for line in result.stderr.splitlines() if words_of in line]
                if result.returncode != int(code) or len(lines) != 1 or len(result.stdout) < 20000:
                    return f"{options}: {result.returncode} {result.stderr}"
                if "everything that each rank printed is in" in result.stderr:
                    return f"{options}: not everything: {result.stderr}"
    limited = subprocess.run(["bash", "-c", 'ulimit -f 4; exec "$@"', "bash", str(program), "run",
                              "-n", "1", "--log-dir", str(scratch / "logs")] + job,
                             env=dict(environment, CODE="0"), capture_output=True, text=True,
                             timeout=LIMIT_S)
    if limited.returncode != 0 or "are missing in" not in limited.stderr:
        return f"under ulimit -f: {limited.returncode} {limited.stderr}"
    return None


def logs_and_recordings_refused_or_lost(program, scratch, environment):
    """A bad path is refused before the job; one that disappears meanwhile is reported, and the job is correct."""
    def job(options, script="echo hello", before=""):
        command = f'{before} exec "$@"'
        return subprocess.run(["bash", "-c", command, "bash", str(program), "run", "-n", "1", "--quiet", *options,
                               "--", "sh", "-c", script], env=environment, capture_output=True, text=True,
                              cwd=scratch, timeout=LIMIT_S)

    (scratch / "real").mkdir()
    (scratch / "link").symlink_to("real")
    result = job(["--log-dir", "link"])
    if result.returncode != 0 or (scratch / "real" / "rank-0.out").read_text() != "hello\n":
        return f"a folder behind a link: {result.stderr}"
    with small_disk(scratch / "readable", "ro") as disk:
        for options in (["--log-dir", "/dev/null"], ["--record", "nowhere/x.json"],
                        *([["--log-dir", str(disk)], ["--log-dir", str(disk / "x")],
                           ["--record", str(disk / "x.json")]] if disk else [])):
            result = job(options)
            if result.returncode != 2 or result.stdout or "error[usage]" not in result.stderr:
                return f"{options}: {result.returncode} {result.stderr}"
    for what, options, said in (("gone-logs", ["--log-dir", "gone-logs"], "are missing in gone-logs"),
                                ("gone-record", ["--record", "gone-record/x.json"], "the recording is lost")):
        (scratch / what).mkdir()
        result = job(options, f"echo hello; sleep 0.2; rm -r {what}; echo more; exit 7")
        lines = [line for line in result.stderr.splitlines() if said in line]
        if result.returncode != 7 or result.stdout != "hello\nmore\n" or len(lines) != 1:
            return f"{what} removed meanwhile: {result.returncode} {result.stderr}"
        if "printed is in" in result.stderr:
            return f"{what} is not there any more: {result.stderr}"
    result = job(["--record", "x.json"], before="ulimit -f 0;")
    if result.returncode != 0 or "larger than ulimit -f allows" not in result.stderr or (scratch / "x.json").exists():
        return f"--record under ulimit -f: {result.returncode} {result.stderr}"
    return None
