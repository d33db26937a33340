"""What Debian's ffmpeg and ffprobe say about a file, independent of PyAV's libraries."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

FFMPEG, FFPROBE = shutil.which("ffmpeg"), shutil.which("ffprobe")
_PATIENCE = 300
_QUIET = ("-v", "error", "-nostdin", "-noautorotate")


@dataclass
class Facts:
    """Streams, frames and packets of one file."""

    streams: list[dict[str, Any]]
    container: dict[str, Any]
    chapters: list[dict[str, Any]]
    video: dict[str, Any] = field(default_factory=dict)
    """The stream of interest."""
    frames: int = 0
    """Frames, those without a time too."""
    ordinal: int = 0
    """Which of the video streams that is, cover art not counted."""
    times: list[Fraction] = field(default_factory=list)
    """Presentation times of its frames, in seconds, in the order of decoding."""
    last: float = 0.0
    """When the last packet ends, of whatever stream, in seconds."""
    packets: dict[int, list[tuple[Fraction | None, str]]] = field(default_factory=dict)
    """Other streams: index -> (time, MD5 of the data) of each packet."""

    @property
    def announced(self) -> float | None:
        """When the file ends, in seconds on its own clock, as its header says."""
        told = self.container.get("duration")
        if told is None:
            return None
        # Matroska, MP4 and MOV count from zero, the others from the first packet.
        zero = self.container["format_name"].startswith(("matroska", "mov"))
        return float(told) + (0 if zero else float(self.container.get("start_time", 0)))

    @property
    def honest(self) -> bool:
        """Whether the file ends when its header says so, to a frame or a packet of sound."""
        return self.announced is not None and abs(self.announced - self.last) <= self.grain

    @property
    def grain(self) -> float:
        """Seconds between the two frames that lie farthest apart, or of a packet of sound."""
        gaps = [float(b - a) for a, b in pairwise(sorted(self.times))]
        return max([0.065, *gaps])

    @property
    def tick(self) -> Fraction:
        """The video's time base in seconds."""
        return Fraction(self.video.get("time_base", 1))

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Return the other streams of a kind."""
        return [s for s in self.streams if s.get("codec_type") == kind and s is not self.video]


def real_videos(streams: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the video streams that are no cover art."""
    return [
        s
        for s in streams
        if s.get("codec_type") == "video" and not s["disposition"]["attached_pic"]
    ]


def probe(path: Path, *, index: int | None = None, ordinal: int = 0) -> Facts:
    """Ask ffprobe about a file.

    Args:
        path: The file.
        index: The stream of interest.
        ordinal: Where `index` is not given: which of the video streams, cover art not counted.
    """
    told = _ask(path, "-show_streams", "-show_format", "-show_chapters")
    streams = told.get("streams", [])
    facts = Facts(streams, told.get("format", {}), told.get("chapters", []))
    videos = real_videos(streams)
    if index is not None:
        facts.ordinal = next((i for i, s in enumerate(videos) if s["index"] == index), 0)
    else:
        facts.ordinal = ordinal
    if facts.ordinal < len(videos):
        facts.video = videos[facts.ordinal]
        chosen = ("-select_streams", str(facts.video["index"]), "-show_entries")
        frames = _ask(path, *chosen, "frame=best_effort_timestamp").get("frames", [])
        stamps = [f.get("best_effort_timestamp") for f in frames]
        facts.frames = len(stamps)
        if facts.video.get("codec_name") == "vc1":  # whose B-frames ffprobe stamps a place off
            stamps = [p.get("pts") for p in _ask(path, *chosen, "packet=pts")["packets"]]
        facts.times = [int(s) * facts.tick for s in stamps if s is not None]
    entries = "packet=stream_index,pts,dts,duration,data_hash"
    for packet in _ask(path, "-show_entries", entries, "-show_data_hash", "MD5").get("packets", []):
        index = packet["stream_index"]
        stamp, base = packet.get("pts", packet.get("dts")), Fraction(streams[index]["time_base"])
        time = None if stamp is None else int(stamp) * base
        if time is not None:
            end = time + int(packet.get("duration", 0)) * base
            facts.last = max(facts.last, float(end))
        if streams[index] is facts.video:
            continue
        facts.packets.setdefault(index, []).append((time, packet.get("data_hash", "")))
    return facts


def _ask(path: Path, *what: str) -> dict[str, Any]:
    command = [str(FFPROBE), "-v", "quiet", *what, "-of", "json", f"file:{path}"]
    done = subprocess.run(command, capture_output=True, timeout=_PATIENCE)
    return json.loads(done.stdout or b"{}")


def decode(path: Path, video: int, *, audio: bool) -> tuple[int, str]:
    """Decode the video, and the sound if there is any, with Debian's ffmpeg.

    Returns:
        The number of frames of stream `video`, and what ffmpeg complained about.
    """
    counted = ["-map", f"0:{video}", "-fps_mode", "passthrough", "-f", "framecrc", "-"]
    heard = ["-map", "0:a", "-f", "null", "-"]
    command = [str(FFMPEG), *_QUIET, "-i", f"file:{path}", *counted, *(heard if audio else ())]
    done = subprocess.run(command, capture_output=True, timeout=_PATIENCE)
    rows = [row for row in done.stdout.decode().splitlines() if not row.startswith("#")]
    return len(rows), done.stderr.decode(errors="replace").strip()


def content(path: Path, index: int) -> str:
    """Return the MD5 of all that a stream decodes to, sound or pictures."""
    chosen = ["-map", f"0:{index}", "-fps_mode", "passthrough", "-f", "md5", "-"]
    command = [str(FFMPEG), *_QUIET, "-i", f"file:{path}", *chosen]
    return subprocess.run(command, capture_output=True, timeout=_PATIENCE).stdout.decode().strip()
