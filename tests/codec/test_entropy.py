"""Levels come back as they were, near their entropy, and no stream that was changed is taken for one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pushcen.codec import entropy


def coded(levels, count):
    frequencies = entropy.frequencies(np.bincount(levels, minlength=count))
    per, state = entropy.group(count, levels.size), entropy.state_bits(levels.size)
    decode, *encode = entropy.tables(frequencies, per, state)
    words = np.empty(entropy.most_words(levels.size, count), np.uint32)
    at, first = entropy.encode(levels, count, per, state, *encode, words)
    return np.append(words[at:], np.zeros(entropy.SPARE, np.uint32)), first, decode, per, state


def read(words, first, decode, per, state, count, size):
    return walk(words, first, decode, per, state, count, size)[0][:size]


def walk(words, first, decode, per, state, count, size):
    """Decode one bit string by hand, a symbol at a time, as the tables' definition says; say how it ends."""
    bits = "".join(f"{word:032b}"[::-1] for word in words.tolist())
    at, states, levels = first, [], []

    def take(number):
        nonlocal at
        at += number
        return int("0" + bits[at - number : at][::-1], 2)

    states.extend(take(state) for _ in range(4))
    for symbol in range(-(-size // per)):
        found = int(decode[states[symbol % 4]])
        states[symbol % 4] = (found >> 16) + take((found >> 8) & 255)
        levels.extend((found & 255) // count**k % count for k in range(per))
    return levels, at, states


@given(st.data())
@settings(max_examples=60)
def test_levels_come_back(data):
    count = data.draw(st.sampled_from([3, 5, 7, 9, 15]))
    some = st.lists(st.integers(0, count - 1), min_size=1, max_size=3000)
    levels = np.array(data.draw(some), np.uint8)
    words, first, decode, per, state = coded(levels, count)
    assert read(words, first, decode, per, state, count, levels.size) == levels.tolist()
    assert entropy.is_sound(words, words.size - 2, first, levels.size, count, per, state, decode)
    total = np.ones(levels.size, np.float32)
    values = np.arange(count, dtype=np.float32) * 2
    entropy.add(words, first, state, decode, entropy.values_of(values, per), total)
    assert total.tolist() == (values[levels] + 1).tolist()


@pytest.mark.parametrize("count", [3, 5, 7, 15])
@pytest.mark.parametrize("size", [40_000, entropy.LONG + 3])
@pytest.mark.parametrize("zeros", [0.9, 0.7, 0.3])
def test_a_block_takes_little_more_than_its_entropy(count, size, zeros):
    draw = np.random.default_rng(count)
    shares = 0.4 ** np.abs(np.arange(count) - count // 2)
    shares[count // 2] = 0
    shares *= (1 - zeros) / shares.sum()
    shares[count // 2] = zeros
    levels = draw.choice(count, size, p=shares).astype(np.uint8)
    words, first, decode, per, state = coded(levels, count)
    found = np.bincount(levels, minlength=count) / size
    found = found[found > 0]
    assert 32 * (words.size - 2) <= 1.03 * size * -(found * np.log2(found)).sum() + 96
    assert read(words, first, decode, per, state, count, 1000) == levels[:1000].tolist()


@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.sampled_from([3, 5, 15]))
@settings(max_examples=300)
def test_a_stream_is_sound_exactly_if_it_ends_as_every_encoder_begins(seed, kind, count):
    draw = np.random.default_rng(seed)
    levels = draw.integers(0, count, draw.integers(1, 400)).astype(np.uint8)
    if draw.integers(2):
        levels[draw.random(levels.size) < 0.97] = count // 2  # symbols that take no bits, some of them at the end
    words, first, decode, per, state = coded(levels, count)
    own, size = words.size - 2, levels.size
    if kind == 0:
        words[draw.integers(own)] ^= np.uint32(1 << draw.integers(32))
    elif kind == 1:
        words[:own] = draw.integers(0, 2**32, own)
    elif kind == 2:
        first = int(draw.integers(32))
    elif kind == 3:
        own = int(draw.integers(own))
    elif kind == 4:
        size = max(1, size + int(draw.integers(-6, 7)))
    elif kind == 5:
        words, own = np.insert(words, own, np.uint32(0)), own + 1
    found, at, states = walk(words, first, decode, per, state, count, size)
    ends = at == 32 * own and not any(states) and all(level == count // 2 for level in found[size:])
    assert entropy.is_sound(words[: own + 2], own, first, size, count, per, state, decode) == ends
    assert ends or kind < 6


@given(st.lists(st.integers(0, 10**6), min_size=3, max_size=15).filter(lambda counts: len(counts) % 2 and any(counts)))
def test_every_symbol_has_its_states_and_they_are_all_used(counts):
    frequencies = entropy.frequencies(np.array(counts, np.int64))
    assert frequencies.min() >= 1
    assert frequencies.sum() == 1 << entropy.PRECISION
    for size in (0, entropy.LONG):
        per, state = entropy.group(len(counts), size), entropy.state_bits(size)
        decode, states, _, _ = entropy.tables(frequencies, per, state)
        assert set(decode & 255) == set(range(len(counts) ** per))
        assert sorted(states) == list(range(1 << state, 2 << state))
