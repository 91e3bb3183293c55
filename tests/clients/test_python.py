"""The Python package, from its wheel, against a real daemon: what goes in, and what comes out."""

import asyncio
import copy
import inspect
import io
import pickle
import re
import sys
import time
import types
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor

import httpx
import ml_dtypes
import numpy as np
import pytest
import wheel

import gemmd

RNG = np.random.default_rng()


@pytest.fixture(scope="module")
def client(url):
    with gemmd.Client(url) as one:
        yield one


def test_it_is_the_wheel():
    assert gemmd.__file__.startswith(str(wheel.SITE))


# Element types and layouts.

MOVED = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16", "V1", "V4", "V16"]


@pytest.mark.parametrize("code", MOVED)
def test_moves_every_type(client, code):
    a = RNG.integers(0, 2, (5, 7)).astype("u1").astype(code) if code[0] != "V" else np.empty((5, 7), code)
    for got, expected in ((client.transpose(a), a.T), (client.flip(a), a[:, ::-1])):
        assert got.dtype == a.dtype and got.shape == expected.shape
        assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("code", ["f2", "f4", "f8", "i4", "i8"])
def test_computes(client, code):
    a, b, c = (RNG.integers(-4, 4, shape).astype(code) for shape in ((5, 7), (7, 3), (5, 3)))
    assert np.array_equal(client.matmul(a, b), a @ b)
    assert np.array_equal(client.matmul(a, b, c, alpha=2, beta=3), 2 * (a @ b) + 3 * c)
    assert np.array_equal(client.matmul(a.T, b, transa=True), a @ b)
    assert np.array_equal(client.matmul(a, b.T, transb=np.bool_(True)), a @ b)
    assert np.array_equal(client.add(c, c[:1]), c + c[:1])
    assert client.add(c, c).dtype == np.dtype(code)


def test_bfloat16(client):
    a = RNG.integers(-4, 4, (5, 7)).astype(ml_dtypes.bfloat16)
    product = client.matmul(a, a.T)
    assert product.dtype == ml_dtypes.bfloat16 and product.account.dtype == "bf16"
    assert np.array_equal(product.astype("f4"), a.astype("f4") @ a.astype("f4").T)
    assert client.flip(a).tobytes() == a[:, ::-1].tobytes()
    # Its bits, as integers.
    assert client.flip(a.view("u2"), dtype="bf16").dtype == client.flip(a.view("i2"), dtype="bf16").dtype == ml_dtypes.bfloat16
    assert np.array_equal(client.matmul(client.put(a, "bf"), a.T, client.put(np.ones((5, 5), a.dtype), "bf_c")).astype("f4"), a.astype("f4") @ a.astype("f4").T + 1)
    for name in ("bf", "bf_c"):
        client.delete(name)
    assert client.flip(a.view("u2")).dtype == np.uint16
    assert np.array_equal(client.add(a, 1).astype("f4"), a.astype("f4") + 1)


def test_types_that_numpy_lacks_are_moved(client):
    a = RNG.integers(-4, 4, (5, 7)).astype(ml_dtypes.float8_e4m3fn)
    flipped = client.flip(a)
    assert flipped.dtype == a.dtype and flipped.tobytes() == a[:, ::-1].tobytes()


def test_stacks_and_empty_matrices(client):
    a, b = RNG.random((4, 5, 6), "f4"), RNG.random((6, 3), "f4")
    assert np.allclose(client.matmul(a, b), a @ b, rtol=1e-5)
    assert np.array_equal(client.transpose(a), a.swapaxes(1, 2))
    assert client.matmul(a[:0], b).shape == (0, 5, 3)
    assert client.transpose(np.empty((0, 3))).shape == (3, 0)
    assert np.array_equal(client.matmul(np.empty((2, 0)), np.empty((0, 3))), np.zeros((2, 3)))


def test_vectors_and_numbers_as_in_numpy(client):
    m, s, v, w = RNG.random((3, 4)), RNG.random((2, 3, 4)), RNG.random(4), RNG.random(3)
    for a, b in ((m, v), (w, m), (v, v), (s, v), (w, s)):
        got, expected = client.matmul(a, b), np.matmul(a, b)
        assert got.shape == expected.shape and np.allclose(got, expected)
    assert np.allclose(client.matmul(m, v, w, beta=2), m @ v + 2 * w)
    assert np.allclose(client.matmul(w, m, v), w @ m + v)
    assert np.allclose(client.matmul(v, m.T, transa=True), v @ m.T)
    for true in (True, 1):
        assert np.allclose(client.matmul(m, v, transb=true), m @ v) and np.allclose(client.matmul(v, m.T, transa=true), v @ m.T)
    with pytest.raises(gemmd.RequestError, match="bad_shape"):
        client.matmul(m, v, np.float64(2))
    for a, b in ((v, v), (m, v), (m, 2.5), (v, 1), (np.float64(1), 2)):
        got = client.add(a, b)
        assert got.shape == np.add(a, b).shape and np.array_equal(got, np.add(a, b))
    assert np.array_equal(client.flip(v), v[::-1])
    assert np.array_equal(client.transpose(v), v[:, None])


@pytest.mark.parametrize("make", [np.asfortranarray, lambda a: a[::2, ::-1], lambda a: a.astype(">f8"),
                                  lambda a: np.broadcast_to(a[:1], a.shape), np.float64])
def test_any_layout(client, make):
    a = make(RNG.random((6, 8)))
    assert np.array_equal(client.transpose(a), np.asarray(a).T)
    assert client.flip(a).dtype == np.dtype("f8") and client.flip(a).flags.c_contiguous


def test_column_major_is_not_copied():
    a = np.asfortranarray(RNG.random((6, 8)))
    head, body = gemmd.arrays.npy(a)
    assert b"'fortran_order': True" in head and np.shares_memory(np.asarray(body), a)
    assert np.array_equal(np.load(io.BytesIO(head + body)), a)


class OnlyInterface:
    def __init__(self, array):
        self.kept, self.__array_interface__ = array, array.__array_interface__


class OnlyArray:
    def __init__(self, array):
        self.kept = array

    def __array__(self, dtype=None, copy=None):
        return self.kept


class OnlyDlpack:
    def __init__(self, array):
        self.kept = array

    def __dlpack__(self, **options):
        return self.kept.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.kept.__dlpack_device__()


class InGpuMemory(OnlyDlpack):
    def __dlpack__(self, **_):
        raise BufferError("it is on a GPU")


@pytest.mark.parametrize("wrap", [OnlyInterface, OnlyArray, OnlyDlpack, memoryview, np.ndarray.tolist])
def test_whatever_is_an_array(client, wrap):
    a = RNG.random((3, 4))
    assert np.array_equal(client.transpose(wrap(a)), a.T)


def test_lists_take_the_type_of_the_array_beside_them(client):
    a = np.ones((2, 2), "f4")
    assert client.add(a, [[1, 2], [3, 4]]).dtype == np.float32
    assert client.add([[1.5, 2]], a).dtype == np.float32
    assert client.add([[1, 2]], [[0.5, 1]]).dtype == np.float64
    assert client.add([[1, 2]], [[3, 4]], dtype=np.float32).dtype == np.float32
    assert client.transpose([[1, 2]], dtype="i32").dtype == np.int32
    assert client.add([[1, 2]], [[0.5, 1]]).tolist() == [[1.5, 3]] and client.add(a.astype(ml_dtypes.bfloat16), [[True, False]]).tolist() == [[2, 1], [2, 1]]
    assert gemmd.arrays.as_arrays([np.ones((1, 1), "c8"), [[1]]], None)[1].dtype == np.complex64
    with pytest.raises(gemmd.RequestError, match="type"):  # 1.5 is no int32
        client.add(np.ones((2, 2), "i4"), [[1.5, 2]])
    with pytest.raises(gemmd.RequestError) as caught:
        client.add(a, a.astype("f8"))
    assert caught.value.code == "bad_dtype" and caught.value.status == 422


