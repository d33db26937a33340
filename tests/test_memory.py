import numpy as np
import pytest
import torch
from motion_scenes import panning
from torch.nn import functional

from restore.align import FineAligner
from restore.hyperframe import SLOT, Slot, pack
from restore.memory import memory_slots, pack_with_memory, remember


def linked(clip):
    aligner = FineAligner()
    views = [aligner.view(frame) for frame in clip]
    aligner.link(views[0], views[1], 0.0)
    return views


@pytest.mark.parametrize(("scale", "slots"), [(1, 0), (2, 2), (3, 4), (4, 7)])
def test_channels_are_a_whole_number_of_slots(scale: int, slots: int) -> None:
    assert memory_slots(scale) == slots
    if scale > 1:
        assert SLOT * slots >= 1 + 3 * scale**2 > SLOT * (slots - 1)


def test_slots_come_first_and_memory_behind() -> None:
    rng = np.random.default_rng(0)
    picture = rng.random((6, 7, 3), np.float32)
    slots = [Slot(picture, 0, picture), Slot(picture, 1, picture)]
    empty = pack_with_memory(slots, 2, None)
    np.testing.assert_array_equal(empty[:16], pack(slots))
    assert empty.shape == (32, 6, 7)
    assert not empty[16:].any()
    memory = rng.random((16, 6, 7), np.float32)
    np.testing.assert_array_equal(pack_with_memory(slots, 2, memory)[16:], memory)


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_folds_like_pixel_unshuffle_where_nothing_moves(scale: int) -> None:
    small = panning(1, (0, 0), 40, 48)[0]
    views = linked([small, small])
    large = np.random.default_rng(1).random((40 * scale, 48 * scale, 3), np.float32)
    memory = remember(large, views[1], views[0], np.zeros_like(small), scale)
    expected = functional.pixel_unshuffle(torch.from_numpy(large.transpose(2, 0, 1)), scale)
    np.testing.assert_array_equal(memory[1 : 1 + 3 * scale**2], expected.numpy())
    assert not memory[1 + 3 * scale**2 :].any()


def test_follows_the_motion_and_is_trusted_where_it_fits() -> None:
    large = panning(2, (4, 2), 192, 240)
    small = [f.reshape(96, 2, 120, 2, 3).mean((1, 3)) for f in large]
    views = linked(small)
    memory = remember(large[0], views[1], views[0], np.zeros_like(small[1]), 2)
    wanted = functional.pixel_unshuffle(torch.from_numpy(large[1].transpose(2, 0, 1)), 2).numpy()
    inner = (slice(None), slice(8, -8), slice(8, -8))
    error = np.abs(memory[1:13] - wanted)[inner].mean()
    still = np.abs(large[0] - large[1])[16:-16, 16:-16].mean()
    assert error < 0.2 * still
    assert memory[0][8:-8, 8:-8].mean() > 0.8
    wrong = remember(1 - large[0], views[1], views[0], np.zeros_like(small[1]), 2)
    assert wrong[0].mean() < 0.2


def test_unlinked_frames_are_refused() -> None:
    aligner = FineAligner()
    view = aligner.view(panning(1, (0, 0), 32, 32)[0])
    with pytest.raises(ValueError, match="linked"):
        remember(np.zeros((64, 64, 3), np.float32), view, view, np.zeros((32, 32, 3)), 2)
