#!/usr/bin/env python3
"""Writes the inputs that fuzzing begins with: what tests/golden has, and hard cases by hand.

    seeds.py FOLDER     FOLDER/json/..., FOLDER/npy/..., one folder a target

The corpora that are committed began with these and keep what reaches more code: see run.sh.
"""
import hashlib
import pathlib
import struct
import sys

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
DTYPES = ["f16", "bf16", "f32", "f64", "i32", "i64", "bool", "i8", "u8", "i16", "u16", "u32", "u64",
          "c64", "c128", "v1", "v2", "v4", "v8", "v16"]


def choice(index):
    return bytes([ord("0") + index])


def dtype(name):
    return choice(DTYPES.index(name) + 1 if name else 0)


def golden_requests():
    """(query, body) of the recorded requests."""
    for path in sorted(GOLDEN.glob("http/*.request")):
        head, _, body = path.read_bytes().replace(b"\r\n", b"\n").partition(b"\n\n")
        target = head.split(b" ")[1]
        yield target.partition(b"?")[2], body


JSON = [
    b"[[1,2],[3,4]]", b" [ [ -0 , 2.5e-3 ] ,\n[\t1E+2,0.1]\r\n] ", b"[]", b"[[],[]]",
    b"[[[1,2]],[[3,4]]]", b"[[[],[]],[[],[]]]", b"[true,false,0,1]", b"{}", b"[1e400]", b"[1,null]",
    b'{"shape":[2,2],"dtype":"f64","data":[1,2,3,4]}', b'{"shape":[0,5],"data":[]}',
    b'{"a":[[1,2]],"b":{"data":[[3],[4]],"dtype":"f32"},"alpha":2.5,"c":7}',
    b'{"kernel":"til\\u0065d","transa":true,"a":[[1]],"b":[[2]],"beta":-1}',
    b'{"x":"\\ud83d\\ude00 \\"\\\\\\/\\b\\f\\n\\r\\t \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"}',
    b'{"refuse":1,"a":[1]}', b'{"dtype":"i64","a":[[9007199254740993,-9223372036854775808]]}',
    b'{"x":"\\ud800"}', b'{"x":"\xc0\xaf"}', b"\xef\xbb\xbf[1]", b'{"a":1,"a":2}', b"[[1,2],[3]]",
    b"[[1]]]", b"[01]", b"[1.]", b"[+1]", b"[NaN]", b"[-Infinity]", b"[[[[1]]]]", b"[\"1\"]",
    b'{"x":"\\ud834\\u0041"}', b'{"x":"\\ud834\\ue000"}', b'{"x":"\\udd1e"}', b'{"x":"\xed\xa0\x80"}',
    b'{"x":"\xe0\x80\xaf"}', b'{"x":"\xf0\x80\x80\xaf"}', b'{"x":"\xf4\x90\x80\x80"}', b'{"x":"\x01"}',
    b"[" + b",".join(b"[1.25,-3e-7,%d]" % i for i in range(40)) + b"]",
    b"[0.1000000000000000055511151231257827021181583404541015625]",
    b'{"shape":[18446744073709551615,2],"data":[1]}', b"[1" + b"0" * 60 + b"e-60]",
]

EVALS = """
x + y;2 * (x @ x.T) + x;alpha * (a @ b.T) + c;x.T @ y @ x @ y.T @ x;(a @ b) @ (c @ d);sum(x, axis=0);x.sum(1, keepdims=True)
mean(x, axis=(0, -1));max(x) - min(x, axis=None);where(x > 0, tanh(x), exp(-abs(x)) - 1);x[0:10, :3] @ y[::-1];x[-1][0];x[:, 1:]
s.mT[0] @ x;np.maximum(x, 0) ** 2;x ** 0.5 + 2 ** -1;i ** 13;x / (1 + sqrt(log(x)));-x ** -2;1 < 2;x == y;t * (x >= 1.5e3)
((x + 1) * (y + 2)) - ((x + 3) * (y + 4)) + ((x + 5) * (y + 6)) * ((x + 7) * (y + 8));exp(x) * exp(x) + sum(exp(x));3.5;.5
x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x * x
x @ x - (x @ x) * 2 + x @ x;c - x @ y;x[1:1].sum();x.T.T;transpose(x)[1];minimum(maximum(a, b), maximum(c, d)) + (a < b) * (c < d)
x = 1;x // 2;f(x);x[::0];012;1e999;99999999999999999999;9 ** 99;1 / 0;x.foo;sum(x, axes=1);((((((((x))))))));x[1,2,3,4];x +;(;"""
EVALS = [text for line in EVALS.strip().splitlines() for text in line.split(";") if text]