@pytest.mark.parametrize("what, said", [
    (np.ma.masked_array([[1.0, 2]], mask=[[True, False]]), "fill it first"), (np.array([[object()]]), "astype"),
    ("text", "str is no array of numbers$"), (None, "NoneType"), ([["a"]], "'a' is in it"), ((("a",),), "'a' is in it"), ([[1, None]], "None is in it.*'f8'"),
    (object(), "object"), (InGpuMemory(np.ones((2, 2))), "it is on a GPU"),
])
def test_what_is_no_array_is_not_sent(client, what, said):
    with pytest.raises(TypeError, match=said):
        client.transpose(what)


def test_tensors_of_torch(client, monkeypatch):
    """There is no PyTorch here: what stands for it answers as a tensor of bfloat16 does."""
    a = RNG.integers(-4, 4, (5, 7)).astype(ml_dtypes.bfloat16)

    class Tensor:
        dtype = "torch.bfloat16"

        def __array__(self, dtype=None, copy=None):
            raise TypeError("Got unsupported ScalarType BFloat16")

        def view(self, dtype):
            return a.view(dtype)

    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(int16=np.int16))
    got = client.flip(Tensor())
    assert got.dtype == a.dtype and np.array_equal(got, a[:, ::-1])
    monkeypatch.setattr(gemmd.arrays, "bfloat16", lambda: None)
    with pytest.raises(TypeError, match="only where the package ml_dtypes"):
        client.flip(Tensor())
    with pytest.raises(TypeError, match="lists become bf16 only where"):
        client.flip([[1.0]], dtype="bf16")
    on_gpu = types.SimpleNamespace(__cuda_array_interface__={})
    with pytest.raises(TypeError, match="SimpleNamespace is in a GPU's memory: copy it to the host first"):
        client.flip(on_gpu)
    both = OnlyArray(np.array([[1.0, 2]]))  # of which there is a copy here
    both.__cuda_array_interface__ = {}
    assert client.flip(both).tolist() == [[2, 1]]


def test_parameters(client):
    a = np.ones((8, 8), "f4")
    assert client.transpose(a, kernel="naive", device="cpu").account.kernel == "naive"
    assert client.transpose(a, kernel=None, repeat=np.int64(3)).account.repeat == 3
    with pytest.raises(gemmd.RequestError) as caught:  # whatever it does not know goes to the daemon
        client.transpose(a, kernal="naive")
    error = caught.value
    assert (error.status, error.code) == (400, "unknown_parameter") and "kernel" in error.detail
    assert re.fullmatch(r"[0-9a-f]{32}", error.request_id) and error.request_id in str(error)
    assert pickle.loads(pickle.dumps(error)).code == error.code
    with pytest.raises(gemmd.RequestError, match="dtype"):
        client.transpose(a, dtype="foo")
    for wrong in ({"alpha": 1j}, {"shape": object()}, {"shape": (1, 0.5)}, {"dtype": np.dtype("f4,f4")}, {"dtype": object}):
        with pytest.raises(TypeError):
            client.matmul(a, a, **wrong)


# Results.

def test_a_result_is_an_array_with_an_account(client):
    a = RNG.random((30, 20))
    made = client.transpose(a, repeat=3)
    account = made.account
    assert isinstance(made, np.ndarray) and made.flags.writeable and made.flags.owndata is False
    assert account.op == "transpose" and account.device == "cpu:0" and account.dtype == "f64"
    assert account.shapes == {"a": (30, 20), "result": (20, 30)}
    assert account.us["total"] > account.us["kernel"] > 0 and account.us.get("h2d") is None
    assert account.bytes_min == 2 * a.nbytes and account.flops == 0 and account.gflops is None
    assert account.kernel_us_min <= account.kernel_us_median and account["id"] == account.id
    # Views keep it; what is computed is plain, and sums are numbers.
    assert made.T.account is account and made[3:].account is account and made.copy().account is account
    for plain in (made + 1, np.sqrt(made), made @ a, made.sum(axis=0), np.asarray(made)):
        assert type(plain) is np.ndarray
    assert type(made.sum()) is np.float64 and type(made.mean()) is np.float64 and type(made[0, 0]) is np.float64
    made += 1
    assert made.account is account
    again = pickle.loads(pickle.dumps(made))
    assert np.array_equal(again, made) and again.account == account
    assert np.empty(3).view(gemmd.Result).account == {}


def test_accounts_show_themselves(client):
    account = client.matmul(np.ones((64, 64), "f4"), np.ones((64, 64), "f4"), repeat=2).account
    assert repr(account).startswith("<Account matmul 64x64, 64x64 -> 64x64, f32, ") and "\n" not in repr(account)
    assert "GFLOP/s" in repr(account)
    lines = [line.split()[0] for line in str(account).splitlines()[1:]]
    assert lines[0] == "receive" and "kernel" in lines and "total" in lines
    page = ElementTree.fromstring(account._repr_html_())
    assert {"receive", "queue", "kernel"} <= {cell.text for cell in page.iter("td")}
    assert repr(gemmd.Account({})) == "<Account: none>"
    counted = client.transpose(np.ones((64, 64), "f4"), kernel="naive", device="sim").account
    assert "wavefronts" in str(counted) and counted.accesses["global_sectors"] > 0


def documented(title):
    """The members in the first table of a section of PROTOCOL.md, or below a line of it."""
    table = (wheel.ROOT / "proto" / "PROTOCOL.md").read_text().split(f"\n{title}\n")[1].split("\n|---|---|\n")[1]
    lines = table.split("\n\n")[0].splitlines()
    return [name for line in lines for name in re.findall(r"`(\w+)`", line.split("|")[1])]


def test_documented_members_are_attributes(client):
    a = np.ones((3, 4), "f4")
    made, report = client.eval("2 * x + 1", {"x": a}).account, client.compare("flip", a, device="cpu")
    for members, one, empty in (
        (documented("## The account"), made, gemmd.Account({})),
        (documented("wavefronts instead. JSON has"), report, gemmd.Comparison({})),
        (documented("A row has"), report.rows[0], gemmd.ComparedKernel({})),
    ):
        assert len(members) > 9
        for name in members:
            # What was not said is None, "" or empty.
            assert getattr(one, name) or not one.get(name), name
            assert not getattr(empty, name), name
    assert made.placed == "asked" and made.steps[0]["op"] == "elementwise" and made.percent_of_link is None
    assert report.reference["against"] == "reference" and report.shapes["a"] == (3, 4) and report.us["total"] > 0
    assert str(made).startswith("eval -> 3x4, f32, ") and "eval -> 3x4" in repr(made)


@pytest.mark.parametrize("kind", [gemmd.Account, gemmd.Comparison, gemmd.ComparedKernel, gemmd.Site, gemmd.Explanation, gemmd.Candidate, gemmd.Choice])
def test_an_attribute_is_the_member_of_its_name(kind):
    whole = {"shapes": {"a": (2, 3)}, "us": {"total": 1}, "totals": {"barriers": 1}, "steps": [{"op": "add"}], "accesses": {"global_sectors": 1}, "reference": {"what": "it"}, "error": {"verdict": "exact"},
             "rows": [{"kernel": "naive"}], "sites": [{"line": 1}], "candidates": [{"kernel": "naive"}]}
    names = {name for name, _ in inspect.getmembers(kind, lambda one: isinstance(one, property))}
    for name in names - {"failure", "fastest", "per_request", "ideal_per_request", "svg"}:  # which are made of several, or of none
        said = whole.get(name, 1)
        assert getattr(kind({name: said}), name) in (said, str(said)), name
        if kind is not gemmd.Site and name not in whole:
            assert getattr(kind({name: 0}), name) in (0, "0"), f"{name}: 0 is not nothing"


