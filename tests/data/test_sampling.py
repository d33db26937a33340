import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from restore.data.sampling import (
    Consecutive,
    FullyRandom,
    MotionWeighted,
    Strided,
    UniformSegments,
)

SAMPLERS = [
    Consecutive(),
    Strided(),
    Strided((4,)),
    UniformSegments(),
    FullyRandom(),
    MotionWeighted(),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@given(length=st.integers(1, 40), frames=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
def test_contract(sampler, length, frames, seed):
    energy = np.random.default_rng(seed).random(length - 1, dtype=np.float32)
    if frames > length:
        with pytest.raises(ValueError, match="cannot take"):
            sampler.window(length, frames, np.random.default_rng(seed), energy)
        return
    first = sampler.window(length, frames, np.random.default_rng(seed), energy)
    again = sampler.window(length, frames, np.random.default_rng(seed), energy)
    centre = sampler.window(length, frames)
    for index in (first, centre):
        assert index.shape == (frames,)
        assert index[0] >= 0
        assert index[-1] < length
        assert (np.diff(index) > 0).all()
    np.testing.assert_array_equal(first, again)
    # The centre window leaves as much before it as after it, up to rounding.
    if not isinstance(sampler, UniformSegments):
        assert abs(centre[0] - (length - 1 - centre[-1])) <= 1


def test_consecutive_reaches_every_start():
    rng = np.random.default_rng(0)
    starts = {int(Consecutive().window(7, 3, rng)[0]) for _ in range(200)}
    assert starts == {0, 1, 2, 3, 4}


def test_strided_draws_all_strides_and_shrinks_to_fit():
    rng = np.random.default_rng(0)
    steps = {int(np.diff(Strided((1, 2, 5)).window(20, 3, rng))[0]) for _ in range(100)}
    assert steps == {1, 2, 5}
    np.testing.assert_array_equal(Strided((5,)).window(7, 3, rng), [0, 3, 6])
    with pytest.raises(ValueError, match="strides"):
        Strided((0, 1))


def test_segments_take_one_frame_of_each():
    rng = np.random.default_rng(1)
    for _ in range(50):
        np.testing.assert_array_equal(UniformSegments().window(20, 5, rng) // 4, np.arange(5))
    np.testing.assert_array_equal(UniformSegments().window(15, 5), [1, 4, 7, 10, 13])


def test_fully_random_is_uniform_over_frames():
    rng = np.random.default_rng(2)
    seen = np.bincount(
        np.concatenate([FullyRandom().window(10, 3, rng) for _ in range(4000)]), minlength=10
    )
    assert np.abs(seen / 4000 - 0.3).max() < 0.03


def test_motion_weighted_follows_the_energy():
    energy = np.zeros(19, np.float32)
    energy[10:12] = 5  # the only motion: between frames 10 and 12
    rng = np.random.default_rng(3)
    sampler = MotionWeighted(uniform_share=0.2)
    starts = np.array([sampler.window(20, 3, rng, energy)[0] for _ in range(4000)])
    share = np.bincount(starts, minlength=18) / 4000
    # Windows at 9, 10, 11 hold 1, 2, 1 of the two moving steps; 18 windows share the even part.
    expected = np.full(18, 0.2 / 18)
    expected[[9, 10, 11]] += 0.8 * np.array([0.25, 0.5, 0.25])
    assert np.abs(share - expected).max() < 0.03
    with pytest.raises(ValueError, match="energies"):
        sampler.window(20, 3, rng, energy[:-1])
