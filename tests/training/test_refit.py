"""The last layer of an upscaler, solved."""

import numpy as np
import torch
from motion_scenes import panning
from panning_clips import SMALL

from restore.analyse import NoiseCurve
from restore.data.degrade import Sample
from restore.data.shrink import shrink_bicubic
from restore.models import MODELS, Upscaler
from restore.training import TrainConfig
from restore.training.refit import refit
from restore.training.windows import Window, WindowDataset

CHANGES = {"model": "upscaler-tiny", "scale": 2, "patch": 64, "cut_short": 0.0, "unroll": 2}
CONFIG = TrainConfig.from_dict(SMALL | CHANGES | {"steps": 30})


class Shrunk:
    def sample(self, step: int, index: int, *, frames: int) -> Sample:
        x, y = np.random.default_rng([step, index]).uniform(-3, 3, 2)
        clean = np.stack(panning(frames, (x, y), 64, 64)).clip(0, 1)
        return Sample(clean, shrink_bicubic(clean, 2), NoiseCurve.white(1 / 255))


def fresh() -> Upscaler:
    torch.manual_seed(0)
    kind, arguments = MODELS["upscaler-tiny"]
    model = kind(**arguments)
    assert isinstance(model, Upscaler)
    return model


def error(model: Upscaler, windows: list[Window]) -> float:
    with torch.no_grad():
        out = model(torch.from_numpy(windows[0].hyperframe))
    inner = (slice(None), slice(None), slice(4, -4), slice(4, -4))
    return float((out - torch.from_numpy(windows[0].clean))[inner].square().mean())


def test_less_error_than_before_on_what_it_was_not_solved_for() -> None:
    data, model = WindowDataset(Shrunk(), CONFIG), fresh()
    before = error(model, data[20])
    gone = refit(model, [data[i] for i in range(6)], ridge=1e-3, floor=0.004)
    assert 0.02 < gone < 1
    assert error(model, data[20]) < 0.95 * before


def test_solved_means_that_nothing_is_left_to_be_solved() -> None:
    """Without feedback and without a ridge the second pass over the same pixels finds nothing."""
    data = WindowDataset(Shrunk(), TrainConfig.from_dict(vars(CONFIG) | {"feedback": 0.0}))
    model, batches = fresh(), [data[i] for i in range(4)]
    first = refit(model, batches, ridge=1e-7, floor=0.004)
    again = refit(model, batches, ridge=1e-7, floor=0.004)
    assert abs(again) < 0.02 * first


def test_a_strong_ridge_holds_the_weights() -> None:
    data, model = WindowDataset(Shrunk(), CONFIG), fresh()
    before = model.answer.weight.clone()
    refit(model, [data[0]], ridge=1e6, floor=0.004)
    torch.testing.assert_close(model.answer.weight, before, atol=1e-5, rtol=0)
