"""CutDetector and find_cuts on pans over photographs with cuts, flashes, fades and occluders."""

import os
from pathlib import Path

import cv2
import numpy as np
import pytest
from skimage import data

from restore.analyse import CutDetector, find_cuts

HEIGHT, WIDTH = 270, 480


def pan(picture, frames, speed=(4, 1)):
    scale = 1.45 * max(WIDTH / picture.shape[1], HEIGHT / picture.shape[0])
    large = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    large = large.astype(np.float32) / 255
    dx, dy = speed
    return [large[t * dy : t * dy + HEIGHT, t * dx : t * dx + WIDTH] for t in range(frames)]


@pytest.fixture(scope="module")
def shots():
    return [pan(data.astronaut(), 12), pan(data.coffee(), 12, (9, 2)), pan(data.chelsea(), 12)]


def noisy(frames, sigma):
    rng = np.random.default_rng(0)
    return [f + np.float32(sigma / 255) * rng.standard_normal(f.shape, np.float32) for f in frames]


def joined(shots):
    return [frame for shot in shots for frame in shot]


def cuts(frames):
    return [i for i, (_, starts) in enumerate(find_cuts(frames)) if starts]


@pytest.mark.parametrize("sigma", [0, 10, 50])
def test_cuts_are_found_on_their_frame(shots, sigma):
    assert cuts(noisy(joined(shots), sigma)) == [0, 12, 24]


def test_integer_and_gray_frames_give_the_same_cuts(shots):
    frames = joined(shots)
    eight = [np.rint(f * 255).astype(np.uint8) for f in frames]
    sixteen = [np.rint(f.mean(-1) * 65535).astype(np.uint16) for f in frames]
    assert cuts(eight) == cuts(sixteen) == [0, 12, 24]


@pytest.mark.parametrize("at", [1, 2, 10, 11])
def test_cut_beside_the_ends_of_a_clip(shots, at):
    frames = shots[0][:at] + shots[1][: 12 - at]
    assert cuts(frames) == [0, at]


@pytest.mark.parametrize("sigma", [0, 50])
@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("light", ["white", "bright", "black", "corner"])
def test_flash_is_not_a_cut(shots, light, length, sigma):
    frames = [f.copy() for f in shots[0]]
    for frame in frames[5 : 5 + length]:
        if light == "white":
            frame[:] = 1
        elif light == "bright":
            frame[:] = np.minimum(frame * 2 + 0.4, 1)
        elif light == "black":
            frame[:] = 0
        else:
            frame[:200, :300] = 1
    assert cuts(noisy(frames, sigma)) == [0]


@pytest.mark.parametrize("sigma", [0, 50])
def test_fade_out_and_in_is_not_a_cut(shots, sigma):
    levels = np.concatenate([np.linspace(1, 0, 6), [0, 0], np.linspace(0, 1, 4)])
    frames = [f * np.float32(level) for f, level in zip(shots[0], levels, strict=True)]
    assert cuts(noisy(frames, sigma)) == [0]


def test_new_shot_after_black_frames(shots):
    black = [np.zeros_like(shots[0][0])] * 3
    assert cuts(noisy([*shots[0][:6], *black, *shots[1][:6]], 20)) == [0, 9]


def test_cross_fade_is_not_a_cut(shots):
    mix = np.linspace(0, 1, 12, dtype=np.float32)
    frames = [(1 - m) * a + m * b for m, a, b in zip(mix, *shots[:2], strict=True)]
    assert cuts(frames) == [0]


def test_flicker_is_not_a_cut(shots):
    rng = np.random.default_rng(1)
    frames = [
        np.clip(f * g, 0, 1) for f, g in zip(shots[2], rng.uniform(0.5, 1.4, 12), strict=True)
    ]
    assert cuts(noisy(frames, 20)) == [0]


@pytest.mark.parametrize("speed", [(17, 2), (12, 10)])
def test_fast_pan_is_not_a_cut(speed):
    assert cuts(pan(data.astronaut(), 12, speed)) == [0]


@pytest.mark.parametrize("sigma", [0, 50])
def test_fast_occluder_is_not_a_cut(shots, sigma):
    frames = [f.copy() for f in shots[1]]
    for t, frame in enumerate(frames):
        left = 160 * (t - 4)
        if 0 <= left < WIDTH:
            frame[40:, left : left + 160] = shots[2][0][40:, :160]
    assert cuts(noisy(frames, sigma)) == [0]


def test_black_frames_of_a_noisy_camera_are_one_shot():
    black = [np.zeros((HEIGHT, WIDTH, 3), np.float32)] * 10
    assert cuts(noisy(black, 30)) == [0]


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_short_clips(shots, count):
    assert cuts(shots[0][:count]) == [0][:count]


def test_look_ahead_is_bounded_and_order_kept(shots):
    taken = []

    def source():
        for number, frame in enumerate(joined(shots)):
            taken.append(number)
            yield number, frame

    for expected, ((number, _), _) in enumerate(find_cuts(source(), picture=lambda f: f[1])):
        assert number == expected
        assert taken[-1] - number <= CutDetector.LOOK_AHEAD


def test_push_answers_late_and_finish_gives_the_rest(shots):
    detector = CutDetector()
    answers = [detector.push(frame) for frame in shots[0][:5]]
    assert answers == [None, None, True, False, False]
    assert detector.finish() == [False, False]
    assert detector.finish() == []


@pytest.mark.parametrize("shape", [(8, 8, 4), (8,), (0, 8, 3)])
def test_wrong_shape_is_refused(shape):
    with pytest.raises(ValueError, match="shape"):
        CutDetector().push(np.zeros(shape, np.float32))


def read(path):
    capture = cv2.VideoCapture(str(path))
    try:
        while True:
            found, frame = capture.read()
            if not found:
                return
            yield frame
    finally:
        capture.release()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("test_video/sif/bikes_272p.mp4", [0, 30, 76, 137, 187, 242]),
        ("test_video/real/newsreel_bw.mp4", [0, 44, 134, 299]),
        ("test_video/real/silent_film_chaplin.mp4", [0]),
    ],
)
def test_real_clips(name, expected):
    folder = os.environ.get("RESTORE_TEST_DATA")
    if not folder:
        pytest.skip("RESTORE_TEST_DATA is not set")
    path = Path(folder) / name
    if not path.exists():
        pytest.skip(f"{path} is missing")
    assert cuts(read(path)) == expected
