"""Algorithms as data: the catalogue of algorithms, your own schedules, and their verification.

    schedule = unisono.schedule.build("all_reduce/ring", ranks=4)
    assert schedule.verify() == []
    print(schedule.show(step=1))
"""

from unisono._core import (
    Algorithm,
    Builder,
    Finding,
    Move,
    Schedule,
    beside,
    build,
    catalog,
    sub,
    then,
    verify_claims,
)

__all__ = [
    "Algorithm", "Builder", "Finding", "Move", "Schedule", "beside", "build", "catalog", "sub",
    "then", "verify_claims",
]  # fmt: skip

load = Schedule.load
