"""The light multi-frame network: what it costs, what it may depend on, and that it exports."""

import pytest
import torch
from torch import nn

from restore.export import check
from restore.export.graph import example, to_proto
from restore.hyperframe import SLOT
from restore.models import MODELS
from restore.models.student import operations


@pytest.fixture(scope="module")
def lite():
    torch.manual_seed(0)
    kind, config = MODELS["lite"]
    return kind(**config).eval()


def test_costs_what_a_student_costs(lite):
    assert 10e3 <= operations(lite, example(lite, 5, 64, 64)) <= 20e3


@pytest.mark.parametrize(("slots", "groups"), [(1, 1), (3, 2), (5, 3), (7, 4)])
def test_every_second_slot_is_the_middle_of_a_group(lite, slots, groups):
    seen = []
    hook = lite.group.register_forward_hook(lambda m, i, out: seen.append(out.shape[2]))
    with torch.inference_mode():
        out = lite(example(lite, slots, 17, 30))
    hook.remove()
    assert out.shape == (1, 3, 17, 30)
    assert seen == [groups]


def test_a_group_sees_its_neighbours_and_no_other_slot(lite):
    slots = example(lite, 5, 16, 16).unflatten(1, (5, SLOT)).transpose(1, 2)
    changed = slots.clone()
    changed[:, :3, 4] += 0.5
    with torch.inference_mode():
        before, after = lite.group(slots), lite.group(changed)
    assert torch.equal(before[:, :, :2], after[:, :, :2])
    assert not torch.equal(before[:, :, 2], after[:, :, 2])


def test_it_learns(lite):
    torch.manual_seed(0)
    kind, config = MODELS["lite"]
    network = kind(**config)
    hyperframe = example(network, 3, 32, 32)
    clean = nn.functional.avg_pool2d(hyperframe[:, SLOT : SLOT + 3], 3, 1, 1)
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    losses = []
    for _ in range(60):
        loss = (network(hyperframe) - clean).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < 0.5 * losses[0]


def test_it_exports(lite):
    assert max(check(lite, to_proto(lite).SerializeToString()).values()) < 1e-4
