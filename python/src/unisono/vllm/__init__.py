"""The plug-in for vLLM on CPUs: unisono as the communicator of all parallel groups.

    python -m unisono.vllm serve MODEL --tensor-parallel-size 2

Installing the package makes the plug-in known to vLLM (entry point ``vllm.general_plugins``), and
naming it in VLLM_PLUGINS switches it on, as that command does. docs/guides/vllm.md is the guide.
"""

import os

__all__ = ["register"]

LOGGER = "vllm.unisono"  # vLLM shows the messages below its own name only


def register():
    """Called by vLLM in each of its processes. May be called again."""
    if "unisono" not in os.environ.get("VLLM_PLUGINS", "").split(","):
        return  # vLLM loads every installed plug-in unless the variable is set: this one must be asked for
    from vllm.logger import init_logger
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        init_logger(LOGGER).warning(
            "unisono: this vLLM runs on %s; the plug-in is for CPUs and stays off", current_platform.device_name
        )
        return
    from unisono.vllm import patches

    patches.apply(type(current_platform))
