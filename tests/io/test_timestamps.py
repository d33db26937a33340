from itertools import pairwise
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from restore.io.timestamps import Timestamps


def run(stamps, step=10):
    pictures = [SimpleNamespace(pts=s, dts=None, number=i) for i, s in enumerate(stamps)]
    times = Timestamps(lambda picture: step)
    out = list(times.stamp(iter(pictures)))
    assert [p.number for p, _ in out] == list(range(len(stamps)))
    return [t for _, t in out], times


@given(st.lists(st.one_of(st.none(), st.integers(-1000, 1000)), max_size=60))
def test_stamps_always_increase(stamps):
    got, _ = run(stamps)
    assert all(a < b for a, b in pairwise(got))


@given(st.sets(st.integers(-1000, 1000), max_size=60))
def test_good_stamps_are_left_alone(stamps):
    assert run(sorted(stamps))[0] == sorted(stamps)


def test_b_frames_stamped_out_of_order_are_sorted():
    assert run([1, 2, 4, 3, 5, 7, 6, 8])[0] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_leading_gap_is_counted_backwards():
    assert run([None, None, 20, 30])[0] == [0, 10, 20, 30]


def test_inner_gap_follows_the_step():
    assert run([0, 10, None, 30, None])[0] == [0, 10, 20, 30, 40]


def test_all_missing_start_at_zero():
    assert run([None] * 40)[0] == [10 * i for i in range(40)]


def test_jump_back_is_bridged():
    first = [100 + 10 * i for i in range(10)]
    got, times = run([*first, *first])
    assert got == [100 + 10 * i for i in range(20)]
    assert times.jumps == 1


def test_equal_stamps_move_by_one_tick():
    got, times = run([0, 10, 10, 20])
    assert got == [0, 10, 11, 20]
    assert times.moved == 1
