import cv2
import numpy as np
import pytest
from motion_scenes import noisy, textured
from test_refine import occluded, swaying

from restore.align import Aligner, GuidedAligner, View, half_variance


def variance(image: np.ndarray, sigma: float) -> np.ndarray:
    return half_variance(np.full_like(image, sigma / 255))


@pytest.mark.parametrize("sigma", [10, 30])
def test_neighbours_fit_better_than_along_a_flow_at_half_size(sigma: float) -> None:
    """A rotating, zooming camera, searched in blurred frames with a rest of noise."""
    clean, _ = swaying(2, 0)
    guides = [cv2.GaussianBlur(noisy(f, sigma / 5, n), (0, 0), 0.7) for n, f in enumerate(clean)]
    missed = {}
    for aligner in (Aligner(), GuidedAligner()):
        views = [aligner.view(*pair) for pair in zip(clean, guides, strict=True)]
        aligner.link(*views, 0.0)
        warped = aligner.align(views, 0, 1, variance(clean[0], sigma)).image
        inner = (warped - clean[0])[16:-16, 16:-16]
        missed[type(aligner)] = float(np.square(inner).mean())
    assert missed[GuidedAligner] < 0.95 * missed[Aligner], missed


def trusts(sigma: float) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the confidence with and without a look at the guides, and what is hidden."""
    clip, clean, hidden = occluded(sigma)
    aligner, found = GuidedAligner(), {}
    for name in ("guides", "noise alone"):
        views = [aligner.view(*pair) for pair in zip(clip, clean, strict=True)]
        aligner.link(*views, 0.0)
        if name == "noise alone":
            for view in views:
                view.guide = None
        found[name] = aligner.align(views, 0, 1, variance(clip[0], sigma)).confidence
    return found, hidden


def test_a_ghost_that_strong_noise_hides_is_seen_in_the_guides() -> None:
    found, hidden = trusts(60)
    assert found["guides"][hidden].mean() < 0.5 * found["noise alone"][hidden].mean()
    shown = ~cv2.dilate(hidden.astype(np.uint8), np.ones((25, 25), np.uint8)).astype(bool)
    assert found["guides"][shown].mean() > 0.9 * found["noise alone"][shown].mean()


def test_a_frame_without_a_guide_is_searched_itself() -> None:
    picture = textured(64, 80)
    view = GuidedAligner().view(picture)
    assert isinstance(view, View)
    assert view.guide is None
    assert view.search.shape == (64, 80)