TENSOR = b'{"name":"A","shape":[1,2],"datatype":"FP32",%s}'
HANDLE = b"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw=="
KSERVE = [
    b'{"inputs":[%s]}' % (TENSOR % b'"data":[1,2]'),
    b'{"id":"a\\u00e9","inputs":[%s],"outputs":[{"name":"C"}]}' % (TENSOR % b'"data":[[1,2]]'),
    b'{"inputs":[%s],"parameters":{"binary_data_output":true,"timeout":1500,"kernel":"tiled"}}'
    % (TENSOR % b'"parameters":{"binary_data_size":8}'),
    b'{"outputs":[{"name":"C","parameters":{"binary_data":true}}],"inputs":[%s,%s]}' % (
        TENSOR % b'"data":[1,2]', (TENSOR % b'"data":[1,null]').replace(b"A", b"B")),
    b'{"inputs":[%s],"outputs":[{"name":"C","parameters":{"shared_memory_region":"r",'
    b'"shared_memory_byte_size":8,"shared_memory_offset":64}}]}'
    % (TENSOR % b'"parameters":{"shared_memory_region":"r","shared_memory_byte_size":8}'),
    b'{"inputs":[%s],"outputs":[{"name":"C","parameters":{"classification":3}}]}'
    % (TENSOR % b'"data":[1,2]'),
    b'{"inputs":[{"name":"A","shape":[18446744073709551615,2],"datatype":"INT8","data":[1]}]}',
    b'{"inputs":[{"name":"A","shape":[2],"datatype":"BOOL","data":[true,false]}],"id":""}',
    b'{"inputs":[{"name":"A","shape":[0,3],"datatype":"BF16","data":[]}],"parameters":null}',
    b'{"inputs":[%s]}' % (TENSOR % b'"data":[1,2,3]'), b'{"inputs":[]}', b"{}", b"[]", b"",
    b'{"inputs":[{}],"parameters":{"refuse":1,"sequence_id":3}}', b'{"inputs":[1,2]',
]
REGIONS = [
    b'{"key":"/gm_k","offset":4096,"byte_size":64}', b'{"key":"x","byte_size":-1}', b"{}", b"[1]",
    b'{"raw_handle":{"b64":"%s"},"device_id":0,"byte_size":64}' % HANDLE,
    b'{"raw_handle":{"b64":"AA=="},"byte_size":64}', b'{"raw_handle":{},"byte_size":1}',
]

NUMBERS = [
    "0", "-0", "0.0", "-0.0e-0", "1", "-1", "1e0", "1E+22", "1e23", "9007199254740993", "1e-400",
    "18446744073709551615", "18446744073709551616", "9223372036854775807", "-9223372036854775808",
    "127", "128", "-128", "-129", "255", "256", "32768", "65504", "65519.999", "65520", "1.5e1",
    "150e-1", "15e-1", "0.000e999999999999999999", "1e999999999999999999", "1e-999999999999999999",
    "1.7976931348623157e308", "1.7976931348623159e308", "4.9e-324", "2.4703282292062327e-324",
    "3.4028235e38", "3.4028236e38", "1.17549435e-38", "7.006492321624085e-46", "16777217", "8388609.5",
    "2.98023223876953125e-8", "5.960464477539063e-8", "0.00006103515625", "2049", "2051", "257", "259",
    "3.3895313892515355e38", "3.3961775292304957e38", "2049.0000000000000000000000000000000000001",
    "2048.9999999999999999999999999999999999999999", "9.18354961579912115600575419704879e-41",
    "0.1", "0.10000000000000000000000000000000000000000000000000000000000000000000000000000001",
    "123456789012345678901234567890", "00", "01", "-", "+1", ".5", "1.", "1e", "1e+", "true",
    "false", "tru", "NaN", "1" + "0" * 40 + "e-40", "0." + "0" * 50 + "1e51", "0" * 10, "1.0.0",
    "6.103515625e-05", "6.10053539276123046875e-05", "1e-45", "12345678901234567890e-5",
]