def test_accounts_in_full():
    said = {
        "id": "r1", "op": "matmul", "kernel": "blocked", "device": "cpu:0", "dtype": "f32", "shapes": {"a": [2, 3], "b": [3, 4], "result": [2, 4]}, "bytes_min": 96_000, "flops": 48,
        "us": {"receive": 1.25, "decode": 20, "queue": 999.5, "h2d": 4, "prepare": 5, "kernel": 500, "d2h": 7, "encode": 0.5, "total": 2_500_000},
        "effective_gbs": 1.5, "copy_gbs": 12, "percent_of_copy": 12.5, "gflops": 33.25, "bound": "memory", "roof": "dram", "percent_of_roofline": 50,
    }
    account, head, rate = gemmd.Account(said), "matmul 2x3, 3x4 -> 2x4, f32, blocked on cpu:0", "33.25 GFLOP/s, 50 % of the roofline (memory)"
    assert repr(account) == f"<Account {head}; kernel 500 us, total 2.5 s; {rate}>"
    lines = [head, "receive 1.25 us", "decode 20 us", "queue 1 ms", "h2d 4 us", "prepare 5 us", "kernel 500 us", "d2h 7 us", "encode 0.5 us", "total 2.5 s", rate, "1.5 GB/s, 12.5 % of a copy", "96 kB must move"]
    assert [" ".join(line.split()) for line in str(account).splitlines()] == lines
    assert len({len(line) for line in str(account).splitlines()[1:10]}) == 1  # the times end below each other
    page = ElementTree.fromstring(account._repr_html_())
    rows = [["".join(cell.itertext()) for cell in row] for row in page.iter("tr")]
    assert [" ".join(row).strip() for row in rows] == lines[1:9] and page.find("b").text == head
    assert [re.search(r"width:(\d+)px", bar.get("style"))[1] for bar in page.iter("div") if bar.get("style")] == ["1", "4", "200", "1", "1", "100", "1", "1"]
    assert [p.text for p in page.iter("p")] == ["total 2.5 s", *lines[10:12]]
    more = {"doubt": "copy_gbs", "accesses": {"global_sectors": 8, "global_sectors_min": 4, "shared_wavefronts": 6, "shared_wavefronts_ideal": 3}}
    counted = ["8 sectors of global memory, where 4 must move", "6 wavefronts of shared memory, where 3 would do", "copy_gbs was measured too low"]
    assert [line.strip() for line in str(gemmd.Account({**said, **more})).splitlines()[12:]] == [*counted, lines[12]]
    assert ElementTree.fromstring(gemmd.Account({**said, "op": "<op>"})._repr_html_()).find("b").text.startswith("<op> 2x3")


def cells_of(page):
    """Of the only table: each row's cells, and on which side each column is aligned."""
    rows = [list(row) for row in ElementTree.fromstring(page).iter("tr")]
    sides = {tuple(cell.get("style").split(":")[1] for cell in row) for row in rows}
    assert len(sides) == 1
    return [[cell.text or "" for cell in row] for row in rows], sides.pop()


def columns_of(text):
    return [re.split(r"  +", line.strip()) for line in text.splitlines()]


def test_reports_in_full():
    rows = [
        {"kernel": "memcpy", "op": "copy", "baseline": True, "kernel_us_median": 1.5, "kernel_us_min": 1, "speed": 2, "effective_gbs": 30, "percent_of_copy": 100},
        {"kernel": "blocked", "op": "transpose", "auto": True, "kernel_us_median": 3, "kernel_us_min": 2, "speed": 1, "effective_gbs": 15.12345, "percent_of_copy": 50, "error": {"verdict": "exact"}},
        {"kernel": "naive", "op": "transpose", "failure": {"code": "no_memory", "detail": "There is <no> room."}},
    ]
    report = gemmd.Comparison({"op": "transpose", "device": "cpu:0", "dtype": "f32", "model": "a <CPU>", "shapes": {"a": [2, 3], "result": [3, 2]}, "rows": rows})
    head, foot = "transpose of 2x3, f32, on cpu:0 (a <CPU>)", "* is what the daemon takes by itself"
    assert repr(report).splitlines() == [
        head,
        "kernel         time  speed   GB/s  % of copy  error",
        "copy/memcpy  1.5 us      2     30        100",
        "blocked *      3 us      1  15.12         50  exact",
        "naive                                         There is <no> room.",
        foot,
    ]
    table, sides = cells_of(report._repr_html_())
    assert table == [["kernel", "time", "speed", "GB/s", "% of copy", "error"], ["copy/memcpy", "1.5 us", "2", "30", "100", ""], ["blocked *", "3 us", "1", "15.12", "50", "exact"], ["naive", "", "", "", "", "There is <no> room."]]
    assert sides == ("left", "right", "right", "right", "right", "left")
    page = ElementTree.fromstring(report._repr_html_())
    assert (page.find("b").text, page.find("p").text) == (head, foot)
    assert report.fastest.kernel == "blocked" and report.rows[2].failure == "There is <no> room." and report.rows[1].failure is None
    assert gemmd.Comparison({}).fastest is None and repr(gemmd.Comparison({})).splitlines()[1] == "kernel"

    sites = [
        {"kind": "global_load", "file": "tiled.cu", "line": 7, "source": "x = a[i];", "memory": "a", "requests": 64, "sectors_per_request": 32, "ideal_sectors_per_request": 4, "verdict": "strided"},
        {"kind": "shared_store", "file": "tiled.cu", "line": 12, "source": "tile[i] = x;", "memory": "tile", "requests": 8, "wavefronts_per_request": 2.5, "ideal_wavefronts_per_request": 1, "verdict": "2-way bank conflict"},
    ]
    why = gemmd.Explanation({"op": "transpose", "kernel": "tiled", "dtype": "f32", "problem": "It is <slow>.", "cure": "Pad it.", "shape": {"a": [2, 3], "result": [3, 2]}, "sites": sites}, "<svg/>")
    assert repr(why).splitlines() == [
        "transpose, kernel tiled, f32: 2x3 -> 3x2",
        "It is <slow>.",
        "Pad it.",
        "line  what          memory  requests  each  ideal  verdict",
        "   7  global_load   a             64    32      4  strided",
        "  12  shared_store  tile           8   2.5      1  2-way bank conflict",
        "each, ideal: per request of a warp; sectors of 32 bytes, or wavefronts of shared memory",
    ]
    page = re.sub(r"(<img [^>]*)>", r"\1/>", why._repr_html_())
    assert [" ".join(row) for row in cells_of(page)[0]][1:] == ["7 global_load a 64 32 4 strided", "12 shared_store tile 8 2.5 1 2-way bank conflict"]
    assert cells_of(page)[1] == ("right", "left", "left", "right", "right", "right", "left")
    assert [p.text for p in ElementTree.fromstring(page).iter("p")] == ["It is <slow>.", "Pad it."]
    assert len(repr(gemmd.Explanation({"op": "copy", "cure": ""})).splitlines()) == 3  # no empty lines

    candidates = [{"kernel": "shared", "estimated_us": 12.5, "most": "dram"}, {"kernel": "vectorized", "note": "auto never takes it"}]
    choice = gemmd.Choice({"op": "flip", "device": "H200", "dtype": "f32", "shapes": ["8x8", "1x8"], "reason": "shared: the <least>", "candidates": candidates})
    assert repr(choice).splitlines() == [
        "flip of 8x8, 1x8, f32, on H200",
        "shared: the <least>",
        "kernel      estimate  most of it, or why there is none",
        "shared       12.5 us  dram",
        "vectorized            auto never takes it",
    ]
    assert cells_of(choice._repr_html_()) == ([["kernel", "estimate", "most of it, or why there is none"], ["shared", "12.5 us", "dram"], ["vectorized", "", "auto never takes it"]], ("left", "right", "left"))
    page = ElementTree.fromstring(choice._repr_html_())
    assert (page.find("b").text, page.find("p").text) == ("flip of 8x8, 1x8, f32, on H200", "shared: the <least>")


