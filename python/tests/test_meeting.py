"""connect(bootstrap=...): ranks that can already communicate connect through their own means."""

import threading

import pytest
import unisono


def meet(exchange, ranks=2, **options):
    """Returns what each rank, a thread, returns or raises."""
    said = [None] * ranks

    def run(rank):
        try:
            with unisono.connect(
                rank=rank, size=ranks, job="meeting", token="0123456789abcdef", transport="tcp",
                connect_timeout_ms=20000, bootstrap=lambda mine: exchange(rank, mine), **options,
            ) as comm:  # fmt: skip
                said[rank] = (bytes(comm.all_reduce(bytearray([rank + 1]))), comm.hosts)
                comm.barrier()
        except Exception as error:
            said[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said


class Board:
    """An exchange in which each rank gives its text and gets the texts of all ranks."""

    def __init__(self, ranks):
        self.texts, self.all_are_here = {}, threading.Barrier(ranks, timeout=600)

    def exchange(self, rank, mine):
        assert isinstance(mine, bytes)
        self.texts[rank] = mine
        self.all_are_here.wait()
        return [self.texts[other] for other in sorted(self.texts)]


def test_ranks_meet_through_it():
    assert meet(Board(3).exchange, 3) == [(b"\x06", 3)] * 3


def test_what_it_raises_is_raised():
    def exchange(rank, mine):
        raise LookupError(f"rank {rank} has no store")

    for rank, error in enumerate(meet(exchange)):
        assert isinstance(error, LookupError) and str(error) == f"rank {rank} has no store"


@pytest.mark.parametrize(
    ("texts", "kind", "said"),
    [
        ([b"a"], unisono.UsageError, "returned 1 texts for 2 ranks"),
        ([b"a", b"b"], unisono.Error, ""),
        ([b"a", 7], TypeError, "bootstrap() must return the bytes"),
        (7, TypeError, "bootstrap() must return the bytes"),
    ],
)
def test_what_is_no_text_of_a_rank_is_refused(texts, kind, said):
    for error in meet(lambda rank, mine: texts):
        assert isinstance(error, kind) and said in str(error), repr(error)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match=r"connect\(\) does not accept 7 as bootstrap"):
        unisono.connect(rank=0, size=2, bootstrap=7)
    with pytest.raises(TypeError, match="has no option 'bootstrap'"):
        unisono.run_threads(2, lambda comm: None, bootstrap=print)
