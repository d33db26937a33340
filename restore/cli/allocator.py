"""Keep memory that was freed for the next frame."""

from __future__ import annotations

import ctypes
import platform

# glibc's <malloc.h>
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3


def keep_memory() -> None:
    """Let glibc reuse large blocks instead of handing them back to the system after every frame.

    Each frame allocates the same pictures again; fresh pages have to be cleared and mapped each
    time, which cost a tenth of the CPU time. Elsewhere than on glibc nothing is done.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(_MMAP_THRESHOLD, 1 << 30)
    libc.mallopt(_TRIM_THRESHOLD, (1 << 31) - 1)
    libc.mallopt(_TOP_PAD, 1 << 26)