def test_figures_are_short():
    times = {0: "0 us", 0.01234: "0.0123 us", 12.34: "12.3 us", 999.4: "999 us", 999.6: "1 ms", 12345: "12.3 ms", 999_600: "1 s", 1e6: "1 s", 61.5e6: "61.5 s", 3600e6: "3600 s"}
    assert {us: gemmd.document.time_text(us) for us in times} == times
    sizes = {0: "0 B", 999: "999 B", 999.6: "1 kB", 1000: "1 kB", 1023: "1.02 kB", 12345: "12.3 kB", 999_600: "1 MB", 2.5e9: "2.5 GB", 1e12: "1 TB"}
    assert {count: gemmd.document.bytes_text(count) for count in sizes} == sizes


def test_compare(client):
    report = client.compare("matmul", np.ones((40, 40)), np.ones((40, 40)), repeat=2)
    assert {"naive", "blocked"} <= {row.kernel for row in report.rows}
    ran = [row for row in report.rows if row.failure is None]
    assert len(ran) >= 2
    assert all(row.error["verdict"] in ("exact", "within") and row.gflops > 0 for row in ran)
    assert report.fastest.speed == 1.0 and report.op == "matmul" and report["id"]
    assert repr(report).startswith("matmul of 40x40, 40x40, f64, on cpu:0") and "GFLOP/s" in repr(report)
    rows = list(ElementTree.fromstring(report._repr_html_()).iter("tr"))
    assert len(rows) == 1 + len(report.rows)
    counted = client.compare("transpose", np.ones((40, 40), "f4"), device="sim")
    assert counted.fastest is None and counted.rows[0].accesses["global_sectors"] > 0 and "sectors" in repr(counted)
    with pytest.raises(TypeError, match="format"):
        client.compare("transpose", np.ones((4, 4)), format="text")


