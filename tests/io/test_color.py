from fractions import Fraction

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restore.errors import UsageError
from restore.io import ColorTags, Frame, PixelFormat, add_residual, from_rgb, to_rgb
from restore.io.color import MATRICES, resolve_color, ycc_matrix
from restore.io.formats import layout_of, pack, unpack

MATRIX_TAGS = {"bt601": 6, "bt709": 1, "bt2020": 9}
FORMATS = ["yuv420p", "yuv422p", "yuv444p", "yuv411p", "yuv420p10le", "yuv422p10le"]
FORMATS += ["yuv444p12le", "gray", "gray10le", "gbrp", "gbrp10le", "gbrp16le"]


def random_frame(name, *, matrix="bt709", full=False, size=(31, 45), seed=0, location="left"):
    fmt = PixelFormat.from_name(name)
    rng = np.random.default_rng(seed)
    count = 1 if fmt.family == "gray" else 3
    shapes = [size, *[fmt.chroma_size(*size) if fmt.family == "yuv" else size] * 2][:count]
    planes = tuple(rng.integers(0, fmt.maximum + 1, s).astype(fmt.dtype) for s in shapes)
    place = ("", "left", "center", "topleft", "top", "bottomleft", "bottom").index(location)
    tags = ColorTags(MATRIX_TAGS[matrix], 2 if full else 1, chroma_location=place)
    return Frame(planes, fmt, resolve_color(tags, fmt, size[0]), Fraction(1, 25), 0)


def flat_frame(rgb, name, matrix, full):
    fmt = PixelFormat.from_name(name)
    color = resolve_color(ColorTags(MATRIX_TAGS[matrix], 2 if full else 1), fmt, 480)
    shapes = [(16, 16), *[fmt.chroma_size(16, 16) if fmt.family == "yuv" else (16, 16)] * 2]
    planes = tuple(np.zeros(s, fmt.dtype) for s in shapes)
    template = Frame(planes, fmt, color, Fraction(1, 25), 0)
    picture = np.broadcast_to(np.float32(rgb) / 255, (16, 16, 3)).copy()
    return from_rgb(picture, template)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("matrix", MATRIX_TAGS)
