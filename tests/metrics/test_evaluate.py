import cv2
import numpy as np
import pytest
from moving_scene import as_float, scene, with_noise, write_clip

from restore.errors import InputError, UsageError
from restore.io import VideoReader
from restore.metrics import psnr
from restore.metrics.evaluate import evaluate, evaluate_blind, sampling_for
from restore.metrics.matching import Matcher


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    clean, noisy = scene(), with_noise(scene(), 10)
    return {
        "clean": write_clip(folder / "clean.mkv", clean),
        "noisy": write_clip(folder / "noisy.mkv", noisy),
        "soft": write_clip(
            folder / "soft.mkv", np.stack([cv2.GaussianBlur(x, (0, 0), 1) for x in clean])
        ),
        "folder": folder,
    }


def test_figures_of_files_are_those_of_their_frames(files):
    found, soft = evaluate(files["clean"], [files["noisy"], files["soft"]], lpips=False)
    frames = zip(as_float(scene()), as_float(with_noise(scene(), 10)), strict=True)
    assert [frame["psnr"] for frame in found.frames] == pytest.approx(
        [psnr(a, b) for a, b in frames], abs=1e-3
    )
    assert [frame["time"] for frame in found.frames] == pytest.approx(np.arange(8) * 0.04)
    assert found.notes == []
    assert soft.mean["detail_lost"] > 0.5 > found.mean["detail_lost"]
    assert found.moving is not None


def test_without_a_reference(files):
    good, soft = evaluate_blind(files["noisy"], [files["clean"], files["soft"]])
    assert good.blind
    assert good.mean["noise_before"] == pytest.approx(10, rel=0.25)
    assert good.mean["removed"] == pytest.approx(10, rel=0.1)
    assert good.mean["structure"] < soft.mean["structure"]


def test_dropped_frames_are_matched_by_time_and_said(files):
    keep = [0, 1, 3, 4, 6, 7]
    path = write_clip(
        files["folder"] / "dropped.mkv", scene()[keep], pts=[40 * number for number in keep]
    )
    (found,) = evaluate(files["clean"], [path], lpips=False)
    assert [frame["psnr"] for frame in found.frames] == [99] * 6
    assert found.notes == [
        f"{path}: nothing to compare with 2 of 8 frames of {files['clean']}",
    ]


def test_a_later_start_is_compared_from_the_first_frame_and_said(files):
    path = write_clip(files["folder"] / "late.mkv", scene(), pts=[1400 + 40 * i for i in range(8)])
    (found,) = evaluate(files["clean"], [path], lpips=False)
    assert found.mean["psnr"] == 99
    assert len(found.notes) == 1
    assert "starts at 1.400 s" in found.notes[0]


def test_surplus_frames_are_said(files):
    path = write_clip(files["folder"] / "short.mkv", scene()[:5])
    (found,) = evaluate(path, [files["clean"]], lpips=False)
    assert len(found.frames) == 5
    assert "3 frames that" in found.notes[0]


def test_start_and_duration_cut_the_reference(files):
    path = write_clip(files["folder"] / "part.mkv", scene()[3:6])
    (found,) = evaluate(files["clean"], [path], start=0.12, duration=0.12, lpips=False)
    assert [frame["psnr"] for frame in found.frames] == [99] * 3
    assert found.notes == []


def test_image_folders_are_compared_by_number(files, tmp_path):
    for number, frame in enumerate(scene()):
        cv2.imwrite(str(tmp_path / f"{number:04d}.png"), frame[..., ::-1])
    slow = write_clip(files["folder"] / "slow.mkv", scene(), pts=[100 * i for i in range(8)])
    (found,) = evaluate(tmp_path, [slow], lpips=False)
    assert found.mean["psnr"] == 99
    assert "compared by number" in found.notes[0]


def test_counting_frames_ignores_their_times(files):
    slow = write_clip(files["folder"] / "slower.mkv", scene(), pts=[60 * i for i in range(8)])
    assert evaluate(files["clean"], [slow], align="index", lpips=False)[0].mean["psnr"] == 99
    assert len(evaluate(files["clean"], [slow], lpips=False)[0].frames) < 8


def test_other_sizes_are_refused(files):
    path = write_clip(files["folder"] / "small.mkv", scene()[:, :96])
    with pytest.raises(InputError, match=r"small\.mkv: 256x96 pixels.*256x192"):
        evaluate(files["clean"], [path], lpips=False)


def test_unknown_alignment_is_refused(files):
    with VideoReader(files["clean"]) as reader, pytest.raises(UsageError, match="pts, index"):
        Matcher(reader, [], align="content")


def test_long_clips_are_sampled():
    assert sampling_for(None, lpips=False).pair_step == 1
    assert sampling_for(40, lpips=False).pair_step == 1
    long = sampling_for(3000, lpips=True)
    assert 3000 / long.pair_step <= 60
    assert long.lpips_step % long.pair_step == 0
    assert sampling_for(3000, lpips=False, every=1).pair_step == 1