KEY_LINE = b"name=%s id=%s sha256=" + b"0123456789abcdefABCDEF0123456789" * 2 + b" roles=%s"
KEYS = [
    b"0", b"0\n \t\n# none\n\r\n", b"0" + KEY_LINE % (b"a", b"1", b"use"),
    b"0" + b"\n".join(KEY_LINE % (b"k%d" % i, b"%d" % i, b"use,read,admin") for i in range(3)),
    b"0" + b"\n".join(KEY_LINE % (b"a", b"%d" % i, b"use") for i in range(2)),
    b"0" + b"\n".join(KEY_LINE % (b"%d" % i, b"a", b"use") for i in range(2)),
    b"0" + KEY_LINE % (b"a.b_c-D", b"Z9", b"read") + b"  quota=requests=10,bytes=4KiB,device=60,memory=none,jobs=1\t\r\n",
    b"0" + KEY_LINE % (b"other", b"1", b"use"), b"0" + KEY_LINE % (b"a", b"1", b"use,use"), b"0name=a name=a", b"0name", b"0x=1",
    b"1Bearer 1a.secret", b"1bearer   1a.secret \t", b"1Basic dTphLmI=", b"1Basic OmEuYg==", b"1Basic YQ", b"1Basic ====",
    b"1Digest x", b"1Bearer " + b"k" * 160, b"1Basic " + b"QUFB" * 200, b"2requests=1", b"2bytes=99999999999999999999T,jobs=2",
    b"2memory=none,", b"2device=86401", b"2", b"2jobs", b"2jobs=1,jobs=1",
]
ACCEPT = [
    "*/*", "application/json", "application/json;q=0.5, application/x-npy", "text/*;q=0.3, */*;q=0",
    "application/*", "APPLICATION/X-NPY ; Q=0.001", "application/json;q=1.1", "application/json;q=x",
    "text/html,application/octet-stream;level=1;q=0.9", "\n\napplication/json", "text/csv",
    "a,b\nc;q=0\n*/*;q=0.1\nd\ne", ",", ", ,", "application/json;q=0, */*", "application/json;q=0.",
    "multipart/form-data; boundary=x", "application/json;q=0x1", "application/json;;q=1", ";q=1",
]

QUERIES = [
    "kernel=tiled&dtype=f32", "shape=3x4&shape_b=2x4x5&shape_a=3x4", "transa=1&transb=false",
    "alpha=2.5e-1&beta=9007199254740993", "alpha=-0&alpha=0", "alpha=1e999&beta=0x10", "repeat=1000",
    "repeat=1001&repeat=0&repeat=-1&repeat=+5", "timeout_ms=3600000&timeout_ms=1", "precision=tf32",
    "nonfinite=null&nonfinite=error", "header=true&header=0", "gpu=rtx-4090&gpu=RTX%204090", "format=svg&format=sv%67",
    "kernal=x&=&&a=b=c&%00=%00&%zz=%1", "dtype=%66%33%32", "shape=1x18446744073709551615x1",
    "shape=18446744073709551616", "device=cpu%3A0", "kernel=" + "k" * 80, "alpha=" + "1" * 72,
    "alpha=99999999999999999999", "beta=2.0&alpha=1e18", "shape_c=7&shape_c=7x1", "\xe9=\xff\xfe",
    "alpha=9223372036854775807&beta=-9223372036854775809", "alpha=1e-400&beta=.5", "shape=x&shape=0",
]


CSV = [
    "1,2\n3,4\n", "1;2\r\n3;4", "1\t2\n\n3\t4\n\n5\t6\n", "x,y\n1,2\n", '"a","b"\n"1","2"\n', "\ufeff1,2\n",
    "nan,-inf\nInfinity,+1\n", " 1 , 2 \n", "1,2,\n", "1,2\n3\n", "1,2\n\n3,4\n5,6\n", "", "\n\n", "a,b\n",
    "1\r2\r3", "1,5;2,5\n", "007,.5\n1.,-0\n", "true,FALSE\n", "1 2 3\n", "1e999,1e-999\n", "n/a,1\n",
    "9007199254740993,-9223372036854775808\n", "1\r\r\n2", "# x,y\n1,2", "1,\"2\"\"\"\n", '"1\n2",3\n', "1e400",
    "[1,2]", "@file", "id,1,2\n", "id,2019\n1,2\n", "x;\"2\"\n", "x,2nd,-\n1,2,3\n", "\n\nx,y\n\n", "1" * 60 + "," + "0" * 60 + "1\n", ",\n", ",,\n,,\n", "1\x002\n", "1,2\n \t \n3,4",
]

