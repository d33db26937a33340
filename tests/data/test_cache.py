import multiprocessing
import os
import pickle

import cv2
import numpy as np
import pytest

from restore.data.cache import ClipCache
from restore.data.sources import load_folder


def test_a_folder_is_stored_once_at_its_scale(frame_folder, tmp_path):
    folder = frame_folder()
    clip = load_folder(folder, ClipCache(tmp_path / "cache"), 0.5)
    assert clip.shape == (8, 80, 100, 3)
    assert isinstance(clip.frames, np.memmap)
    picture = cv2.imread(str(folder / "00003.png"))[..., ::-1].astype(np.float64)
    average = picture.reshape(80, 2, 100, 2, 3).mean((1, 3))
    assert np.abs(clip.frames[3] - average).max() <= 0.5
    stamp = clip.path.stat().st_mtime_ns
    assert load_folder(folder, ClipCache(tmp_path / "cache"), 0.5).path.stat().st_mtime_ns == stamp


def test_cached_clip_needs_no_decoding(tmp_path):
    file = tmp_path / "source.bin"
    file.write_bytes(b"x")
    calls = []

    def decode():
        calls.append(1)
        yield from (np.full((8, 9, 3), i, np.uint8) for i in range(4))

    def get(cache, decoder="d 1", scale=0.5):
        return cache.get("name", [file], decode, decoder=decoder, scale=scale)

    one, two = get(ClipCache(tmp_path / "c")), get(ClipCache(tmp_path / "c"))
    assert len(calls) == 1
    np.testing.assert_array_equal(one.frames, two.frames)
    np.testing.assert_allclose(one.energy, [1, 1, 1], atol=1e-3)
    np.testing.assert_array_equal(one.energy, two.energy)
    assert (one.shots, one.decoder, one.scale) == (two.shots, two.decoder, two.scale)
    get(ClipCache(tmp_path / "c"), decoder="d 2")
    get(ClipCache(tmp_path / "c"), scale=1.0)
    assert len(calls) == 3
    file.write_bytes(b"yy")
    get(ClipCache(tmp_path / "c"))
    assert len(calls) == 4
    (tmp_path / "c").joinpath(f"{one.path.stem}.json").write_text("{")  # half an entry
    file.write_bytes(b"x")
    os.utime(file)
    assert get(ClipCache(tmp_path / "c")).shape == (4, 8, 9, 3)


def test_memory_cache_and_environment(frame_folder, tmp_path, monkeypatch):
    folder = frame_folder(frames=3)
    monkeypatch.delenv("RESTORE_CACHE", raising=False)
    held = load_folder(folder, ClipCache(), 1.0)
    assert held.path is None
    monkeypatch.setenv("RESTORE_CACHE", str(tmp_path / "env"))
    stored = load_folder(folder, ClipCache(), 1.0)
    assert stored.path.parent == tmp_path / "env"
    np.testing.assert_array_equal(held.frames, stored.frames)


def test_a_stored_clip_is_small_to_send(frame_folder, tmp_path):
    clip = load_folder(frame_folder(), ClipCache(tmp_path / "cache"), 1.0)
    _ = clip.frames
    sent = pickle.dumps(clip)
    assert len(sent) < 5000
    np.testing.assert_array_equal(pickle.loads(sent).frames, clip.frames)


def _fill(folder, cache, barrier, queue):
    barrier.wait()
    clip = load_folder(folder, ClipCache(cache), 0.5)
    queue.put(np.asarray(clip.frames).sum(dtype=np.int64))


def test_two_processes_may_fill_one_folder(frame_folder, tmp_path):
    folder, cache = frame_folder(frames=12), tmp_path / "cache"
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(2), context.Queue()
    workers = [
        context.Process(target=_fill, args=(folder, cache, barrier, queue)) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    sums = [int(queue.get(timeout=60)) for _ in workers]
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    expected = load_folder(folder, ClipCache(tmp_path / "other"), 0.5).frames.sum(dtype=np.int64)
    assert sums == [expected, expected]
    assert sorted(p.suffix for p in cache.iterdir()) == [".json", ".npy"]  # no leftovers


def test_a_failed_decode_leaves_nothing(tmp_path):
    file = tmp_path / "source.bin"
    file.write_bytes(b"x")

    def decode():
        yield np.zeros((8, 8, 3), np.uint8)
        raise RuntimeError("damaged")

    with pytest.raises(RuntimeError, match="damaged"):
        ClipCache(tmp_path / "c").get("n", [file], decode, decoder="d", scale=1.0)
    assert not list((tmp_path / "c").glob("*"))
