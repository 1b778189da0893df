"""unisono for Python.

``unisono.torch`` is a backend for ``torch.distributed``; with this package installed,
``torch.distributed.init_process_group("unisono")`` needs no import of it.
"""

__version__ = "0.1.0"
