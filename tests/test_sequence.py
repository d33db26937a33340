from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from motion_scenes import noisy, panning

from restore.align import Aligner, GuidedAligner, View
from restore.analyse import UNSEEN, NoiseCurve, noise_map
from restore.hyperframe import SLOT, choose, feed_back, gather, pack, unpack
from restore.sequence import PRESETS, both_ways, restore_shot, restore_shots, restore_twice
from restore.window import reach

CURVE = NoiseCurve((0.002, 0.001, 0.0), (0.001, 0.001, 0.001))


def frames(count: int, height: int = 48, width: int = 66) -> list[np.ndarray]:
    return [noisy(f, 8, n) for n, f in enumerate(panning(count, (3, 1), height, width))]


def blend(hyperframe: np.ndarray) -> np.ndarray:
    """Stand for a model: the confidence-weighted mean."""
    slots = hyperframe.reshape(-1, SLOT, *hyperframe.shape[1:])
    weight = slots[:, 4:5] / (slots[:, 5:8] ** 2 + 1e-5)
    return (slots[:, :3] * weight).sum(0) / weight.sum(0)


def reference(hyperframe: np.ndarray) -> np.ndarray:
    (slot,) = (s for s in unpack(hyperframe) if s.time == 0)
    return np.moveaxis(slot.image, 2, 0)


def naive(images: list[np.ndarray], slots: int, feedback: bool) -> list[np.ndarray]:
    """Restore with all frames at hand."""
    aligner, out = Aligner(), list[np.ndarray]()
    views = [View.of(image) for image in images]
    for a, b in pairwise(views):
        aligner.link(a, b, CURVE.mean_sigma)
    for index, view in enumerate(views):
        sigma = noise_map(CURVE, view.image)
        use = feedback and index > 0 and slots > 1
        ahead = min(len(views) - 1 - index, reach(slots))
        offsets = choose(slots, min(index, slots - 1), ahead, feedback=use)
        parts = gather(views, index, offsets, sigma, aligner)
        if use:
            parts.insert(0, feed_back(out[-1], view, views[index - 1], sigma))
        out.append(np.ascontiguousarray(np.moveaxis(blend(pack(parts)), 0, 2)))
    return out


@pytest.mark.parametrize("slots", [1, 3, 5, 7])
@pytest.mark.parametrize("count", range(1, 9))
def test_as_many_come_out_as_go_in_each_in_its_place(count: int, slots: int) -> None:
    images = frames(count, 9, 11)
    out = list(restore_shot(images, reference, CURVE, slots=slots, aligner=Aligner()))
    np.testing.assert_array_equal(out, images)


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (7, 5), (33, 31)])
def test_any_size(size: tuple[int, int]) -> None:
    images = frames(3, *size)
    out = list(restore_shot(images, blend, CURVE, slots=3, aligner=Aligner()))
    assert [o.shape for o in out] == [(*size, 3)] * 3
    assert np.isfinite(out).all()


@pytest.mark.parametrize("feedback", [False, True])
@pytest.mark.parametrize("slots", [3, 5])
def test_streaming_equals_restoring_with_all_frames_at_hand(slots: int, feedback: bool) -> None:
    images = frames(8)
    streamed = restore_shot(images, blend, CURVE, slots=slots, aligner=Aligner(), feedback=feedback)
    for a, b in zip(streamed, naive(images, slots, feedback), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("slots", [1, 3, 5, 7])
def test_memory_is_bounded_and_no_frame_is_read_too_early(slots: int) -> None:
    class Watched(Aligner):
        longest = 0

        def align(self, views, reference, neighbour, variance):  # type: ignore[no-untyped-def]
            Watched.longest = max(Watched.longest, len(views))
            return super().align(views, reference, neighbour, variance)

    asked = 0

    def source() -> Iterator[np.ndarray]:
        nonlocal asked
        for image in frames(1, 9, 9) * 30:
            asked += 1
            yield image

    shot = restore_shot(source(), blend, CURVE, slots=slots, aligner=Watched())
    for given, _ in enumerate(shot, 1):
        assert asked <= given + reach(slots)
    assert given == 30
    assert Watched.longest <= 2 * slots


def test_a_measured_noise_is_told_with_what_no_measurement_shows() -> None:
    seen = []

    def engine(hyperframe: np.ndarray) -> np.ndarray:
        seen.append(float(hyperframe[5:8].mean()))
        return hyperframe[:3]

    still = [np.full((64, 64, 3), 0.5, np.float32)] * 2
    (_, _, after), *_ = restore_shots(still, lambda x: x, engine, PRESETS["fast"], None)
    list(restore_shots(still, lambda x: x, engine, PRESETS["fast"], 0.0))
    assert seen[0] == pytest.approx(UNSEEN)
    assert seen[-1] == 0
    assert after.levels == (0.0,), "what is shown to the user is what was measured"


def test_both_ways_answer_with_the_mean_of_a_picture_and_its_mirror_image() -> None:
    ramp = np.linspace(0, 1, 6, dtype=np.float32)
    hyperframe = np.random.default_rng(0).random((SLOT, 4, 6), np.float32)
    found = both_ways(lambda seen: seen[:3] + ramp)(hyperframe)
    np.testing.assert_allclose(found, hyperframe[:3] + 0.5, atol=1e-6)


def test_the_second_pass_sees_the_noisy_frames_aligned_along_the_restored_ones() -> None:
    images = frames(4)
    first = list(restore_shot(images, blend, CURVE, slots=3, aligner=Aligner(), feedback=False))
    again = restore_shot(
        images,
        both_ways(blend),
        CURVE,
        slots=3,
        aligner=GuidedAligner(),
        guides=first,
    )
    twice = restore_twice(images, blend, CURVE, slots=3, aligner=Aligner())
    for expected, found in zip(again, twice, strict=True):
        np.testing.assert_array_equal(found, expected)