def test_explain(client):
    why = client.explain("transpose", kernel="tiled", shape=(2048, 2048), gpu="rtx3090")
    worst = max(why.sites, key=lambda site: site.per_request / site.ideal_per_request)
    assert worst.kind == "shared_load" and worst.per_request == 32 and worst.memory == "tile"
    assert "padded" in why.cure and why.totals["occupancy"]["gpu"] == "RTX 3090"
    assert ElementTree.fromstring(why.svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert "32-way bank conflict" in repr(why) and "2048x2048 -> 2048x2048" in repr(why)
    page = ElementTree.fromstring(re.sub(r"(<img [^>]*)>", r"\1/>", why._repr_html_()))
    (picture,) = page.iter("img")
    assert picture.get("src").startswith("data:image/svg+xml;base64,")
    assert len(list(page.iter("tr"))) == 1 + len(why.sites)
    plain = client.explain("matmul", np.ones((50, 60), "f4"), np.ones((60, 40), "f4"), drawings=False)
    assert plain.svg == "" and plain["shape"]["result"] == [50, 40] and "<img" not in plain._repr_html_()


def test_choose(client):
    choice = client.choose("matmul", shape_a=(64, 4096), shape_b=(4096, 512), gpu="H200")
    assert choice.candidates[0].kernel == choice.kernel and choice.reason.startswith(choice.kernel)
    estimates = [c.estimated_us for c in choice.candidates if c.estimated_us is not None]
    assert estimates == sorted(estimates) and len(estimates) > 5 and choice.candidates[0].most in choice.candidates[0]
    assert (choice.op, choice.device, choice.dtype, choice.profile) == ("matmul", "H200", "f32", "NVIDIA H200")
    assert repr(choice).startswith("matmul of 64x4096, 4096x512, f32, on H200\n") and choice.reason in repr(choice)
    assert len(list(ElementTree.fromstring(choice._repr_html_()).iter("tr"))) == 1 + len(choice.candidates)
    assert re.search(r"^double_buffered +auto never takes it$", str(client.choose("matmul", gpu="H200")), re.MULTILINE)
    assert client.choose("flip", shape=(8, 8)).device == "cpu:0"
    with pytest.raises(gemmd.RequestError, match="shape"):
        client.choose("matmul", shape_a=(2, 3), shape_b=(4, 5))


def test_lists(client):
    assert {"transpose", "matmul", "add", "flip", "copy"} <= {kernel["op"] for kernel in client.kernels()}
    assert [d["name"] for d in client.devices() if d["default"]] == ["cpu:0"]
    assert "H100" in {gpu["name"] for gpu in client.gpus()}
    assert client.stats()["answered"]["/v1/kernels"] > 0


# Many at once.

def test_threads_share_a_client(client):
    many = [RNG.random((50, 50)) for _ in range(40)]
    with ThreadPoolExecutor(8) as pool:
        for a, got in zip(many, pool.map(client.transpose, many)):
            assert np.array_equal(got, a.T)


def test_async(url):
    a, b = RNG.random((40, 50)), RNG.random((50, 30))

    async def work():
        async with gemmd.AsyncClient(url, connections=4) as client:
            products = await asyncio.gather(*(client.matmul(a, b) for _ in range(20)))
            assert all(np.allclose(product, a @ b) and product.account.op == "matmul" for product in products)
            assert np.array_equal(await client.transpose(a), a.T)
            assert np.array_equal(await client.add(a, 1), a + 1)
            assert np.array_equal(await client.flip(a), a[:, ::-1])
            assert (await client.compare("flip", a)).fastest.kernel
            assert (await client.explain("flip", shape=(64, 64))).svg
            assert (await client.choose("flip", shape=(64, 64))).kernel
            assert await client.kernels() and await client.devices() and await client.stats() and await client.gpus()
            with pytest.raises(gemmd.RequestError):
                await client.matmul(a, a)

    asyncio.run(work())


def answer(request):
    """As a daemon would, in so far as a client reads it."""
    path, accept, about = request.url.path, request.headers["accept"], {"shape": [2, 3], "dtype": "f64"}
    if request.method == "DELETE":
        return httpx.Response(204)
    if accept == "application/octet-stream":
        return httpx.Response(200, content=bytes(48), headers={"Gemmd-Shape": "2x3", "Gemmd-Dtype": "f64", "Gemmd-Stats": '{"op": "made"}'})
    if accept != "application/json":
        return httpx.Response(200, text={"text/plain": "x\n\non cpu:0\n", "image/svg+xml": "<svg/>"}[accept])
    if path == "/v1/matrices":
        return httpx.Response(200, json={"matrices": [{"name": "b"}]} if request.url.query else {"matrices": [{"name": "a"}], "next": "/v1/matrices?after=a"})
    return httpx.Response(200, headers={"ETag": '"5"'}, json={**about, "rows": [], "sites": [], "candidates": [], "kernels": ["k"], "devices": ["d"], "gpus": ["g"]})


M, V = np.arange(6.0).reshape(2, 3), np.ones((3, 1))


@pytest.mark.parametrize("call, expected", [
    (lambda c, **o: c.transpose(M, kernel="naive", **o), ["POST /v1/transpose?kernel=naive"]),
    (lambda c, **o: c.matmul(M, V, [[1], [1]], alpha=1 / 3, beta=np.float32(0.5), transa=False, **o), ["POST /v1/matmul?alpha=0.3333333333333333&beta=0.5&transa=false"]),
    (lambda c, **o: c.matmul(M, V, transb=np.True_, timeout_ms=120_000, **o), ["POST /v1/matmul?transb=true&timeout_ms=120000"]),
    (lambda c, **o: c.add(M, M, device="cpu", repeat=None, **o), ["POST /v1/add?device=cpu"]),
    (lambda c, **o: c.flip(M, keep="y", **o), ["POST /v1/flip?keep=y&return=result"]),
    (lambda c, **o: c.put(M, "n", etag="4", ttl=60, **o), ["PUT /v1/matrices/n?ttl=60 If-Match: \"4\""]),
    (lambda c, **o: c.put(M, "n", etag="", share="*", **o), ["PUT /v1/matrices/n?share=%2A If-None-Match: *"]),
    (lambda c, **o: c.keep("n", "add", M, M, ttl=5, **o), ["POST /v1/add?ttl=5&keep=n&return=account"]),
    (lambda c, **o: c.eval("x + k", {"x": M, "k": 2}, device="cpu", **o), ["POST /v1/eval?device=cpu"]),
    (lambda c, **o: c.eval("x", {"x": M}, keep="y", **o), ["POST /v1/eval?keep=y&return=result"]),
    (lambda c, **o: c.keep_eval("x", "n", {"x": M}, ttl=5, **o), ["POST /v1/eval?ttl=5&keep=n&return=account"]),
    (lambda c, **o: c.plan("x", {"x": M}, device="cpu", **o), ["POST /v1/eval?device=cpu&explain=plan"]),
    (lambda c, **o: c.get("ann.m", rows=slice(1, None), cols=np.int64(2), **o), ["GET /v1/matrices/ann.m?rows=1%3A&cols=2"]),
    (lambda c, **o: c.get("m", rows=slice(None, 3), **o), ["GET /v1/matrices/m?rows=%3A3"]),
    (lambda c, **o: c.delete("m"), ["DELETE /v1/matrices/m"]),
    (lambda c, **o: c.matrices(), ["GET /v1/matrices", "GET /v1/matrices?after=a"]),
    (lambda c, **o: c.compare("matmul", M, V, [[1.0], [1]], repeat=3, **o), ["POST /v1/compare/matmul?repeat=3"]),
    (lambda c, **o: c.explain("matmul", M, V, gpu="H100", **o), ["POST /v1/explain/matmul?gpu=H100", "POST /v1/explain/matmul?gpu=H100"]),
    (lambda c, **o: c.explain("flip", shape=(2, np.int32(3)), drawings=False, **o), ["GET /v1/explain/flip?shape=2x3"]),
    (lambda c, **o: c.choose("flip", shape=[2, 3], dtype=np.int32), ["GET /v1/choose/flip?shape=2x3&dtype=i32"]),
    (lambda c, **o: c.kernels(), ["GET /v1/kernels"]),
    (lambda c, **o: c.devices(), ["GET /v1/devices"]),
    (lambda c, **o: c.gpus(), ["GET /v1/devices"]),
    (lambda c, **o: c.stats(), ["GET /v1/stats"]),
])
def test_both_clients_ask_for_the_same(call, expected):
    """And hand over the same, with the time and the progress that the caller said."""
    asked, heard = {"waits": [], "asyncio": []}, {"waits": [], "asyncio": []}

    def transport(kind):
        def asks(request):
            fields = [f" {name}: {request.headers[name]}" for name in ("If-Match", "If-None-Match") if name in request.headers]
            line = f"{request.method} {request.url.raw_path.decode()}{''.join(fields)}"
            asked[kind].append((line, request.headers["Accept"], request.headers.get("Content-Type"), request.content, request.extensions["timeout"]))
            assert int(request.headers.get("Content-Length", 0)) == len(request.content)
            told = answer(request)
            return httpx.Response(told.status_code, headers=told.headers, stream=httpx.ByteStream(told.content))

        return httpx.MockTransport(asks)

    def shown(made):
        """All of what a call gives."""
        plain = made.tolist() if isinstance(made, np.ndarray) else dict(made) if isinstance(made, gemmd.Explanation) else str(made)
        return type(made), plain, getattr(made, "account", None), getattr(made, "svg", None)

    with gemmd.Client("http://there:1") as client:
        client._http = httpx.Client(transport=transport("waits"))
        made = shown(call(client, timeout=7.5, progress=heard["waits"].append))

    async def work():
        async with gemmd.AsyncClient("http://there:1") as client:
            client._http = httpx.AsyncClient(transport=transport("asyncio"))
            return shown(await call(client, timeout=7.5, progress=heard["asyncio"].append))

    assert asyncio.run(work()) == made
    assert asked["waits"] == asked["asyncio"] and [line for line, *_ in asked["waits"]] == expected
    assert heard["waits"] == heard["asyncio"]


# Progress.

def test_progress(client):
    a, seen = RNG.random((1000, 1000)), []
    assert np.array_equal(client.flip(a, progress=seen.append), a[:, ::-1])
    for phase, least in (("send", a.nbytes + 128), ("receive", a.nbytes)):
        steps = [step for step in seen if step.phase == phase]
        done = [step.done for step in steps]
        assert done == sorted(set(done)) and done[-1] == steps[-1].total == least and len(steps) > 5
        assert steps[-1].fraction == 1
    assert [s.phase for s in seen] == sorted((s.phase for s in seen), reverse=True)


def test_progress_may_end_a_request(client):
    def stop(progress):
        if progress.phase == "receive":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.flip(RNG.random((1000, 1000)), progress=stop)
    assert client.flip([[1, 2]]).tolist() == [[2, 1]]
    with pytest.raises(TypeError, match="progress is a function"):
        client.flip([[1, 2]], progress=5)


def test_progress_bar(client):
    drawn = io.StringIO()
    bar = gemmd.ProgressBar(drawn, delay=0)
    client.flip(RNG.random((1000, 1000)), progress=bar)
    text = drawn.getvalue()
    assert "sending 8 MB [" in text and "receiving 8 MB [" in text and "#" * 30 in text and text.endswith("\r")
    quick = io.StringIO()
    client.flip(np.ones((2, 2)), progress=gemmd.ProgressBar(quick))
    assert quick.getvalue() == ""


def test_a_progress_bar_is_drawn_now_and_then(monkeypatch):
    clock, drawn = types.SimpleNamespace(monotonic=lambda: clock.now, now=100.0), io.StringIO()
    monkeypatch.setattr(gemmd.progress, "time", clock)
    bar = gemmd.ProgressBar(drawn, delay=0.5)

    def after(seconds, *progress):
        """What is written by then: the bar, or what takes it away."""
        clock.now += seconds
        drawn.truncate(drawn.seek(0))
        bar(gemmd.Progress(*progress))
        return drawn.getvalue()

    assert after(0, "send", 0, 4_000_000) == after(0.25, "send", 1_000_000, 4_000_000) == ""
    line = after(0.25, "send", 2_000_000, 4_000_000)
    assert line == f"\rsending 4 MB [{'#' * 15}{'.' * 15}]  50 % 4 MB/s"
    assert after(0.0625, "send", 3_000_000, 4_000_000) == ""  # so soon after the last
    assert after(0.4375, "send", 3_000_000, 4_000_000) == f"\rsending 4 MB [{'#' * 22}{'.' * 8}]  75 % 3 MB/s"
    ended = f"\rsending 4 MB [{'#' * 30}] 100 % 4 MB/s"
    assert after(0, "send", 4_000_000, 4_000_000) == f"{ended}\r{' ' * (len(ended) - 1)}\r"
    assert after(0, "receive", 10, 20) == ""  # its own time begins
    other = after(1, "receive", 10, 20)
    assert other.startswith("\rreceiving 20 B [")
    assert after(1, "send", 0, 4_000_000) == f"\r{' ' * (len(other) - 1)}\r"  # another request: that of the last is taken away
    assert after(0, "receive", 1, 123_000_000_000) == ""
    longer = after(1, "receive", 61_500_000_000, 123_000_000_000)
    shorter = after(60.5, "receive", 61_500_000_000, 123_000_000_000)
    assert len(longer.rstrip()) > len(shorter.rstrip()) and len(longer) == len(shorter)  # what was longer is written over
    assert gemmd.Progress("send", 0, 0).fraction == 1 and gemmd.Progress("send", 1, 4).fraction == 0.25


def test_a_bar_is_for_those_who_see_it(client, monkeypatch):
    """Not for a file that standard error goes to."""
    for terminal in (False, True):
        drawn = io.StringIO()
        drawn.isatty = lambda: terminal
        monkeypatch.setattr("sys.stderr", drawn)
        bar = gemmd.progress.callback_of(True)
        bar(gemmd.Progress("send", 1, 2))
        bar._began -= 1
        bar(gemmd.Progress("send", 2, 2))
        assert ("sending" in drawn.getvalue()) == terminal


# Named matrices.


def test_named_matrices(client):
    a, b, c = (RNG.integers(-4, 4, shape).astype("f4") for shape in ((5, 7), (7, 3), (5, 3)))
    x, w, z = client.put(a), client.put(b, "w"), client.put(c, "z", ttl=1000)
    assert isinstance(x, gemmd.NamedMatrix) and x.shape == (5, 7) and x.dtype == "f32"
    assert np.array_equal(client.get(x), a) and np.array_equal(client.get("w"), b)
    assert np.array_equal(client.get(w, rows=slice(1, 4), cols=2), b[1:4, 2:3])
    assert np.array_equal(client.get(w, rows=slice(5, None)), b[5:])
    for operands in ((x, w, z), (a, w, z), (x, b, z), (x, w, c), (a, b, z), (a, w, c), (x, b, c)):
        product = client.matmul(*operands, alpha=2, beta=3)
        assert np.array_equal(product, 2 * (a @ b) + 3 * c) and product.account.op == "matmul"
    assert np.array_equal(client.matmul([1.0] * 7, w), np.ones(7, "f4") @ b)  # a row of w's type
    assert np.array_equal(client.matmul(x, w), a @ b) and np.array_equal(client.transpose(x), a.T)
    kept = client.keep("y", "add", x, x)
    assert kept == gemmd.NamedMatrix("y", (5, 7), "f32", kept.etag) and np.array_equal(client.get(kept), a + a)
    assert np.array_equal(client.flip(a, keep="y"), a[:, ::-1]) and np.array_equal(client.get("y"), a[:, ::-1])
    assert {m["name"] for m in client.matrices()} >= {x.name, "w", "y", "z"}
    assert client.compare("transpose", x).fastest and client.explain("matmul", x, w, drawings=False).problem
    newer = client.put(2 * b, "w", etag=w.etag)
    for etag in (w.etag, ""):
        with pytest.raises(gemmd.RequestError, match="precondition_failed") as refused:
            client.put(b, "w", etag=etag)
        assert refused.value.status == 412
    assert np.array_equal(client.get(newer), 2 * b)
    for matrix in (x, w, "y", z):
        client.delete(matrix)
    with pytest.raises(gemmd.RequestError, match="not_found"):
        client.get(x)
    with pytest.raises(gemmd.RequestError, match="not_found"):
        client.matmul(a, w)
    for wrong in ("a/b", "", "x?y"):
        with pytest.raises(ValueError):
            client.get(wrong)
    for rows in (slice(-1, None), slice(0, 4, 2), -3):
        with pytest.raises((ValueError, gemmd.RequestError)):
            client.get(client.put(a, "r"), rows=rows)
    client.delete("r")


def test_named_matrices_of_other_types(client):
    a = RNG.integers(-4, 4, (2, 3, 4)).astype(ml_dtypes.bfloat16)
    x = client.put(a)
    assert x.dtype == "bf16" and client.get(x).dtype == ml_dtypes.bfloat16 and np.array_equal(client.get(x), a)
    assert np.array_equal(client.add(x, x), a + a)
    for code in MOVED:
        one = np.frombuffer(bytes(range(2 * np.dtype(code).itemsize)), code).reshape(1, 2) if code != "?" else np.array([[True, False]])
        got = client.get(client.put(one, x.name))
        assert got.dtype == one.dtype and got.tobytes() == one.tobytes()
    assert np.array_equal(client.get(client.put(np.asfortranarray(np.ones((3, 5), "i8")), x.name)), np.ones((3, 5), "i8"))
    client.delete(x)


def test_named_matrices_async(url):
    async def work():
        async with gemmd.AsyncClient(url) as other:
            x = await other.put([[1.0, 2.0]], dtype="f4")
            y = await other.keep("y", "add", x, x)
            assert (await other.get(y)).tolist() == [[2, 4]] and len(await other.matrices()) >= 2
            await asyncio.gather(other.delete(x), other.delete(y))

    asyncio.run(work())


# Expressions.


def test_expressions(client):
    a, b = RNG.integers(-4, 4, (5, 7)).astype("f4"), RNG.integers(-4, 4, (3, 7)).astype("f4")
    x, y = client.put(a), client.put(b)
    try:
        cases = [
            (x @ y.T + 1, a @ b.T + 1), (2 * (x - 1) / 4 - -x, 2 * (a - 1) / 4 - -a), (x * a + a * x, a * a + a * a),
            (a - x, a - a), (x[1:3, ::-1], a[1:3, ::-1]), (x[0] + x[:, 1:2], a[0] + a[:, 1:2]), (x.sum(axis=0), a.sum(axis=0)[None]),
            (x.mean(1, keepdims=True), a.mean(1, keepdims=True)), (x.max() - x.min(), [[a.max() - a.min()]]),
            (gemmd.where(x > 0, x, 0), np.where(a > 0, a, 0)), (gemmd.equal(x, 2), a == 2), (x**2 - (-1) ** 2, a**2 - 1),
            (gemmd.where(x > 0, x, -np.inf), np.where(a > 0, a, -np.inf)), (float("inf") - x, np.inf - a),
            (gemmd.sum(abs(x), axis=(0, 1)), [[abs(a).sum()]]), (gemmd.maximum(x, -1.5), np.maximum(a, -1.5)),
            (x @ (y.T @ y), a @ (b.T @ b)), (np.float32(2) * x, 2 * a), (x.T.mT, a), (1 - (x - 1), 1 - (a - 1)), (x / (2 * (x + 9) / 4), a / (2 * (a + 9) / 4)),
            (2 / (abs(x) + 1), 2 / (abs(a) + 1)), (a @ y.T, a @ b.T), (+x, a), ((x**2) ** 2, a**4), (2**x, 2.0**a), ((x + 1) ** 2, (a + 1) ** 2), ((-x) ** 2, a**2), (-(x**2), -(a**2)),
            (x < 1, a < 1), (x <= 1, a <= 1), (x > 1, a > 1), (x >= 1, a >= 1), (1 < x, a > 1), ((x < 1) == (x < 2), (a < 1) == (a < 2)), (True == (x >= 1), a >= 1), (gemmd.not_equal(x, 2), a != 2),
            (gemmd.exp(x), np.exp(a)), (gemmd.log(x + 9), np.log(a + 9)), (gemmd.sqrt(x + 9), np.sqrt(a + 9)), (gemmd.abs(x), abs(a)), (gemmd.minimum(x, -1.5), np.minimum(a, -1.5)),
            (gemmd.mean(x, 1), a.mean(1)[None]), (gemmd.max(x, axis=0), a.max(axis=0)[None]), (gemmd.min(x, axis=1, keepdims=True), a.min(axis=1, keepdims=True)), (x.min(0), a.min(0)[None]),
            (gemmd.where(x > 0, x, np.nan), np.where(a > 0, a, np.nan)), (x[::2, 1:6:2], a[::2, 1:6:2]), (x[-1], a[-1:]), (x[1:], a[1:]), (x[:, :3], a[:, :3]),
        ]
        for expression, expected in cases:
            got = expression.get()
            expected = np.asarray(expected)
            assert np.allclose(got, expected, equal_nan=True) and got.shape == expected.shape, expression
            assert got.dtype == expected.dtype or expected.dtype.kind == "f", expression
            assert got.account.op == "eval"
        assert np.allclose(gemmd.tanh(x @ y.T).get(precision="ieee"), np.tanh(a @ b.T))
        stack = client.put(np.stack([a, a + 1]), y.name)
        assert np.array_equal(stack.mT.get(), np.stack([a.T, a.T + 1]))
        # Parameters go along, also where they are wrong.
        for run in ((x + 1).get, (x + 1).plan, lambda **parameters: (x + 1).keep("never", **parameters)):
            with pytest.raises(gemmd.RequestError, match="device"):
                run(device="nowhere")
        for made in (gemmd.exp(1), gemmd.where(a > 0, a, 0)):
            with pytest.raises(TypeError, match=r"client.eval\(\) computes it"):
                made.get()
        assert np.allclose(client.eval(gemmd.exp(a)), np.exp(a)) and np.array_equal(client.eval(gemmd.equal(a, 1)), a == 1)
    finally:
        client.delete(x)
        client.delete(y)


def test_expressions_of_text(client):
    a = RNG.random((5, 7), "f4")
    assert np.array_equal(client.eval("x * k + x", {"x": a, "k": 2}), a * 2 + a)
    assert client.eval("x > 0.5", {"x": a}).dtype == np.bool_
    assert client.eval("x + 1", {"x": a.astype(ml_dtypes.bfloat16)}).dtype == ml_dtypes.bfloat16
    assert "matmul" in client.plan("x @ x.T", {"x": a})
    with pytest.raises(gemmd.RequestError, match="character 6") as caught:
        client.eval("x + (", {"x": a})
    assert caught.value.code == "bad_expression"


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.float16(2), np.int64(2), np.bool_(True), 2.0, 2, True])
def test_numbers_of_numpy_have_a_type_and_those_of_python_none(client, number):
    a = np.array([[1.5, -2]], "f2")
    x = client.put(a)
    typed = isinstance(number, np.generic)
    # As NumPy 2 has it, by whose rules a Python number never makes f16 wider.
    expected = a.astype(np.result_type(a.dtype, number.dtype) if typed else a.dtype) * a.dtype.type(number)
    for got in (client.eval("x * k", {"x": a, "k": number}), (x * number).get(), (number * x).get()):
        assert got.dtype == expected.dtype and np.array_equal(got, expected), (got, number)
    client.delete(x)


