"""Progress: right numbers, quiet when asked, plain lines when nobody watches."""

import io

import pytest

from restore.cli.progress import ProgressDisplay, as_clock, describe


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (725, "12:05"), (3723, "1:02:03")]
)
def test_clock(seconds, text):
    assert as_clock(seconds) == text


def test_estimates_come_after_the_first_second():
    assert describe(5, 100, 0.9) == "5/100 frames"
    assert describe(25, 100, 5.0) == "25/100 frames, 5 fps, 0:15 left, 0:20 in all"
    assert describe(25, None, 5.0) == "25 frames, 5 fps"
    # The file promised fewer frames than it has: no negative time.
    assert describe(120, 100, 5.0) == "120/100 frames, 24 fps"
    assert describe(0, 100, 5.0) == "0/100 frames"


def run(stream, **options):
    seconds = iter(tick / 8 for tick in range(10_000))
    with ProgressDisplay(stream, now=lambda: next(seconds), **options) as progress:
        for done in range(1, 121):
            progress(done, 120)
    return stream.getvalue()


def test_plain_lines_are_few_and_without_control_characters():
    lines = run(io.StringIO()).splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["8/120", "48/120", "88/120"]
    assert "8 fps" in lines[0]
    assert not any(ord(char) < 32 for line in lines for char in line)


def test_quiet_prints_nothing():
    assert run(io.StringIO(), quiet=True) == ""
    assert run(Terminal(), quiet=True) == ""


def test_terminal_gets_a_bar_that_goes_away():
    told = run(Terminal())
    assert "120/120 frames" in told
    *_, cleared, after = told.split("\r")
    assert (cleared.strip(), after) == ("", ""), "the last thing that happens to the line"
