"""The student: sizes, costs, what it may not depend on, and that it learns."""

import pytest
import torch
from torch import nn

from restore.hyperframe import SLOT
from restore.models import MODELS, Denoiser, Student
from restore.models.preconditioned import DETAIL, VARIANCE_FLOOR
from restore.models.student import operations, single_frame


def build(name: str) -> nn.Module:
    torch.manual_seed(0)
    kind, config = MODELS[name]
    return kind(**config).eval()


@pytest.mark.parametrize(("name", "least", "most"), [("edge", 10e3, 20e3), ("nano", 1e3, 4e3)])
def test_costs_what_was_promised(name, least, most):
    assert least <= operations(build(f"student-{name}"), torch.rand(1, 6, 64, 64)) <= most


def test_operations_agree_with_a_sum_by_hand():
    network = nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.Conv2d(5, 4, 2, stride=2))
    assert operations(network, torch.rand(2, 3, 8, 6)) == 3 * 5 * 9 + 5 * 4 * 4 / 4


@pytest.mark.parametrize("size", [(1, 1), (7, 30), (33, 17), (64, 48)])
@pytest.mark.parametrize("name", ["student-edge", "student-nano"])
def test_any_size_comes_back(name, size):
    with torch.inference_mode():
        out = build(name)(torch.rand(2, 6, *size))
    assert out.shape == (2, 3, *size)
    assert torch.isfinite(out).all()


def test_padding_does_not_reach_far_from_the_border():
    student = build("student-nano")
    picture = torch.rand(1, 6, 96, 96)
    with torch.inference_mode():
        whole, part = student(picture), student(picture[..., :93, :93])
    assert torch.allclose(whole[..., :24, :24], part[..., :24, :24], atol=1e-5)


@pytest.mark.parametrize("sigma", [0.0, 0.02, 0.2])
def test_without_votes_the_answer_is_the_wiener_filter(sigma):
    student = build("student-nano")
    assert isinstance(student, Student)
    nn.init.zeros_(student.answer.weight)
    nn.init.zeros_(student.answer.bias)
    rows, columns = torch.meshgrid(torch.arange(32), torch.arange(32), indexing="ij")
    picture = (0.3 + 0.4 * ((rows + columns) % 2)).expand(1, 3, 32, 32)  # means of 4x4: 0.5
    kept = DETAIL**2 / (DETAIL**2 + sigma**2 + VARIANCE_FLOOR)
    out = student(torch.cat((picture, torch.full_like(picture, sigma)), 1))
    torch.testing.assert_close(out, 0.5 + kept * (picture - 0.5), rtol=0, atol=1e-6)


def test_the_reference_is_found_in_a_hyperframe_wherever_it_stands():
    hyperframe = torch.rand(2, 3 * SLOT, 6, 5)
    for slot, time in enumerate((-1 / 3, 1 / 3, 0.0)):
        hyperframe[:, slot * SLOT + 3] = time
    expected = hyperframe[:, 2 * SLOT :]
    got = single_frame(hyperframe)
    assert torch.equal(got, torch.cat((expected[:, :3], expected[:, 5:]), 1))


def test_one_picture_is_learned():
    student = build("student-nano").train()
    generator = torch.Generator().manual_seed(0)
    clean = torch.rand(1, 3, 4, 4, generator=generator)
    clean = nn.functional.interpolate(clean, size=(48, 48), mode="bicubic").clamp(0, 1)
    noise = 0.1 * torch.randn(clean.shape, generator=generator)
    noisy = torch.cat((clean + noise, torch.full_like(clean, 0.1)), 1)
    optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
    for _ in range(150):
        loss = (student(noisy) - clean).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < noise.square().mean() / 4


def test_it_sees_one_frame_only():
    assert not any(isinstance(m, nn.Conv3d) for m in build("student-edge").modules())
    assert any(isinstance(m, nn.Conv3d) for m in build("denoiser-tiny").modules())
    assert isinstance(build("denoiser-tiny"), Denoiser)
