import itertools
import multiprocessing

import av
import cv2
import numpy as np
import pytest

from restore.data import (
    AwgnRecipe,
    ClipCache,
    ClipDataset,
    ClipSource,
    Consecutive,
    MixedRecipe,
    MotionWeighted,
    Strided,
    builtin_source,
    find_sources,
)
from restore.data.cache import Clip
from restore.data.scaling import automatic_scale, jpeg_quality
from restore.data.shards import ShardSource, write_shards
from restore.errors import InputError


def numbered(shots, size=(48, 56), name="numbered"):
    """A clip whose pixels say which frame they are; shots given by their lengths."""
    count = sum(shots)
    ends = np.cumsum([0, *shots])
    frames = np.zeros((count, *size, 3), np.uint8)
    frames[:] = np.arange(count, dtype=np.uint8)[:, None, None, None]
    return Clip(
        name,
        tuple((int(a), int(b)) for a, b in itertools.pairwise(ends)),
        np.ones(count - 1, np.float32),
        "test",
        1.0,
        frames.shape,
        memory=frames,
    )


def dataset(sources, recipe=None, **settings):
    return ClipDataset(
        sources,
        settings.pop("sampler", Consecutive()),
        recipe or AwgnRecipe(),
        patch=(32, 40),
        **settings,
    )


def same(a, b):
    np.testing.assert_array_equal(a.clean, b.clean)
    np.testing.assert_array_equal(a.noisy, b.noisy)
    assert a.curve == b.curve
    assert a.meta == b.meta


def test_a_sample_depends_on_its_number_only():
    make = lambda seed=1: dataset([builtin_source()], MixedRecipe(), frames=3, seed=seed)  # noqa: E731
    forwards = {(s, i): make().sample(s, i) for s in range(3) for i in range(3)}
    data = make()
    for key in reversed(list(forwards)):
        same(data.sample(*key), forwards[key])
    other = make(seed=2).sample(0, 0)
    assert not np.array_equal(other.clean, forwards[0, 0].clean)
    assert not np.array_equal(forwards[0, 0].clean, forwards[0, 1].clean)
    assert not np.array_equal(forwards[0, 0].clean, forwards[1, 0].clean)


def _one(job):
    data, step, index = job
    return data.sample(step, index)


@pytest.mark.parametrize("workers", [1, 3])
def test_worker_count_changes_nothing(workers):
    data = dataset([builtin_source()], MixedRecipe(), frames=2)
    jobs = [(data, step, index) for step in range(5, 8) for index in range(2)]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        samples = pool.map(_one, jobs)
    assert len(samples) == len(jobs)
    for job, sample in zip(jobs, samples, strict=True):
        same(sample, _one(job))


@pytest.mark.parametrize("sampler", [Consecutive(), Strided((1, 2, 3)), MotionWeighted()], ids=str)
def test_windows_never_cross_cuts(sampler):
    clip = numbered([7, 2, 5, 9])
    data = dataset([ClipSource("s", [clip])], AwgnRecipe(0.0), sampler=sampler, frames=4)
    starts = set()
    for step in range(150):
        sample = data.sample(step, 0)
        ids = np.rint(sample.clean[:, 0, 0, 0] * 255).astype(int)
        ids = ids if ids[0] < ids[-1] else ids[::-1]  # time may run backwards
        assert ids.tolist() == sample.meta["frames"]
        shots = [next(n for n, (a, b) in enumerate(clip.shots) if a <= i < b) for i in ids]
        assert len(set(shots)) == 1
        assert 1 not in shots  # two frames are too few
        starts.add(shots[0])
    assert starts == {0, 2, 3}


def test_augmentation_shows_all_sixteen_views():
    frames = np.zeros((2, 40, 40, 3), np.uint8)
    frames[0, :20, :20], frames[0, :20, 20:], frames[0, 20:, :20], frames[1] = 10, 20, 30, 99
    clip = Clip("c", ((0, 2),), np.ones(1, np.float32), "t", 1.0, frames.shape, memory=frames)
    source = ClipSource("s", [clip])
    views = set()
    data = ClipDataset([source], Consecutive(), AwgnRecipe(0.0), frames=2, patch=(40, 40))
    for step in range(200):
        clean = np.rint(data.sample(step, 0).clean * 255).astype(int)
        still = clean[0] if clean[0].max() < 99 else clean[1]
        corners = (still[0, 0, 0], still[0, -1, 0], still[-1, 0, 0], still[-1, -1, 0])
        views.add((corners, bool(clean[0].max() < 99)))
    assert len(views) == 16
    plain = ClipDataset(
        [source], Consecutive(), AwgnRecipe(0.0), frames=2, patch=(40, 40), augment=False
    )
    np.testing.assert_array_equal(np.rint(plain.sample(0, 0).clean * 255), frames)


