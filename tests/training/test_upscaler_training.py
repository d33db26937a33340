"""The loop trains an upscaler as it trains a denoiser: windows, memory, losses, validation."""

from pathlib import Path

import numpy as np
import pytest
import torch
from motion_scenes import panning
from panning_clips import SMALL

from restore.analyse import NoiseCurve
from restore.data.degrade import Sample
from restore.data.shrink import shrink_bicubic
from restore.errors import UsageError
from restore.memory import memory_slots
from restore.models import MODELS
from restore.sequence import restore_shot
from restore.training import TrainConfig, Trainer
from restore.training.objective import enlarged_reference
from restore.training.validation import TorchEngine, validate
from restore.training.windows import Plan, Window, WindowDataset

CHANGES = {"model": "upscaler-tiny", "scale": 2, "patch": 64, "feedback": 1.0, "cut_short": 0.0}


class Shrunk:
    """Clips of a moving camera, shrunk by two."""

    def sample(self, step: int, index: int, *, frames: int) -> Sample:
        x, y = np.random.default_rng([step, index]).uniform(-3, 3, 2)
        clean = np.stack(panning(frames, (x, y), 64, 64)).clip(0, 1)
        return Sample(clean, shrink_bicubic(clean, 2), NoiseCurve.white(1 / 255))


def make(folder: Path, **changes) -> Trainer:
    config = TrainConfig.from_dict(SMALL | CHANGES | changes)
    torch.manual_seed(0)
    kind, arguments = MODELS[config.model]
    return Trainer(config, kind(**arguments), Shrunk(), folder)


def test_windows_equal_what_run_time_packs() -> None:
    """The training's third reference, its memory filled in, is what the sequence shows a model."""
    config = TrainConfig.from_dict(SMALL | CHANGES | {"unroll": 3})
    dataset = WindowDataset(Shrunk(), config)
    plan = Plan(slots=3, feedback=True, behind=0, frames=4)
    windows = [
        Window(frame[None], clean[None], () if link is None else (link,), 2)
        for frame, clean, link in dataset.windows(0, 0, plan)
    ]
    sample = Shrunk().sample(0, 0, frames=4)
    seen = []

    class Engine:
        scale = 2

        def __call__(self, hyperframe: np.ndarray) -> np.ndarray:
            seen.append(hyperframe.copy())
            return np.moveaxis(sample.clean[len(seen) - 1], 2, 0)

    run = restore_shot(sample.noisy, Engine(), sample.curve, slots=3, aligner=dataset.aligner)
    list(run)
    for number, window in enumerate(windows):
        if window.links:
            window.fill(windows[number - 1].clean)
            assert window.trust.mean() > 0.3
        np.testing.assert_allclose(window.hyperframe[0], seen[number], atol=1e-6)
        np.testing.assert_allclose(window.clean[0], np.moveaxis(sample.clean[number], 2, 0))
    count = windows[0].hyperframe.shape[1] - 8 * memory_slots(2)
    assert windows[0].slots.shape == (1, count // 8, 8, 32, 32)


def test_loss_falls_with_all_terms(tmp_path: Path) -> None:
    trainer = make(tmp_path, steps=24, temporal=0.1, edge=0.1, pixel_phase=0.5)
    seen: list[dict[str, float]] = []
    trainer.fit(report=lambda _, figures: seen.append(figures))
    assert {"temporal", "edge", "pixel"} <= seen[-1].keys()
    first, last = (np.mean([f["pixel"] for f in part]) for part in (seen[:8], seen[-8:]))
    assert last < first


def test_clips_count_by_the_error_of_bicubic_enlargement(tmp_path: Path) -> None:
    """Detail that is twice as strong counts half as much a level: what is lost in dB counts."""
    trainer = make(tmp_path, steps=1, noise_floor=1e-6)
    strong, weak = (_windows(contrast) for contrast in (1.0, 0.5))
    losses = [
        trainer.objective(enlarged_reference(w), torch.from_numpy(w.clean), w, None, 0)["pixel"]
        for w in (strong, weak)
    ]
    assert 0.8 < float(losses[1] / losses[0]) < 1.25  # unweighted: a half


def _windows(contrast: float) -> Window:
    config = TrainConfig.from_dict(SMALL | CHANGES | {"unroll": 1})

    class Fainter:
        def sample(self, step: int, index: int, *, frames: int) -> Sample:
            drawn = Shrunk().sample(step, index, frames=frames)
            faint = (0.5 + contrast * (x - 0.5) for x in (drawn.clean, drawn.noisy))
            return Sample(*(x.astype(np.float32) for x in faint), drawn.curve)

    plan = Plan(slots=1, feedback=False, behind=0, frames=1)
    [(frame, clean, _)] = WindowDataset(Fainter(), config).windows(0, 0, plan)
    return Window(frame[None], np.ascontiguousarray(clean)[None], (), 2)


def test_validation_compares_with_bicubic() -> None:
    kind, arguments = MODELS["upscaler-tiny"]
    model = kind(**arguments)
    with torch.no_grad():
        model.answer.weight.zero_()
        model.answer.bias[:-1].zero_()
        model.answer.bias[-2] = -1e3
    drawn = Shrunk().sample(0, 0, frames=3)
    sample = Sample(drawn.clean, drawn.noisy, drawn.curve, {"group": "bi"})
    shown: dict[str, np.ndarray] = {}
    figures = validate(model, [sample], slots=1, show=shown.__setitem__)
    assert TorchEngine(model).scale == 2
    assert -0.8 < figures["gain bi"] < 0  # the bicubic kernel of OpenCV, a = -3/4, is sharper
    assert shown["bi"].shape == (64, 3 * 64, 3)


def test_patch_and_scale_have_to_fit() -> None:
    with pytest.raises(UsageError, match="patch 50 must be a multiple of scale 4"):
        TrainConfig(patch=50, scale=4)
    with pytest.raises(UsageError, match="scale must be at least 1"):
        TrainConfig(scale=0)
