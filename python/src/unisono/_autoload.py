"""Runs at ``import torch`` (entry point ``torch.backends``): must be quick, and must not fail."""


def autoload():
    """Makes "unisono" a backend that torch.distributed knows. Never raises."""
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
