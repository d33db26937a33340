import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from motion_scenes import textured

from restore.align.warp import compose, resize_flow, warp, warp_torch, weight_energy

SIDES = st.integers(1, 24)


def constant(height: int, width: int, x: float, y: float) -> np.ndarray:
    return np.broadcast_to(np.float32([x, y]), (height, width, 2)).copy()


@settings(max_examples=40, deadline=None)
@given(height=SIDES, width=SIDES, seed=st.integers(0, 99))
def test_both_forms_are_equal(height: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    image = rng.random((height, width, 3), np.float32)
    # cv2.remap knows 1/32 pixels, so vectors are drawn from those.
    flow = (rng.integers(-200, 201, (height, width, 2)) / 32).astype(np.float32)
    there = torch.from_numpy(image).permute(2, 0, 1)[None]
    out = warp_torch(there, torch.from_numpy(flow).permute(2, 0, 1)[None])
    np.testing.assert_allclose(out[0].permute(1, 2, 0).numpy(), warp(image, flow), atol=1e-4)


@given(height=SIDES, width=SIDES)
def test_zero_flow_is_the_identity(height: int, width: int) -> None:
    image = np.random.default_rng(0).random((height, width, 3), np.float32)
    np.testing.assert_array_equal(warp(image, constant(height, width, 0, 0)), image)


def test_a_flow_says_where_to_look() -> None:
    image = textured()
    moved = warp(image, constant(160, 200, 5, -3))
    np.testing.assert_allclose(moved[3:, :-5], image[:-3, 5:], atol=1e-6)


def test_warp_torch_is_differentiable_and_keeps_the_dtype() -> None:
    image = torch.rand(1, 3, 9, 7, requires_grad=True)
    flow = torch.full((1, 2, 9, 7), 0.25, requires_grad=True)
    warp_torch(image, flow).sum().backward()
    assert image.grad is not None
    assert flow.grad is not None
    assert flow.grad.abs().sum() > 0
    assert warp_torch(image.bfloat16(), flow).dtype == torch.bfloat16


def test_sizes_must_agree() -> None:
    with pytest.raises(ValueError, match="differ in size"):
        warp(np.zeros((4, 5, 3), np.float32), constant(5, 4, 0, 0))
    with pytest.raises(ValueError, match="differ in size"):
        warp_torch(torch.zeros(1, 3, 4, 5), torch.zeros(1, 2, 5, 4))


def test_two_shifts_compose_to_their_sum() -> None:
    total = compose(constant(8, 9, 1.5, 2), constant(8, 9, -4, 0.25))
    np.testing.assert_allclose(total, constant(8, 9, -2.5, 2.25), atol=1e-6)


def test_composing_equals_warping_twice() -> None:
    rng = np.random.default_rng(3)
    image = textured(64, 64)
    first, then = constant(64, 64, 3, -2), rng.integers(-3, 4, (64, 64, 2)).astype(np.float32)
    twice = warp(warp(image, then), first)
    np.testing.assert_allclose(warp(image, compose(first, then))[4:-4, 4:-4], twice[4:-4, 4:-4])


def test_resized_flow_moves_as_far_in_the_picture() -> None:
    np.testing.assert_allclose(
        resize_flow(constant(10, 20, 1, 2), 30, 40), constant(30, 40, 2, 6), rtol=1e-6
    )


@pytest.mark.parametrize("shift", [(0, 0), (0.5, 0.5), (0.25, 0), (-1.75, 0.5)])
def test_weight_energy_is_the_variance_that_white_noise_keeps(shift: tuple[float, float]) -> None:
    noise = np.random.default_rng(1).standard_normal((600, 600, 1)).astype(np.float32)
    flow = constant(600, 600, *shift)
    kept = warp(noise, flow)[4:-4, 4:-4].var()
    assert weight_energy(flow)[0, 0] == pytest.approx(kept, rel=0.02)
