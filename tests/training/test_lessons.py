"""Lessons: the teacher's answers are those it would give, and come back as they were kept."""

import dataclasses

import numpy as np
import pytest
import torch
from panning_clips import SMALL, Panning

from restore.data.degrade import Sample
from restore.errors import RestoreError, UsageError
from restore.models import MODELS
from restore.models.student import OnHyperframes, single_frame
from restore.training import TrainConfig
from restore.training.distilling import Pupil, StudentTrainer, Teaching, distance
from restore.training.lessons import (
    LessonDataset,
    WithUnlabelled,
    lesson_file,
    make_lessons,
    trunk_of,
)
from restore.training.validation import TorchEngine
from restore.training.windows import WindowDataset

TAUGHT = SMALL | {
    "model": "student-nano", "slots": (3,), "slot_weights": (1.0,), "feedback": 1.0,
    "cut_short": 0.0, "steps": 6, "unroll": 3, "pixel_phase": 0.0, "learning_rate": 2e-3,
}  # fmt: skip


@pytest.fixture(scope="module")
def teacher():
    torch.manual_seed(0)
    kind, config = MODELS["denoiser-tiny"]
    return kind(**config).eval()


@pytest.fixture(scope="module")
def config():
    return TrainConfig.from_dict(TAUGHT)


@pytest.fixture(scope="module")
def lessons(tmp_path_factory, teacher, config):
    folder = tmp_path_factory.mktemp("lessons")
    make_lessons(folder, WindowDataset(Panning(), config), teacher, about={}, count=3, say=print)
    return folder


def test_the_teacher_is_fed_its_own_pictures_back(lessons, teacher, config):
    windows = WindowDataset(Panning(), config)[1]
    order = np.random.default_rng([config.seed, 0]).permutation(3)
    kept = LessonDataset(lessons, config)[int(np.flatnonzero(order == 1)[0])]
    previous = None
    for window, lesson in zip(windows, kept, strict=True):
        if previous is not None:
            window.fill(previous)
        with torch.inference_mode():
            previous = teacher(torch.from_numpy(window.hyperframe)).numpy()
        np.testing.assert_allclose(lesson.taught, previous, atol=1e-3)
        np.testing.assert_allclose(lesson.clean, window.clean, atol=0.5 / 255 + 1e-6)
        seen = single_frame(torch.from_numpy(window.hyperframe)).numpy()
        got = single_frame(torch.from_numpy(lesson.hyperframe)).numpy()
        np.testing.assert_allclose(got, seen, atol=1e-3)
    assert not kept[0].flow_trust.any()
    assert kept[1].flow_trust.any()


def test_every_pass_goes_through_all_lessons(lessons, config):
    dataset = LessonDataset(lessons, config)
    seen = [dataset[i][0].hyperframe.tobytes() for i in range(6)]
    assert len(set(seen[:3])) == len(set(seen[3:])) == 3
    other = LessonDataset(lessons, config, start=2)
    assert len(other) == 4
    assert other[0][0].hyperframe.tobytes() == seen[2]
    halves = [LessonDataset(lessons, config, rank=rank, world=2)[0][0] for rank in (0, 1)]
    assert [half.hyperframe.tobytes() for half in halves] == seen[:2]


def test_unlabelled_clips_take_the_teachers_picture(tmp_path, teacher, config):
    class Real:
        seed = 0

        def sample(self, step, index, frames):
            return Panning().sample(step, index, frames=frames)

    clips = WithUnlabelled(Panning(), Real(), 1.0)
    assert isinstance(clips.sample(0, 0, frames=3), Sample)
    make_lessons(tmp_path, WindowDataset(clips, config), teacher, about={}, count=1, say=print)
    (lesson, *_) = LessonDataset(tmp_path, config)[0]
    np.testing.assert_array_equal(lesson.clean, lesson.taught)


def test_a_student_learns_from_its_teacher_and_goes_on(lessons, config, tmp_path):
    torch.manual_seed(0)
    kind, arguments = MODELS["student-nano"]
    longer = dataclasses.replace(config, steps=24, warmup=2, ema=0.0, learning_rate=1e-2, pixel=0.0)
    trainer = StudentTrainer(longer, kind(**arguments), lessons, tmp_path, Teaching())
    terms = []
    assert trainer.fit(report=lambda step, figures: terms.append(figures))
    assert {"match", "features", "taught edges", "temporal"} <= terms[0].keys()
    # Three steps see all lessons. What the teacher knows from the neighbours is out of reach: most
    # of "match" stays.
    for term, bound in (("match", 0.99), ("features", 0.9)):
        first, last = (np.mean([t[term] for t in part]) for part in (terms[:3], terms[-3:]))
        assert last < bound * first, (term, first, last)
    again = StudentTrainer(longer, kind(**arguments), lessons, tmp_path, Teaching())
    assert again.resume()
    assert again.step == 24


def test_a_pupil_sees_nothing_but_the_reference():
    torch.manual_seed(0)
    kind, config = MODELS["student-nano"]
    frames = np.random.default_rng(0).random((24, 16, 16), np.float32)
    for slot, time in enumerate((-1, 0, 1)):
        frames[8 * slot + 3] = time / 3
    changed = frames.copy()
    changed[:3] += 0.5
    student = kind(**config)
    for network in (OnHyperframes(student), Pupil(student, 4)):
        engine = TorchEngine(network)
        np.testing.assert_array_equal(engine(frames), engine(changed))


def test_features_are_compared_by_their_own_size():
    wanted = torch.rand(1, 2, 3, 3)
    assert float(distance(wanted, wanted)) == 0
    assert float(distance(3 * wanted, wanted)) == pytest.approx(2)


def test_what_cannot_be_learned_from_is_refused(lessons, config, tmp_path):
    kind, arguments = MODELS["student-nano"]
    with pytest.raises(UsageError, match="holds no lessons"):
        LessonDataset(tmp_path, config)
    with pytest.raises(UsageError, match="no trunk"):
        trunk_of(torch.nn.Identity())
    windows = WindowDataset(Panning(), config)
    make_lessons(tmp_path, windows, None, about={}, count=1, say=print)
    with pytest.raises(UsageError, match="without a teacher"):
        StudentTrainer(config, kind(**arguments), tmp_path, tmp_path / "run", Teaching())
    lesson_file(tmp_path, 0).write_bytes(b"nothing")
    with pytest.raises(RestoreError, match="damaged"):
        LessonDataset(tmp_path, config)[0]
