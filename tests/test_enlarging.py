"""Enlarging files and frames: sizes, times, tags, colour, tiles, denoising on the way."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
import torch
from moving_scene import as_float, scene, write_clip

from restore.engine import Engine, load_engine
from restore.enlarging import Cleaned, default_model, load_task, preset_for, substitution
from restore.errors import UsageError, WeightsError
from restore.finish import enlarged_frame
from restore.hyperframe import RESIDUAL_NOISE, SLOT
from restore.io import VideoReader, to_rgb
from restore.memory import enlarge, memory_slots
from restore.models import MODELS
from restore.pipeline import restore_frames, restore_video
from restore.weights import save_model


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Small upscalers that add a little of their own to the bicubic picture."""
    folder, files = tmp_path_factory.mktemp("weights"), {}
    for scale in (2, 4):
        torch.manual_seed(scale)
        kind, config = MODELS["upscaler-tiny"]
        model = kind(**config | {"scale": scale})
        files[scale] = folder / f"tiny-x{scale}.safetensors"
        meta = {"name": f"tiny-x{scale}", "model": "upscaler-tiny", "config": {"scale": scale}}
        save_model(model, files[scale], meta)
    return files


@pytest.mark.parametrize("scale", [2, 4])
def test_a_file_grows_and_keeps_the_rest(
    make_clip, weights: dict[int, Path], tmp_path: Path, scale: int
) -> None:
    def aspect(output: av.container.OutputContainer, stream: av.VideoStream) -> None:
        stream.codec_context.sample_aspect_ratio = Fraction(16, 15)
        output.metadata["title"] = "kept"

    source = make_clip(
        "sar.mkv", frames=4, size=(46, 34), audio=1, setup=aspect, pts=[3, 40, 90, 91]
    )
    target = tmp_path / "out.mkv"
    summary = restore_video(source, target, scale=scale, model=str(weights[scale]))
    assert summary.frames == 4
    with av.open(str(source)) as before, av.open(str(target)) as after:
        a, b = before.streams.video[0], after.streams.video[0]
        assert (b.width, b.height) == (a.width * scale, a.height * scale)
        assert b.sample_aspect_ratio == a.sample_aspect_ratio
        assert len(after.streams.audio) == 1
        assert after.metadata["title"] == "kept"
    with VideoReader(source) as before, VideoReader(target) as after:
        for old, new in zip(before, after, strict=True):
            assert new.time == old.time
            assert np.abs(enlarge(to_rgb(old), scale) - to_rgb(new)).mean() < 0.05


def test_strength_0_is_bicubic(odd_clip: Path, weights: dict[int, Path], tmp_path: Path) -> None:
    target = tmp_path / "out.mkv"
    restore_video(odd_clip, target, scale=2, model=str(weights[2]), strength=0)
    with VideoReader(odd_clip) as before, VideoReader(target) as after:
        for old, new in zip(before, after, strict=True):
            assert (new.width, new.height) == (2 * 63, 2 * 47)
            expected = enlarged_frame(old, None, (1.0, 1.0), 2)
            for ours, theirs in zip(new.planes, expected.planes, strict=True):
                np.testing.assert_array_equal(ours, theirs)


def test_factors_act_on_luma_and_chroma_alone(odd_clip: Path) -> None:
    with VideoReader(odd_clip) as reader:
        frame = next(iter(reader))
    change = np.full((94, 126, 3), 0.1, np.float32)
    change[..., 0] = -0.1
    plain = enlarged_frame(frame, None, (1.0, 1.0), 2)
    luma = enlarged_frame(frame, change, (1.0, 0.0), 2)
    np.testing.assert_array_equal(luma.planes[1], plain.planes[1])
    assert (luma.planes[0] != plain.planes[0]).mean() > 0.9
    chroma = enlarged_frame(frame, change, (0.0, 1.0), 2)
    np.testing.assert_array_equal(chroma.planes[0], plain.planes[0])
    assert (chroma.planes[2] != plain.planes[2]).mean() > 0.9


def test_compare_shows_both_at_the_new_size(weights: dict[int, Path], tmp_path: Path) -> None:
    source = write_clip(tmp_path / "in.mkv", scene(3, 48, 64, 2))
    target = tmp_path / "out.mkv"
    restore_video(source, target, scale=2, model=str(weights[2]), compare=True)
    with VideoReader(source) as before, VideoReader(target) as after:
        old, new = next(iter(before)), next(iter(after))
        assert (new.width, new.height) == (4 * 64, 2 * 48)
        np.testing.assert_allclose(
            to_rgb(new)[:, :128], enlarge(to_rgb(old), 2).clip(0, 1), atol=0.51 / 255
        )


def test_a_matrix_that_players_would_guess_wrong_is_said_aloud(
    make_clip, weights: dict[int, Path], tmp_path: Path
) -> None:
    """360 lines without a tag are BT.601; 720 lines without a tag would be taken for BT.709."""
    source = make_clip("untagged.mkv", frames=1, size=(32, 360), codec="ffv1")
    target, small = tmp_path / "large.mkv", tmp_path / "small.mkv"
    restore_video(source, target, scale=2, strength=0)
    restore_video(source, small, strength=0)
    with VideoReader(source) as before, VideoReader(target) as after, VideoReader(small) as same:
        old, new = next(iter(before)), next(iter(after))
        assert old.color.tags.matrix == same.info.color.tags.matrix == 2
        assert new.color.tags.matrix in (5, 6)
        assert np.abs(enlarge(to_rgb(old), 2) - to_rgb(new)).mean() < 0.01