def test_names_in_expressions_are_nobody_elses(client):
    """An operand that the caller names is never taken for one that the expression holds: here neither is in the text."""
    a, b = np.array([[1.0, 2]]), np.array([[30.0, 40]])
    x = client.put(a)
    for names in (["v0"], ["v1", "v0"], ["v0", "v1", "v2"]):
        with pytest.raises(gemmd.RequestError, match=f"operand {names[0]} is not in the expression") as caught:
            client.eval(x + b, dict.fromkeys(names, b * 100))
        assert caught.value.code == "extra_operand"
    assert np.array_equal((x + b).get(), a + b) and "'v0 + v1'" in repr(x + b)
    client.delete(x)


def test_expressions_that_stay(client):
    a = RNG.random((5, 7), "f4")
    x = client.put(a)
    y = (x * 2).keep("doubled")
    z = client.keep_eval("doubled + 1")
    assert y.name == "doubled" and np.array_equal((y - x).get(), a * 2 - a)
    assert np.array_equal(client.get(z), a * 2 + 1)
    others = [client.put(a), client.put(a), client.keep_eval("doubled"), client.keep_eval("doubled")]
    assert len({one.name for one in others}) == 4
    for one in (x, y, z, *others):
        client.delete(one)


def test_expressions_are_written_as_short_as_they_can_be(client):
    x = client.put([[1.0]])
    long = x
    for _ in range(100):
        long = long + 1
    assert long.get() == 101, "a hundred operations side by side are not nested"
    assert "v0 @ v0 * (v0 + 1) ** -2" in repr(x @ x * (x + 1) ** -2)
    assert "v0 - (v0 - 1)" in repr(x - (x - 1)) and "(-v0) ** 2" in repr((-x) ** 2)
    client.delete(x)
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(x > 1)
    with pytest.raises(TypeError):
        iter(x + 1)


