"""Closeness of one picture to its reference: PSNR, SSIM, MS-SSIM.

Pictures are (H, W, 3) float32 RGB in [0, 1].
"""

import math

import cv2
import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.float32]
Means = NDArray[np.float64]

PSNR_CAP = 99.0
"""dB given for equal pictures, so that means, JSON and plots stay finite."""

_CAP_MSE = 1e-10 / 255**2
_LUMA = np.array([[65.481, 128.553, 24.966]], np.float32) / np.float32(255)
_WINDOW, _SIGMA, _BORDER = 11, 1.5, 5
_STRIP = 64
_C1, _C2 = 0.01**2, 0.03**2
_SCALE_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)

MS_SSIM_MIN_SIDE = _WINDOW * 2 ** (len(_SCALE_WEIGHTS) - 1)
"""Smallest side, in pixels, that still holds a window at the fifth scale."""


def mse(reference: Image, image: Image) -> float:
    """Return the mean squared error over all samples, accumulated in double precision.

    Raises:
        ValueError: If the shapes differ.
    """
    if reference.shape != image.shape:
        raise ValueError(f"shapes differ: {reference.shape} and {image.shape}")
    return float(cv2.norm(reference, image, cv2.NORM_L2SQR)) / reference.size


def psnr_of_mse(error: float) -> float:
    """Return the PSNR in dB of a mean squared error of samples in [0, 1], at most 99."""
    return PSNR_CAP if error <= _CAP_MSE else -10 * math.log10(error)


def psnr(reference: Image, image: Image) -> float:
    """Return the PSNR in dB over all samples of a picture; equal pictures give 99.

    A clip has two: the mean of its frames' PSNR and the PSNR of the mean of their errors
    (`psnr_of_mse(np.mean(errors))`); they differ when quality varies along the clip.
    """
    return psnr_of_mse(mse(reference, image))


def luma(image: Image) -> Image:
    """Return BT.601 studio-range luma (H, W), 16/255 to 235/255, as super-resolution papers do."""
    return cv2.transform(image, _LUMA) + np.float32(16 / 255)


def _blur(x: Image) -> Image:
    # Only the part at least one radius from the border is used, so its rule does not matter.
    return cv2.GaussianBlur(x, (_WINDOW, _WINDOW), _SIGMA, borderType=cv2.BORDER_REFLECT)


def _ssim_terms(a: Image, b: Image) -> tuple[Means, Means]:
    """Return the channels' means of SSIM and of its contrast-structure part.

    In strips that stay in the processor's cache, which halves the time.
    """
    rows = a.shape[0] - 2 * _BORDER
    similarity, structure = np.zeros(1), np.zeros(1)
    for top in range(0, rows, _STRIP):
        count = min(_STRIP, rows - top)
        part = slice(top, top + count + 2 * _BORDER)
        strip_similarity, strip_structure = _strip_terms(a[part], b[part])
        similarity = similarity + strip_similarity * (count / rows)
        structure = structure + strip_structure * (count / rows)
    return similarity, structure


def _strip_terms(a: Image, b: Image) -> tuple[Means, Means]:
    """Return `_ssim_terms` of one strip.

    Written with the sum and difference of the pictures, which needs four filters instead of five;
    the sum is centred, which keeps single precision good enough.
    """
    inner = (slice(_BORDER, -_BORDER), slice(_BORDER, -_BORDER))
    total, diff = a + b, a - b
    total -= np.float32(1)
    mean_t, mean_d = _blur(total)[inner], _blur(diff)[inner]
    total *= total
    diff *= diff
    var_t, var_d = _blur(total)[inner], _blur(diff)[inner]
    var_t -= mean_t * mean_t
    mean_d *= mean_d
    var_d -= mean_d
    mean_t += np.float32(1)
    mean_t *= mean_t
    structure = _ratio(var_t, var_d, 2 * _C2)
    return _means(_ratio(mean_t, mean_d, 2 * _C1) * structure), _means(structure)


def _ratio(first: Image, second: Image, constant: float) -> Image:
    """Return (first - second + constant) / (first + second + constant)."""
    above = first - second
    above += np.float32(constant)
    below = first + second
    below += np.float32(constant)
    above /= below
    return above


def _means(x: Image) -> Means:
    return np.array(cv2.mean(x)[: x.shape[2] if x.ndim == 3 else 1])


def _require_side(image: Image, side: int, name: str) -> None:
    if min(image.shape[:2]) < side:
        height, width = image.shape[:2]
        raise ValueError(f"{name} needs at least {side}x{side} pixels, got {width}x{height}")


def ssim(reference: Image, image: Image) -> float:
    """Return the structural similarity, mean of the channels.

    Gaussian window of 11x11 pixels and 1.5 standard deviation, population covariance, borders of
    5 pixels left out. Also takes single-channel (H, W) pictures.

    Raises:
        ValueError: If a side is shorter than the window or the shapes differ.

    References:
        Wang et al., Image quality assessment: from error visibility to structural similarity,
        IEEE TIP 2004, equation 13.
    """
    if reference.shape != image.shape:
        raise ValueError(f"shapes differ: {reference.shape} and {image.shape}")
    _require_side(reference, _WINDOW, "SSIM")
    return float(_ssim_terms(reference, image)[0].mean())


def ssim_and_ms_ssim(reference: Image, image: Image) -> tuple[float, float]:
    """Return SSIM and MS-SSIM in one go; they share the filters of the first scale.

    MS-SSIM is the product over five dyadic scales (2x2 means) per channel, then the mean of the
    channels; negative contrast terms count as zero. It is NaN when a side is below 176 pixels.

    Raises:
        ValueError: If a side is shorter than 11 pixels or the shapes differ.

    References:
        Wang et al., Multi-scale structural similarity for image quality assessment, Asilomar 2003,
        equation 7.
    """
    if reference.shape != image.shape:
        raise ValueError(f"shapes differ: {reference.shape} and {image.shape}")
    _require_side(reference, _WINDOW, "SSIM")
    full, structure = _ssim_terms(reference, image)
    if min(reference.shape[:2]) < MS_SSIM_MIN_SIDE:
        return float(full.mean()), math.nan
    product = np.maximum(structure, 0) ** _SCALE_WEIGHTS[0]
    for weight in _SCALE_WEIGHTS[1:]:
        reference, image = _halve(reference), _halve(image)
        similarity, structure = _ssim_terms(reference, image)
        last = weight == _SCALE_WEIGHTS[-1]
        product = product * np.maximum(similarity if last else structure, 0) ** weight
    return float(full.mean()), float(product.mean())


def _halve(image: Image) -> Image:
    height, width = image.shape[0] // 2, image.shape[1] // 2
    even = image[: 2 * height, : 2 * width]
    return cv2.resize(even, (width, height), interpolation=cv2.INTER_AREA)
