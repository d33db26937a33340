import copy
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from restore.errors import RestoreError, UsageError
from restore.training import Trainer
from restore.training.guides import Guides
from restore.training.windows import Plan, WindowDataset

HERE = Path(__file__).parent


def run(trainer: Trainer, minutes: float = math.inf) -> list[float]:
    losses: list[float] = []
    trainer.fit(report=lambda step, figures: losses.append(figures["loss"]), max_minutes=minutes)
    return losses


def same(a: object, b: object) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)  # type: ignore[arg-type]
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)  # type: ignore
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))  # type: ignore
    return a == b


def stop_after(trainer: Trainer, steps: int) -> None:
    """Stop as when the time is up, after a known number of steps."""
    agree = trainer._agree
    trainer._agree = lambda wish: agree(trainer.step >= steps)  # type: ignore[method-assign]
    assert trainer.fit() is False
    assert trainer.step == steps


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_ten_and_ten_steps_are_twenty(trainer, workers: int) -> None:
    whole = trainer(folder="whole")
    losses = run(whole)
    assert len(losses) == 20
    first = trainer(folder="parts", workers=workers)
    stop_after(first, 10)
    second = trainer(folder="parts", workers=workers)
    assert second.resume()
    assert second.step == 10
    assert run(second) == losses[10:]
    for part in ("model", "averaged", "optimizer", "scheduler"):
        assert same(getattr(whole, part).state_dict(), getattr(second, part).state_dict()), part


def test_the_same_seed_gives_the_same_curve_and_another_one_does_not(trainer) -> None:
    curves = [run(trainer(folder=str(n), seed=s, steps=4)) for n, s in enumerate((0, 0, 1))]
    assert curves[0] == curves[1]
    assert curves[0] != curves[2]


def test_time_is_up(trainer) -> None:
    first = trainer()
    assert len(run(first, minutes=0)) == 1
    second = trainer()
    assert second.resume()
    assert second.step == 1


def test_loss_falls_on_one_batch(trainer, make_clips) -> None:
    learner = trainer(
        make_clips(same=True), steps=30, slots=(3,), slot_weights=(1.0,), warmup=1,
        cut_short=0.0, feedback=1.0, pixel_phase=1.0, temporal=0.0, learning_rate=4e-3,
    )  # fmt: skip
    losses = run(learner)
    assert np.mean(losses[-3:]) < 0.5 * losses[0], losses


def test_steps_that_are_not_finite_change_nothing(trainer, make_clips) -> None:
    learner = trainer(make_clips(broken=(2, 3)), steps=5)
    seen = []

    def look(step: int, figures: dict[str, float]) -> None:
        seen.append((copy.deepcopy(learner.model.state_dict()), figures["skipped"]))

    learner.fit(report=look)
    assert [skipped for _, skipped in seen] == [0, 0, 1, 2, 2]
    assert same(seen[1][0], seen[3][0])
    assert not same(seen[3][0], seen[4][0])
    assert all(bool(p.isfinite().all()) for p in learner.model.parameters())


def test_a_run_that_fails_again_and_again_stops(trainer, make_clips) -> None:
    learner = trainer(make_clips(broken=tuple(range(20))), bad_steps=3)
    with pytest.raises(RestoreError, match="last 3 steps were not finite"):
        run(learner)
    assert learner.step == 2


def test_another_configuration_does_not_resume(trainer) -> None:
    run(trainer(steps=2))
    with pytest.raises(UsageError, match="learning_rate"):
        trainer(steps=2, learning_rate=0.5).resume()
    assert trainer(steps=2, validate_every=7).resume()


def test_a_damaged_checkpoint_is_named(trainer) -> None:
    learner = trainer()
    learner.folder.mkdir()
    (learner.folder / "checkpoint.pt").write_bytes(b"nothing")
    with pytest.raises(RestoreError, match=r"checkpoint\.pt: not a checkpoint"):
        learner.resume()


@pytest.mark.parametrize("changes", [{"amp": "bf16"}, {"checkpointing": True}, {"accumulate": 2}])
def test_variants_learn(trainer, changes) -> None:
    assert all(map(math.isfinite, run(trainer(steps=3, **changes))))


def test_checkpointing_changes_nothing(trainer) -> None:
    plain, thrifty = (run(trainer(folder=str(c), steps=3, checkpointing=c)) for c in (False, True))
    assert plain == pytest.approx(thrifty, rel=1e-6)


def test_two_batches_equal_one_of_twice_the_size(trainer) -> None:
    one = run(trainer(folder="one", steps=4, batch=4))
    two = run(trainer(folder="two", steps=4, batch=2, accumulate=2))
    assert one == pytest.approx(two, rel=1e-5)


