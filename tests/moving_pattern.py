"""A textured plane in known motion, as frames of 8-bit RGB."""

import numpy as np


def pattern(
    number: int, width: int = 64, height: int = 48, step: tuple[int, int] = (2, 1)
) -> np.ndarray:
    """Return frame `number` of a textured plane that moves by `step` (x, y) pixels a frame.

    Shape (height, width, 3), uint8 RGB.
    """
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    x, y = x - step[0] * number, y - step[1] * number
    red = 128 + 80 * np.sin(x / 5) * np.cos(y / 7)
    green = 128 + 60 * np.sin((x + y) / 9)
    blue = np.where((x // 8 + y // 8) % 2 == 0, 90.0, 160.0)
    return np.rint(np.stack([red, green, blue], axis=-1)).astype(np.uint8)