def test_expressions_are_awaited(url):
    async def run():
        async with gemmd.AsyncClient(url) as client:
            x = await client.put([[1.0, 2.0]])
            assert np.array_equal(await (x + 1).get(), [[2, 3]])
            y = await (x * 2).keep()
            assert np.array_equal(await client.eval("y + 1", {"y": y}), [[3, 5]]) and "elementwise" in await (y + 1).plan()
            await client.delete(x)
            await client.delete(y)

    asyncio.run(run())


def test_a_named_matrix_is_not_put_again(client):
    """Its elements are not here: those that would be sent are none of its."""
    w = client.put(np.full((2, 3), 5, "f4"), "again")
    with pytest.raises(TypeError, match="keep_eval"):
        client.put(w, "again")
    assert client.get(client.keep_eval(w, "copy")).tolist() == client.get(w).tolist() == [[5, 5, 5]] * 2
    for name in ("again", "copy"):
        client.delete(name)


def test_pages_of_named_matrices(client):
    names = {f"page_{i}" for i in range(1001)}
    for name in names:
        client.put([1.0], name)
    listed = [m["name"] for m in client.matrices()]
    assert len(listed) == len(set(listed)) and names <= set(listed)
    for name in names:
        client.delete(name)


def test_equality_is_computed(client):
    x = client.put(np.array([[0, 1, 2]], "f4"), "equal_x")
    assert gemmd.where(x == 0, 100, x).get().tolist() == [[100, 1, 2]]
    assert gemmd.where(x + 0 != 0, 100, x).get().tolist() == [[0, 100, 100]]
    y = client.put(np.array([[0, 3, 2]], "f4"), "equal_y")
    assert gemmd.where(x == y, 100, x).get().tolist() == [[100, 1, 100]]
    assert gemmd.where(x != y, 100, x).get().tolist() == [[0, 100, 2]]
    # By its truth it is the question whether they are the same version.
    newer = client.put(np.array([[0, 1, 2]], "f4"), "equal_x")
    assert not x == newer and x != newer and x == x and not x != x and x != "x" and x in {x} and y not in [x]
    client.delete(newer)
    client.delete(y)


def test_a_named_matrix_is_a_value(client):
    x = client.put(np.eye(2), "value_x")
    again = pickle.loads(pickle.dumps(x))
    assert again == x and hash(again) == hash(x) and {x: 1}[again] == 1 and copy.deepcopy([x])[0] is x and copy.copy(x) is x
    assert np.array_equal(client.matmul(again, again), np.eye(2))
    client.delete(x)
    for name in (".", "..", "a.", "0"):
        with pytest.raises(ValueError, match="no name of a matrix: a name has letters"):
            client.delete(name)