BODIES = [
    b"@a.npy", b"a.npy\n", b"--B\r\nContent-Disposition: form-data", b"\x1f\x8b\x08", b"PK\x03\x04", b"\x80\x04\x95",
    b"NUMPY\x01\x00v", b"\xef\xbf\xbdNUMPY", b"a=[[1]]&b=2", b"'[[1]]'", b"%5B%5B1", b"([1, 2])", b"1 2 3\n4 5 6",
    b"<html>", b"\xff\xfe1\0,\0", b"\xef\xbb\xbf[1]", b" " * 600 + b"[1]", b" " * 600 + b"x", b"x" * 600, b"\0\0\x80?",
]

MULTIPART = "multipart/form-data; boundary=B"


def part(fields, data=b"[[1]]"):
    return b"--B\r\n" + b"".join(f.encode() + b"\r\n" for f in fields) + b"\r\n" + data + b"\r\n"


A = 'Content-Disposition: form-data; name="a"'
MULTIPARTS = [
    part([A]) + part(['content-disposition: form-data; filename="x.npy"; name=b', "Content-Type: text/csv"]) + b"--B--\r\n",
    b"preamble\r\n" + part([A], b"\r\n--B x\r\n--\r\n-B\r\r\n--") + b"--B-- \r\nepilogue",
    part(['Content-Disposition: form-data; name="q\\"%22%0d"; filename*=UTF-8\'\'%e2%82%ac']) + b"--B--",
    part([A, "Content-Transfer-Encoding: base64"]) + b"--B--", part([A, A]) + b"--B--", part([]) + b"--B--",
    part([A, "Content-Type:", "X-Long: a", " folded", "\tmore"]) + b"--B--", part([A]) + b"--B", part([A]) + b"--B-",
    part(['Content-Disposition: form-data; name="refuse"']) + b"--B--", b"--B\n" + A.encode() + b"\n\nx\n--B--",
    b"--B \t\r\n" + A.encode() + b"\r\n\r\n\r\n--B--", b"--B--", b"x" * 5000, part([A], b"\r" * 90) + b"--B--",
    part([A], b"-") + part([A], b"--x") + part([A], b"--B-x") + b"--B--", part([A]) * 42 + b"--B--", part([A], b"") + part([A], b"\r\n") + b"--B--\r\n" + b"e" * 5000, b"--B\r\n" + b"h" * 5000,
]
TYPES = [
    MULTIPART, 'Multipart/Form-Data ; charset=x; boundary="B"', "multipart/form-data", "multipart/form-data; boundary=",
    "multipart/form-data; boundary=" + "B" * 71, 'multipart/form-data; boundary="\\B"', "multipart/form-data;boundary=B ;x",
]

