"""The plug-in for vLLM on CPUs: unisono as the communicator of all parallel groups.

    python -m unisono.vllm serve MODEL --tensor-parallel-size 2

Installing the package registers the plug-in with vLLM (entry point ``vllm.general_plugins``). To
enable it, name it in VLLM_PLUGINS, as the command above does. The guide is docs/guides/vllm.md.
"""

import os

__all__ = ["register"]

LOGGER = "vllm.unisono"  # vLLM shows only messages of loggers below its own name


def register():
    """Changes vLLM in this process. vLLM calls it in each of its processes. May be called again."""
    if "unisono" not in os.environ.get("VLLM_PLUGINS", "").split(","):
        return  # without the variable vLLM loads all plug-ins, but this plug-in must be named
    from vllm.logger import init_logger
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        init_logger(LOGGER).warning(
            "unisono: this vLLM runs on %s; the plug-in is for CPUs and stays off", current_platform.device_name
        )
        return
    from unisono.vllm import patches

    patches.apply(type(current_platform))
