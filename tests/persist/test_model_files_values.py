"""The encoder behind model files: any nested value of the known kinds comes back as it was; others are refused."""

from __future__ import annotations

import datetime
import math
import uuid
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import sparse
from test_model_files import assert_same

from gapview import Views
from gapview.errors import InputTypeError
from gapview.persist.consistency import fits
from gapview.persist.registry import KINDS, RECORDS, VIEWS_PARTS, Decoder, Encoder
from gapview.scaling import Scaling
from gapview.utils.packing import from_json, to_json


def round_trip(value):
    encoder = Encoder()
    state = from_json(to_json([encoder.encode(value, "value"), encoder.entries, encoder.objects]))
    blocks = [np.array(block) for block in encoder.blocks]
    return Decoder(state[1], blocks, state[2]).decode(state[0])


def turned(draw, array):
    """The same values in another layout."""
    axes = draw(st.permutations(range(array.ndim)))
    steps = [draw(st.sampled_from([1, -1, 2])) for _ in axes]
    return array.transpose(axes)[tuple(slice(None, None, step) for step in steps)]


def as_objects(items):
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


TYPES = st.one_of(
    npst.boolean_dtypes(),
    npst.integer_dtypes(endianness="?"),
    npst.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    npst.complex_number_dtypes(endianness="?", sizes=(64, 128)),
    npst.datetime64_dtypes(endianness="?"),
    npst.timedelta64_dtypes(endianness="?"),
    npst.unicode_string_dtypes(endianness="?", max_len=5),
    npst.byte_string_dtypes(max_len=5),
)
ARRAYS = npst.arrays(TYPES, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
LAYOUTS = st.composite(lambda draw: turned(draw, draw(ARRAYS.filter(lambda array: array.ndim > 0))))()
ZONES = st.none() | st.sampled_from([datetime.UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")])
LEAVES_DRAWN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**300), 2**300),
    st.floats(),
    st.text(st.characters(codec=None), max_size=6),  # half characters, too
    st.binary(max_size=4),
    st.complex_numbers(),
    st.dates(),
    st.datetimes(timezones=ZONES),
    st.timedeltas(),
    st.uuids(),
    st.decimals(allow_nan=False),
    ARRAYS,
    LAYOUTS,
    ARRAYS.filter(lambda array: array.size and array.dtype.itemsize)
    .map(lambda array: array.ravel()[0])
    .filter(lambda scalar: scalar.dtype.itemsize > 0),
)
KEYS = st.text(max_size=3) | st.integers() | st.tuples(st.text(max_size=2), st.floats(allow_nan=False))
VALUES = st.recursive(
    LEAVES_DRAWN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
        st.lists(inner, max_size=3).map(as_objects),
        st.builds(Scaling, inner, inner, inner, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=250)
@given(VALUES)
def test_any_nested_value_comes_back(value):
    assert_same(value, round_trip(value))


@settings(max_examples=100)
@given(
    npst.arrays(
        st.sampled_from([np.float32, np.float64, np.int8, bool]), st.tuples(st.integers(0, 5), st.integers(0, 5))
    ),
    st.sampled_from(["csr", "csc", "coo"]),
    st.booleans(),
    st.sampled_from([np.int32, np.int64]),
)
def test_sparse_matrices_come_back(dense, layout, is_array, positions):
    matrix = getattr(sparse, f"{layout}_{'array' if is_array else 'matrix'}")(dense)
    names = ("row", "col") if layout == "coo" else ("indices", "indptr")
    for name in names:
        setattr(matrix, name, getattr(matrix, name).astype(positions)[::1])
    again = round_trip(matrix)
    assert_same(matrix, again)
    assert type(again) is type(matrix)
    assert_same(again.toarray(), matrix.toarray())


def test_unsorted_double_and_spare_entries_stay():
    matrix = sparse.csr_array((np.arange(4.0), np.array([2, 0, 0, 1]), np.array([0, 3, 4])), shape=(2, 3))
    assert_same(matrix, round_trip(matrix))
    spare = sparse.csr_array((np.arange(4.0), np.array([2, 0, 0, 1]), np.array([0, 3, 4])), shape=(2, 3))
    spare.data, spare.indices = np.append(spare.data, 9.0), np.append(spare.indices, 9)
    assert_same(round_trip(spare), matrix)


def test_gaps_are_closed_and_layouts_kept():
    square = np.arange(16.0).reshape(4, 4)
    for array in (square[:, ::2], square[::2], square.T[::-1], np.broadcast_to(square[0], (3, 4))):
        again = round_trip(array)
        assert_same(array, again)
        assert np.sign(again.strides).tolist() == np.where(np.sign(array.strides) < 0, -1, 1).tolist()
        assert again.flags.writeable


@pytest.mark.parametrize("wrap", [list, tuple, dict, as_objects, lambda inner: Scaling("a", *inner, None, None)])
def test_what_can_be_written_can_be_read_however_deep(wrap):
    value = deepest = 1
    for _ in range(60):
        value = {"key": value} if wrap is dict else wrap([value])
        try:
            Encoder().encode(value, "value")
        except InputTypeError:
            break
        deepest = value
    assert deepest is not value
    assert_same(deepest, round_trip(deepest))


def test_an_array_that_is_there_twice_is_kept_once():
    array, names = np.arange(1000), as_objects(["a", "b"])
    encoder = Encoder()
    encoder.encode([array, (array, names), names], "value")
    assert (len(encoder.blocks), len(encoder.objects)) == (1, 1)
    one, (two, three), four = round_trip([array, (array, names), names])
    assert one is two
    assert three is four


def test_dates_of_pandas():
    pd = pytest.importorskip("pandas")
    moments = [
        pd.Timestamp("2020-02-28T01:02:03.123456789"),
        pd.Timestamp("1066-10-14").as_unit("s"),
        # The hour that comes twice, the first and the second time
        pd.Timestamp("2020-10-25 00:30", tz="UTC").tz_convert("Europe/Berlin"),
        pd.Timestamp("2020-10-25 01:30", tz="UTC").tz_convert("Europe/Berlin"),
        pd.Timestamp("2020-06-01", tz=datetime.timezone(datetime.timedelta(hours=5, minutes=30))),
        pd.Timedelta(3, "h"),
        pd.Period("2020-03", freq="Q"),
        pd.Interval(0.5, 2, closed="both"),
    ]
    for moment in moments:
        again = round_trip(moment)
        assert_same(moment, again)
        for part in ("unit", "tz", "freqstr", "closed"):
            assert getattr(again, part, None) == getattr(moment, part, None)


def test_what_is_not_known_is_refused_by_name():
    @dataclass(frozen=True)
    class Foreign:
        part: int = 1

    Pair = namedtuple("Pair", "a b")
    endless = []
    endless.append(endless)
    holds_itself = np.empty(1, dtype=object)
    holds_itself[0] = [holds_itself]
    foreign = [
        *(Foreign(), len, object(), Pair(1, 2), OrderedDict(), {1, 2}, range(3), slice(2), Foreign, np, iter([])),
        *(np.eye(2).view(np.recarray), np.ma.masked_array([1]), np.zeros(2, dtype="i4,f4"), np.longdouble(1)),
        *(sparse.lil_array((2, 2)), np.random.default_rng(0), np.random.RandomState(np.random.PCG64(0))),
        *(endless, holds_itself, datetime.datetime(2020, 1, 1, tzinfo=Nowhere())),
    ]
    for value in foreign:
        with pytest.raises(InputTypeError, match=r"model\.graph"):
            Encoder().encode([value], "model.graph")
    with pytest.raises(InputTypeError, match=r"model\.scale\['b'\]"):
        Encoder().encode({"a": 1, "b": len}, "model.scale")
    with pytest.raises(InputTypeError, match=r"model\.scaling_\.center"):
        Encoder().encode(Scaling("a", len, None, None), "model.scaling_")


class Nowhere(datetime.tzinfo):
    def utcoffset(self, moment):
        return None


def test_names_in_files_mean_one_thing_each():
    assert not {*KINDS, "int", "float", "dict", "array", "objects"} & set(RECORDS)
    held = {"matrices" if name == "_held" else name for name in vars(Views([np.eye(2)]))}
    assert held == set(VIEWS_PARTS)


def test_hints():
    assert fits(1, float)
    assert fits(np.float32(1), float)
    assert fits(("a", None), tuple[str | None, ...])
    assert fits({"a": [1]}, dict[str, list[int]])
    assert fits((1, "a"), tuple[int, str])
    for value, hint in [
        (True, int),
        (1.5, int),
        ("a", float),
        ([1], tuple[int, ...]),
        ({1: 2}, dict[str, int]),
        ((1,), tuple[int, str]),
        (None, str),
        ([1], np.ndarray),
    ]:
        assert not fits(value, hint)


def test_numbers_that_json_does_not_know():
    for value in (
        math.inf,
        -math.inf,
        math.nan,
        -0.0,
        2**63,
        -(2**63) - 1,
        10**5000,
        Decimal("1.50"),
        uuid.UUID(int=3),
    ):
        again = round_trip(value)
        assert_same(value, again)
        assert str(again) == str(value) if not isinstance(value, int) else again == value