def test_python_booleans_are_booleans(client):
    m = client.put(np.array([[True, False]]), "bool_m")
    for expression, expected in ((m * True, [[True, False]]), (gemmd.where(m, True, False), [[True, False]])):
        got = expression.get()
        assert got.dtype == bool and got.tolist() == expected
    assert client.eval("m * k", {"m": np.array([[True, False]]), "k": True}).dtype == bool
    assert client.eval("x / k", {"x": np.ones((1, 1)), "k": -0.0}).tolist() == [[-np.inf]]
    assert client.eval("x * k", {"x": np.ones((1, 1)), "k": float("inf")}).tolist() == [[np.inf]]
    for index in (True, ..., None, np.array([True])):
        with pytest.raises(TypeError, match="an index is an integer or a slice"):
            m[index]
    for made in (np.asarray, np.linalg.norm, lambda x: client.flip([x])):
        with pytest.raises(TypeError, match="are with the daemon"):
            made(m)
    with pytest.raises(TypeError, match=r"keep\(\) it first"):
        client.flip(m + m)
    client.delete(m)


def test_a_missing_operand_moves_no_other(client):
    with pytest.raises(TypeError, match="an operand is missing"):
        client.compare("matmul", np.eye(2), c=np.eye(2))


def test_a_key_in_the_address_is_not_shown():
    client = gemmd.Client("http://:id.secret@127.0.0.1:9")
    assert "secret" not in repr(client)
    with pytest.raises(gemmd.TransportError) as failed:
        client.stats()
    assert "secret" not in str(failed.value)


def test_integers_of_arrays_in_lists_do_not_wrap(client):
    with pytest.raises((ValueError, OverflowError)):
        client.add(np.zeros((1, 1), "i4"), [np.array([2**40 + 5])])


@pytest.mark.filterwarnings("error")
def test_numbers_that_do_not_fit(client):
    a = np.zeros((1, 3), "i4")
    for given, said in ((2**40, "1099511627776 does not fit int32"), ([[2**40, 0, 1]], "a number of the list does not fit int32")):
        with pytest.raises(ValueError, match=said):
            client.add(a, given)
    for given, dtype in (([[1.5]], "i32"), ([[-1.7, 1]], "i64"), ([[1e10]], "i32"), ([[float("nan")]], "i32"), ([[0.5]], "bool"), ([[2]], "bool")):
        with pytest.raises(ValueError, match="does not fit"):
            client.put(given, dtype=dtype)
    for given in (10**30, [[10**30, 1]], [[-1, 2**63, 2**64]]):
        with pytest.raises(ValueError, match="fits no type if it is beyond int64 and uint64, as 1"):
            client.flip(given)
        with pytest.raises(ValueError, match="fits no type"):
            client.add(a, given)
    assert client.flip([2**63]).dtype == np.uint64
    assert client.add(a.astype("f4"), [[2**40, 1, 2]]).dtype == np.float32
    for given in (1.5, [[1.0, 2, 3]]):
        with pytest.raises(gemmd.RequestError, match="i32 and b is f64"):
            client.add(a, given)


def test_expressions_of_two_clients(client, url):
    with gemmd.Client(url) as other:
        x, y = client.put([1.0], "two_x"), other.put([2.0], "two_y")
        with pytest.raises(ValueError, match="several clients"):
            x + y
        assert (x == y) is False and (x != y) is True
        client.delete(x)
        client.delete(y)


def test_expressions_that_grow_too_long_end_at_once(client):
    """A part that is used twice is written twice, so each step of such a loop doubles the text."""
    x = client.put(np.eye(2), "grows")
    grown, start = x, time.monotonic()
    with pytest.raises(ValueError, match=r"would be 5617 characters long, and a daemon takes 4096.*keep\(\)"):
        for _ in range(60):
            grown = gemmd.tanh(grown @ grown)
    assert time.monotonic() - start < 1 and len(repr(grown)) < 4200
    for make in (gemmd.tanh, lambda e: -e, lambda e: e + 1, lambda e: 1 - e, lambda e: e.T):
        deep = x
        with pytest.raises(ValueError, match=r"would be 4\d\d\d characters long"):
            for _ in range(5000):
                deep = make(deep)
        assert 4080 < len(deep._made_by() and repr(deep)) < 4200
        with pytest.raises(gemmd.RequestError, match="bad_expression"):
            deep.get()
    # The length that is kept is that of the text.
    for made in (x @ x * (x + 1) ** -2, -x - (-x - -1.5), gemmd.where(x > -2, x[0, 1:], (-1) ** x).sum(axis=0).mT):
        assert made._length == len(gemmd.lazy.text_of(made, {}))
    longest = x + 1.5
    for _ in range(1022):
        longest = longest + 1
    assert longest._length == len(gemmd.lazy.text_of(longest, {})) == 4096
    with pytest.raises(ValueError, match="would be 4100 characters long"):
        longest + 1
    many = [np.full((1, 1), float(i)) for i in range(12)]
    wide = sum(many[1:], x + many[0])  # v10 and others are longer
    assert len(gemmd.lazy.text_of(wide, {})) == wide._length + 3 and wide.get()[0, 0] == 1 + sum(range(12))
    x = gemmd.tanh(x @ x).keep("grows")
    assert np.allclose(x._client.get(x), np.tanh(np.eye(2)))
    assert client.stats()["limits"]["eval_characters_max"]["value"] == gemmd.lazy.CHARACTERS_MAX
    client.delete(x)


def test_operands_are_not_called_as_parameters_are(client):
    a = np.ones((2, 2))
    for name in ("expr", "device", "ttl", "header"):
        for call in (client.eval, client.plan, lambda text, operands: client.keep_eval(text, "reserved", operands)):
            with pytest.raises(ValueError, match=f"cannot be called '{name}', which is a parameter"):
                call(f"a * {name}", {"a": a, name: a})
    said = (wheel.ROOT / "proto" / "PROTOCOL.md").read_text().split("operands and as parameters (")[1].split(")")[0]
    assert {"expr", *re.findall(r"\w+", said)} == set(gemmd.calls.RESERVED)
    for name in ("kernel", "repeat", "alpha", "a"):  # parameters of others
        assert np.array_equal(client.eval(f"{name} + 1", {name: a}), a + 1)


def test_a_vector_is_kept_as_a_row(client):
    m, v = RNG.integers(-4, 4, (3, 4)).astype("f8"), np.arange(4.0)
    x, w, column = client.put(m, "row_m"), client.put(v, "row_v"), client.put(v[:, None], "row_c")
    assert w.shape == (1, 4) and np.array_equal((x @ w.T).get(), (m @ v)[:, None])
    assert np.array_equal((x @ column).get(), (m @ v)[:, None])
    # An error points into a text that the caller has not written: that is shown.
    for wrong in ((x @ w).get, (x @ w).keep, (x @ w).plan, (x @ v).get):
        with pytest.raises(gemmd.RequestError, match=r"^422 bad_shape: character 4: .*; the expression is 'v0 @ v1' \(request"):
            wrong()
    long = x
    for _ in range(100):
        long = long + 1
    with pytest.raises(gemmd.RequestError, match=r"; the expression is '(\.\.\.)?[v01 +@]{70,170}(\.\.\.)?'"):
        (long @ w + long).get()
    text, around = "".join(chr(0x100 + i) for i in range(400)), gemmd.calls._around
    assert around(text[:160], 160) == text[:160] and around(text, 200) == f"...{text[119:279]}..."
    assert around(text, 1) == f"{text[:80]}..." and around(text, 400) == f"...{text[319:]}"
    with pytest.raises(gemmd.RequestError) as caught:
        client.eval("x @ w", {"x": x, "w": w})
    assert "the expression is" not in str(caught.value)
    for one in (x, w, column):
        client.delete(one)
