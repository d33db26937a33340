import math

import cv2
import numpy as np
import pytest

from restore.metrics.spectral import RadialSpectrum


@pytest.fixture(scope="module")
def noise():
    rng = np.random.default_rng(0)
    return [rng.normal(0.5, 0.1, (151, 203)).astype(np.float32) for _ in range(6)]


def spectra(reference, images):
    measure = RadialSpectrum(*reference[0].shape)
    for a, b in zip(reference, images, strict=True):
        measure.add(a, b)
    return measure.spectra


def test_white_noise_is_flat_at_its_variance(noise):
    found = spectra(noise, noise)
    assert np.average(found.reference, weights=found.weight) == pytest.approx(0.01, rel=0.02)
    assert found.reference[10:] == pytest.approx(np.full_like(found.reference[10:], 0.01), rel=0.2)


def test_bins_agree_with_the_whole_plane(noise):
    """The half plane that is stored counts as the full one computed by NumPy."""
    image = noise[0][:150, :200]
    found = spectra([image], [image])
    window = np.outer(np.hanning(152)[1:-1], np.hanning(202)[1:-1])
    window /= np.sqrt((window**2).sum())
    power = np.abs(np.fft.fft2((image - image.mean()) * window)) ** 2
    radius = np.hypot(np.fft.fftfreq(150)[:, None], np.fft.fftfreq(200)[None])
    for bin_ in (3, 20, 50):
        inside = (radius >= bin_ / 128) & (radius < (bin_ + 1) / 128)
        assert found.reference[bin_] == pytest.approx(power[inside].mean(), rel=1e-3)


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_detail_lost_by_a_gaussian_is_its_transfer_function(noise, sigma):
    found = spectra(noise, [cv2.GaussianBlur(x, (0, 0), sigma) for x in noise])
    taps = cv2.getGaussianKernel(round(sigma * 8 + 1) | 1, sigma).ravel()
    places = np.arange(len(taps)) - len(taps) // 2

    def transfer(frequency):
        return (taps * np.cos(2 * math.pi * frequency[:, None] * places)).sum(axis=1)

    fx, fy = np.fft.fftfreq(200), np.fft.fftfreq(150)
    high = (np.hypot(fy[:, None], fx) >= 0.25) & (np.hypot(fy[:, None], fx) < 0.5)
    expected = 1 - np.outer(transfer(fy), transfer(fx))[high].mean()
    assert found.detail_lost == pytest.approx(expected, abs=0.02)
    assert found.high_gain_db < -2


def test_noise_does_not_hide_lost_detail(noise):
    rng = np.random.default_rng(9)
    extra = [rng.normal(0, 0.1, x.shape).astype(np.float32) for x in noise]
    found = spectra(noise, [x + e for x, e in zip(noise, extra, strict=True)])
    assert found.detail_lost == pytest.approx(0, abs=0.02)
    assert found.high_gain_db == pytest.approx(10 * math.log10(2), abs=0.1)
    assert found.whiteness > 0.95
    soft = [cv2.GaussianBlur(x, (0, 0), 2) + e for x, e in zip(noise, extra, strict=True)]
    assert spectra(noise, soft).detail_lost > 0.9


def test_structured_error_is_not_white(noise):
    found = spectra(noise, [0.5 * x for x in noise])
    assert found.whiteness > 0.95
    soft = [x + cv2.GaussianBlur(x, (0, 0), 3) for x in noise]
    assert spectra(noise, soft).whiteness < 0.3


def test_nothing_added_means_no_spectra():
    assert RadialSpectrum(32, 32).spectra is None
