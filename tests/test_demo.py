"""The demo's clip is the same every time, moves as it says, and has the noise it says."""

from itertools import pairwise

import numpy as np
import pytest

from restore import demo


def test_sample_moves_and_stays_in_range():
    frames = list(demo.sample())
    assert len(frames) == demo.FRAMES
    for frame in frames:
        assert frame.shape == (demo.HEIGHT, demo.WIDTH, 3)
        assert frame.dtype == np.float32
        assert frame.min() >= 0
        assert frame.max() <= 1
        # No border of the photograph comes into view.
        assert frame[:, [0, -1]].mean(axis=(1, 2)).min() > 0.02
    again = list(demo.sample())
    assert all(np.array_equal(a, b) for a, b in zip(frames, again, strict=True))
    assert min(np.abs(a - b).mean() for a, b in pairwise(frames)) > 0.005


def test_noise_follows_its_curve():
    level = np.full((demo.HEIGHT, demo.WIDTH, 3), 0.5, np.float32)
    (noisy,) = demo.add_noise(iter([level]))
    want = demo.SLOPE * 0.5 + demo.READ_NOISE
    assert np.var(noisy, axis=(0, 1)) == pytest.approx(want, rel=0.02)


def test_clips_survive_the_file_up_to_chroma_subsampling(tmp_path):
    from restore.io import VideoReader, to_rgb
    from restore.metrics import psnr

    path = tmp_path / "clean.mkv"
    frames = list(demo.sample())[:3]
    demo.write_clip(iter(frames), path)
    with VideoReader(path) as reader:
        assert reader.info.codec == "ffv1"
        assert reader.info.format.name == "yuv420p"
        back = [to_rgb(frame) for frame in reader]
    assert len(back) == len(frames)
    assert min(psnr(a, np.clip(b, 0, 1)) for a, b in zip(frames, back, strict=True)) > 30


def test_demo_restores(tmp_path):
    result = demo.run_demo(tmp_path / "demo", preset="fast")
    assert result.frames == demo.FRAMES
    assert 20 < result.psnr_before < 26
    assert result.psnr_after > result.psnr_before + 3
    assert result.picture.stat().st_size > 50_000
