"""Every option of restore-denoise is read into the units of the library, or refused in one line."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restore.cli import arguments
from restore.cli.denoise import main, make_parser


def parse(*argv: str):
    return make_parser().parse_args(["in.mp4", "out.mp4", *argv])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("80", 80),
        ("1:20", 80),
        ("0:01:20.5", Fraction(161, 2)),
        ("01:20", 80),
        ("2:00:00", 7200),
        (".04", Fraction(1, 25)),
        ("0", 0),
        ("1:90", 150),
    ],
)
def test_clock(text, seconds):
    assert arguments.clock(text) == seconds


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999_999))
def test_clock_is_exact(hours, minutes, seconds, micro):
    text = f"{hours}:{minutes:02d}:{seconds:02d}.{micro:06d}"
    want = hours * 3600 + minutes * 60 + seconds + Fraction(micro, 1_000_000)
    assert arguments.clock(text) == want


def test_sigma_is_given_in_8_bit_units():
    assert parse("--sigma", "25.5").sigma == pytest.approx(0.1)
    assert parse("--sigma", "auto").sigma is None
    assert parse().sigma is None


def test_files_and_options_may_be_mixed():
    args = make_parser().parse_files(["in.mp4", "--no-audio", "-", "--no-subs", "--", "-x"])
    assert args.files == ["in.mp4", "-", "-x"]
    assert args.leave_out == ["audio", "subtitle"]
    assert parse().leave_out == []  # nothing stays from the run before


def test_encoder_options_add_up():
    args = parse("--enc", "preset=slow", "--enc", "x265-params=a=1:b=2")
    assert dict(args.encoder_options) == {"preset": "slow", "x265-params": "a=1:b=2"}
    assert parse().encoder_options == []  # nothing stays from the run before


@pytest.mark.parametrize(
    "argv",
    [
        ("--sigma", "loud"),
        ("--sigma", "-1"),
        ("--sigma", "nan"),
        ("--strength", "inf"),
        ("--strength", "3"),
        ("--start", "1:2:3:4"),
        ("--start", "-5"),
        ("--duration", "0"),
        ("--enc", "slow"),
        ("--enc", "=slow"),
        ("--tile", "7"),
        ("--tile", "1e3"),
        ("--preset", "slow"),
        ("--runtime", "tensorrt"),
        ("--no-such-option",),
        ("--deinterlace", "maybe"),
        ("--max-pixels", "0"),
    ],
)
def test_mistakes_take_one_line_and_exit_code_2(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(*argv)
    assert caught.value.code == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith("restore-denoise: ")


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["in.mp4"],
        ["1.mp4", "2.mp4", "3.mp4"],
        ["--demo", "folder", "in.mp4"],
        ["--out-dir", "x"],
    ],
)
def test_wrong_number_of_files(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
