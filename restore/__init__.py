"""Restore video: denoising and super-resolution that touches nothing else in the file.

>>> import restore
>>> restore.restore_video("in.mp4", "out.mp4")
>>> clean = restore.denoise(frames)  # (T, H, W, 3), float, [0, 1]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from restore.clip import denoise
    from restore.pipeline import Summary, restore_frames, restore_video

__all__ = ["Summary", "__version__", "denoise", "restore_frames", "restore_video"]


def __getattr__(name: str) -> Any:
    """Load the pipeline when it is first asked for: importing the package stays instant."""
    if name in __all__:
        from restore import clip, pipeline

        return getattr(clip if name == "denoise" else pipeline, name)
    raise AttributeError(f"module 'restore' has no attribute '{name}'")
