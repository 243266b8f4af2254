"""Times, sizes and bandwidths with units: read exactly, told apart, or refused."""

import contextlib
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.config import ConfigError, load_config
from pushcen.errors import OptionError
from pushcen.units import RATES, SIZES, TIMES, Measured, read_bandwidth, read_size, read_time, time_unit_of

READ = {"time": (read_time, TIMES), "size": (read_size, SIZES), "bandwidth": (read_bandwidth, RATES)}
# by hand, not by the table that is tested
BY_HAND = {
    "us": "0.000001", "ms": "0.001", "s": "1", "min": "60", "h": "3600", "d": "86400",
    "B": "1", "kB": "1000", "KB": "1000", "MB": "1000000", "GB": "1000000000", "TB": "1000000000000",
    "KiB": "1024", "MiB": "1048576", "GiB": "1073741824", "TiB": "1099511627776",
    "bit": "0.125", "kbit": "125", "Mbit": "125000", "Gbit": "125000000", "Tbit": "125000000000",
    "kbps": "125", "Mbps": "125000", "Gbps": "125000000", "Tbps": "125000000000",
}  # fmt: skip
NUMBERS = st.one_of(
    st.integers(0, 10**12).map(str),
    st.decimals(0, 10**9, places=3).map(str),
    st.floats(0, 1e200, allow_subnormal=False).map(repr),
)


def test_every_unit_is_as_large_as_by_hand():
    for units in (TIMES, SIZES):
        assert {unit: Fraction(BY_HAND[unit]) for unit in units} == units
    for unit, factor in RATES.items():
        size, _, time = unit.partition("/")
        assert factor == Fraction(BY_HAND[size]) / Fraction(BY_HAND[time] if time else 1)


@given(st.sampled_from(sorted(READ)), NUMBERS, st.data())
def test_what_is_written_is_read_exactly_with_any_spaces(what, number, data):
    read, units = READ[what]
    unit = data.draw(st.sampled_from(sorted(units)))
    spaces = data.draw(st.lists(st.sampled_from(["", " ", "  ", "\t"]), min_size=4, max_size=4))
    written = spaces[0] + number + spaces[1] + unit.replace("/", f"{spaces[2]}/{spaces[3]}") + spaces[0]
    assert read(written) == Fraction(Decimal(number)) * units[unit]


@given(NUMBERS, st.sampled_from(sorted(TIMES)), st.sampled_from(sorted(TIMES)))
def test_a_time_in_units_of_pseudo_time_is_the_nearest_float(number, unit, one):
    time_unit = time_unit_of(f"1 {one}")
    exact = Fraction(Decimal(number)) * Fraction(BY_HAND[unit]) / Fraction(BY_HAND[one])
    assert Measured("time").number(f"{number} {unit}", time_unit) == float(exact)


NONSENSE = [
    "", " ", "5", "s", "MB/s", "-1 s", "-1 MB", "-1 MB/s", "nan s", "inf s", "infinity MB", "nan MB/s", "1e9999 s",
    "0x10 s", "1_000 s", "1,5 s", "5 m", "5 M", "5 S", "5 sec", "5 Min", "5 mb", "5 Mb", "5 mB", "5 Mib", "5 MIB",
    "5 Mb/s", "5 mbps", "5 MBps", "5 MB/m", "5 MB//s", "5 MB/s/s", "5 s s", "5 5 s", "\u0665 s", "5 s\n5 s",
    "9" * 99 + " s", "5 s" + " " * 100, "\x00 s",
]  # fmt: skip


@pytest.mark.parametrize("what", READ)
@pytest.mark.parametrize("text", NONSENSE)
def test_what_may_mean_two_things_or_none_is_refused(what, text):
    with pytest.raises(OptionError, match=r"must be a"):
        READ[what][0](text)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    for read, _ in READ.values():
        with contextlib.suppress(OptionError):
            assert read(text) >= 0


def test_one_kind_is_not_taken_for_another():
    for what, text in {"time": "1 MB", "size": "1 s", "bandwidth": "1 MB"}.items():
        with pytest.raises(OptionError):
            READ[what][0](text)


def test_a_config_takes_units_where_the_world_says_what_one_unit_of_time_is():
    config = load_config(
        {
            "time_unit": "1 min",
            "horizon": "2 h",
            "network": {"latency": "200 ms", "bandwidth": "10 MB/s"},
            "participation": {"churn": 0.5, "stay": "0.5 h"},
            "compute": {"per_step": "6 s"},
            "evaluation": {"every": "10 min"},
            "checkpoint": {"seconds": "2 min"},
            "runtime": {"push_timeout": "1 min", "memory_mb": "1.5 GB"},
        },
        {"network.jitter": "3 s"},
    )
    assert config.horizon == 120.0
    assert (config.network.latency, config.network.bandwidth, config.network.jitter) == (0.2 / 60, 6e8, 0.05)
    assert (config.participation.stay, config.compute.per_step, config.evaluation.every) == (30.0, 0.1, 10.0)
    assert (config.checkpoint.seconds, config.runtime.push_timeout, config.runtime.memory_mb) == (120.0, 60.0, 1430)
    again = load_config(config.plain())
    assert again == config
    assert again.identity() == config.identity()
    plain = {**config.plain(), "network": {**config.plain()["network"], "latency": 0.2 / 60}}
    assert load_config(plain).identity() == config.identity()


def test_without_a_unit_of_time_a_unit_is_refused_and_says_what_is_missing():
    with pytest.raises(ConfigError) as caught:
        load_config({"horizon": "2 h", "network": {"latency": "200 ms", "loss": 2, "bandwidth": "10 Mb/s", "los": 1}})
    said = str(caught.value).splitlines()
    assert said[0].startswith("horizon = '2 h': needs time_unit, which says how long a unit of pseudo-time is")
    assert said[1].startswith("network.latency = '200 ms': needs time_unit")
    assert said[2].startswith("network.bandwidth = '10 Mb/s': must be a number, or a bandwidth such as '10 MB/s'")
    assert said[3].startswith("network.los = 1: no such key")
    assert load_config({"checkpoint": {"seconds": "2 min"}}).checkpoint.seconds == 120.0
    with pytest.raises(ConfigError, match=r"network.loss = '10 %': must be a number$"):
        load_config({"network": {"loss": "10 %"}})


@pytest.mark.parametrize("unit", ["0 s", "1", "1 MB", "fast", "1e300 d", "1e-300 s"])
def test_a_unit_of_time_that_is_none_is_refused(unit):
    with pytest.raises(ConfigError, match=r"time_unit = "):
        load_config({"time_unit": unit})
    with pytest.raises(ConfigError, match=r"time_unit = .*"):
        load_config({"time_unit": unit, "horizon": "2 h"})


def test_a_number_in_a_flag_stays_a_number():
    from pushcen.config import Text

    config = load_config({"time_unit": "1 s"}, {"horizon": Text("12"), "network.latency": Text("200 ms")})
    assert (config.horizon, config.network.latency) == (12.0, 0.2)
    assert load_config({}, {"horizon": Text(".5")}).horizon == 0.5


def test_the_identity_of_a_config_without_units_has_no_new_meaning():
    assert load_config({}).identity()["time_unit"] == ""
    assert load_config({"time_unit": "1 s"}).identity() != load_config({}).identity()