def test_interrupted_and_resumed_gives_the_same_frames(
    weights: dict[int, Path], tmp_path: Path
) -> None:
    source = write_clip(tmp_path / "in.mkv", scene(7, 48, 64, 2))

    def stop(done: int, _: int | None) -> None:
        if done == 5:
            raise KeyboardInterrupt

    options = {"scale": 2, "model": str(weights[2]), "segment": 3}
    whole, parts = tmp_path / "whole.mkv", tmp_path / "parts.mkv"
    restore_video(source, whole, **options)
    with pytest.raises(KeyboardInterrupt):
        restore_video(source, parts, progress=stop, **options)
    summary = restore_video(source, parts, resume=True, **options)
    assert summary.resumed == 3
    with VideoReader(whole) as one, VideoReader(parts) as other:
        for a, b in zip(one, other, strict=True):
            for ours, theirs in zip(a.planes, b.planes, strict=True):
                np.testing.assert_array_equal(ours, theirs)


def test_frames_in_memory(weights: dict[int, Path]) -> None:
    pictures = as_float(scene(3, 40, 56, 2))
    out = list(restore_frames(pictures, scale=4, model=str(weights[4]), preset="fast"))
    assert [o.shape for o in out] == [(160, 224, 3)] * 3
    assert np.abs(out[1] - enlarge(pictures[1], 4).clip(0, 1)).mean() < 0.05


def test_tiled_equals_untiled(weights: dict[int, Path]) -> None:
    hyperframe = np.random.default_rng(0).random((8 * (3 + 2), 150, 170), np.float32)
    hyperframe[3:24:8] = np.array([-1 / 3, 0, 1 / 3], np.float32)[:, None, None]
    engine = load_engine(weights[2], runtime="torch")
    whole = engine(hyperframe)
    engine.tile = 64
    assert whole.shape == (3, 300, 340)
    assert np.abs(engine(hyperframe) - whole).max() < 1 / 255


def test_denoising_on_the_way_changes_the_reference_alone() -> None:
    seen: list[np.ndarray] = []

    def upscale(batch: np.ndarray) -> np.ndarray:
        seen.append(batch[0])
        return np.repeat(np.repeat(batch[:, 8:11], 2, 2), 2, 3)

    def clean(batch: np.ndarray) -> np.ndarray:
        assert batch.shape[1] == 3 * SLOT
        return np.full((1, 3, 9, 10), 0.25, np.float32)

    both = Cleaned(
        Engine(clean, name="a", runtime="torch"),
        Engine(upscale, name="b", runtime="torch", scale=2),
    )
    hyperframe = np.random.default_rng(0).random((8 * (3 + memory_slots(2)), 9, 10), np.float32)
    hyperframe[3:24:8] = np.array([-1 / 3, 0, 1 / 3], np.float32)[:, None, None]
    before = hyperframe.copy()
    out = both(hyperframe)
    np.testing.assert_array_equal(out, np.full((3, 18, 20), 0.25, np.float32))
    np.testing.assert_array_equal(hyperframe, before)
    changed = np.unique(np.nonzero((seen[0] != before).any((1, 2)))[0])
    assert set(changed.tolist()) <= set(range(8, 16))
    np.testing.assert_allclose(seen[0][13:16], before[13:16] * RESIDUAL_NOISE)
    assert (both.scale, both.name) == (2, "a + b")


def test_what_does_not_fit_is_told(weights: dict[int, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="enlarges by 2; asked for is a scale of 4"):
        load_task(str(weights[2]), None, 4)
    with pytest.raises(WeightsError, match=r"no weights enlarge by 3 yet.*--scale 4"):
        load_task(preset_for("fast", 3).model, None, 3)
    with pytest.raises(UsageError, match="does not enlarge; asked for is a scale of 2"):
        load_task("denoise", None, 2)
    with pytest.raises(UsageError, match="scale must be 2, 3 or 4, got 5"):
        restore_video("in.mkv", tmp_path / "out.mkv", scale=5)
    with pytest.raises(UsageError, match='preset "quick"'):
        preset_for("quick", 2)


def test_presets_of_both_tasks() -> None:
    from restore.sequence import PRESETS

    for name, preset in PRESETS.items():
        assert preset_for(name, 1) == preset
        large = preset_for(name, 4)
        assert large.model == default_model(4)
        assert replace(large, model="", slots=0) == replace(large, model="", slots=0, passes=1)


def test_weights_that_stand_in_are_told_in_one_line() -> None:
    assert substitution(None, "upscale-real-x4", 4) == []
    assert substitution(None, "denoise + upscale-real-x4", 4) == []
    assert substitution("upscale-x4", "upscale-x4", 4) == []
    assert substitution(None, "", 4) == []
    assert substitution(None, "denoise", 1) == []
    [line] = substitution(None, "upscale-x4", 4)
    assert "upscale-x4" in line
    assert "scale 4" in line
