"""Noise of sensors, film and chroma: one frozen dataclass each, its numbers already drawn.

A degradation is called with a clip (N, h, w, 3), float32 RGB nominally in [0, 1], and a random
generator; it returns a new clip of the same shape and draws nothing but the noise itself, so that
its fields say everything about it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import cv2
import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
Correlation = Literal["none", "blur", "demosaic", "resample"]

# BT.601 full range, as in JPEG: rows Y, Cb, Cr.
_TO_YCC = np.array(
    [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]], np.float32
)
_TO_RGB = np.linalg.inv(_TO_YCC.astype(np.float64)).astype(np.float32)


def quantize(clip: FloatArray) -> FloatArray:
    """Round to 8 bits and clip to [0, 1], as a file does."""
    out = clip * np.float32(255)
    np.rint(out, out=out)
    np.clip(out, 0, 255, out=out)
    out *= np.float32(1 / 255)
    return out


def each_frame(clip: FloatArray, change: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Apply a function of one image to every frame of a clip."""
    return np.stack([np.asarray(change(frame), np.float32) for frame in clip])


@dataclass(frozen=True)
class White:
    """Add white Gaussian noise, optionally stored in 8 bits afterwards."""

    name: ClassVar[str] = "white"
    sigma: float
    """Standard deviation in [0, 1] units."""
    clipped: bool = True
    """Round to 8 bits and clip; otherwise the values stay as they are."""

    def __call__(self, clip: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return clip + N(0, sigma²)."""
        out = rng.standard_normal(clip.shape, dtype=np.float32)
        out *= np.float32(self.sigma)
        out += clip
        return quantize(out) if self.clipped else out


@dataclass(frozen=True)
class Camera:
    """Add shot and read noise in linear light, as a sensor and its processing leave it.

    Variance in linear light of channel c is gains[c] · shot · x + gains[c]² · read: white balance
    amplifies a channel's signal and its noise alike.

    References:
        Foi et al., "Practical Poissonian-Gaussian noise modeling and fitting for single-image
        raw-data", IEEE TIP 2008, eq. 2; IEC 61966-2-1 (sRGB).
    """

    name: ClassVar[str] = "camera"
    shot: float
    """Variance per unit of linear light."""
    read: float
    """Variance at black, linear light."""
    gains: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """White balance gains of R, G, B."""
    gamma: float = 0.0
    """Exponent of the transfer curve; 0 means the sRGB curve."""
    shared: float = 0.0
    """Share of the noise power that is the same in all channels (luma-like noise)."""
    correlation: Correlation = "none"
    """How the noise was spread over neighbouring pixels; its power is kept."""
    width: float = 0.6
    """Standard deviation of the blur, or factor of the resampling, in pixels."""

    def __call__(self, clip: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the clip with noise, clipped to [0, 1]."""
        noise = noise_field(clip.shape, rng, self.correlation, self.width, self.shared)
        linear = to_linear(clip, self.gamma)
        gains = np.asarray(self.gains, np.float32)
        deviation = linear * (gains * np.float32(self.shot))
        deviation += gains**2 * np.float32(self.read)
        np.sqrt(deviation, out=deviation)
        noise *= deviation
        noise += linear
        return from_linear(np.clip(noise, 0, 1, out=noise), self.gamma)


@dataclass(frozen=True)
class ChromaNoise:
    """Add blotches of colour: low-pass noise in Cb and Cr, luma untouched."""

    name: ClassVar[str] = "chroma_noise"
    sigma: float
    """Standard deviation of Cb and Cr in [0, 1] units."""
    width: float = 1.5
    """Standard deviation of the blur in pixels."""

    def __call__(self, clip: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return clip plus noise along the two chroma directions."""
        chroma = rng.standard_normal((*clip.shape[:3], 2), dtype=np.float32)
        chroma = each_frame(chroma, lambda frame: blur_keeping_power(frame, self.width))
        chroma *= np.float32(self.sigma)
        out: FloatArray = clip + chroma @ _TO_RGB[:, 1:].T
        return out


@dataclass(frozen=True)
class ChromaSubsampling:
    """Store chroma at half size and bring it back, as 4:2:0 video does."""

    name: ClassVar[str] = "chroma_420"
    smooth: bool = True
    """Bilinear upsampling; otherwise pixels are repeated."""

    def __call__(self, clip: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the clip with chroma averaged over 2 × 2 pixels."""
        height, width = clip.shape[1:3]
        half = ((width + 1) // 2, (height + 1) // 2)
        up = cv2.INTER_LINEAR if self.smooth else cv2.INTER_NEAREST

        def change(frame: FloatArray) -> FloatArray:
            ycc = cv2.transform(frame, _TO_YCC)
            small = cv2.resize(ycc[..., 1:], half, interpolation=cv2.INTER_AREA)
            ycc[..., 1:] = cv2.resize(small, (width, height), interpolation=up)
            return np.asarray(cv2.transform(ycc, _TO_RGB), np.float32)

        return each_frame(clip, change)


@dataclass(frozen=True)
class Grain:
    """Add film grain: band-passed noise, strongest in the mid-tones, nearly grey."""

    name: ClassVar[str] = "grain"
    sigma: float
    """Standard deviation at mid-grey in [0, 1] units."""
    size: float = 0.8
    """Standard deviation of the inner Gaussian in pixels; the outer one is twice as wide."""
    colour: float = 0.1
    """Share of the power that differs between channels."""
    bend: float = 0.5
    """How fast grain fades towards black and white: σ(x) = sigma · (4x(1 − x))^bend."""

    def __call__(self, clip: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return clip plus grain."""
        noise = mixed_channels(clip.shape, rng, 1 - self.colour)
        noise = each_frame(noise, self._band)
        x = np.clip(clip, 0, 1)
        strength = np.float32(4) * x * (1 - x)
        np.maximum(strength, np.float32(1e-3), out=strength)
        noise *= cv2.pow(strength.reshape(-1), self.bend).reshape(clip.shape)
        noise *= np.float32(self.sigma)
        noise += clip
        return noise

    def _band(self, frame: FloatArray) -> FloatArray:
        inner, outer = gaussian(self.size), gaussian(2 * self.size)
        wide = len(outer) // 2 - len(inner) // 2
        kernel = np.pad(np.outer(inner, inner), wide) - 0.7 * np.outer(outer, outer)
        power = np.float32(np.sqrt((kernel**2).sum()))
        near = cv2.sepFilter2D(frame, -1, inner, inner)
        far = cv2.sepFilter2D(frame, -1, outer, outer)
        return np.asarray((near - np.float32(0.7) * far) / power, np.float32)


def to_linear(clip: FloatArray, gamma: float) -> FloatArray:
    """Undo the transfer curve: values in [0, 1] to linear light; gamma 0 means sRGB."""
    x = np.clip(clip, 0, 1)
    if gamma:
        return np.asarray(cv2.pow(x.reshape(-1), gamma).reshape(clip.shape), np.float32)
    high = cv2.pow(((x + np.float32(0.055)) * np.float32(1 / 1.055)).reshape(-1), 2.4)
    high = high.reshape(clip.shape)
    return np.where(x <= 0.04045, x * np.float32(1 / 12.92), high)


def from_linear(linear: FloatArray, gamma: float) -> FloatArray:
    """Apply the transfer curve: the inverse of ``to_linear`` on [0, 1]."""
    exponent = 1 / gamma if gamma else 1 / 2.4
    power = np.asarray(cv2.pow(linear.reshape(-1), exponent), np.float32).reshape(linear.shape)
    if gamma:
        return power
    power *= np.float32(1.055)
    power -= np.float32(0.055)
    return np.where(linear <= 0.0031308, linear * np.float32(12.92), power)


def noise_field(
    shape: tuple[int, ...],
    rng: np.random.Generator,
    correlation: Correlation,
    width: float,
    shared: float,
) -> FloatArray:
    """Draw unit-variance noise (N, h, w, 3), spatially correlated as asked for."""
    if correlation == "resample" and width > 1:
        count, height, columns = shape[:3]
        small = (max(2, round(height / width)), max(2, round(columns / width)))
        noise = mixed_channels((count, *small, 3), rng, shared)
        size = (columns, height)
        noise = each_frame(noise, lambda f: resize(f, size))
        # The power lost between the samples depends on the phase of the factor: measure it.
        noise *= np.float32(1) / np.float32(max(float(noise.std()), 1e-6))
        return noise
    noise = mixed_channels(shape, rng, shared)
    if correlation == "blur":
        return each_frame(noise, lambda frame: blur_keeping_power(frame, width))
    if correlation == "demosaic":
        return each_frame(noise, demosaiced)
    return noise


def mixed_channels(shape: tuple[int, ...], rng: np.random.Generator, shared: float) -> FloatArray:
    """Draw unit-variance noise (N, h, w, 3) whose channels share a part of their power."""
    noise: FloatArray = rng.standard_normal(shape, dtype=np.float32)
    if shared > 0:
        noise *= np.float32(np.sqrt(1 - shared))
        common = rng.standard_normal((*shape[:3], 1), dtype=np.float32)
        noise += np.float32(np.sqrt(shared)) * common
    return noise


def gaussian(sigma: float) -> FloatArray:
    """Return a normalised 1D Gaussian kernel of odd length."""
    size = 2 * max(1, int(np.ceil(3 * sigma))) + 1
    return np.asarray(cv2.getGaussianKernel(size, sigma, cv2.CV_32F), np.float32)[:, 0]


def resize(image: FloatArray, size: tuple[int, int]) -> FloatArray:
    """Resize a float image to (w, h) by cubic interpolation."""
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_CUBIC), np.float32)


def blur_keeping_power(noise: FloatArray, sigma: float) -> FloatArray:
    """Blur white noise (h, w, C) by a Gaussian and scale it back to its variance."""
    kernel = gaussian(sigma)
    scaled = kernel / np.sqrt((kernel**2).sum())
    return np.asarray(cv2.sepFilter2D(noise, -1, scaled, scaled), np.float32)


def demosaiced(noise: FloatArray) -> FloatArray:
    """Correlate white noise (h, w, 3) as bilinear demosaicing of a GRBG mosaic would.

    Mean variance of every channel is kept at 1: only a sample of each colour is drawn per site and
    the sites between are means of two or four neighbours.
    """
    mosaic = np.zeros_like(noise)
    mosaic[0::2, 1::2, 0] = noise[0::2, 1::2, 0]
    mosaic[0::2, 0::2, 1] = noise[0::2, 0::2, 1]
    mosaic[1::2, 1::2, 1] = noise[1::2, 1::2, 1]
    mosaic[1::2, 0::2, 2] = noise[1::2, 0::2, 2]
    sides = np.array([[0, 1, 0], [1, 4, 1], [0, 1, 0]], np.float32) / 4
    square = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]], np.float32) / 4
    # Mean power after the filter: green (1 + 1/4) / 2, red and blue (1 + 1/2 + 1/2 + 1/4) / 4.
    green = cv2.filter2D(mosaic[..., 1], -1, sides, borderType=cv2.BORDER_REFLECT_101)
    red_blue = cv2.filter2D(mosaic[..., 0::2], -1, square, borderType=cv2.BORDER_REFLECT_101)
    out = np.empty_like(noise)
    out[..., 1] = green * np.float32(np.sqrt(1 / 0.625))
    out[..., 0::2] = red_blue * np.float32(np.sqrt(1 / 0.5625))
    return out
