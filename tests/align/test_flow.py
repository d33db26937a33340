import pickle
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from motion_scenes import noisy, panning, textured

from restore.align.flow import (
    FLOWS,
    DISFlow,
    FlowEstimator,
    RAFTFlow,
    global_shift,
    search_image,
)
from restore.errors import UsageError


@pytest.fixture(scope="module")
def raft_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from torchvision.models.optical_flow import raft_small

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("raft") / "raft.pth"
    torch.save(raft_small(weights=None).state_dict(), path)
    return path


@pytest.fixture(scope="module", params=[*FLOWS, "raft"])
def flow(request: pytest.FixtureRequest) -> FlowEstimator:
    if request.param == "raft":
        return RAFTFlow(request.getfixturevalue("raft_file"))
    return FLOWS[request.param]()


@pytest.mark.parametrize("size", [(16, 16), (17, 40), (16, 300), (65, 33)])
def test_shape_and_type(flow: FlowEstimator, size: tuple[int, int]) -> None:
    a, b = np.random.default_rng(0).integers(0, 256, (2, *size), np.uint8)
    out = flow(a, b)
    assert out.shape == (*size, 2)
    assert out.dtype == np.float32
    assert np.isfinite(out).all()


@pytest.mark.parametrize("size", [(1, 1), (3, 50), (15, 15)])
@pytest.mark.parametrize("name", FLOWS)
def test_tiny_pictures_do_not_move(name: str, size: tuple[int, int]) -> None:
    a, b = np.random.default_rng(0).integers(0, 256, (2, *size), np.uint8)
    np.testing.assert_array_equal(FLOWS[name]()(a, b), np.zeros((*size, 2)))


@pytest.mark.parametrize("step", [(3.0, -2.0), (-6.5, 4.0), (0.0, 9.0)])
@pytest.mark.parametrize("name", FLOWS)
def test_a_translation_is_found(name: str, step: tuple[float, float]) -> None:
    first, second = (search_image(frame) for frame in panning(2, step))
    found = 2 * FLOWS[name]()(first, second)[12:-12, 12:-12]
    error = np.linalg.norm(found + np.float32(step), axis=-1)
    assert np.median(error) < 0.3
    assert np.mean(error) < 0.5


def test_estimators_travel_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(DISFlow(finest_scale=0))).finest_scale == 0


def test_missing_or_foreign_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no RAFT weights there"):
        RAFTFlow(tmp_path / "none.pth")
    torch.save({"a": torch.zeros(1)}, tmp_path / "other.pth")
    with pytest.raises(UsageError, match="not weights of"):
        RAFTFlow(tmp_path / "other.pth")
    (tmp_path / "text.pth").write_text("hello")
    with pytest.raises(UsageError, match=r"text\.pth"):
        RAFTFlow(tmp_path / "text.pth")


def searched(clip: list[np.ndarray], sigma: float) -> tuple[np.ndarray, np.ndarray]:
    a, b = (search_image(noisy(f, sigma, seed)) for seed, f in enumerate(clip[:2]))
    return a, b


SEARCH_NOISE = 0.21


@pytest.mark.parametrize("sigma", [0, 2, 10, 50])
def test_a_static_shot_needs_no_flow(sigma: float) -> None:
    pair = searched([textured(240, 320)] * 2, sigma)
    assert global_shift(*pair, sigma * SEARCH_NOISE) == (0.0, 0.0)


def test_a_camera_shift_is_one_vector() -> None:
    pair = searched(panning(2, (8, -4), 240, 320), 10)
    found = global_shift(*pair, 10 * SEARCH_NOISE)
    assert found == pytest.approx((-4, 2), abs=0.05)


@pytest.mark.parametrize("sigma", [10, 30, 50])
def test_noise_does_not_hide_slow_motion(sigma: float) -> None:
    picture = textured(240, 320)
    shift = np.array([[1, 0, 0.6], [0, 1, -0.4]], np.float32)
    moved = cv2.warpAffine(
        picture, shift, (320, 240), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    found = global_shift(*searched([picture, moved], sigma), sigma * SEARCH_NOISE)
    assert found is None or found == pytest.approx((0.3, -0.2), abs=0.08)


@pytest.mark.parametrize("sigma", [10, 50])
def test_a_moving_thing_takes_no_shortcut(sigma: float) -> None:
    clip = [textured(240, 320) for _ in range(2)]
    for number, frame in enumerate(clip):
        left = 80 + 12 * number
        frame[80:160, left : left + 80] = cv2.flip(textured(80, 80), 0)
    assert global_shift(*searched(clip, sigma), sigma * SEARCH_NOISE) is None


@pytest.mark.parametrize("jump", [30, 100])
def test_a_light_that_is_switched_on_is_no_motion(jump: int) -> None:
    """On a soft gradient it looks like a shift by more than the picture is wide."""
    grain = cv2.GaussianBlur(np.random.default_rng(0).standard_normal((96, 96)), (0, 0), 1.0)
    dark = 20 + 0.3 * np.arange(96) + 3 * grain
    pair = [x.clip(0, 255).astype(np.uint8) for x in (dark, dark + jump)]
    assert global_shift(*pair, 0.0) is None


def test_a_small_picture_takes_no_shortcut() -> None:
    assert global_shift(*searched([textured(60, 60)] * 2, 0), 0) is None
