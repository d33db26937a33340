"""Training on a second pass: what the model sees is what it sees at run time."""

from pathlib import Path

import numpy as np
import pytest
import torch
from panning_clips import SMALL, Panning

from restore.engine import load_engine
from restore.models import MODELS
from restore.sequence import restore_twice
from restore.training import TrainConfig, Trainer
from restore.training.validation import TorchEngine, validate, white_samples
from restore.training.windows import Plan, WindowDataset
from restore.weights import save_model

TAKES = {"model_config": {"takes_restored": True}}


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> Path:
    kind, arguments = MODELS["denoiser-tiny"]
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("first") / "first.safetensors"
    described = {"name": "first", "model": "denoiser-tiny", "config": {"takes_restored": True}}
    save_model(kind(**arguments, takes_restored=True), path, described)
    return path


def test_windows_equal_what_run_time_packs(first: Path) -> None:
    config = TrainConfig.from_dict(SMALL | TAKES | {"second_pass": 1.0, "first": str(first)})
    dataset = WindowDataset(Panning(), config)
    plan = Plan(slots=3, feedback=False, behind=1, frames=4, second_pass=True)
    windows = dataset.windows(0, 0, plan)
    sample, seen = Panning().sample(0, 0, frames=4), []
    engine = load_engine(first)

    def watched(hyperframe: np.ndarray) -> np.ndarray:
        seen.append(hyperframe.copy())
        return engine(hyperframe)

    watched.takes_restored = engine.takes_restored  # type: ignore[attr-defined]
    curve, aligner = sample.curve, dataset.aligner
    list(restore_twice(sample.noisy, watched, curve, slots=3, aligner=aligner))
    second = [hyperframe for hyperframe in seen if len(hyperframe) > 3 * 8]
    assert len(second) == 4
    for number, (frame, _, _) in enumerate(windows):
        np.testing.assert_allclose(frame, second[plan.behind + number], atol=1e-5)


def test_it_learns_and_is_validated_in_two_passes(first: Path, tmp_path: Path) -> None:
    changes = {"second_pass": 0.6, "first": str(first), "steps": 8, "temporal": 0.1}
    config = TrainConfig.from_dict(SMALL | TAKES | changes)
    kind, arguments = MODELS[config.model]
    trainer = Trainer(config, kind(**arguments, takes_restored=True), Panning(), tmp_path)
    losses: list[float] = []
    assert trainer.fit(report=lambda step, figures: losses.append(figures["loss"]))
    assert len(losses) == 8
    assert np.isfinite(losses).all()
    plans = [Plan.draw(config, step).second_pass for step in range(8)]
    assert any(plans)
    assert not all(plans)
    samples = white_samples([Panning().sample(0, 0, frames=3).clean], (25,))
    calls = []
    trainer.model.register_forward_hook(lambda *_: calls.append(1))
    assert TorchEngine(trainer.model).takes_restored
    validate(trainer.model, samples, slots=3)
    assert len(calls) == 6
