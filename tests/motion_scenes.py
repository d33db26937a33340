"""Pictures in known motion, for the tests of alignment."""

import cv2
import numpy as np
from skimage import data


def textured(height: int = 160, width: int = 200) -> np.ndarray:
    """Return a photograph of shape (height, width, 3), float32 in [0, 1]."""
    picture = cv2.resize(data.astronaut(), (width, height), interpolation=cv2.INTER_AREA)
    return picture.astype(np.float32) / 255


def panning(
    frames: int, step: tuple[float, float], height: int = 160, width: int = 200
) -> list[np.ndarray]:
    """Return frames whose content moves by -step: `flow` from t to t+1 is -step everywhere.

    The camera moves by `step` (x, y) pixels a frame over one photograph, without borders.
    """
    large = cv2.GaussianBlur(data.astronaut(), (0, 0), 0.7).astype(np.float32) / 255
    clip = []
    for number in range(frames):
        x, y = 60 + step[0] * number, 60 + step[1] * number
        move = np.array([[1, 0, x], [0, 1, y]], np.float32)
        flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
        clip.append(cv2.warpAffine(large, move, (width, height), flags=flags))
    return clip


def noisy(image: np.ndarray, sigma: float, seed: int = 0) -> np.ndarray:
    """Return the picture under white noise; sigma in 0-255 units."""
    noise = np.random.default_rng(seed).standard_normal(image.shape, np.float32)
    return image + noise * np.float32(sigma / 255)
