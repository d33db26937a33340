import cv2
import numpy as np
import pytest


@pytest.fixture
def texture():
    """A smooth random picture (H, W, 3) uint8: band-limited, so that it can be shifted exactly."""

    def make(height=160, width=200, seed=0, sigma=2.5):
        noise = np.random.default_rng(seed).standard_normal((height, width, 3)).astype(np.float32)
        soft = cv2.GaussianBlur(noise, (0, 0), sigma)
        return np.clip(128 + 40 * soft / soft.std(), 0, 255).astype(np.uint8)

    return make


@pytest.fixture
def frame_folder(tmp_path, texture):
    """A folder of numbered PNG frames; ``cut`` starts another scene there."""

    def make(name="clip", frames=8, size=(160, 200), cut=None, suffix="png"):
        folder = tmp_path / name
        folder.mkdir()
        for i in range(frames):
            scene = 1 if cut is not None and i >= cut else 0
            picture = np.roll(texture(*size, seed=scene), 2 * i, axis=1)
            if scene:
                picture = 255 - picture // 2
            cv2.imwrite(str(folder / f"{i:05d}.{suffix}"), picture[..., ::-1])
        return folder

    return make
