"""The real command, interrupted: by signals, by a full disk, by being killed."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import av
import numpy as np
import pytest
from moving_pattern import pattern

from restore.io import VideoReader
from restore.workfolder import work_folder

COMMAND = [sys.executable, "-m", "restore.cli.denoise"]
SETTINGS = ["--preset", "fast", "--runtime", "onnx", "--segment", "16", "--codec", "ffv1"]


@pytest.fixture(autouse=True)
def interrupts_are_heard():
    """A shell's background jobs ignore SIGINT, and so would every process that they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def run(*argv, **options) -> subprocess.CompletedProcess:
    command = [*COMMAND, *map(str, argv)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


def finished(target: Path) -> int:
    """Segments that the manifest lists."""
    manifest = work_folder(target) / "manifest.json"
    return manifest.read_text().count("sha256") if manifest.exists() else 0


def wait_for_segments(target: Path, process: subprocess.Popen, count: int) -> None:
    limit = time.monotonic() + 120
    while finished(target) < count:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < limit
        time.sleep(0.01)


@pytest.fixture(scope="module")
def source(make_clip) -> Path:
    return make_clip("in.mkv", frames=120, audio=1, size=(160, 96))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_in_good_order(source, tmp_path, number):
    target = tmp_path / "out.mkv"
    command = [*COMMAND, str(source), str(target), *SETTINGS]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_for_segments(target, process, 1)
        process.send_signal(number)
        told = process.communicate(timeout=60)[1].splitlines()[-1]
        assert process.returncode == 5
    kept = 16 * finished(target)
    assert told == (
        f"restore-denoise: stopped before the end; {kept} frames are kept in {work_folder(target)}:"
        " add --resume to go on with them."
    )
    assert list(tmp_path.iterdir()) == [work_folder(target)]
    again = run(source, target, *SETTINGS, "--quiet")
    assert again.returncode == 2
    assert "--resume" in again.stderr
    assert again.stderr.count("\n") == 1
    resumed = run(source, target, *SETTINGS, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert f"{kept} frames were taken over" in resumed.stderr
    assert list(tmp_path.iterdir()) == [target]


def test_a_second_signal_leaves_at_once(tmp_path):
    code = (
        "import os, signal, time\n"
        "from restore.cli.guard import guarded\n"
        "def slow():\n"
        "    try:\n        os.kill(os.getpid(), signal.SIGINT); time.sleep(60)\n"
        "    finally:\n        os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)\n"
        "guarded('x', slow)\n"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=50)
    assert done.returncode == 5
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("limit", [3_000, 60_000, 300_000])
def test_a_full_disk_is_one_line_and_no_file(source, tmp_path, limit):
    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    target = tmp_path / "out.mkv"
    identity = ["--strength", "0", "--segment", "16", "--codec", "ffv1", "--quiet"]
    done = run(source, target, *identity, preexec_fn=fill)
    assert done.returncode == 4, done.stderr
    assert done.stderr.count("\n") == 1
    assert "cannot be written (File too large); free space" in done.stderr
    assert not target.exists()
    if finished(target):
        assert "add --resume" in done.stderr
        assert run(source, target, *identity, "--resume").returncode == 0
    assert list(tmp_path.iterdir()) == ([target] if target.exists() else [])


def decoded(path: Path) -> list[tuple]:
    with VideoReader(path) as reader:
        return [(f.time, *(plane.tobytes() for plane in f.planes)) for f in reader]


def sound(path: Path) -> list[tuple]:
    with av.open(str(path)) as container:
        return [(p.pts, p.dts, bytes(p)) for p in container.demux(audio=0) if p.size]


def noisy_clip(path: Path, template: Path) -> Path:
    """The template's pattern under noise, with its sound."""
    rng = np.random.default_rng(1)
    with av.open(str(template)) as container, av.open(str(path), "w") as output:
        video = output.add_stream("ffv1", rate=25)
        video.width, video.height, video.pix_fmt = 160, 96, "yuv420p"
        track = output.add_stream_from_template(container.streams.audio[0])
        for number in range(120):
            image = pattern(number, 160, 96)[:: -1 if number > 70 else 1].astype(np.float64)
            image = np.clip(image + rng.normal(0, 12, image.shape), 0, 255).astype(np.uint8)
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            picture = picture.reformat(format="yuv420p")
            picture.pts = number
            output.mux(video.encode(picture))
        output.mux(video.encode(None))
        for packet in container.demux(audio=0):
            if packet.size:
                packet.stream = track
                output.mux(packet)
    return path


@pytest.mark.slow
def test_killed_anywhere_and_resumed_it_is_the_same_film(source, tmp_path):
    noisy = noisy_clip(tmp_path / "in.mkv", source)
    whole, target = tmp_path / "whole.mkv", tmp_path / "out.mkv"
    began = time.monotonic()
    assert run(noisy, whole, *SETTINGS).returncode == 0
    took = time.monotonic() - began
    expected, words = decoded(whole), sound(whole)
    assert len(expected) == 120
    draw = random.Random(5)
    tally: dict[int, int] = {}
    for _ in range(20):
        target.unlink(missing_ok=True)
        command = [*COMMAND, str(noisy), str(target), *SETTINGS, "--resume"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            time.sleep(draw.uniform(0.05, 1.1) * took)
            process.send_signal(signal.SIGKILL)
        kept = finished(target)
        tally[kept] = tally.get(kept, 0) + 1
        if not target.exists():  # it was killed before its end
            done = run(noisy, target, *SETTINGS, "--resume")
            assert done.returncode == 0, done.stderr
        assert decoded(target) == expected
        assert sound(target) == words
        left = {path.name for path in tmp_path.iterdir()} - {"in.mkv", "whole.mkv", "out.mkv"}
        assert left <= {work_folder(target).name}
        if left:  # killed between naming the file and removing the folder
            assert os.path.exists(target)
    print("segments kept: runs", sorted(tally.items()))
    assert len(tally) > 3
