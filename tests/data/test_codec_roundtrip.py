import numpy as np
import pytest

from restore.data.compress import Compress
from restore.io.codec_roundtrip import encode_decode


def moving(texture, frames=6, size=(96, 112)):
    picture = texture(200, 260)
    return np.stack(
        [picture[2 * i : 2 * i + size[0], 3 * i : 3 * i + size[1]] for i in range(frames)]
    )


def rms(a, b):
    return float(np.sqrt(np.mean((a.astype(np.float64) - b) ** 2)))


@pytest.mark.parametrize("codec", ["libx264", "libx265"])
def test_quality_sets_error_and_size(texture, codec):
    clip = moving(texture)
    good, bad = (encode_decode(clip, codec, crf=crf) for crf in (12, 38))
    assert good.frames.shape == clip.shape
    assert good.frames.dtype == np.uint8
    assert good.bits > 1.5 * bad.bits
    assert rms(good.frames, clip) < rms(bad.frames, clip)
    # Frames come back in their order: each is nearest to the one that went in.
    near = [np.argmin([rms(f, c) for c in clip]) for f in good.frames]
    assert near == list(range(len(clip)))


def test_lossless_luma(texture):
    grey = np.repeat(moving(texture)[..., :1], 3, -1)
    trip = encode_decode(grey, crf=0, pix_fmt="yuv444p")
    assert rms(trip.frames, grey) < 0.8  # what limited range costs in 8 bits


def test_colours_go_through_one_matrix_both_ways():
    clip = np.zeros((3, 64, 64, 3), np.uint8)
    clip[:] = (200, 60, 30)
    back = encode_decode(clip, crf=5).frames
    assert np.abs(back.astype(int) - clip).max() <= 3


@pytest.mark.parametrize("codec", ["libx264", "libx265"])
def test_brightness_stays(texture, codec):
    clip = moving(texture)
    back = encode_decode(clip, codec, crf=5).frames.astype(np.float64)
    # Swscale's own way to RGB takes a level from each channel, and a network learns to add it.
    assert np.abs((back - clip).mean((0, 1, 2))).max() < 0.5


def test_rate_is_followed_roughly(texture):
    rng = np.random.default_rng(0)
    clip = moving(texture, 12)
    clip = np.clip(clip + rng.normal(0, 8, clip.shape), 0, 255).astype(np.uint8)
    low, high = (
        encode_decode(clip, bitrate=int(bpp * 96 * 112 * 25)).bits_per_pixel for bpp in (0.2, 0.8)
    )
    assert 2 < high / low < 8


@pytest.mark.parametrize("codec", ["libx264", "libx265"])
@pytest.mark.parametrize("size", [(33, 47), (16, 16), (1, 7)])
def test_any_size_and_one_frame(texture, codec, size):
    clip = moving(texture, 1, size)
    assert encode_decode(clip, codec, crf=20).frames.shape == clip.shape


def test_bad_arguments(texture):
    clip = moving(texture, 2)
    with pytest.raises(ValueError, match="either"):
        encode_decode(clip)
    with pytest.raises(ValueError, match="either"):
        encode_decode(clip, crf=20, bitrate=1000)
    with pytest.raises(ValueError, match="codec"):
        encode_decode(clip, "mpeg9", crf=20)
    with pytest.raises(ValueError, match="uint8"):
        encode_decode(clip.astype(np.float32), crf=20)


def test_compress_keeps_place_and_order(texture):
    clip = moving(texture).astype(np.float32) / 255
    rng = np.random.default_rng(0)
    for step in (
        Compress(crf=10),
        Compress(crf=10, offset=(5, 11)),
        Compress(crf=10, reverse=True),
        Compress(bits_per_pixel=3.0, offset=(3, 1), reverse=True),
    ):
        out = step(clip, rng)
        assert out.shape == clip.shape
        assert out.dtype == np.float32
        assert rms(out, clip) < 0.3 * rms(out, clip[::-1])
        for axis in (1, 2):  # the padding was cut off again where it was put on
            assert rms(out, clip) < rms(out, np.roll(clip, 1, axis))
    a, b = Compress(crf=30)(clip, rng), Compress(crf=30, reverse=True)(clip, rng)
    assert rms(a, b) > 0


def test_the_same_clip_is_encoded_the_same_way(texture):
    rng = np.random.default_rng(0)
    for seed in range(60):
        picture = texture(72, 72, seed=seed)
        clip = np.stack([picture[i : i + 64, i : i + 64] for i in range(4)])
        clip = np.clip(clip + rng.normal(0, 6, clip.shape), 0, 255).astype(np.uint8)
        first, second = (encode_decode(clip, crf=22) for _ in range(2))
        np.testing.assert_array_equal(first.frames, second.frames)
