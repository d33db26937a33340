import math
import re
from fractions import Fraction

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moving_scene import as_float, scene, with_noise
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from restore.metrics import luma, mse, psnr, psnr_of_mse, ssim, ssim_and_ms_ssim


@pytest.fixture(scope="module")
def pair():
    clean = scene(1)
    return as_float(clean)[0], as_float(with_noise(clean, 15))[0]


@settings(max_examples=15, deadline=None)
@given(height=st.integers(11, 90), width=st.integers(11, 150), seed=st.integers(0, 99))
def test_psnr_and_ssim_equal_scikit_image(height, width, seed):
    rng = np.random.default_rng(seed)
    a = rng.random((height, width, 3), np.float32)
    b = np.clip(a + rng.normal(0, 0.1, a.shape), 0, 1).astype(np.float32)
    assert psnr(a, b) == pytest.approx(peak_signal_noise_ratio(a, b, data_range=1), abs=1e-4)
    expected = structural_similarity(
        a.astype(np.float64),
        b.astype(np.float64),
        data_range=1,
        channel_axis=2,
        gaussian_weights=True,
        use_sample_covariance=False,
    )
    assert ssim(a, b) == pytest.approx(expected, abs=1e-5)


def test_ssim_of_a_single_channel_equals_scikit_image(pair):
    a, b = (luma(x) for x in pair)
    expected = structural_similarity(
        a, b, data_range=1, gaussian_weights=True, use_sample_covariance=False
    )
    assert ssim(a, b) == pytest.approx(expected, abs=1e-5)


def test_ssim_and_ms_ssim_equal_piq(pair):
    piq = pytest.importorskip("piq", reason="piq is not installed")
    torch = pytest.importorskip("torch")
    a, b = (torch.from_numpy(x.transpose(2, 0, 1).copy())[None] for x in pair)
    single, multi = ssim_and_ms_ssim(*pair)
    assert single == pytest.approx(piq.ssim(a, b, downsample=False).item(), abs=2e-5)
    assert multi == pytest.approx(piq.multi_scale_ssim(a, b).item(), abs=2e-5)


def test_equal_pictures_score_highest(pair):
    a, _ = pair
    assert psnr(a, a) == 99
    assert ssim_and_ms_ssim(a, a) == pytest.approx((1, 1))


def test_ms_ssim_needs_176_pixels(pair):
    a, b = (x[:175] for x in pair)
    assert math.isnan(ssim_and_ms_ssim(a, b)[1])
    a, b = (x[:176] for x in pair)
    assert 0 < ssim_and_ms_ssim(a, b)[1] < 1


def test_psnr_of_the_mean_error_is_not_the_mean_psnr():
    errors = [1e-2, 1e-4]
    assert np.mean([psnr_of_mse(e) for e in errors]) == pytest.approx(30)
    assert psnr_of_mse(float(np.mean(errors))) == pytest.approx(-10 * math.log10(0.00505))


def test_luma_of_white_and_green():
    picture = np.float32([[[1, 1, 1], [0, 1, 0]]])
    assert luma(picture) * 255 == pytest.approx(np.array([[235, 16 + 128.553]]), abs=1e-3)


def test_shapes_and_sizes_are_checked(pair):
    a, b = pair
    with pytest.raises(ValueError, match="shapes differ"):
        mse(a, b[1:])
    with pytest.raises(ValueError, match="11x11"):
        ssim(a[:10], b[:10])


def ffmpeg_figures(name: str, a: np.ndarray, b: np.ndarray, tmp_path) -> dict[str, float]:
    """Run FFmpeg's psnr or ssim filter on two RGB pictures; return what it logs of them."""
    log = tmp_path / f"{name}.log"
    graph = av.filter.Graph()
    frames = [av.VideoFrame.from_ndarray(x, format="rgb24").reformat(format="gbrp") for x in (a, b)]
    sources = [graph.add_buffer(width=a.shape[1], height=a.shape[0], format="gbrp",
                                time_base=Fraction(1, 25)) for _ in frames]  # fmt: skip
    compare, sink = graph.add(name, f"stats_file={log}"), graph.add("buffersink")
    for index, source in enumerate(sources):
        source.link_to(compare, 0, index)
    compare.link_to(sink)
    graph.configure()
    for source, frame in zip(sources, frames, strict=True):
        frame.pts = 0
        source.push(frame)
        source.push(None)
    graph.pull()
    del graph, sources, compare, sink
    return {name: float(value) for name, value in re.findall(r"(\w+):([\d.]+)", log.read_text())}


@pytest.mark.parametrize("sigma", [3, 8, 15])
def test_psnr_and_ssim_agree_with_ffmpeg(tmp_path, sigma):
    clean, noisy = scene(1)[0], with_noise(scene(1), sigma)[0]
    a, b = as_float(np.stack([clean, noisy]))
    theirs = ffmpeg_figures("psnr", clean, noisy, tmp_path)["psnr_avg"]
    assert psnr(a, b) == pytest.approx(theirs, abs=0.01)
    # FFmpeg's SSIM has flat windows of 8x8 pixels, every fourth pixel: alike, not equal.
    theirs = ffmpeg_figures("ssim", clean, noisy, tmp_path)["All"]
    assert ssim(a, b) == pytest.approx(theirs, abs=0.05)
