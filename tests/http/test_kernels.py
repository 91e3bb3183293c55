"""Every kernel variant that the daemon lists, on every type it says that it takes."""

import formats
from formats import post

KERNEL_SIZES = [(33, 64, 36), (3, 300, 2)]  # one at least is for every variant
# Of these each variant has one for a type, in turns.
KERNEL_EDGES = [(33, 65, 31), (1, 65, 31), (33, 65, 1), (65, 1, 64), (3, 0, 2)]
KERNEL_STACKS = [(5, 33, 20, 31), (2, 34, 65, 40)]


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
                a = formats.random_bits(rng, dtype, shape)
                body = formats.encode("npy", dtype, a)
                reply = post(client, "transpose", body, kernel=name, device=device)
                if check_kernel(reply, (name, dtype, device, shape)):
                    assert formats.same_bits(formats.decode(reply, dtype), formats.transposed(a))
                    ran.add((name, dtype, device))
    assert ran == set(kernels_of(daemon, "transpose"))


def test_every_matmul_kernel_gives_the_right_answer(daemon, rng):
    ran = set()
    with daemon.client() as client:
        for i, (name, dtype, device) in enumerate(kernels_of(daemon, "matmul")):
            for j, (m, k, n) in enumerate([*KERNEL_SIZES, KERNEL_EDGES[i % len(KERNEL_EDGES)]]):
                fmt = ("raw", "npy-fortran")[(i + j) % 2]
                a, b = (formats.random_numbers(rng, dtype, shape) for shape in ((m, k), (k, n)))
                case = (name, dtype, device, fmt, m, k, n)
                body = formats.encode(fmt, dtype, a, b)
                reply = post(client, "matmul", body, kernel=name, device=device)
                if check_kernel(reply, case):
                    formats.Product(dtype, a, b).check(formats.decode(reply, dtype), case)
                    ran.add((name, dtype, device))
            for batch, m, k, n in KERNEL_STACKS[i % 2:i % 2 + 1]:
                a, b = (formats.random_numbers(rng, dtype, shape)
                        for shape in ((batch, m, k), (batch, k, n)))
                case = (name, dtype, device, batch, m, k, n)
                body = formats.encode("npy", dtype, a, b)
                reply = post(client, "matmul", body, kernel=name, device=device)
                if check_kernel(reply, case):
                    formats.Product(dtype, a, b).check(formats.decode(reply, dtype), case)
                    ran.add((name, dtype, device))
    assert ran == set(kernels_of(daemon, "matmul"))


ALIASES = {
    "registers": "register_tiled", "pipelined": "multistage", "fitted": "multistage_tuned",
    "small": "small_tile", "dynamic": "dynamic_tile", "stack": "batched", "dot": "split_k_dot",
    "shifted": "unaligned", "bytes": "packed_u8",
}
TRANSPOSES = {"shifted": "f32", "bytes": "u8", "stack": "f32"}


def test_old_names_of_kernels_are_aliases(daemon, rng):
    """Wherever a kernel can be named; answers say the new name, and no list has the old one."""
    listed = {kernel["name"] for kernel in daemon.get("/v1/kernels").json()["kernels"]}
    assert not listed & set(ALIASES) and set(ALIASES.values()) <= listed
    with daemon.client() as client:
        for old, new in ALIASES.items():
            if old in TRANSPOSES:
                a = formats.random_bits(rng, TRANSPOSES[old], (3, 9, 8))
                body = formats.encode("npy", TRANSPOSES[old], a)
                reply = post(client, "transpose", body, kernel=old, device="sim")
                assert formats.same_bits(formats.decode(reply, TRANSPOSES[old]), formats.transposed(a))
                assert reply.ok().stats["kernel"] == new
            if old not in ("shifted", "bytes"):
                a, b = (formats.random_numbers(rng, "f32", shape) for shape in ((5, 4, 9), (5, 9, 3)))
                reply = post(client, "matmul", formats.encode("npy", "f32", a, b), kernel=old,
                             device="sim")
                formats.Product("f32", a, b).check(formats.decode(reply, "f32"), old)
                assert reply.ok().stats["kernel"] == new
            op, more = ("transpose", {"dtype": "u8"}) if old in TRANSPOSES else ("matmul", {})
            shape = {"dot": {"shape": "3x96", "shape_b": "96x2"}}.get(old, {"shape": "96x96"})
            if old == "stack":
                shape = {"shape": "4x33x32"}
            if op == "matmul" and "shape_b" not in shape:
                shape = {**shape, "shape_b": "96x96"}
            query = "&".join(f"{k}={v}" for k, v in {**shape, **more}.items())
            page = daemon.get(f"/v1/explain/{op}?kernel={old}&format=json&{query}").json()
            assert page["kernel"] == new
        body = formats.encode("npy", "f32", formats.random_bits(rng, "f32", (3, 9, 8)))
        report = post(client, "compare/transpose", body, accept="application/json", device="sim",
                      kernel="shifted")
        assert [row["kernel"] for row in report.ok().json()["rows"]].count("unaligned") == 1


def test_a_kernel_of_another_device_is_refused_with_its_devices(daemon):
    """Here `tiled` of a transpose is the simulator's, and a GPU's in builds for one."""
    reply = daemon.post("/v1/transpose?kernel=tiled&device=cpu", b"[[1, 2]]",
                        {"Content-Type": "application/json"})
    assert (reply.status, reply.code) == (422, "kernel_unavailable")
    detail = reply.json()["detail"]
    assert 'kernel "tiled" does not run on device cpu; it runs on: sim' in detail, detail
