"""The service that is written in an afternoon: FastAPI and NumPy, run by uvicorn. ARRAYS=cupy makes it
compute on a GPU.

    uvicorn --app-dir tests/bench/load numpy_server:app

It takes what gemmd takes, for transpose and matmul of f32: bare elements with ?shape_a= and
?shape_b=, .npy files back to back, and JSON.
"""

import importlib
import io
import os

import numpy as np
from fastapi import FastAPI, Request, Response

arrays = importlib.import_module(os.environ.get("ARRAYS", "numpy"))
app = FastAPI()


def shape_of(text):
    return tuple(int(size) for size in text.split("x"))


async def operands(request, media_type):
    body = await request.body()
    if media_type == "application/json":
        document = await request.json()
        rows = [document["a"], document["b"]] if isinstance(document, dict) else [document]
        return [np.array(x, dtype=np.float32) for x in rows]
    if media_type == "application/x-npy":
        file = io.BytesIO(body)
        found = []
        while file.tell() < len(body):
            found.append(np.load(file))
        return found
    found, at = [], 0
    for name in ("shape_a", "shape_b"):
        if name in request.query_params:
            shape = shape_of(request.query_params[name])
            found.append(np.frombuffer(body, np.float32, shape[0] * shape[1], at).reshape(shape))
            at += found[-1].nbytes
    return found


def reply(result, media_type):
    if arrays is not np:
        result = arrays.asnumpy(result)
    if media_type == "application/json":
        return {"shape": result.shape, "dtype": "f32", "data": result.tolist()}
    if media_type == "application/x-npy":
        file = io.BytesIO()
        np.save(file, result)
        return Response(file.getvalue(), media_type=media_type)
    return Response(result.tobytes(), media_type=media_type)


@app.post("/v1/transpose")
async def transpose(request: Request):
    media_type = request.headers["content-type"]
    (a,) = await operands(request, media_type)
    return reply(arrays.ascontiguousarray(arrays.asarray(a).T), media_type)


@app.post("/v1/matmul")
async def matmul(request: Request):
    media_type = request.headers["content-type"]
    a, b = await operands(request, media_type)
    return reply(arrays.asarray(a) @ arrays.asarray(b), media_type)