@pytest.mark.parametrize("name", FORMATS)
def test_zero_residual_changes_nothing(name, matrix, full):
    frame = random_frame(name, matrix=matrix, full=full)
    zero = np.zeros((frame.height, frame.width, 3), np.float32)
    for before, after in zip(frame.planes, add_residual(frame, zero).planes, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("matrix", MATRIX_TAGS)
@pytest.mark.parametrize("name", FORMATS)
def test_rgb_and_back_is_identity(name, matrix, full):
    frame = random_frame(name, matrix=matrix, full=full)
    for before, after in zip(frame.planes, from_rgb(to_rgb(frame), frame).planes, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("matrix", ["bt601", "bt709", "bt2020"])
@pytest.mark.parametrize("name", ["yuv444p", "yuv444p10le", "yuv444p12le"])
def test_flat_colour_agrees_with_swscale(name, matrix, full):
    rgb = (200, 60, 30)
    picture = pack(flat_frame(rgb, name, matrix, full), name)
    space = {"bt601": "ITU601", "bt709": "ITU709", "bt2020": "BT2020"}[matrix]
    array = picture.reformat(
        format="rgb24",
        src_colorspace=space,
        dst_colorspace=space,
        src_color_range="JPEG" if full else "MPEG",
        dst_color_range="JPEG",
    ).to_ndarray()
    assert np.abs(array.astype(int) - rgb).max() <= 1


def test_matrices_match_the_standards_digits():
    """BT.709-6 item 3.3 and BT.601-7 section 2.5.3 print these divisors."""
    np.testing.assert_allclose(ycc_matrix("bt709")[1, 2] / (1 - 0.0722), 1 / 1.8556, rtol=1e-4)
    np.testing.assert_allclose(ycc_matrix("bt709")[2, 0] / (1 - 0.2126), 1 / 1.5748, rtol=1e-4)
    np.testing.assert_allclose(ycc_matrix("bt601")[1, 2] / (1 - 0.114), 1 / 1.772, rtol=1e-4)
    for name in MATRICES:
        np.testing.assert_allclose(ycc_matrix(name) @ np.ones(3), [1, 0, 0], atol=1e-12)


@pytest.mark.parametrize("location", ["left", "center", "topleft"])
@pytest.mark.parametrize("name", ["yuv420p10le", "yuv422p10le", "yuv411p"])
def test_chroma_noise_is_removed_in_full(name, location):
    """The residual between a noisy and a clean picture brings back the clean planes."""
    clean = random_frame(name, seed=1, location=location)
    noisy = random_frame(name, seed=2, location=location)
    result = add_residual(noisy, to_rgb(clean) - to_rgb(noisy))
    for got, wanted in zip(result.planes, clean.planes, strict=True):
        assert np.abs(got.astype(int) - wanted).max() <= 1


def test_residual_is_clipped_to_the_depth():
    frame = random_frame("yuv420p10le")
    big = np.full((frame.height, frame.width, 3), 5, np.float32)
    assert add_residual(frame, big).planes[0].min() == 1023
    assert add_residual(frame, -big).planes[0].max() == 0


def test_luma_and_chroma_dials():
    frame = random_frame("yuv420p")
    residual = np.random.default_rng(3).normal(0, 0.1, (frame.height, frame.width, 3))
    residual = residual.astype(np.float32)
    only_luma = add_residual(frame, residual, chroma=0)
    only_chroma = add_residual(frame, residual, luma=0)
    np.testing.assert_array_equal(only_luma.planes[1], frame.planes[1])
    np.testing.assert_array_equal(only_chroma.planes[0], frame.planes[0])
    both = add_residual(frame, residual)
    np.testing.assert_array_equal(both.planes[0], only_luma.planes[0])
    np.testing.assert_array_equal(both.planes[2], only_chroma.planes[2])


def test_unspecified_matrix_follows_the_written_rule():
    fmt = PixelFormat.from_name("yuv420p")
    assert resolve_color(ColorTags(), fmt, 719).matrix == "bt601"
    assert resolve_color(ColorTags(), fmt, 720).matrix == "bt709"
    assert resolve_color(ColorTags(), fmt, 720, "bt2020").matrix == "bt2020"
    assert resolve_color(ColorTags(), fmt, 720).tags.matrix == 2
    with pytest.raises(UsageError, match="bt601"):
        resolve_color(ColorTags(), fmt, 720, "rec709")


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(
        [
            "rgb24",
            "bgr24",
            "rgba",
            "argb",
            "abgr",
            "bgra",
            "rgb0",
            "0rgb",
            "rgb48le",
            "rgb48be",
            "rgba64be",
            "bgra64le",
            "gbrp10be",
            "gray16be",
            "ya8",
            "ya16be",
            "yuv420p10be",
            "yuv422p",
            "gbrap12le",
            "yuva444p16le",
        ]
    ),
    width=st.integers(1, 40),
    height=st.integers(1, 12),
)
def test_packing_undoes_unpacking(name, width, height):
    layout = layout_of(name)
    fmt = layout.format
    rng = np.random.default_rng(width)
    count = 1 if fmt.family == "gray" else 3
    shapes = [(height, width), *[fmt.chroma_size(height, width)] * 2][:count]
    planes = tuple(rng.integers(0, fmt.maximum + 1, s).astype(fmt.dtype) for s in shapes)
    alpha = rng.integers(0, fmt.maximum + 1, (height, width)).astype(fmt.dtype)
    color = resolve_color(ColorTags(), fmt, height)
    frame = Frame(planes, fmt, color, Fraction(1), 0, alpha=alpha if fmt.alpha else None)
    got, got_alpha = unpack(pack(frame, name), layout)
    for a, b in zip(got, planes, strict=True):
        np.testing.assert_array_equal(a, b)
    if fmt.alpha:
        np.testing.assert_array_equal(got_alpha, alpha)


@pytest.mark.parametrize("name", ["yuyv422", "uyvy422", "nv12", "nv21", "p010le", "nv16", "pal8"])
def test_unpacking_agrees_with_swscale(name):
    source = "yuv444p" if name != "pal8" else "bgr8"
    rng = np.random.default_rng(5)
    picture = av.VideoFrame(32, 16, source)
    for plane in picture.planes:
        rows = np.frombuffer(plane, np.uint8)
        rows[:] = rng.integers(0, 256, rows.size)
    if name == "pal8":
        index = rng.integers(0, 256, (16, 32)).astype(np.uint8)
        palette = rng.integers(0, 256, (256, 4)).astype(np.uint8)
        palette[:, 0] = 255
        packed = av.VideoFrame.from_ndarray((index, palette), format="pal8")
    else:
        packed = picture.reformat(format=name)
    layout = layout_of(name)
    planes, _ = unpack(packed, layout)
    if name == "pal8":
        for plane, channel in zip(planes, (1, 2, 3), strict=True):
            np.testing.assert_array_equal(plane, palette[:, channel][index])
        return
    planar = packed.reformat(format=layout.format.name)
    expected, _ = unpack(planar, layout_of(layout.format.name))
    for a, b in zip(planes, expected, strict=True):
        np.testing.assert_array_equal(a, b)
