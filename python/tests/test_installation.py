"""The effect of an installed package on `import torch`, and its programs."""

import ctypes
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import jobs
import pytest
import torch
import torch.distributed as dist
import unisono
from unisono import _core


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, **environment},
    )  # fmt: skip
    return done.returncode, done.stdout.strip(), done.stderr


def test_import_of_torch_registers_the_backend_without_loading_it():
    code = (
        "import sys, torch, torch.distributed as dist; "
        "print('unisono' in dist.Backend.backend_list, 'unisono.torch._C' in sys.modules)"
    )
    assert python(code)[1] == "True False"
    assert python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")[1] == "False False"


def test_registering_again_is_harmless():
    code = "import unisono.torch as u; u.register(); u.register(); print('good')"
    assert python(code)[1] == "good"


def test_an_error_in_it_does_not_break_import_torch():
    code = (
        "import sys; sys.modules['unisono.torch'] = None\n"
        "import warnings; warnings.simplefilter('error')\n"
        "warnings.simplefilter('default')\n"
        "import torch; print(torch.ones(1).item())"
    )
    status, said, warned = python(code)
    assert (status, said) == (0, "1.0")
    assert "doctor" in warned


def test_another_minor_of_torch_is_told():
    code = (
        "import torch, unisono.torch\n"
        "unisono.torch.built_for = lambda: ['2.98', '2.99']\n"
        "try:\n    unisono.torch.extension()\nexcept ImportError as error:\n    print(error)"
    )
    said = python(code)[1]
    assert said.startswith(f"unisono was built for 2.98, 2.99, but this is PyTorch {torch.__version__}; use one")


def test_an_installation_without_extensions_is_told(tmp_path):
    code = (
        "import unisono.torch\n"
        f"unisono.torch._EXTENSIONS = {str(tmp_path / 'none')!r}\n"
        "try:\n    unisono.torch.extension()\nexcept ImportError as error:\n    print(error)"
    )
    said = python(code)[1]
    assert said.startswith(f"unisono was built for no PyTorch, but this is PyTorch {torch.__version__}; use one")


def test_versions_are_ordered_as_numbers(tmp_path, monkeypatch):
    import unisono.torch

    for minor in ("2.9", "2.15", "2.13", "__pycache__"):
        (tmp_path / minor).mkdir()
    monkeypatch.setattr(unisono.torch, "_EXTENSIONS", str(tmp_path))
    assert unisono.torch.built_for() == ["2.9", "2.13", "2.15"]


def test_an_unknown_release_is_tried_with_one_warning():
    code = (
        "import importlib, warnings, torch, unisono.torch\n"
        "real = importlib.import_module\n"
        "def untested(name):\n"
        "    module = real(name)\n"
        "    if name == 'unisono.torch._C': module.tested = ['2.1']\n"
        "    return module\n"
        "importlib.import_module = untested\n"
        "with warnings.catch_warnings(record=True) as heard:\n"
        "    warnings.simplefilter('always')\n"
        "    unisono.torch.extension(); unisono.torch.extension()\n"
        "print([str(one.message) for one in heard if 'tested' in str(one.message)])"
    )
    assert python(code)[1] == f"['unisono is tested with PyTorch 2.1, and tried with this {torch.__version__}']"


