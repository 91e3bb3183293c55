"""Numbers as text, to the last bit, and what JSON has no text for."""

import json
import math

import numpy as np
import pytest

import formats
import wire
from wire import target

@pytest.mark.parametrize(
    "dtype, text, value",
    [
        # Each lies just above the middle of two numbers: reading by way of a longer type
        # rounds it onto the middle, and then the wrong way.
        ("f32", "1.000000059604644775390625000000000000000000001", 1 + 2**-23),
        ("f16", "1.00048828125000000000000000000001", 1 + 2**-10),
        ("bf16", "1.00390625000000000000000000001", 1 + 2**-7),
        ("bf16", "1.00390625", 1.0),
        ("bf16", "1.01171875", 1 + 2**-6),
        ("f64", "1.00000000000000011102230246251565404236316680908203126", 1 + 2**-52),
        ("f16", "65519.999", 65504),
        ("f16", "0.00000006", 2.0**-24),
        ("f32", "1e-46", 0.0),
        ("f32", "3.4028235e38", float(np.finfo(np.float32).max)),
        ("f64", "5e-324", 5e-324),
        ("f64", "1e-400", 0.0),
        ("f32", "-0.0", -0.0),
        ("f32", "1E+2", 100.0),
    ],
)
def test_text_is_rounded_once(daemon, dtype, text, value):
    body = '{"shape": [1, 1], "dtype": "%s", "data": [%s]}' % (dtype, text)
    got = formats.decode(daemon.post("/v1/transpose", body, {"Accept": wire.RAW}), dtype)
    assert formats.same_bits(got, formats.narrow(np.array([[value]], np.float64), dtype))


@pytest.mark.parametrize(
    "dtype, values",
    [
        ("i64", [-(2**63), 2**63 - 1, 2**53 + 1, -1]),
        ("u64", [2**64 - 1, 2**63, 0, 1]),
        ("i8", [-128, 127, 0, -1]),
        ("u16", [0, 65535, 1, 2]),
        ("bool", [True, False, False, True]),
    ],
)
def test_integers_in_json_are_exact(daemon, dtype, values):
    body = json.dumps({"shape": [1, 4], "dtype": dtype, "data": values})
    reply = daemon.post("/v1/transpose", body).ok().json()
    assert reply["data"] == [[value] for value in values]
    assert [type(row[0]) for row in reply["data"]] == [type(value) for value in values]


def shortest_length(element):
    """Of what NumPy writes with the fewest digits that tell the number from its neighbours."""
    write = (np.format_float_scientific, np.format_float_positional)
    return min(len(form(element, unique=True, trim="-")) for form in write)


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "bf16"])
def test_json_numbers_are_the_shortest_that_read_back(daemon, rng, dtype):
    bits = formats.random_bits(rng, dtype, (1, 4000))
    bits = bits[np.isfinite(formats.widen(bits, dtype))].reshape(1, -1)
    headers = {"Accept": wire.JSON, "Content-Type": wire.NPY}
    body = formats.encode("npy", dtype, bits)
    reply = daemon.post(target("/v1/transpose", **body.parameters), body.data, headers).ok()
    assert formats.same_bits(formats.decode(reply, dtype), bits.T)
    document = json.loads(reply.body, parse_float=str, parse_int=str)
    if dtype != "bf16":  # NumPy knows no shortest digits for it
        for (text,), element in zip(document["data"], bits[0]):
            assert len(text) <= shortest_length(element), (text, element)


# NaN and infinity.


def test_nan_bits_survive_a_transpose(daemon):
    bits = np.array([[0x7FC00001, 0xFFC12345], [0x7F800001, 0x80000000]], np.uint32)
    reply = daemon.post("/v1/transpose", formats.npy(bits.view("<f4")))
    assert np.array_equal(formats.read_npy(reply, "f32").view(np.uint32), bits.T)


OVERFLOWING = b'{"a": [[1e38, 1]], "b": [[10], [1]], "dtype": "f32"}'


def test_json_cannot_carry_infinity(daemon):
    reply = daemon.post("/v1/matmul", OVERFLOWING)
    assert (reply.status, reply.code) == (422, "nonfinite_in_json")
    assert "nonfinite=null" in reply.json()["detail"] and "npy" in reply.json()["detail"].lower()


def test_json_with_null_for_what_it_cannot_carry(daemon):
    array = np.array([[math.nan, 1.5], [math.inf, -math.inf]], "<f4")
    path = "/v1/transpose?nonfinite=null"
    reply = daemon.post(path, formats.npy(array), {"Accept": wire.JSON}).ok().json()
    assert reply["data"] == [[None, None], [1.5, None]]
    document = json.loads(OVERFLOWING)
    document["nonfinite"] = "null"
    assert daemon.post("/v1/matmul", json.dumps(document)).ok().json()["data"] == [[None]]


def test_other_forms_carry_infinity(daemon):
    for accept in (wire.NPY, wire.RAW):
        reply = daemon.post("/v1/matmul", OVERFLOWING, {"Accept": accept})
        assert np.isposinf(formats.decode(reply, "f32")).all()
