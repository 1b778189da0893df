"""Runs at ``import torch`` (entry point ``torch.backends``). It must be fast and must not fail."""


def autoload():
    """Registers the backend "unisono" with torch.distributed. Never raises."""
    try:
        from unisono import torch as backend

        backend.register()
    except Exception as error:  # an exception here would break `import torch`
        import warnings

        warnings.warn(
            f"unisono: the backend was not registered: {error}. "
            "`python -m unisono.torch.doctor` gives details.",
            stacklevel=2,
        )
