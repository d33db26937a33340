"""What Debian's ffmpeg and ffprobe say about a file, independent of PyAV's libraries."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

FFMPEG, FFPROBE = shutil.which("ffmpeg"), shutil.which("ffprobe")
_PATIENCE = 300


@dataclass
class Facts:
    """Streams, frames and packets of one file."""

    streams: list[dict[str, Any]]
    container: dict[str, Any]
    chapters: list[dict[str, Any]]
    times: list[Fraction | None]
    """Presentation times of the video's frames, in seconds."""
    tick: Fraction
    packets: dict[int, list[tuple[Fraction | None, str]]] = field(default_factory=dict)
    """Stream index -> (time, MD5 of the data) of each packet, without the video's."""
    video: int | None = None

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Return the streams of a kind, the restored video left out."""
        return [s for s in self.streams if s.get("codec_type") == kind and s["index"] != self.video]

    def packet_times(self, kind: str) -> list[list[Fraction | None]]:
        """Return the packet times of all streams of a kind."""
        return [[t for t, _ in self.packets.get(s["index"], [])] for s in self.of_kind(kind)]

    def packet_hashes(self, kind: str) -> list[list[str]]:
        """Return the packet hashes of all streams of a kind."""
        return [[h for _, h in self.packets.get(s["index"], [])] for s in self.of_kind(kind)]


def probe(path: Path, video: int | None) -> Facts:
    """Ask ffprobe about a file.

    Args:
        path: The file.
        video: Index of the video stream of interest; None for the first that is no cover art.
    """
    told = _ask(path, "-show_streams", "-show_format", "-show_chapters")
    streams = told.get("streams", [])
    if video is None:
        video = next(
            (
                s["index"]
                for s in streams
                if s["codec_type"] == "video" and not s["disposition"]["attached_pic"]
            ),
            None,
        )
    times: list[Fraction | None] = []
    tick = Fraction(1)
    if video is not None:
        tick = Fraction(streams[video]["time_base"])
        frames = _ask(
            path, "-select_streams", str(video), "-show_entries", "frame=best_effort_timestamp"
        ).get("frames", [])
        stamps = [f.get("best_effort_timestamp") for f in frames]
        times = [None if s is None else int(s) * tick for s in stamps]
    facts = Facts(streams, told.get("format", {}), told.get("chapters", []), times, tick)
    facts.video = video
    entries = "packet=stream_index,pts,dts,data_hash"
    for packet in _ask(path, "-show_entries", entries, "-show_data_hash", "MD5").get("packets", []):
        index = packet["stream_index"]
        if index == video:
            continue
        stamp = packet.get("pts", packet.get("dts"))
        base = Fraction(streams[index]["time_base"])
        time = None if stamp is None else int(stamp) * base
        facts.packets.setdefault(index, []).append((time, packet.get("data_hash", "")))
    return facts


def _ask(path: Path, *what: str) -> dict[str, Any]:
    command = [str(FFPROBE), "-v", "quiet", *what, "-of", "json", f"file:{path}"]
    done = subprocess.run(command, capture_output=True, timeout=_PATIENCE)
    return json.loads(done.stdout or b"{}")


def decode(path: Path, video: int | None = None) -> tuple[list[str], str]:
    """Decode a whole file with Debian's ffmpeg.

    Returns:
        The MD5 of each frame of the video, and what ffmpeg complained about.
    """
    chosen = ["-map", f"0:{video}"] if video is not None else ["-map", "0:V:0"]
    hashed = [*chosen, "-fps_mode", "passthrough", "-f", "framemd5", "-"]
    command = [str(FFMPEG), "-v", "error", "-noautorotate", "-i", f"file:{path}", *hashed]
    done = subprocess.run(command, capture_output=True, timeout=_PATIENCE)
    rows = [r for r in done.stdout.decode().splitlines() if not r.startswith("#")]
    hashes = [row.rpartition(",")[2].strip() for row in rows]
    command = [str(FFMPEG), "-v", "error", "-i", f"file:{path}", "-f", "null", "-"]
    plain = subprocess.run(command, capture_output=True, timeout=_PATIENCE)
    return hashes, (done.stderr + plain.stderr).decode(errors="replace").strip()
