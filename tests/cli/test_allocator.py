import platform
import resource
import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import numpy as np
if sys.argv[1] == "keep":
    from restore.cli.allocator import keep_memory
    keep_memory()
np.ones((480, 854, 40), np.float32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    np.ones((480, 854, 40), np.float32)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how):
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="tunes glibc's allocator")
def test_pictures_reuse_their_pages():
    # Without it, each array of 66 MB is 16,000 fresh pages of 4 kB (fewer where pages are huge).
    assert faults("keep") < 0.1 * 20 * 480 * 854 * 40 * 4 / resource.getpagesize()
    assert faults("keep") < faults("leave")
