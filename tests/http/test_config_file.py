"""--config FILE and --check: what is read, what is refused, and that all faults are named at once."""

import pathlib

import pytest

from daemon import Daemon, run


PROFILE = pathlib.Path(__file__).resolve().parents[2] / "kernels/choose/profiles/h200.inc"


def write(folder, text):
    path = folder / "gemmd.conf"
    path.write_text(text)
    return str(path)


GOOD = """# where
listen = 127.0.0.1:0

   queue-limit=7
memory-limit = 256M\r
timeout = 5s
allow-cuda-ipc = no
"""


def limits(daemon):
    return daemon.get("/v1/stats").ok().json()["limits"]


def test_options_from_a_file(tmp_path):
    daemon = Daemon("--config", write(tmp_path, GOOD), listen=False)
    try:
        text = daemon.get("/metrics").ok().body.decode()
        assert 'gemmd_queue_capacity{device="cpu:0"} 7\n' in text
        assert f"gemmd_memory_limit_bytes {256 << 20}\n" in text
    finally:
        daemon.stop()
        daemon.kill()


def test_environment_and_command_line_come_first(tmp_path):
    path = write(tmp_path, GOOD)
    daemon = Daemon("--queue-limit", "9", listen=False,
                    env={"GEMMD_CONFIG": path, "GEMMD_MEMORY_LIMIT": "128M",
                         "GEMMD_QUEUE_LIMIT": "8"})
    try:
        text = daemon.get("/metrics").ok().body.decode()
        assert 'gemmd_queue_capacity{device="cpu:0"} 9\n' in text
        assert f"gemmd_memory_limit_bytes {128 << 20}\n" in text
    finally:
        daemon.stop()
        daemon.kill()


def test_all_faults_at_once(tmp_path):
    path = write(tmp_path, "queue-limit = many\nno words\n# fine\nqueue-limt = 5\n= 5\n"
                           "timeout = 2h\nconfig = x\nlisten = here\n" + "x" * 3000 + "\n\n")
    done = run("--config", path, "--threads", "some", env={"GEMMD_STREAMS": "all"})
    assert done.returncode == 2 and done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 10, done.stderr
    for line, words in zip(lines, [
            (f"{path}:1: ", "queue-limit", "many"), (f"{path}:2: ", "NAME = VALUE"),
            (f"{path}:4: ", "nearest is queue-limit"), (f"{path}:5: ", "no option"),
            (f"{path}:6: ", "out of range"), (f"{path}:7: ", "config"), (f"{path}:8: ", "listen"),
            (f"{path}:9: ", "too long"), ("GEMMD_STREAMS",), ("--threads",)]):
        for word in words:
            assert word in line, (word, line)
    assert run("--config", path, "--check").returncode == 1


def test_the_largest_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"threads = 1\n".ljust(65536, b"\n"))
    done = run("--config", str(path), "--check")
    assert done.returncode == 0, done


@pytest.mark.parametrize("content,said", [
    (b"listen = 127.0.0.1:0\0\n", "zero byte"),
    (b"#" * 65537, "too large"),
    (None, "No such file"),
])
def test_what_is_no_file(tmp_path, content, said):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    for more in ((), ("--check",)):
        done = run("--config", str(path), *more)
        assert done.returncode == (1 if more else 2) and said in done.stderr, done
    assert run("--config").returncode == 2
    assert "Is a directory" in run("--config", str(tmp_path)).stderr


def test_check(tmp_path):
    done = run("--check", "--config", write(tmp_path, GOOD))
    assert (done.returncode, done.stderr) == (0, "") and done.stdout
    # It does not listen: a port that is taken does not matter, and nothing is left.
    done = run("--check", "--listen", f"unix:{tmp_path}/none/sock", "--keys", f"{tmp_path}/no-keys")
    assert done.returncode == 1 and f"{tmp_path}/none: No such file" in done.stderr
    assert f"{tmp_path}/no-keys: No such file or directory (gemmctl key new makes" in done.stderr
    done = run("--check", "--listen", f"unix:{tmp_path}/sock")
    assert done.returncode == 0 and not (tmp_path / "sock").exists()
    assert run("--check", "--queue-limit", "0").returncode == 1
    for option, value, wrong in (("--matrix-dir", tmp_path, tmp_path / "nowhere"),
                                 ("--profile", PROFILE, write(tmp_path, GOOD))):
        assert run("--check", option, str(value)).returncode == 0
        done = run("--check", option, str(wrong))
        assert done.returncode == 1 and option in done.stderr
