"""Clips made on the spot with PyAV: a moving pattern whose motion is known."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import hypothesis
import numpy as np
import pytest
from moving_pattern import pattern

MakeClip = Callable[..., Path]


@pytest.fixture(scope="session")
def make_clip(tmp_path_factory: pytest.TempPathFactory) -> MakeClip:
    """Return a function that writes a clip of the moving pattern and gives its path."""

    def make(
        name: str = "clip.mkv",
        *,
        frames: int = 12,
        size: tuple[int, int] = (64, 48),
        codec: str = "libx264",
        pix_fmt: str = "yuv420p",
        pts: list[int] | None = None,
        time_base: Fraction = Fraction(1, 1000),
        step_ms: int = 40,
        audio: int = 0,
        setup: Callable[[av.container.OutputContainer, av.VideoStream], None] | None = None,
        options: dict[str, str] | None = None,
    ) -> Path:
        path = tmp_path_factory.mktemp("clip") / name
        stamps = pts if pts is not None else [i * step_ms for i in range(frames)]
        with av.open(str(path), "w") as output:
            stream = output.add_stream(codec, rate=25, options=options or {})
            stream.width, stream.height = size
            stream.pix_fmt = pix_fmt
            stream.time_base = stream.codec_context.time_base = time_base
            tracks = [output.add_stream("flac", rate=8000, layout="mono") for _ in range(audio)]
            if setup is not None:
                setup(output, stream)
            for number, stamp in enumerate(stamps):
                picture = av.VideoFrame.from_ndarray(pattern(number, *size), format="rgb24")
                picture = picture.reformat(format=pix_fmt)
                picture.pts, picture.time_base = stamp, time_base
                output.mux(stream.encode(picture))
                for index, track in enumerate(tracks):
                    output.mux(track.encode(_tone(number, index)))
            output.mux(stream.encode(None))
            for track in tracks:
                output.mux(track.encode(None))
        return path

    return make


def _tone(number: int, track: int) -> av.AudioFrame:
    """Return 40 ms of sound at 8 kHz, another pitch for each track."""
    time = np.arange(320) + 320 * number
    samples = (8000 * np.sin(time * (track + 1) / 10)).astype(np.int16)[None]
    sound = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
    sound.sample_rate, sound.pts, sound.time_base = 8000, 320 * number, Fraction(1, 8000)
    return sound


@pytest.fixture(scope="session")
def clip(make_clip: MakeClip) -> Path:
    """12 frames of 64x48 H.264 at 25 frames per second."""
    return make_clip()


@pytest.fixture(scope="session")
def vfr_clip(make_clip: MakeClip) -> Path:
    """12 frames with uneven distances and a late start."""
    return make_clip(
        "vfr.mkv", pts=[500, 540, 541, 600, 700, 701, 950, 1000, 1033, 1067, 2000, 2010]
    )


@pytest.fixture(scope="session")
def odd_clip(make_clip: MakeClip) -> Path:
    """12 frames of 63x47, lossless 4:2:0."""
    return make_clip("odd.mkv", size=(63, 47), codec="ffv1")


@pytest.fixture(scope="session")
def one_frame_clip(make_clip: MakeClip) -> Path:
    """A clip of a single frame."""
    return make_clip("one.mp4", frames=1)


@pytest.fixture(scope="session")
def two_frame_clip(make_clip: MakeClip) -> Path:
    """A clip of two frames."""
    return make_clip("two.mp4", frames=2)


@pytest.fixture(scope="session")
def audio_clip(make_clip: MakeClip) -> Path:
    """12 frames with one audio track."""
    return make_clip("audio.mkv", audio=1)


# A shared machine may take its time: examples are judged by what they return, never by the clock.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")
