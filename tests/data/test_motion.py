import time

import cv2
import numpy as np
from scipy.ndimage import map_coordinates

from restore.data.motion import (
    CameraPath,
    draw_path,
    photograph_clip,
    render,
    soft_shape,
)


def path(offset, angle=None, zoom=None):
    n = len(offset)
    return CameraPath(
        np.asarray(offset, np.float64),
        np.zeros(n) if angle is None else np.asarray(angle),
        np.ones(n) if zoom is None else np.asarray(zoom),
    )


def test_a_pan_by_whole_pixels_is_a_crop(texture):
    picture = texture()
    matrices = path([[0, 0], [3, -2]]).matrices((90.5, 70.5), (64, 64), 1.0)
    clip = render(picture, matrices, (64, 64))
    np.testing.assert_array_equal(clip[0], picture[39:103, 59:123])
    np.testing.assert_array_equal(clip[1], picture[37:101, 62:126])


def test_motion_is_the_flow_the_matrices_say(texture):
    """Look frame 1 up where the two matrices say: it is frame 0."""
    motion = path([[-1.3, 0.4], [1.7, -0.6]], angle=[0.02, -0.03], zoom=[1.01, 0.985])
    matrices = motion.matrices((100.0, 80.0), (96, 96), 1.0)
    first, second = render(texture(), matrices, (96, 96)).astype(np.float64)
    full = [np.vstack([m, [0, 0, 1]]) for m in matrices]
    rows, columns = np.mgrid[0:96, 0:96]
    points = np.stack([columns, rows, np.ones_like(rows)]).reshape(3, -1)
    there = np.linalg.inv(full[1]) @ full[0] @ points
    inside = ((there[:2] > 3) & (there[:2] < 92)).all(0).reshape(96, 96)
    assert inside.mean() > 0.7
    moved = map_coordinates(second[..., 1], there[1::-1], order=3).reshape(96, 96)
    assert np.abs(moved - first[..., 1])[inside].mean() < 1.0
    assert np.abs(second - first)[inside].mean() > 5  # and it did move


def test_a_view_of_a_larger_picture_is_its_area_average(texture):
    picture = texture(256, 256, sigma=1.0)
    matrices = path([[0.0, 0.0]]).matrices((127.5, 127.5), (64, 64), 2.0)
    reduced = cv2.resize(picture, (128, 128), interpolation=cv2.INTER_AREA)
    found = render(picture, matrices, (64, 64))[0].astype(np.float64)
    assert np.abs(found - reduced[32:96, 32:96]).mean() < 1.0


def test_sub_pixel_pan_shifts_by_what_it_says(texture):
    picture = texture()
    steps = [[0.3 * i, 0.0] for i in range(8)]
    clip = render(picture, path(steps).matrices((100.0, 80.0), (96, 96), 1.0), (96, 96))
    rows, columns = np.mgrid[0:96, 0:96]
    corner = 80.0 - 47.5, 100.0 - 47.5

    def error(frame, down, right):
        where = [rows + corner[0] + down, columns + corner[1] + right]
        exact = map_coordinates(picture[..., 1].astype(np.float64), where, order=3)
        return np.sqrt(np.mean((frame[..., 1] - exact) ** 2))

    for i, frame in enumerate(clip):
        there = error(frame, 0, 0.3 * i)
        assert there < 1.0
        for down, right in ((0, 0.1), (0, -0.1), (0.1, 0), (-0.1, 0)):
            assert there < error(frame, down, 0.3 * i + right)


def test_paths_are_centred_and_sometimes_still():
    kinds = [draw_path(np.random.default_rng(i), 7) for i in range(300)]
    still = sum(not p.offset.any() and np.ptp(p.angle) == 0 for p in kinds)
    assert 8 <= still <= 35  # one in fifteen
    speeds = [np.hypot(*np.diff(p.offset, axis=0).T).mean() for p in kinds if p.offset.any()]
    assert min(speeds) < 0.3
    assert max(speeds) > 4
    assert np.isfinite(speeds).all()


def test_photograph_clip_is_seeded_and_fits(texture):
    pictures = [texture(seed=1), texture(120, 90, seed=2)]
    for seed in range(30):
        clip, numbers = photograph_clip(pictures, 5, (64, 80), np.random.default_rng(seed))
        again, _ = photograph_clip(pictures, 5, (64, 80), np.random.default_rng(seed))
        assert clip.shape == (5, 64, 80, 3)
        assert clip.dtype == np.uint8
        np.testing.assert_array_equal(clip, again)
        assert numbers.keys() == {"speed", "occluder", "sharp"}
    one, numbers = photograph_clip(pictures[:1], 1, (64, 64), np.random.default_rng(0))
    assert one.shape == (1, 64, 64, 3)
    assert not numbers["occluder"]


def test_some_clips_are_the_photographs_own_pixels(texture):
    picture = texture(seed=1)
    inside = np.lib.stride_tricks.sliding_window_view(picture, (16, 16, 3))[:, :, 0]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        clip, numbers = photograph_clip([picture], 3, (16, 16), rng, fastest=2, sharp_chance=1.0)
        assert numbers["sharp"]
        for frame in clip:
            assert (inside == frame).all((2, 3, 4)).any()


def test_an_occluder_covers_a_part(texture):
    pictures = [np.zeros((200, 200, 3), np.uint8), np.full((200, 200, 3), 255, np.uint8)]
    covered = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        clip, _ = photograph_clip(pictures, 3, (64, 64), rng, occluder_chance=1.0)
        covered.append(clip.mean() / 255)
    assert 0.05 < np.mean(covered) < 0.7
    edges = [soft_shape(np.random.default_rng(i), 64) for i in range(20)]
    soft = [np.mean((e > 10) & (e < 245)) for e in edges]
    assert min(soft) < 0.1
    assert max(soft) > 0.09


def test_eight_frames_are_quick(texture):
    pictures = [texture(320, 480, seed=1), texture(320, 480, seed=2)]
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        for i in range(20):
            photograph_clip(pictures, 8, (128, 128), np.random.default_rng(i))
        start = time.process_time()
        for i in range(50):
            photograph_clip(pictures, 8, (128, 128), np.random.default_rng(i))
        spent = (time.process_time() - start) / 50
    finally:
        cv2.setNumThreads(threads)
    assert spent < 0.04  # 9 ms measured: training has one worker to feed it
