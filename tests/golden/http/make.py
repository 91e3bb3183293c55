#!/usr/bin/python3
"""Writes the golden requests: each NAME.request is the bytes of one HTTP request. Their replies,
NAME.reply, are written by the test that replays them (see tests/http/test_golden.py)."""

import io
import os

import numpy as np


def npy(array, version=(1, 0)):
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asanyarray(array), version=version)
    return out.getvalue()


def request(method, target, body=None, *headers, chunks=0):
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", "X-Request-Id: golden", *headers]
    if chunks:
        lines.append("Transfer-Encoding: chunked")
        pieces = [body[i : i + chunks] for i in range(0, len(body), chunks)] + [b""]
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    elif body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


JSON, NPY, RAW = (
    "Content-Type: application/" + fmt for fmt in ("json", "x-npy", "octet-stream")
)
CSV = "Content-Type: text/csv"
A = np.arange(6, dtype="<f4").reshape(2, 3)
B = np.arange(12, dtype="<f4").reshape(3, 4)
C = np.ones((2, 4), dtype="<f4")

REQUESTS = {
    "transpose_json_bare": request("POST", "/v1/transpose", b"[[1,2,3],[4,5,6.5]]", JSON),
    "transpose_json_i64": request(
        "POST", "/v1/transpose", b'{"shape":[1,2],"dtype":"i64","data":[9007199254740993,-1]}', JSON
    ),
    "transpose_curl_default": request(
        "POST", "/v1/transpose", b"[[0.1,-0.0]]", "Content-Type: application/x-www-form-urlencoded"
    ),
    "transpose_npy": request("POST", "/v1/transpose", npy(A), NPY),
    "transpose_npy_big_endian_fortran": request(
        "POST", "/v1/transpose", npy(np.asfortranarray(A.astype(">i2")), (2, 0)), NPY
    ),
    "transpose_npy_to_json": request(
        "POST", "/v1/transpose", npy(A), NPY, "Accept: application/json"
    ),
    "transpose_raw_stack": request(
        "POST", "/v1/transpose?shape=2x1x3&dtype=u8", bytes(range(6)), RAW
    ),
    "transpose_chunked": request("POST", "/v1/transpose", npy(A), NPY, chunks=7),
    "transpose_empty": request("POST", "/v1/transpose", b'{"shape":[0,5],"data":[]}', JSON),
    "matmul_json": request(
        "POST", "/v1/matmul", b'{"a":[[1,2],[3,4]],"b":[[5,6],[7,8]],"alpha":2}', JSON
    ),
    "matmul_json_beta": request(
        "POST",
        "/v1/matmul?beta=-1&transb=1&dtype=i32",
        b'{"a":[[1,2]],"b":[[3,4],[5,6]],"c":[[1,1]]}',
        JSON,
    ),
    "matmul_npy_three": request("POST", "/v1/matmul?kernel=naive", npy(A) + npy(B) + npy(C), NPY),
    "matmul_raw": request(
        "POST",
        "/v1/matmul?shape_a=2x3&shape_b=3x4",
        A.tobytes() + B.tobytes(),
        RAW,
    ),
    "matmul_nonfinite": request("POST", "/v1/matmul", b'{"a":[[3e38]],"b":[[10]]}', JSON),
    "add_json_row": request("POST", "/v1/add", b'{"a":[[1,2],[3,4]],"b":[10,20]}', JSON),
    "add_npy_outer": request("POST", "/v1/add", npy(A[:, :1]) + npy(A[:1]), NPY),
    "add_raw_stack": request(
        "POST",
        "/v1/add?shape_a=2x1x3&shape_b=1x1&dtype=i64",
        np.arange(7, dtype="<i8").tobytes(),
        RAW,
    ),
    "flip_json_bare": request("POST", "/v1/flip", b"[[1,2,3],[4,5,6.5]]", JSON),
    "flip_raw_c64": request("POST", "/v1/flip?shape=1x2&dtype=c64", bytes(range(16)), RAW),
    "error_add_shapes": request("POST", "/v1/add", b'{"a":[[1,2,3]],"b":[[4,5]]}', JSON),
    "error_add_alpha": request("POST", "/v1/add?alpha=2", b'{"a":[[1]],"b":[[2]]}', JSON),
    "error_flip_two": request("POST", "/v1/flip", b'{"a":[[1]],"b":[[2]]}', JSON),
    "error_path": request("GET", "/v3", None),
    "error_method": request("GET", "/v1/transpose", None),
    "error_no_body": request("POST", "/v1/transpose", None),
    "error_media_type": request("POST", "/v1/transpose", b"1,2", "Content-Type: text/html"),
    "error_no_format": request("POST", "/v1/transpose", b"1,2\n"),
    "error_accept": request("POST", "/v1/transpose", b"[1]", JSON, "Accept: image/png"),
    "error_encoding": request("POST", "/v1/transpose", b"[1]", JSON, "Content-Encoding: gzip"),
    "error_json": request("POST", "/v1/transpose", b"[[1,2],[3,]]", JSON),
    "transpose_csv": request("POST", "/v1/transpose", b"x;y\r\n1;.5\r\n-0;nan\r\n", CSV),
    "transpose_csv_stack": request(
        "POST", "/v1/transpose?dtype=i64", b"1,9007199254740993\n\n3,4\n", CSV
    ),
    "transpose_csv_empty": request("POST", "/v1/transpose", b"", CSV),
    "transpose_json_to_csv": request(
        "POST", "/v1/transpose", b"[[1,2.5],[3,4]]", JSON, "Accept: text/csv;q=0.9, image/png"
    ),
    "error_csv": request("POST", "/v1/transpose", b"1,5;2,5\n", CSV),
    "error_csv_ragged": request("POST", "/v1/transpose", b"1,2\n3\n", CSV),
    "error_csv_two": request("POST", "/v1/matmul", b"1,2\n", CSV),
    "error_format_gzip": request("POST", "/v1/transpose", b"\x1f\x8b\x08" + bytes(20)),
    "error_ragged": request("POST", "/v1/transpose", b"[[1,2],[3]]", JSON),
    "error_shapes": request("POST", "/v1/matmul", b'{"a":[[1,2]],"b":[[3,4]]}', JSON),
    "error_missing": request("POST", "/v1/matmul", b'{"a":[[1,2]]}', JSON),
    "error_dtypes": request("POST", "/v1/matmul", npy(A) + npy(B.astype("<f8")), NPY),
    "error_parameter": request("POST", "/v1/transpose?kernal=naive", b"[1]", JSON),
    "error_kernel": request("POST", "/v1/transpose?kernel=fastest", b"[1]", JSON),
    "error_device": request("POST", "/v1/transpose?device=tpu", b"[1]", JSON),
    "error_truncated": request("POST", "/v1/transpose", npy(A)[:-4], NPY),
    "error_trailing": request("POST", "/v1/transpose?shape=1x1", b"12345678", RAW),
    "error_two_lengths": request("POST", "/v1/transpose", b"[1]", JSON, "Content-Length: 3"),
    "health": request("GET", "/healthz", None),
    "ready_head": request("HEAD", "/readyz", None),
}

if __name__ == "__main__":
    for name, content in REQUESTS.items():
        with open(os.path.join(os.path.dirname(__file__), name + ".request"), "wb") as file:
            file.write(content)
