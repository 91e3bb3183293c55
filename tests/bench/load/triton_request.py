"""Writes the bytes that tritonclient sends for a product, and says how many of them are its JSON.

    triton_request.py SIZE OPERANDS BODY    OPERANDS: the elements of two f32 matrices, SIZE x SIZE
"""

import sys

import numpy as np
import tritonclient.http as triton


def main():
    size, operands, body = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    inputs = []
    for name, matrix in zip("AB", np.fromfile(operands, np.float32).reshape(2, size, size)):
        inputs.append(triton.InferInput(name, matrix.shape, "FP32"))
        inputs[-1].set_data_from_numpy(matrix)
    outputs = [triton.InferRequestedOutput("C")]
    data, json_bytes = triton.InferenceServerClient.generate_request_body(inputs, outputs=outputs)
    with open(body, "wb") as file:
        file.write(data)
    print(json_bytes)


main()
