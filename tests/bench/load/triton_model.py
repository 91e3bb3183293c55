"""The model `matmul` of a Triton server, for its Python backend. load.py puts it into a repository."""

import triton_python_backend_utils as triton


class TritonPythonModel:
    def execute(self, requests):
        return [self.multiply(request) for request in requests]

    def multiply(self, request):
        a, b = (triton.get_input_tensor_by_name(request, name).as_numpy() for name in "AB")
        return triton.InferenceResponse([triton.Tensor("C", a @ b)])
