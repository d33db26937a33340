"""The times of a new file are read back before it gets its name."""

import pytest

from restore.errors import OutputError
from restore.io import VideoReader, VideoWriter
from restore.io.output import OutputFile


def copy(source, target, **options):
    with VideoReader(source) as reader, VideoWriter(target, reader, **options) as writer:
        for frame in reader:
            writer.write(frame)
    return writer.notes


@pytest.mark.parametrize("suffix", [".mkv", ".mp4", ".mov", ".ts"])
def test_nothing_is_said_where_all_times_are_kept(vfr_clip, tmp_path, suffix):
    assert not any("moves frames" in note for note in copy(vfr_clip, tmp_path / f"out{suffix}"))


def test_a_container_without_times_is_named(vfr_clip, tmp_path):
    notes = copy(vfr_clip, tmp_path / "out.avi")
    assert any("avi moves frames by up to" in note for note in notes), notes


def test_a_file_that_lacks_frames_is_not_kept(clip, tmp_path, monkeypatch):
    mux = OutputFile.mux

    def forgetful(self, packets):
        mux(self, packets)
        self._stamps.append(10_000)

    monkeypatch.setattr(OutputFile, "mux", forgetful)
    with pytest.raises(OutputError, match="frames can be read back"):
        copy(clip, tmp_path / "out.mp4")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["out.gif", "out/%03d.png"])
def test_what_a_killed_run_left_is_named(clip, tmp_path, name):
    assert not any("was left" in note for note in copy(clip, tmp_path / name))
    left = (tmp_path / name).parent / ".restore-partial-12345678.gif"
    left.write_bytes(b"half")
    notes = copy(clip, tmp_path / name, overwrite=True)
    assert any(note.startswith(f"{left} was left by a run") for note in notes)
