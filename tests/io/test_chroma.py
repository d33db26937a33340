import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restore.io.chroma import downsample, siting_offsets, upsample
from restore.io.frame import PixelFormat

LOCATIONS = ("left", "center", "topleft", "top", "bottomleft", "bottom")
NAMES = ("yuv420p", "yuv422p", "yuv411p", "yuv440p", "yuv410p", "yuv444p")


@settings(max_examples=300, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    location=st.sampled_from(LOCATIONS),
    height=st.integers(1, 23),
    width=st.integers(1, 23),
    interlaced=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_downsampling_undoes_upsampling(name, location, height, width, interlaced, seed):
    fmt = PixelFormat.from_name(name)
    chroma = np.random.default_rng(seed).integers(0, 1 << 16, fmt.chroma_size(height, width))
    chroma = chroma.astype(np.float32)
    full = upsample(chroma, height, width, fmt, location, interlaced=interlaced)
    assert full.shape == (height, width)
    back = downsample(full, fmt, location, interlaced=interlaced)
    np.testing.assert_allclose(back, chroma, rtol=0, atol=0.05)


@pytest.mark.parametrize("height", [16, 17, 18, 19])  # NTSC in full has 486 lines
def test_fields_do_not_mix(height):
    fmt = PixelFormat.from_name("yuv420p")
    chroma = np.zeros((-(-height // 2), 4), np.float32)
    chroma[1::2] = 100  # the second field shows something else
    full = upsample(chroma, height, 8, fmt, "left", interlaced=True)
    assert (full[0::2] == 0).all()
    assert (full[1::2] == 100).all()
    assert 0 < upsample(chroma, height, 8, fmt, "left")[4, 4] < 100


@pytest.mark.parametrize(("location", "places"), [("left", (0.25, 0.75)), ("topleft", (0, 0))])
def test_fields_are_sited_a_quarter_of_a_line_off(location, places):
    """A ramp over the lines of each field, sampled at H.262's chroma sites, comes back inside."""
    fmt = PixelFormat.from_name("yuv420p")
    chroma = np.zeros((16, 4), np.float32)
    for field in (0, 1):
        chroma[field::2] = (3 * (2 * np.arange(8) + places[field]))[:, None]
    full = upsample(chroma, 32, 8, fmt, location, interlaced=True)
    for field in (0, 1):
        expected = 3.0 * np.arange(16)[:, None].repeat(8, axis=1)
        np.testing.assert_allclose(full[field::2][2:-2], expected[2:-2], atol=1e-4)


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_upsampling_is_bilinear_at_the_siting(name, location):
    """A ramp in luma coordinates, sampled at the chroma sites, comes back as the ramp inside."""
    fmt = PixelFormat.from_name(name)
    height, width = 24, 32
    off_h, off_w = siting_offsets(fmt, location)
    rows, columns = fmt.chroma_size(height, width)
    y = np.arange(rows) * (1 << fmt.log2_chroma_h) + off_h
    x = np.arange(columns) * (1 << fmt.log2_chroma_w) + off_w
    chroma = (3 * y[:, None] + 5 * x[None, :]).astype(np.float32)
    full = upsample(chroma, height, width, fmt, location)
    expected = 3 * np.arange(height)[:, None] + 5 * np.arange(width)[None, :]
    np.testing.assert_allclose(full[4:-4, 4:-4], expected[4:-4, 4:-4], atol=1e-3)
