#!/usr/bin/env python3
"""Runs a program whose system calls of some names fail: deny.py NAME[,NAME...] ERRNO PROGRAM [WORD...]

By a seccomp filter, as containers have them; x86-64 only.
"""

import ctypes
import errno
import os
import struct
import sys

NUMBERS = {"socket": 41, "shmget": 29, "eventfd2": 290, "epoll_create1": 291, "process_vm_readv": 310,
           "memfd_create": 319, "membarrier": 324, "pidfd_open": 434, "pidfd_send_signal": 424,
           "sched_setaffinity": 203, "mbind": 237, "get_mempolicy": 239}
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # opcodes of the classic packet filter
ALLOW, FAIL = 0x7FFF0000, 0x00050000


def install(names, number):
    code = [(LOAD, 0, 0, 0)]  # seccomp_data.nr
    for name in names:
        code += [(EQUAL, 0, 1, NUMBERS[name]), (RETURN, 0, 0, FAIL | number)]
    code.append((RETURN, 0, 0, ALLOW))
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in code))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            or libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(head), 0, 0) != 0):
        sys.exit(f"no seccomp: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    install(sys.argv[1].split(","), getattr(errno, sys.argv[2]))
    os.execvp(sys.argv[3], sys.argv[3:])
