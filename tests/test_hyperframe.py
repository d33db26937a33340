from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from motion_scenes import noisy, textured

from restore.align import Aligner, View
from restore.hyperframe import (
    SLOT,
    Slot,
    choose,
    feed_back,
    gather,
    pack,
    reference_index,
    unpack,
)

SIDES = st.integers(1, 40)


def slots(height: int, width: int, times: list[int], seed: int = 0) -> list[Slot]:
    rng = np.random.default_rng(seed)

    def picture(*more: int) -> np.ndarray:
        return rng.random((height, width, *more), np.float32)

    return [Slot(picture(3), t, picture(3), None if t == 0 else picture()) for t in times]


@settings(max_examples=60, deadline=None)
@given(
    height=SIDES,
    width=SIDES,
    others=st.lists(st.integers(-4, 4).filter(bool), max_size=6),
    place=st.integers(0, 6),
)
def test_unpack_undoes_pack(height: int, width: int, others: list[int], place: int) -> None:
    others.insert(place, 0)
    given_slots = slots(height, width, others)
    packed = pack(given_slots)
    assert packed.shape == (len(others) * SLOT, height, width)
    for before, after in zip(given_slots, unpack(packed), strict=True):
        assert after.time == before.time
        np.testing.assert_array_equal(after.image, before.image)
        np.testing.assert_array_equal(after.sigma, before.sigma)
        trust = np.ones((height, width)) if before.confidence is None else before.confidence
        np.testing.assert_array_equal(after.confidence, trust)


def test_pack_fills_the_buffer_it_is_given() -> None:
    """OpenCV writes into the channels of the buffer themselves, not into copies."""
    buffer = np.full((2 * SLOT, 5, 7), np.nan, np.float32)
    given_slots = slots(5, 7, [-1, 0])
    assert pack(given_slots, buffer) is buffer
    np.testing.assert_array_equal(buffer, pack(given_slots))
    assert np.isfinite(buffer).all()
    np.testing.assert_allclose(buffer[3], -1 / 3)


def test_sigma_is_scaled_per_pixel() -> None:
    scale = np.float32([[0.5, 1.0]])
    slot = Slot(np.zeros((1, 2, 3), np.float32), 0, np.ones((1, 2, 3), np.float32), None, scale)
    np.testing.assert_array_equal(pack([slot])[5:], np.broadcast_to(scale, (3, 1, 2)))


@pytest.mark.parametrize("times", [[], [1], [0, 0], [-1, 1]])
def test_there_is_exactly_one_reference(times: list[int]) -> None:
    with pytest.raises(ValueError, match="time 0"):
        pack(slots(4, 4, times))


def test_sizes_and_types_must_agree() -> None:
    with pytest.raises(ValueError, match="differ in size"):
        pack([*slots(4, 4, [0]), *slots(4, 5, [1])])
    with pytest.raises(ValueError, match="float32"):
        pack([Slot(np.zeros((4, 4, 3)), 0, np.zeros((4, 4, 3), np.float32))])
    with pytest.raises(ValueError, match="hyperframe"):
        unpack(np.zeros((9, 4, 4), np.float32))


@pytest.mark.parametrize(
    ("count", "behind", "ahead", "feedback", "offsets"),
    [
        (1, 5, 5, False, []),
        (1, 5, 5, True, []),
        (5, 5, 5, False, [-2, -1, 1, 2]),
        (5, 0, 5, False, [1, 2, 3, 4]),
        (5, 5, 0, False, [-4, -3, -2, -1]),
        (5, 1, 2, False, [-1, 1, 2]),
        (5, 0, 0, False, []),
        (5, 5, 5, True, [-1, 1, 2]),
        (5, 1, 2, True, [-1, 1, 2]),
        (2, 5, 5, False, [1]),
        (2, 5, 5, True, []),
        (3, 5, 0, True, [-1]),
        (7, 2, 3, False, [-2, -1, 1, 2, 3]),
    ],
)
def test_the_nearest_frames_are_chosen(
    count: int, behind: int, ahead: int, feedback: bool, offsets: list[int]
) -> None:
    assert choose(count, behind, ahead, feedback=feedback) == offsets


def still(frames: int, sigma: float) -> list[View]:
    views = [View.of(noisy(textured(160, 200), sigma, n)) for n in range(frames)]
    for a, b in pairwise(views):
        Aligner().link(a, b, sigma / 255)
    return views


def test_gathered_slots_come_in_the_order_of_time() -> None:
    sigma = np.full((160, 200, 3), 10 / 255, np.float32)
    gathered = gather(still(5, 10), 2, [1, -2, -1], sigma, Aligner())
    assert [slot.time for slot in gathered] == [-2, -1, 0, 1]
    assert reference_index(pack(gathered).reshape(-1, SLOT, 160, 200)) == 2


def test_what_does_not_fit_in_the_previous_output_is_not_trusted() -> None:
    before, now = still(2, 10)
    restored = textured(160, 200)
    restored[60:100, 80:120] = 1 - restored[60:100, 80:120]
    sigma = np.full((160, 200, 3), 10 / 255, np.float32)
    slot = feed_back(restored, now, before, sigma)
    assert slot.time == -1
    assert slot.confidence is not None
    assert slot.confidence[66:94, 86:114].mean() < 0.1
    assert slot.confidence[:50].mean() > 0.8
    packed = pack([slot, Slot(now.image, 0, sigma)])
    np.testing.assert_allclose(packed[5:8], 10 / 255 / 3, rtol=1e-5)


def test_feedback_needs_linked_frames() -> None:
    view = View.of(textured(32, 32))
    with pytest.raises(ValueError, match="linked"):
        feed_back(view.image, view, view, view.image)
