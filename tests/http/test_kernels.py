"""Every kernel variant that the daemon lists, on every type it says that it takes."""

import forms
from forms import post

KERNEL_SIZES = [(33, 65, 31), (1, 65, 31), (33, 65, 1), (3, 300, 2), (65, 1, 64), (3, 0, 2)]
KERNEL_STACKS = [(5, 33, 20, 31), (2, 70, 65, 90)]


def kernels_of(daemon, op):
    kernels = [k for k in daemon.get("/v1/kernels").json()["kernels"] if k["op"] == op]
    assert len(kernels) >= 2
    return [(kernel["name"], dtype, device) for kernel in kernels for dtype in kernel["dtypes"]
            for device in kernel["devices"]]


def check_kernel(reply, case):
    """Whether it ran. "Unsupported" is an answer, if it says what can run this."""
    if reply.status == 422:
        assert reply.code == "kernel_unavailable" and "naive" in reply.json()["detail"], case
        return False
    assert reply.ok().stats["kernel"] == case[0], case
    return True


def test_every_transpose_kernel_gives_the_right_answer(daemon, rng):
    """Every variant that the daemon lists, on every type it says that it takes."""
    ran = set()
    with daemon.client() as client:
        for name, dtype, device in kernels_of(daemon, "transpose"):
            for shape in ((33, 65), (3, 129), (129, 3), (2, 31, 33), (32, 64), (0, 3)):
                a = forms.random_bits(rng, dtype, shape)
                body = forms.encode("npy", dtype, a)
                reply = post(client, "transpose", body, kernel=name, device=device)
                if check_kernel(reply, (name, dtype, device, shape)):
                    assert forms.same_bits(forms.decode(reply, dtype), forms.transposed(a))
                    ran.add((name, dtype, device))
    assert ran == set(kernels_of(daemon, "transpose"))


def test_every_matmul_kernel_gives_the_right_answer(daemon, rng):
    ran = set()
    with daemon.client() as client:
        for name, dtype, device in kernels_of(daemon, "matmul"):
            for m, k, n in KERNEL_SIZES:
                a, b = (forms.random_numbers(rng, dtype, shape) for shape in ((m, k), (k, n)))
                for form in ("raw", "npy-fortran"):
                    case = (name, dtype, device, form, m, k, n)
                    body = forms.encode(form, dtype, a, b)
                    reply = post(client, "matmul", body, kernel=name, device=device)
                    if check_kernel(reply, case):
                        forms.Product(dtype, a, b).check(forms.decode(reply, dtype), case)
                        ran.add((name, dtype, device))
            for batch, m, k, n in KERNEL_STACKS:
                a, b = (forms.random_numbers(rng, dtype, shape)
                        for shape in ((batch, m, k), (batch, k, n)))
                case = (name, dtype, device, batch, m, k, n)
                body = forms.encode("npy", dtype, a, b)
                reply = post(client, "matmul", body, kernel=name, device=device)
                if check_kernel(reply, case):
                    forms.Product(dtype, a, b).check(forms.decode(reply, dtype), case)
                    ran.add((name, dtype, device))
    assert ran == set(kernels_of(daemon, "matmul"))
