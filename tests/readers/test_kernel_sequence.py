"""The repetition of a kernel sequence: its length, where it begins, and where there is none."""

import numpy as np
import pytest

from nsw.readers.timeline.iterations import find_repetitions


def found(sequence, pauses=()):
    """The heads and the end of the repetitions; kernels last 10 ns, 1 ns apart, `pauses` are longer ones by index."""
    names = np.array(sequence)
    gaps = np.ones(len(names), np.int64)
    for at in pauses:
        gaps[at] = 500
    starts = np.cumsum(gaps + 10)
    result = find_repetitions(names, starts, np.full(len(names), 10))
    return None if result is None else (result[0].tolist(), result[1])


LAYERS = [*[1, 2, 3] * 6, *[4, 5, 6, 7] * 6, 8, 9]  # six equal layers forward and backward, then an optimizer


def test_a_loop_behind_set_up_begins_after_its_pauses():
    setup = [90, 91, 92, 90]
    length = len(LAYERS)
    heads = [len(setup) + length * n for n in range(12)]
    # the optimizer's last kernel and its first are the only ones that occur once: the pause is before the step
    assert found(setup + LAYERS * 12, heads)[0] != []
    marked = [50, *LAYERS]
    heads = [len(setup) + len(marked) * n for n in range(12)]
    assert found(setup + marked * 12, heads) == (heads, len(setup) + len(marked) * 12)


def test_equal_layers_are_not_taken_for_iterations():
    heads, _ = found(LAYERS * 20)
    assert set(np.diff(heads).tolist()) == {len(LAYERS)}


def test_a_phase_before_it_that_fits_a_multiple_does_not_make_it_longer():
    """A third of the kernels repeats at 12 times the loop's length."""
    phase = np.random.default_rng(1).integers(100, 120, 12 * 31).tolist()
    heads, _ = found([*phase * 13, *list(range(31)) * 300])
    assert np.diff(heads).tolist() == [31] * (len(heads) - 1)
    assert len(heads) == 300


def test_a_kernel_more_in_some_iterations_moves_nothing():
    step = [50, 1, 2, 3, 2, 4]
    sequence, heads = [], []
    for n in range(30):
        heads.append(len(sequence))
        sequence += [*step, *([77] if n % 10 == 9 else [])]
    assert found(sequence, heads)[0] == heads


def test_one_kernel_again_and_again_is_an_iteration_each():
    assert found([7] * 50) == (list(range(50)), 50)


def test_where_every_kernel_occurs_twice_the_blocks_count():
    heads, behind = found([1, 2, 1, 3, 2, 3] * 15)
    assert set(np.diff(heads).tolist()) == {6}
    assert behind - heads[0] >= 0.5 * 90


@pytest.mark.parametrize("sequence", [[], [1], list(range(200)), [1, 2, 3, 4] * 3, [*range(400), *[900, 901] * 20]])
def test_no_repetition_is_made_up(sequence):
    assert found(sequence) is None


@pytest.mark.parametrize("seed", range(5))
def test_random_sequences_do_not_repeat(seed):
    assert found(np.random.default_rng(seed).integers(0, 30, 3000)) is None


def test_a_long_repetition_is_found_too():
    step = np.random.default_rng(1).integers(0, 200, 9000).tolist()
    heads, _ = found(step * 8)
    assert set(np.diff(heads).tolist()) == {9000}


def test_a_repetition_that_is_cut_short_at_the_end_is_left_out():
    step = [50, 1, 2, 3, 4, 5]
    heads, behind = found(step * 20 + step[:3], [6 * n for n in range(21)])
    assert (len(heads), behind) == (20, 120)
