"""load.py - clients that transpose until told to stop (SIGTERM), each result checked. The last line says how many
requests were answered and what became of the others; the exit status is 1 if any was lost."""

import argparse
import collections
import signal
import threading
import time

import numpy as np

import gemmd

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--url", required=True)
parser.add_argument("--ca")
parser.add_argument("--key-file")
parser.add_argument("--threads", type=int, default=4)
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--requests", type=int, default=1 << 30, help="of each thread")
parser.add_argument("--retries", type=int, help="as gemmd.Client")
parser.add_argument("--until-refused", action="store_true", help="a refused connection ends a thread, and is no fault")
parser.add_argument("--parameter", action="append", default=[], help="NAME=VALUE")
options = parser.parse_args()

key = open(options.key_file, encoding="ascii").read().strip() if options.key_file else ""
parameters = dict(one.split("=", 1) for one in options.parameter)
retries = 0 if options.until_refused else options.retries
answered = collections.Counter()
lost = []
slowest = 0.0
end = time.monotonic() + options.seconds
stopped = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopped.set())


def work(number: int) -> None:
    global slowest
    rng = np.random.default_rng(number)
    with gemmd.Client(options.url, ca=options.ca, key=key, retries=retries) as client:
        while time.monotonic() < end and not stopped.is_set() and answered[number] < options.requests:
            a = rng.standard_normal((16, 16)).astype(np.float32)
            began = time.monotonic()
            try:
                result = client.transpose(a, **parameters)
            except gemmd.Error as error:
                if options.until_refused and (error.status == 503 or "refused" in str(error)):
                    return
                lost.append(repr(error))
                return
            slowest = max(slowest, time.monotonic() - began)
            if not np.array_equal(result, a.T):
                lost.append("a result is wrong")
            answered[number] += 1


threads = [threading.Thread(target=work, args=(number,)) for number in range(options.threads)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"{sum(answered.values())} answered, {len(lost)} lost, the slowest took {slowest:.2f} s", *lost[:3], sep="; ")
raise SystemExit(1 if lost or not answered else 0)
