"""Run odd files through restore-denoise and say what became of each; `python tests/file_table.py`.

Prints one line a file and pass: "ffv1" is the identity run into a lossless .mkv, "own" goes into
the file's own container. Needs the folder of odd files, by argument or by RESTORE_TEST_DATA.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path

from file_facts import Facts, content, decode, probe

from restore.cli.denoise import main
from restore.io import VideoReader

PASSES = ("ffv1", "own")
REFUSED = {
    # name of file, pass (or None for both): exit code
    ("fate_hevc_dolbyvision_p5.mp4", None): 3,
    ("fate_mpeg2_ntsc_interlaced_es.m2v", "own"): 4,
}
"""Files that ffmpeg decodes and that are refused in one line all the same."""
_OWN_TAGS = {"encoder", "major_brand", "minor_version", "compatible_brands", "duration", "software"}
_SPELT: dict[str, Callable[[str], object]] = {
    "creation_time": lambda text: re.sub(r"\D", "", text)[:14],
    "location": lambda text: [float(part) for part in re.findall(r"[+-][\d.]+", text)],
}
"""Tags that FFmpeg's muxers spell in their own way: the same moment, the same place."""
_SPELT["location-eng"] = _SPELT["location"]
_DESCRIBED = ("sample_aspect_ratio", "color_range", "color_space", "color_transfer")
_DESCRIBED += ("color_primaries",)


@dataclass
class Row:
    """What became of a file."""

    name: str
    run: str
    outcome: str = ""
    frames_in: int = 0
    frames_out: int = 0
    pts_error: float = 0.0
    audio_in: int = 0
    audio_out: int = 0
    tags_equal: bool = True
    wrong: list[str] = field(default_factory=list)
    told: str = ""

    def line(self) -> str:
        """Return the row for a table of tabs."""
        cells = (self.name, self.run, self.outcome, self.frames_in, self.frames_out)
        cells += (f"{self.pts_error:.6f}", self.audio_in, self.audio_out)
        cells += ("equal" if self.tags_equal else "differ", "; ".join(self.wrong) or self.told)
        return "\t".join(map(str, cells))


def listed(data: Path) -> dict[str, int]:
    """Return the files and the number of frames that ffmpeg 5.1 decodes of each."""
    lines = (data / "LIST.tsv").read_text().splitlines()[1:]
    return {line.split("\t")[0]: int(line.split("\t")[3]) for line in lines}


def run_file(source: Path, run: str, expected: int, folder: Path) -> Row:
    """Restore a file with strength 0 and compare everything that can be compared.

    Args:
        source: The file.
        run: One of `PASSES`.
        expected: Frames that ffmpeg decodes.
        folder: Takes the output for a moment.
    """
    row = Row(f"{source.parent.name}/{source.name}", run)
    target = folder / (f"out{source.suffix}" if run == "own" else "out.mkv")
    options = ["--codec", "ffv1"] if run == "ffv1" else []
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = main(["--strength", "0", *options, "--", str(source), str(target)])
    lines = said.getvalue().strip().splitlines()
    row.told = " | ".join(line for line in lines if " fps" not in line)
    refused = REFUSED.get((source.name, None), REFUSED.get((source.name, run)))
    if code:
        row.outcome = f"refused ({code})"
        if code != (refused or 3) or (expected and refused is None):
            row.wrong.append(f"refused: {row.told}")
        if target.exists() or any(folder.iterdir()) or "\n" in said.getvalue().strip():
            row.wrong.append("something is left behind, or more than one line said")
        return row
    row.outcome = "restored"
    with VideoReader(source) as reader:
        first = reader.video_index or 0
    a = probe(source, index=first)
    b = probe(target, ordinal=a.ordinal)
    _compare_pictures(row, source, target, a, b, expected)
    _compare_sound(row, source, target, a, b)
    _compare_tags(row, a, b)
    _compare_lengths(row, a, b)
    target.unlink()
    return row


def _compare_pictures(
    row: Row, source: Path, target: Path, a: Facts, b: Facts, expected: int
) -> None:
    frames, complaints = decode(target, b.video.get("index", 0), audio=bool(b.of_kind("audio")))
    row.frames_in, row.frames_out = a.frames or expected, frames
    if complaints:
        row.wrong.append(f"ffmpeg: {complaints.splitlines()[0]}")
    if expected and expected != frames and row.frames_in != frames:
        row.wrong.append(f"{frames} frames, expected {expected}")
    if row.run == "ffv1" and "of another size" not in row.told:
        if a.ordinal:  # a reader may prefer the other of two videos in the copy
            same = content(source, a.video["index"]) == content(target, b.video["index"])
        else:
            differing = _differing(source, target)
            same = not differing or differing <= _differing(source, source, hold=True)
        if not same:
            row.wrong.append("planes differ")
    if len(a.times) == len(b.times):
        pairs = zip(continued(a.times), sorted(b.times), strict=True)
        row.pts_error = float(max((abs(x - y) for x, y in pairs), default=Fraction(0)))
    elif a.frames != b.frames and a.frames and b.frames != expected:
        row.wrong.append(f"ffprobe counts {a.frames} and {b.frames} frames")
    if row.pts_error > b.tick and "keeps their times" not in row.told:
        row.wrong.append(f"times are {row.pts_error:.4f} s off, a tick is {float(b.tick):.6f} s")


def _differing(source: Path, target: Path, *, hold: bool = False) -> set[int]:
    """Return the numbers of the frames that differ.

    Where data is missing, decoders leave what the memory held before, which depends on the frames
    that are still in use: a file read twice, once holding all frames, shows which ones that are.
    """
    with VideoReader(source) as one, VideoReader(target) as other:
        pairs = zip_longest(list(one) if hold else one, other)
        return {i for i, (a, b) in enumerate(pairs) if a is None or b is None or not _same(a, b)}