def test_the_doctor():
    done = subprocess.run(
        [sys.executable, "-m", "unisono.torch.doctor"], capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") == 5 and "BAD" not in done.stdout
    assert f"works with torch {torch.__version__}: all_reduce of 8 bytes takes " in done.stdout


def test_the_doctor_of_the_package():
    done = subprocess.run([sys.executable, "-m", "unisono", "doctor"], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") == 7 and f"ok  unisono: {unisono.__version__}, " in done.stdout, done.stdout


def test_the_doctor_needs_no_torch():
    code = (
        "import importlib.util, unisono.doctor\n"
        "importlib.util.find_spec = lambda name: None\n"
        "raise SystemExit(unisono.doctor.main())"
    )
    status, said, _ = python(code)
    assert status == 0 and said.endswith("torch: not installed") and "ok  two ranks: a barrier takes " in said, said


def test_the_doctor_says_what_was_raised_and_what_to_do():
    from unisono.doctor import reason

    raised = "Traceback (most recent call last):\n  File x\ntorch.DistBackendError: no memory\nraise the limit\n"
    assert reason(raised) == "torch.DistBackendError: no memory; raise the limit"
    assert reason("killed\n") == "killed"


def test_the_doctor_says_that_others_compete():
    from unisono.doctor import contention, running_now

    assert contention(0, 2) == "" and contention(14, 16) == ""
    assert contention(3, 2) == ", with 3 other threads running on 2 CPUs: a quiet machine is quicker"
    assert running_now() >= 0


def by_the_name_of_gloo():
    import unisono.torch

    unisono.torch.replace_gloo()
    unisono.torch.replace_gloo()
    rank = int(os.environ["RANK"])
    store = dist.FileStore(os.environ["TEST_STORE"], 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    x = torch.ones(2)
    dist.all_reduce(x)
    group = dist.new_group([0, 1], backend="gloo")
    dist.barrier(group=group)
    dist.monitored_barrier()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(x)
        dist.all_reduce(x, async_op=True).wait()
    shown = [event.is_async for event in profile.events() if event.name == "gloo:all_reduce"]
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_gather_into_tensor(torch.empty(4), x)
        dist.reduce_scatter_tensor(torch.empty(1), x)
        batch = [dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, torch.empty(2), 1 - rank)]
        for work in dist.batch_isend_irecv(batch):
            work.wait()
    names = {event.name for event in profile.events() if event.name.startswith(("gloo:", "unisono:"))}
    assert names == {"gloo:all_gather", "gloo:all_reduce", "gloo:send", "gloo:recv"}
    # Its logger reads members of gloo's class.
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    model(x[None]).sum().backward()
    logged = model._get_ddp_logging_data()
    return dist.get_backend(), backend.name(), shown, x.tolist(), logged["gloo_num_threads"]


def test_gloo_may_mean_unisono(tmp_path):
    results = jobs.run(2, with_store, str(tmp_path / "store"), backend=None)
    assert results == [("gloo", "unisono", [True, True], [8.0, 8.0], 0)] * 2


def with_store(path):
    os.environ["TEST_STORE"] = path
    return by_the_name_of_gloo()


def test_debug_detail(monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    code = (
        "import sys, torch, torch.distributed as dist, subprocess, os, tempfile\n"
        "if len(sys.argv) < 2:\n"
        "    f = os.path.join(tempfile.mkdtemp(), 's')\n"
        "    ps = [subprocess.Popen([sys.executable, '-c', os.environ['CODE'], str(r), f]) for r in (0, 1)]\n"
        "    print([p.wait() for p in ps]); sys.exit()\n"
        "dist.init_process_group('unisono', store=dist.FileStore(sys.argv[2], 2), rank=int(sys.argv[1]), world_size=2)\n"
        "x = torch.ones(2); dist.all_reduce(x); dist.barrier(); assert x.tolist() == [2.0, 2.0]\n"
        "dist.all_gather([torch.ones(2), torch.ones(2)], x)\n"
        "dist.destroy_process_group()\n"
    )
    assert python(code, CODE=code)[1] == "[0, 0]"


WHEEL = os.environ.get("TESTED_WHEEL")  # of scripts/test-python


@pytest.mark.skipif(not WHEEL, reason="looks into a built wheel: run it by scripts/test-python, or set TESTED_WHEEL to one")
def test_auditwheel_knows_all_that_the_wheel_needs():
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", WHEEL], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert "is consistent with" in shown.stdout
    needed = set(re.findall(r"\b(lib[a-z0-9_+-]+)\.so", shown.stdout))
    debian = {"libhwy", "libfmt", "libcrypto"}
    torch_has = {"libc10", "libtorch", "libtorch_cpu", "libtorch_python"}
    system = {"libc", "libm", "libstdc++", "libgcc_s", "libpthread", "libdl", "librt", "ld-linux-x86-64"}
    assert needed <= debian | torch_has | system, needed


def test_kernels_lie_where_the_extension_looks():
    """Extensions run from the folder where they were built: dlopen() searches that folder."""
    kernels = Path(unisono.__file__).parent / "libunisono_cuda.so.0"
    if not kernels.exists():
        pytest.skip("built without kernels for GPUs: run scripts/test-python where nvcc is")
    module = ctypes.CDLL(str(kernels)).unisono_cuda_kernels
    module.restype = ctypes.c_void_p
    assert module(0)  # of i8
    assert not module(1000)
    dynamic = subprocess.run(
        ["readelf", "-d", _core.__file__], capture_output=True, text=True, check=True
    ).stdout
    assert re.search(r"\((RUNPATH|RPATH)\).*\$ORIGIN\b", dynamic), dynamic


def test_a_build_by_pip_reports_on_the_terminal(tmp_path):
    """pip hides the output of the build."""
    import pty

    (tmp_path / "begun").write_text(str(int(time.time())))
    script = Path(__file__).parents[1] / "cmake" / "progress.sh"
    child, terminal = pty.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        for status in (0, 3):
            done = subprocess.run(["sh", script, tmp_path, "sh", "-c", f"exit {status}"], check=False).returncode
            if done != status:
                os._exit(1)
        os._exit(0)
    said = b""
    try:
        while more := os.read(terminal, 1000):
            said += more
    except OSError:  # the child has ended
        pass
    assert os.waitpid(child, 0)[1] == 0
    assert b"unisono: 1 files compiled, " in said and b"unisono: 2 files compiled, " in said


def test_a_program_that_imports_torch_alone():
    """As the guide promises, nothing of unisono is imported."""
    code = (
        "import torch, torch.distributed as dist, tempfile, os\n"
        "f = os.path.join(tempfile.mkdtemp(), 's')\n"
        "dist.init_process_group('unisono', store=dist.FileStore(f, 1), rank=0, world_size=1)\n"
        "x = torch.ones(2); dist.all_reduce(x); print(x.tolist(), dist.get_backend())\n"
        "dist.destroy_process_group()"
    )
    assert python(code)[1] == "[1.0, 1.0] unisono"


def test_without_torch_there_is_unisono_all_the_same(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    code = (
        "import unisono\n"
        "print(bytes(unisono.run_threads(2, lambda c: c.all_reduce(bytearray(b'\\x01')))[0]))\n"
        "try:\n    import unisono.torch; unisono.torch.register()\n"
        "except ImportError as error:\n    print(error)"
    )
    status, said, _ = python(code, PYTHONPATH=str(tmp_path))
    assert (status, said) == (0, "b'\\x02'\nno torch here")