def test_rate_warms_up_and_falls_along_a_cosine(trainer) -> None:
    learner = trainer(batch=8, unroll=2, steps=103, warmup=3, final_rate=0.01)
    assert learner.rate(0) == pytest.approx(1 / 3)
    assert learner.rate(3) == pytest.approx(1)
    assert learner.rate(53) == pytest.approx(0.505)
    assert learner.rate(103) == pytest.approx(0.01)
    assert trainer(batch=32, unroll=2, warmup=0).rate(0) == pytest.approx(2)


def test_averaged_weights_follow_early_and_settle_late(trainer) -> None:
    learner = trainer(steps=3, ema=0.999)
    run(learner)
    start = trainer(steps=3)
    for first, now, mean in zip(
        start.model.parameters(), learner.model.parameters(), learner.averaged.parameters(),
        strict=True,
    ):  # fmt: skip
        travelled = (now - first).norm()
        assert (mean - now).norm() <= travelled
    assert any(
        not torch.equal(a, b)
        for a, b in zip(learner.averaged.parameters(), start.model.parameters(), strict=True)
    )


def test_batches_hold_what_the_plan_says(trainer, make_clips) -> None:
    config = trainer(unroll=3, steps=40, slots=(5,), slot_weights=(1.0,), feedback=0.9).config
    dataset = WindowDataset(make_clips(), config)
    fed, seen = 0, set()
    for step in range(8):
        plan = Plan.draw(config, step)
        windows = dataset[step]
        assert len(windows) == 3
        for index, window in enumerate(windows):
            assert window.clean.shape == (2, 3, 32, 32)
            assert window.hyperframe.shape[1] // 8 <= plan.slots
            assert bool(window.links) == (index > 0)
            assert all(link.fed == plan.feedback for link in window.links)
            fed += any(link.fed for link in window.links)
            times = window.hyperframe.reshape(2, -1, 8, 32, 32)[0, :, 3, 0, 0]
            assert (times == 0).sum() == 1
            seen.update((times * 3).round().astype(int).tolist())
    assert fed
    assert {-2, -1, 0, 1} <= seen, "the past is trained like the future"
    with pytest.raises(IndexError):
        dataset[40]


def test_guided_steps_are_aligned_as_in_a_second_pass(trainer, make_clips) -> None:
    """The same clip under strong noise: other confidence, the same pictures in the reference."""
    fields = dict(unroll=1, slots=(3,), slot_weights=(1.0,), cut_short=0.0, feedback=0.0)
    plain, guided = (
        WindowDataset(make_clips(), trainer(guided=share, folder=f"g{share:g}", **fields).config)
        for share in (0.0, 1.0)
    )
    assert not Plan.draw(plain.config, 0).guided
    assert Plan.draw(guided.config, 0).guided
    (before,), (after,) = plain[0], guided[0]
    index = int(np.abs(before.slots[0, :, 3, 0, 0]).argmin())
    np.testing.assert_array_equal(before.slots[:, index], after.slots[:, index])
    assert not np.array_equal(before.slots[:, :, 4], after.slots[:, :, 4])


def test_guides_lie_between_the_student_and_the_truth(trainer, make_clips) -> None:
    sample = make_clips().sample(0, 0, frames=2)
    guides = Guides()(sample)
    assert len(guides) == 2
    for guide, clean, frame in zip(guides, sample.clean, sample.noisy, strict=True):
        assert guide.dtype == np.float32
        assert np.square(guide - clean).mean() < np.square(frame - clean).mean()


SCRIPT = """
import sys, torch
sys.path[:0] = [{tests!r}, {here!r}]
from pathlib import Path
from panning_clips import SMALL, Panning
from restore.models import MODELS
from restore.training import TrainConfig, Trainer
config = TrainConfig.from_dict(SMALL | dict(steps=5, batch=int(sys.argv[2])))
torch.manual_seed(0)
kind, arguments = MODELS[config.model]
trainer = Trainer(config, kind(**arguments), Panning(), Path(sys.argv[1]))
losses = []
trainer.fit(report=lambda s, f: losses.append(f["loss"]))
if trainer.rank == 0:
    torch.save((losses, trainer.model.state_dict()), Path(sys.argv[1]) / "result.pt")
"""


@pytest.mark.slow
def test_two_processes_equal_one_with_twice_the_batch(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(tests=str(HERE.parent), here=str(HERE)))
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    results = []
    for name, launch, batch in (("one", [], "4"), ("two", torchrun, "2")):
        command = [sys.executable, *launch, str(script), str(tmp_path / name), batch]
        root = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": root}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        results.append(torch.load(tmp_path / name / "result.pt"))
    (one, ours), (two, theirs) = results
    assert two == pytest.approx(one, rel=1e-5)
    a, b = (torch.cat([p.flatten() for p in s.values()]) for s in (ours, theirs))
    assert float((a - b).norm() / a.norm()) < 1e-5