def _same(x, y) -> bool:
    """Tell whether two frames hold the same samples, where the second may be deeper."""
    shift = y.format.depth - x.format.depth
    planes = [*zip(x.planes, y.planes, strict=True)]
    if x.alpha is not None:
        planes.append((x.alpha, y.alpha))
    return all(
        p.shape == q.shape and bool((p == (q >> shift)).all()) for p, q in planes if q is not None
    )


def continued(times: list[Fraction]) -> list[Fraction]:
    """Sort times that are a permutation; continue those after a jump back, as the reader does."""
    out: list[Fraction] = []
    bridge, step = Fraction(0), Fraction(0)
    for time in times:
        if out and time + bridge < max(out) - Fraction(1, 4):
            bridge += max(out) + step - (time + bridge)
        elif out:
            step = time + bridge - out[-1]
        out.append(time + bridge)
    return sorted(out)


def _compare_lengths(row: Row, a: Facts, b: Facts) -> None:
    """Compare what the headers announce: the new one is true, and the old one if that was."""
    if b.announced is None:  # raw streams announce nothing
        return
    if not b.honest:
        row.wrong.append(f"announces {b.announced:.3f} s and ends at {b.last:.3f} s")
    elif a.honest and "jumps back" not in row.told and "left out" not in row.told:
        off = b.announced - (a.announced or 0)
        if abs(off) > max(a.grain, b.grain):
            row.wrong.append(f"is {off:.3f} s longer than the source")


def _compare_sound(row: Row, source: Path, target: Path, a: Facts, b: Facts) -> None:
    there = b.of_kind("audio")
    for stream in a.of_kind("audio"):
        packets = a.packets.get(stream["index"], [])
        row.audio_in += len(packets)
        if f"audio stream {stream['index']}" in row.told and "left out" in row.told:
            continue
        if not there:
            row.wrong.append(f"audio stream {stream['index']} is gone without a word")
            continue
        other = there.pop(0)
        copied = b.packets.get(other["index"], [])
        row.audio_out += len(copied)
        ticks = [Fraction(s["time_base"]) for s in (stream, other)]
        times = [(x, y) for (x, _), (y, _) in zip(packets, copied, strict=False)]
        off = max((abs(x - y) for x, y in times if x is not None and y is not None), default=0)
        if len(packets) != len(copied) or off > 3 * max(ticks):
            row.wrong.append(
                f"audio: {len(packets)} packets became {len(copied)}, {float(off):.4f} s off"
            )
        same = [h for _, h in packets] == [h for _, h in copied]
        if not same and content(source, stream["index"]) != content(target, other["index"]):
            row.wrong.append("the sound differs")


def _compare_tags(row: Row, a: Facts, b: Facts) -> None:
    names = _DESCRIBED if row.run == "ffv1" else _DESCRIBED[:1]
    pairs = [(n, a.video.get(n, "unknown"), b.video.get(n, "unknown")) for n in names]
    for tag, value in a.container.get("tags", {}).items():
        there = {k.lower(): v for k, v in b.container.get("tags", {}).items()}
        if tag.lower() not in _OWN_TAGS:
            pairs.append((tag, value, there.get(tag.lower())))
    for kind in ("audio", "subtitle"):
        if len(a.of_kind(kind)) == len(b.of_kind(kind)):
            for x, y in zip(a.of_kind(kind), b.of_kind(kind), strict=True):
                pairs += [
                    ("language", *(s.get("tags", {}).get("language", "und") for s in (x, y))),
                    ("default", *(s["disposition"]["default"] for s in (x, y))),
                ]
    pairs.append(("chapters", len(a.chapters), len(b.chapters)))
    pairs.append(("rotation", *(_rotation(s.video) for s in (a, b))))
    if "cannot say that pixels" in row.told:
        pairs = [pair for pair in pairs if pair[0] != "sample_aspect_ratio"]
    different = [f"{n}: {x} -> {y}" for n, x, y in pairs if x != y and not _equal(n, x, y)]
    row.tags_equal = not different
    if different:
        row.wrong.append(", ".join(different))


def _equal(name: str, x: object, y: object) -> bool:
    """Tell whether two values mean the same."""
    unset = {"unknown", "0:1", "1:1", "N/A", None}
    if name.lower() in _SPELT:
        x, y = (_SPELT[name.lower()](str(value)) for value in (x, y))
        return x == y
    usual = {"color_range": {"unknown", "tv"}, "color_space": {"unknown", "gbr"}}
    return {x, y} <= unset or {x, y} == usual.get(name)


def _rotation(stream: dict[str, object]) -> int:
    data = stream.get("side_data_list", [])
    return next((int(d["rotation"]) for d in data if "rotation" in d), 0)


def all_rows(data: Path, wanted: str = ""):
    """Yield the rows of all files whose names hold `wanted`."""
    with tempfile.TemporaryDirectory() as folder:
        for run in PASSES:
            for name, expected in listed(data).items():
                if wanted in name:
                    yield run_file(data / name, run, expected, Path(folder))


if __name__ == "__main__":
    place = Path(os.environ.get("RESTORE_TEST_DATA", "")) / "odd_files"
    rows = []
    for found in all_rows(place, *sys.argv[1:2]):
        rows.append(found)
        print(found.line(), flush=True)
    outcomes = Counter((row.run, row.outcome) for row in rows)
    print("; ".join(f"{run} {outcome}: {n}" for (run, outcome), n in sorted(outcomes.items())))
    wrong = sum(bool(row.wrong) for row in rows)
    print(f"{wrong} rows wrong")
    sys.exit(bool(wrong))
