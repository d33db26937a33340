import subprocess
import sys

PROGRAM = """
import resource, sys
import numpy as np
from restore.cli.denoise import main

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

common = ["--strength", "0", "--quiet", "--segment", "3"]
assert main([sys.argv[1], "short.mkv", "--duration", "0.5", *common]) == 0
before = peak()
assert main([sys.argv[1], "long.mkv", *common]) == 0
print(peak() - before)
"""


def test_an_encoder_is_freed_with_its_segment(tmp_path):
    """A film has hundreds of segments; an encoder of x264 holds 20 MB even for small pictures."""
    source = tmp_path / "source.mkv"
    make = "import av, numpy as np\n" + (
        "with av.open('source.mkv', 'w') as c:\n"
        "    s = c.add_stream('libx264', rate=25)\n"
        "    s.width, s.height, s.pix_fmt = 320, 240, 'yuv420p'\n"
        "    for i in range(72):\n"
        "        p = np.full((360, 320), i, np.uint8)\n"
        "        c.mux(s.encode(av.VideoFrame.from_ndarray(p, 'yuv420p')))\n"
        "    c.mux(s.encode(None))\n"
    )
    subprocess.run([sys.executable, "-c", make], cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(source)],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 40  # megabytes: 24 segments, not 4
