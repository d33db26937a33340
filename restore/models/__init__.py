"""The networks, by name: a new one is a file here and a line in `MODELS`."""

from __future__ import annotations

from typing import Any

from torch import nn

from restore.models.denoiser import Denoiser
from restore.models.lite import Lite
from restore.models.student import Student
from restore.models.upscaler import Upscaler

MODELS: dict[str, tuple[type[nn.Module], dict[str, Any]]] = {
    "denoiser": (Denoiser, {"stem": 16, "channels": (32, 64, 128), "blocks": (1, 1, 2)}),
    "denoiser-tiny": (Denoiser, {"stem": 4, "channels": (8, 8), "blocks": (1, 1)}),
    "lite": (Lite, {"stem": 8, "channels": (24, 48, 64), "blocks": (1, 1, 1)}),
    "student-edge": (Student, {"channels": (24, 48, 64), "blocks": (1, 1, 1)}),
    "student-nano": (Student, {"channels": (8, 16, 32), "blocks": (1, 1, 2)}),
    "upscaler": (Upscaler, {"scale": 4, "stem": 16, "channels": (32,), "blocks": (3,)}),
    "upscaler-tiny": (Upscaler, {"scale": 2, "stem": 4, "channels": (8,), "blocks": (1,)}),
}
"""Network name -> (class, keyword arguments of its constructor)."""

__all__ = ["MODELS", "Denoiser", "Lite", "Student", "Upscaler"]
