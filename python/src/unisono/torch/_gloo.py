"""UNISONO_REPLACE_GLOO: what stands where torch.distributed names ProcessGroupGloo."""

from datetime import timedelta


def _is_unisono(instance):
    from unisono.torch import extension

    return isinstance(instance, extension().Backend)


class _Meta(type):
    """Makes unisono groups when called; for everything else it is gloo's class."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.real) or _is_unisono(instance)

    def __getattr__(cls, name):
        return getattr(cls.real, name)

    def __call__(cls, store, rank, size, options=None, timeout=timedelta(minutes=30)):
        from unisono.torch import extension

        from torch.distributed import PrefixStore

        if isinstance(options, timedelta):  # its other signature: (store, rank, size, timeout)
            options, timeout = None, options
        store.set(f"unisono/host/{rank}", extension().host_identity())
        hosts = {store.get(f"unisono/host/{other}") for other in range(size)}
        if options is not None:
            return cls.real(store, rank, size, options)
        if len(hosts) > 1:
            return cls.real(PrefixStore("gloo", store), rank, size, timeout=timeout)
        return extension().Backend(store, rank, size, timeout)


def replace():
    from torch.distributed import distributed_c10d

    gloo = getattr(distributed_c10d, "ProcessGroupGloo", None)
    if gloo is None or isinstance(gloo, _Meta):
        return
    distributed_c10d.ProcessGroupGloo = _Meta("ProcessGroupGloo", (), {"real": gloo})