def test_frames_and_patch_of_a_step():
    data = dataset([ClipSource("s", [numbered([9])])], frames=3)
    assert data.sample(0, 0).clean.shape == (3, 32, 40, 3)
    assert data.sample(0, 0, frames=1).clean.shape == (1, 32, 40, 3)
    assert data.sample(0, 0, frames=7, patch=(16, 24)).noisy.shape == (7, 16, 24, 3)
    with pytest.raises(InputError, match="no shot has 12 frames"):
        data.sample(0, 0, frames=12)
    with pytest.raises(InputError, match="smaller patch"):
        data.sample(0, 0, patch=(64, 64))


def test_validation_takes_the_centre():
    source = ClipSource("s", [numbered([3, 9]), numbered([5], name="other")])
    data = dataset([source], AwgnRecipe(0.0), frames=3)
    first, second, third = (data.validation(i) for i in range(3))
    assert first.meta["frames"] == [6, 7, 8]
    assert first.meta["place"] == (8, 8)
    assert second.meta["clip"] == "other"
    assert second.meta["frames"] == [1, 2, 3]
    same(third, data.validation(2))


def test_sources_are_drawn_by_weight():
    sources = [
        ClipSource("a", [numbered([4])], weight=3.0),
        ClipSource("b", [numbered([4])], weight=1.0),
    ]
    data = dataset(sources, frames=1)
    drawn = [data.sample(step, 0).meta["source"] for step in range(800)]
    assert drawn.count("a") / 800 == pytest.approx(0.75, abs=0.05)
    with pytest.raises(InputError, match="source"):
        dataset([])


def test_find_sources_tells_clips_from_photographs(frame_folder, tmp_path, texture):
    frame_folder("walk")
    photographs = tmp_path / "photos"
    photographs.mkdir()
    for number in (17, 23, 105):
        cv2.imwrite(str(photographs / f"{number}.jpg"), texture(seed=number))
    (photographs / "broken.png").write_bytes(b"no picture")
    clips, photos = find_sources([tmp_path], cache=ClipCache(tmp_path / "cache"))
    assert [c.name for c in clips.clips] == ["walk"]
    assert sorted(p.name for p in photos.photographs) == ["105.jpg", "17.jpg", "23.jpg"]
    assert clips.weight == pytest.approx(0.65)
    assert clips.clips[0].scale == 1.0  # PNG: nothing to hide
    data = ClipDataset([clips, photos], Consecutive(), AwgnRecipe(), frames=2, patch=(64, 64))
    record = data.describe()
    assert record["sources"][0]["clips"][0]["decoder"].startswith("opencv")
    assert record["recipe"]["name"] == "AwgnRecipe"
    with pytest.raises(InputError, match="broken"):
        find_sources([tmp_path / "photos"], skip_unreadable=False)
    with pytest.raises(InputError, match="no such file"):
        find_sources([tmp_path / "missing"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no videos or pictures"):
        find_sources([tmp_path / "empty"])


def write_video(file, frames, codec, pix_fmt, options):
    with av.open(str(file), "w") as container:
        stream = container.add_stream(codec, rate=25, options=options)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = pix_fmt
        for image in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))


def two_scenes(texture, size=(360, 400)):
    first, second = texture(*size, seed=1, sigma=6), 255 - texture(*size, seed=2, sigma=6) // 2
    return np.stack([np.roll(first if i < 7 else second, i, 1) for i in range(16)])


