"""Going on from a handover gives the same frames as never having stopped."""

import numpy as np
import pytest
from motion_scenes import noisy, panning

from restore.analyse import CutDetector, follow
from restore.handover import Handover
from restore.hyperframe import SLOT
from restore.sequence import Preset, restore_shots

PRESETS = {
    "fast": Preset("", slots=3),
    "balanced": Preset("", slots=5),
    "best": Preset("", slots=7, passes=2),
    "single": Preset("", slots=1),
}


def blend(hyperframe: np.ndarray) -> np.ndarray:
    """Stand for a model: every slot counts, the fed back one too."""
    slots = hyperframe.reshape(-1, SLOT, *hyperframe.shape[1:])
    weight = (slots[:, 4:5] + 0.01) / (slots[:, 5:8] ** 2 + 1e-4)
    return (slots[:, :3] * weight).sum(0) / weight.sum(0)


class Enlarger:
    """Stand for a model that enlarges: blended slots, and half of the previous output."""

    scale = 2

    def __call__(self, hyperframe: np.ndarray) -> np.ndarray:
        near = blend(hyperframe[:-16]).repeat(2, 1).repeat(2, 2)
        height, width = hyperframe.shape[1:]
        memory = hyperframe[-15:-3].reshape(3, 2, 2, height, width)
        memory = memory.transpose(0, 3, 1, 4, 2).reshape(near.shape)
        trust = hyperframe[-16:-15].repeat(2, 1).repeat(2, 2) / 2
        return near + trust * (memory - near)


@pytest.fixture(scope="module")
def frames() -> list[np.ndarray]:
    """Two shots with another noise each, six black frames, and the second shot turned over."""
    first = [noisy(f, 6, n) for n, f in enumerate(panning(13, (3, 1), 36, 50))]
    second = [noisy(f[::-1], 14, 50 + n) for n, f in enumerate(panning(11, (-2, 1), 36, 50))]
    black = [np.zeros((36, 50, 3), np.float32)] * 6
    third = [f[:, ::-1, ::-1] for f in second[:5]]
    return [np.ascontiguousarray(f) for f in first + second + black + third]


def restored(frames, engine, preset, sigma, handover=None):
    return list(restore_shots(frames, np.asarray, engine, preset, sigma, handover))


@pytest.mark.parametrize(
    ("name", "sigma"), [*((name, None) for name in PRESETS), ("balanced", 0.03), ("enlarge", None)]
)
def test_any_place_to_stop_gives_the_same_frames(frames, tmp_path, monkeypatch, name, sigma):
    monkeypatch.setattr(follow, "REFRESH", 3)
    preset = PRESETS.get(name, PRESETS["fast"])
    engine = Enlarger() if name == "enlarge" else blend
    whole = restored(frames, engine, preset, sigma)
    assert len(whole) == len(frames)
    assert sum(step[2].starts_shot for step in whole) >= 3
    for stop in (1, 4, 9, 13, 18, 27, 30, 33):
        whole[stop - 1][2].save(tmp_path / "state")
        handover = Handover.load(tmp_path / "state")
        assert handover.behind <= preset.context
        rest = restored(frames[stop - handover.behind :], engine, preset, sigma, handover)
        assert len(rest) == len(frames) - stop
        for (_, clean, after), (_, expected, then) in zip(rest, whole[stop:], strict=True):
            np.testing.assert_array_equal(clean, expected)
            assert (after.age, after.levels, after.curves) == (then.age, then.levels, then.curves)


def test_a_detector_comes_back_from_its_state(frames):
    detector = CutDetector()
    for frame in frames[:26]:
        detector.push(frame)
    twin = CutDetector.from_state(detector.state())
    assert twin.pending == CutDetector.LOOK_AHEAD
    answers = [[d.push(f) for f in frames[26:]] + d.finish() for d in (twin, detector)]
    assert answers[0] == answers[1]
    assert True in answers[0]


def test_a_copy_of_a_detector_goes_its_own_way(frames):
    detector = CutDetector()
    for frame in frames[:10]:
        detector.push(frame)
    before = detector.state()
    detector.copy().push(frames[20])
    for name, array in detector.state().items():
        np.testing.assert_array_equal(array, before[name])