# Events are letters (settle afterwards) or, 64 lower, what rushes on: see happen() in fuzz_sched.c.
RESERVE_COMMIT, RESERVE, COMMIT, RELEASE, LEAVE, HERE, UNRESERVE, MORE, FAIL = 0, 2, 3, 4, 6, 7, 8, 9, 10
SCHED = [
    [(RESERVE_COMMIT, 0)] * 5 + [(RELEASE, 0)] * 5,
    [(RESERVE_COMMIT, 1)] * 6 + [(RELEASE, 0)] * 3,
    [(RESERVE_COMMIT, 4), (RESERVE_COMMIT, 0), (RESERVE_COMMIT, 4)] * 2 + [(RELEASE, 0)] * 6,
    [(RESERVE_COMMIT, 1), (RESERVE_COMMIT, 5), (RESERVE_COMMIT, 1), (RESERVE_COMMIT, 2)] + [(RELEASE, 1)] * 4,
    [(RESERVE_COMMIT, 8), (RESERVE_COMMIT, 24), (RESERVE_COMMIT, 25), (RELEASE, 0)],
    [(RESERVE_COMMIT, 0)] * 4 + [(LEAVE, 0), (LEAVE, 3), (RELEASE, 16)],
    [(RESERVE_COMMIT, 1)] * 4 + [(LEAVE, 0), (LEAVE, 1), (LEAVE, 2), (RELEASE, 20)],
    [(RESERVE_COMMIT, 0)] * 4 + [(RESERVE, 0), (RELEASE, 28), (COMMIT, 0), (RESERVE, 0)],
    [(RESERVE, 0)] * 11 + [(UNRESERVE, 0)] * 2 + [(MORE, 0)] * 3 + [(COMMIT, 0)] * 5,
    [(RESERVE, 0), (HERE, 0), (RESERVE, 0), (HERE, 4), (RESERVE, 0), (RESERVE_COMMIT, 0), (HERE, 16), (HERE, 24)],
    [(RESERVE_COMMIT, 0)] * 4 + [(FAIL, 0), (RESERVE_COMMIT, 3), (FAIL, 1), (RESERVE_COMMIT, 4), (FAIL, 2)],
    [(RESERVE_COMMIT, k) for k in range(32)],
]


def near_ties():
    """16 digits next to the middle of two f32: as double they are the middle, as numbers not."""
    for significand in range(0x800001, 0x1000000, 0x55555):
        for exponent in (-60, -30, -24, 10):
            middle = (2 * significand + 1) * 2.0 ** (exponent - 1)
            text = "%.15e" % middle
            yield text[0] + text[2:17] + "e%d" % (int(text[18:]) - 15)


def npy(descr, order, shape, data, version=1):
    text = b"{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, order, shape)
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


NPY = [
    npy(b"<f4", b"False", b"(2, 2)", bytes(16)), npy(b">f8", b"True", b"(2, 2, 1)", bytes(32)),
    npy(b"|V16", b"False", b"()", bytes(16), 2), npy(b">c16", b"False", b"(1,)", bytes(16), 3),
    npy(b"<i2", b"False", b"(3, 0)", b""), npy(b"=f2", b"False", b"(3L,)", bytes(6)),
    npy(b"<V2", b"True", b"(2, 3)", bytes(12)), npy(b"<f4", b"False", b"(-1, 2)", b""),
    npy(b"<f4", b"False", b"(9223372036854775808, 2)", b""), npy(b"<O8", b"False", b"(1,)", bytes(8)),
    npy(b"<f4", b"False", b"(1, 1, 1, 1)", bytes(4)), npy(b"<U4", b"False", b"(1,)", bytes(16)),
    npy(b"<f4", b"False", b"(1, 2)", bytes(8)) + npy(b"<f4", b"False", b"(2, 1)", bytes(8)),
    npy(b"<f4", b"False", b"(2)", bytes(8)), b"\x93NUMPY", b"\x93NUMPY\x04\x00",
    npy(b"|b1", b"False", b"(1, 4)", b"\0\1\0\1"), npy(b"<m8[s]", b"False", b"(1,)", bytes(8)),
    b"\x93NUMPY\x01\x00" + b"\x60\x00" + b"{\"shape\": (2,), 'fortran_order':False,'descr':\"<f4\"}",
]

RAW = ["2x2\n", "2x3 3x2\n", "0x5\n", "4\n", "2x1x2 - 2\n", "-\n", "4294967296x4294967296\n", "\n"]


CONFIGS = [
    b"# where\nlisten = 127.0.0.1:0\n\nlisten=unix:/run/g.sock,mode=0660\r\n", b"listen = [::1]:8080,plain 0.0.0.0:1",
    b"queue-limit = 7\ntimeout = 1.5m\nmemory-limit=4GiB\nlanes = 3\n", b"queue-limt = 5\nno words\n= 5\n\0\n",
    b"tls-cert = /a.pem\ntls-key = /a.key\ntls-client-ca=x\ntls-priority = NORMAL\nsandbox = no\n",
    b"backend = quantum\nlog-level = debug\nallow-cuda-ipc = yes\nallow-shared-memory = /gemmd-\n",
    b"body-limit = 99999999999999999999T\ndrain-delay = 0.0001ms\nthreads = 1025\nlisten = " + b"127.0.0.1:1 " * 9,
    b"x" * 3000 + b"\nlisten = unix:" + b"y" * 200,
]


