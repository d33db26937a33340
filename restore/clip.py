"""Restore a clip held in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from restore.pipeline import restore_frames

if TYPE_CHECKING:
    from torch import Tensor


def denoise(frames: Any, sigma: float | None = None, **options: Any) -> Any:
    """Denoise a clip held in memory.

    Args:
        frames: Array (T, H, W, 3) or tensor (T, 3, H, W), float RGB in [0, 1].
        sigma: Noise level in [0, 1]; None measures it.
        **options: Those of `restore_frames`.

    Returns:
        The restored clip: same kind, shape and type.

    Raises:
        ValueError: If the shape is neither of the two.
        RestoreError: If options or weights cannot be used.
    """
    if isinstance(frames, np.ndarray):
        if frames.ndim != 4 or frames.shape[-1] != 3:
            raise ValueError(f"frames must be (T, H, W, 3), got {frames.shape}")
        restored = list(restore_frames(frames, sigma=sigma, **options))
        return np.stack(restored).astype(frames.dtype) if restored else frames.copy()
    return _denoise_tensor(frames, sigma, options)


def _denoise_tensor(frames: Tensor, sigma: float | None, options: dict[str, Any]) -> Tensor:
    import torch

    if frames.ndim != 4 or frames.shape[1] != 3:
        raise ValueError(f"frames must be (T, 3, H, W), got {tuple(frames.shape)}")
    pictures = frames.detach().permute(0, 2, 3, 1).float().cpu().numpy()
    restored = denoise(np.ascontiguousarray(pictures), sigma, **options)
    return torch.from_numpy(restored).permute(0, 3, 1, 2).to(frames).contiguous()
