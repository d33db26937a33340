"""Tell which FFmpeg does the work."""

import av


def ffmpeg_libraries() -> dict[str, str]:
    """Return the version of each of FFmpeg's libraries, such as {"libavcodec": "62.28.101"}."""
    return {
        name: ".".join(str(part) for part in numbers)
        for name, numbers in sorted(av.library_versions.items())
    }