def seeds():
    for query, body in golden_requests():
        if body[:1] in b"[{" and body:
            yield "json", b"2" + dtype(None) + body
        if query:
            for op in range(5):
                yield "params", choice(op) + query
    for text in JSON:
        for asked in (None, "f64", "f16", "i64", "bool"):
            yield "json", b"2" + dtype(asked) + text
    for text in KSERVE:
        for operands, asked in ((0, None), (1, None), (2, "f32")):
            yield "kserve", choice(operands) + dtype(asked) + b"0" + text
    for text in REGIONS:
        yield "kserve", b"001" + text
        yield "kserve", b"002" + text
    for text in NUMBERS:
        for asked in range(13):
            yield "number", choice(asked) + text.encode()
    for text in near_ties():
        yield "number", choice(2) + text.encode()
    for asked in range(13):
        for element in (b"\0" * 8, b"\xff" * 8, b"\1" + b"\0" * 7, b"\0" * 6 + b"\xf0\x7f", b"\xab\x4c" * 4):
            # Bit 7 says that an element follows; this choice is the dtype modulo 13.
            first = next(b for b in range(128, 256) if (b - 48) % 256 % 13 == asked)
            yield "number", bytes([first]) + element
    for path in sorted(GOLDEN.glob("npy/*.npy")):
        yield "npy", b"2" + dtype(None) + b"s7" + path.read_bytes()
    for body in NPY:
        for asked in (None, "bf16"):
            yield "npy", b"1" + dtype(asked) + b"s7" + body
            yield "npy", b"0" + dtype(asked) + b"t9" + body
    for line in RAW:
        for size in (0, 4, 16, 48):
            for asked, said in (("f32", "0"), ("i8", "1"), ("c128", "2"), (None, "3")):
                yield "raw", b"2" + dtype(asked) + said.encode() + line.encode() + bytes(range(size))
    for text in KEYS:
        yield "key", text
    for text in ACCEPT:
        for preferred in range(4):
            yield "accept", choice(preferred) + text.encode()
    for text in QUERIES:
        for op in (0, 1, 2, 3, 4):
            yield "params", choice(op) + text.encode("latin1")
        yield "params", b"q" + text.encode("latin1")
    for text in CSV:
        for asked in (None, "f64", "bf16", "i64", "bool"):
            yield "csv", b"0" + dtype(asked) + text.encode()
    for text in BODIES + [text.encode() for text in CSV[:12]] + JSON[:6] + NPY[:2]:
        for operand, line in ((0, ""), (4, ""), (0, "application/octet-stream"), (2, "text/plain; x=y")):
            yield "format", choice(operand) + line.encode() + b"\n" + text
    for line in ACCEPT + TYPES:
        yield "format", b"1" + line.replace("\n", "").encode() + b"\n1,2"
    for body in MULTIPARTS:
        yield "multipart", b"s" + TYPES[0].encode() + b"\n" + body
    for line in TYPES:
        yield "multipart", b"t" + line.encode() + b"\n" + MULTIPARTS[0]
    for events in SCHED:
        for streams, batch, places in ((0, 0, 4), (1, 3, 9), (3, 1, 5), (2, 2, 0)):
            for settle in (64, 0):
                yield "sched", choice(streams) + choice(batch) + choice(places) + b"".join(
                    bytes([event + settle, detail]) for event, detail in events)
    for fmt in range(4):
        for asked in range(len(DTYPES)):
            for flags, sizes in ((0, b"23"), (1, b"32"), (2, b"222"), (7, b"213"), (4, b"04"), (3, b"101")):
                yield "encode", choice(fmt) + choice(asked) + choice(flags) + sizes + b"\1\x7f\xc0\x80\0\x3c"
    for text in CONFIGS:
        yield "config", text
    for text in EVALS:
        for kind, size in ((0, 1), (1, 2), (3, 12), (4, 1), (6, 9), (8, 13), (15, 4), (2, 5), (10, 10), (0, 15)):
            yield "eval", choice(kind) + choice(size) + text.encode()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    for target, text in seeds():
        folder = root / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hashlib.sha1(text).hexdigest()).write_bytes(text)


if __name__ == "__main__":
    main()
