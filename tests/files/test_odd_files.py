"""Every odd file comes out right, or is refused in one line; judged by Debian's ffmpeg."""

import os
from fractions import Fraction
from pathlib import Path

import pytest
from file_facts import FFMPEG, FFPROBE
from file_table import PASSES, continued, listed, run_file

PLACE = os.environ.get("RESTORE_TEST_DATA")
DATA = Path(PLACE or "missing") / "odd_files"
NAMES = sorted(listed(DATA)) if (DATA / "LIST.tsv").is_file() else ["none"]
needs_ffmpeg = pytest.mark.skipif(
    not (FFMPEG and FFPROBE), reason="ffmpeg and ffprobe are not installed"
)


@pytest.mark.files
@needs_ffmpeg
@pytest.mark.skipif(NAMES == ["none"], reason="RESTORE_TEST_DATA has no odd_files/LIST.tsv")
@pytest.mark.parametrize("run", PASSES)
@pytest.mark.parametrize("name", NAMES)
def test_odd_file(name, run, tmp_path):
    row = run_file(DATA / name, run, listed(DATA)[name], tmp_path)
    assert not row.wrong, row.line()


@needs_ffmpeg
@pytest.mark.parametrize("run", PASSES)
@pytest.mark.parametrize("name", ["vfr_clip", "odd_clip", "one_frame_clip", "audio_clip"])
def test_made_file(request, name, run, tmp_path):
    """The same judgement over clips made here, so that the default run has it too."""
    source = request.getfixturevalue(name)
    row = run_file(source, run, 1 if name == "one_frame_clip" else 12, tmp_path)
    assert row.wrong == []
    assert row.frames_out == row.frames_in


def test_a_jump_back_in_time_is_continued():
    def at(*frames: int) -> list[Fraction]:
        return [Fraction(frame, 25) for frame in frames]

    assert continued(at(0, 1, 3, 2, 4)) == at(0, 1, 2, 3, 4)
    assert continued(at(50, 51, 52, 0, 1, 2)) == at(50, 51, 52, 53, 54, 55)