@pytest.mark.parametrize(
    ("codec", "pix_fmt", "scale"), [("ffv1", "bgr0", 1.0), ("libx264", "yuv420p", 0.5)]
)
def test_videos_are_decoded_in_order_and_cut_into_shots(tmp_path, texture, codec, pix_fmt, scale):
    frames = two_scenes(texture)
    options = {"crf": "5"} if codec == "libx264" else {}
    write_video(tmp_path / "film.mkv", frames, codec, pix_fmt, options)
    (source,) = find_sources([tmp_path], cache=ClipCache(tmp_path / "cache"))
    (clip,) = source.clips
    assert clip.scale == scale
    assert clip.decoder.startswith("pyav")
    assert clip.shots == ((0, 7), (7, 16))
    expected = (
        frames if scale == 1 else [cv2.resize(f, (200, 180), interpolation=3) for f in frames]
    )
    error = np.abs(clip.frames.astype(int) - np.stack(expected)).mean((1, 2, 3))
    assert error.max() < (0.01 if codec == "ffv1" else 4)
    data = dataset([source], AwgnRecipe(0.0), frames=6, sampler=Strided())
    for step in range(40):
        ids = data.sample(step, 0).meta["frames"]
        assert (ids[0] < 7) == (ids[-1] < 7)


def test_frames_of_two_sizes_are_refused(frame_folder, texture):
    folder = frame_folder()
    cv2.imwrite(str(folder / "00003.png"), texture(80, 80))
    with pytest.raises(InputError, match="one size"):
        find_sources([folder], skip_unreadable=False)


def test_automatic_scale():
    assert automatic_scale((480, 854), quality=100) == 1.0
    assert automatic_scale((480, 854), quality=75) == 0.5
    assert automatic_scale((720, 1280), quality=0) == 0.5
    assert automatic_scale((2160, 3840), quality=0) == 0.25
    assert automatic_scale((3840, 2160), quality=0) == 0.25
    assert automatic_scale((1080, 1920), quality=100) == 0.5
    assert automatic_scale((200, 300), quality=0) == 0.8
    assert automatic_scale((100, 300), quality=0) == 1.0


@pytest.mark.parametrize("quality", [30, 75, 94])
def test_jpeg_quality(tmp_path, texture, quality):
    file = tmp_path / "a.jpg"
    cv2.imwrite(str(file), texture(), [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert jpeg_quality(file) == pytest.approx(quality, abs=1)
    cv2.imwrite(str(tmp_path / "a.png"), texture())
    assert jpeg_quality(tmp_path / "a.png") == 100


def test_shards(tmp_path, texture):
    clips = [
        (f"clip.{n}", [np.full((40, 48, 3), 10 * n + i, np.uint8) for i in range(6)])
        for n in range(5)
    ]
    shards = write_shards(clips, tmp_path, clips_per_shard=2, quality=0)
    assert [s.name for s in shards] == ["shard-00000.tar", "shard-00001.tar", "shard-00002.tar"]
    data = dataset([ShardSource("s", shards, steps_per_shard=4)], AwgnRecipe(0.0), frames=3)
    drawn = {}
    for step in range(12):
        sample = data.sample(step, 0)
        ids = sorted(np.rint(sample.clean[:, 0, 0, 0] * 255).astype(int).tolist())
        number = int(sample.meta["clip"].split("_")[1])
        assert ids == [10 * number + i for i in sample.meta["frames"]]
        drawn.setdefault(step // 4, set()).add(number // 2)
    assert sorted(s.pop() for s in drawn.values() if len(s) == 1) == [
        0,
        1,
        2,
    ]  # one pass, each once
    resumed = dataset([ShardSource("s", shards, steps_per_shard=4)], AwgnRecipe(0.0), frames=3)
    same(resumed.sample(9, 0), data.sample(9, 0))
    assert data.validation(0).meta["frames"] == [1, 2, 3]
    with pytest.raises(InputError, match="no clip has 7"):
        data.sample(0, 0, frames=7)
    with pytest.raises(ValueError, match="no clips"):
        write_shards([], tmp_path)
    with pytest.raises(InputError, match="no shards"):
        ShardSource("s", [])


def test_builtin_data_needs_no_files_and_no_network():
    sample = ClipDataset([builtin_source()], Consecutive(), AwgnRecipe()).sample(0, 0)
    assert sample.clean.shape == (5, 128, 128, 3)
    assert sample.clean.std() > 0.02
