"""The class that replaces torch.distributed's ProcessGroupGloo if UNISONO_REPLACE_GLOO is set."""

from datetime import timedelta


def _is_unisono(instance):
    from unisono.torch import extension

    return isinstance(instance, extension().Backend)


class _Meta(type):
    """Behaves like gloo's class, but creates unisono groups when it is called."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.real) or _is_unisono(instance)

    def __getattr__(cls, name):
        return getattr(cls.real, name)

    def __call__(cls, store, rank, size, options=None, timeout=timedelta(minutes=30), **more):
        from unisono.torch import extension

        if isinstance(options, timedelta):  # the other signature: (store, rank, size, timeout)
            options, timeout = None, options
        if options is not None:
            return cls.real(store, rank, size, options, **more)
        return extension().Backend(store, rank, size, timeout, shown_as="gloo", **more)


def replace():
    from torch.distributed import distributed_c10d

    gloo = getattr(distributed_c10d, "ProcessGroupGloo", None)
    if gloo is None or isinstance(gloo, _Meta):
        return
    distributed_c10d.ProcessGroupGloo = _Meta("ProcessGroupGloo", (), {"real": gloo})
