"""What monitors gemmd, made by others: promtool on its metrics and alerts, and a real Prometheus
that scrapes it and answers every expression of the dashboard and of the alerts."""

import json
import math
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "http"))

import daemon as gemmd  # noqa: E402
import prometheus  # noqa: E402

ROOT = HERE.parent.parent
MONITORING = ROOT / "deploy" / "monitoring"
RULES_TEST = HERE / "alerts_test.yml"
SCRAPES = 'count_over_time(up{job="gemmd"}[1m])'
SERIES_MAX = 1500  # of a daemon that was asked for everything
SELECTOR = re.compile(r"\b(?:gemmd|process|up)\w*\b(?:\{[^}]*\})?")


def tool(name):
    """Where it is installed, or where deploy/deps.sh unpacks it."""
    return shutil.which(name) or shutil.which(name, path=ROOT / "build" / "prometheus")


PROMTOOL, PROMETHEUS = tool("promtool"), tool("prometheus")


@pytest.fixture(scope="session", autouse=True)
def both_are_here():
    if not (PROMTOOL and PROMETHEUS):
        pytest.exit("skipped: promtool and prometheus are not here; tests/run.sh fetches them where apt-get can", 77)


def promtool(*arguments, text=None):
    """(status, what it says)"""
    done = subprocess.run([PROMTOOL, *arguments], input=text, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


AB = b'{"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 8]]}'
SLOW_PRODUCT = "/v1/matmul?device=sim&kernel=naive&timeout_ms=1"
LARGE = json.dumps({"a": [[1] * 128] * 128, "b": [[1] * 128] * 128}).encode()
WORK = (  # path, body, status
    ("/v1/transpose", b"[[1, 2], [3, 4]]", 200),  # so small that it runs at once
    ("/v1/transpose?kernel=naive", b"[[1, 2], [3, 4]]", 200),  # by the queue
    ("/v1/matmul?kernel=naive", AB, 200),
    ("/v1/add", AB, 200),
    ("/v1/flip", b"[[1, 2]]", 200),
    ("/v1/add?device=sim", AB, 200),
    ("/v1/add", b"[[", 400),
    (SLOW_PRODUCT, LARGE, 503),
)


def ask_for_everything(daemon):
    with daemon.client() as client:
        for path, body, status in WORK:
            reply = client.post(path, body)
            assert reply.status == status, reply
        client.post("/v1/compare/add", AB).ok()
        for path in ("/v1/explain/copy?shape=32x32", "/v1/kernels", "/v1/devices", "/v1/stats", "/metrics"):
            client.get(path).ok()
        assert client.get("/none/such").status == 404


@pytest.fixture(scope="module")
def daemon():
    one = gemmd.Daemon("--quota", "requests=1000000")  # without one there are no figures of clients
    yield one
    one.stop()


def metrics_text(daemon):
    return daemon.get("/metrics").ok().body.decode()


# The metrics.


def test_promtool_on_the_metrics(daemon):
    fresh = metrics_text(daemon)
    ask_for_everything(daemon)
    for text in (fresh, metrics_text(daemon)):
        assert promtool("check", "metrics", text=text) == (0, "")
    # It would say so.
    for wrong in ("# TYPE gemmd_more counter\ngemmd_more 1\n", "# HELP a_ms A.\n# TYPE a_ms gauge\na_ms 1\n",
                  "gemmd_connections{ 1\n"):
        status, said = promtool("check", "metrics", text=fresh + wrong)
        assert status != 0 and said, wrong


def test_series_are_few(daemon):
    ask_for_everything(daemon)
    series = [line for line in metrics_text(daemon).splitlines() if not line.startswith("#")]
    assert len(series) <= SERIES_MAX
    ask_for_everything(daemon)
    assert len(metrics_text(daemon).splitlines()) - len(series) <= 2 * len(prometheus.read(daemon)) + 5


# The rules.


def test_promtool_on_the_files():
    for arguments in (("config", MONITORING / "prometheus.yml"), ("rules", MONITORING / "alerts.yml")):
        status, said = promtool("check", *arguments)
        assert status == 0 and "SUCCESS" in said, said


def alert_names(text):
    return re.findall(r"^ *- alert: (\w+)$", text, re.MULTILINE)


def test_alerts_fire_when_they_should(tmp_path):
    status, said = promtool("test", "rules", RULES_TEST)
    assert status == 0, said
    rules, cases = (MONITORING / "alerts.yml").read_text(), RULES_TEST.read_text()
    names = alert_names(rules)
    assert len(names) >= 10
    for name in names:
        fires = rf'alertname="{name}", alertstate|alertname: {name}\n +eval_time: \w+\n +exp_alerts:'
        assert re.search(fires, cases), f"no case in which {name} fires"
    # One that never fires, or always, is noticed.
    moved = tmp_path / "cases.yml"
    moved.write_text(cases.replace("../../deploy/monitoring/alerts.yml", "alerts.yml"))
    for change in ((" > 0.05", " > 50"), ("for: 30m", "for: 1m")):
        assert change[0] in rules
        (tmp_path / "alerts.yml").write_text(rules.replace(*change))
        status, said = promtool("test", "rules", moved)
        assert status != 0 and "FAILED" in said, change


# A real Prometheus.


class Prometheus:
    """Scrapes a daemon each second with the files of deploy/, with only times and addresses changed."""

    def __init__(self, folder, daemon):
        text = (MONITORING / "prometheus.yml").read_text()
        for was, now in (("scrape_interval: 15s", "scrape_interval: 1s"),
                         ("evaluation_interval: 15s", "evaluation_interval: 1s"),
                         ('["127.0.0.1:8080"]', f'["127.0.0.1:{daemon.port}"]')):
            assert text.count(was) == 1, was
            text = text.replace(was, now)
        shutil.copy(MONITORING / "alerts.yml", folder)
        (folder / "prometheus.yml").write_text(text)
        self.process = subprocess.Popen(
            [*gemmd.DIE_WITH_PARENT, PROMETHEUS, f"--config.file={folder}/prometheus.yml",
             f"--storage.tsdb.path={folder}/data", "--web.listen-address=127.0.0.1:0", "--log.format=logfmt"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder,
            env={**os.environ, "GOMAXPROCS": "2"})
        try:
            self.url = self.address(time.monotonic() + 30)
            # What it goes on to say must not fill the pipe.
            threading.Thread(target=self.process.stderr.read, daemon=True).start()
        except BaseException:
            self.stop()
            raise

    def address(self, deadline):
        """It listens on a free port and logs which one."""
        said = b""
        while time.monotonic() < deadline:
            if select.select([self.process.stderr], [], [], 1)[0]:
                piece = os.read(self.process.stderr.fileno(), 65536)
                assert piece, said.decode()
                said += piece
            found = re.search(rb"address=(127\.0\.0\.1:[1-9]\d*)\b", said)
            if found:
                return f"http://{found[1].decode()}"
        raise AssertionError(said.decode())

    def ask(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=10) as reply:
            document = json.load(reply)
        assert document["status"] == "success", document
        return document["data"]

    def values(self, expression):
        """The numbers that an expression has now; whatever does not parse is an error."""
        try:
            data = self.ask("query", query=expression)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from None
        samples = [data["result"]] if data["resultType"] == "scalar" else [r["value"] for r in data["result"]]
        return [float(value) for _, value in samples]

    def stop(self):
        self.process.kill()
        self.process.wait()


def has_data(prom, expression):
    return any(math.isfinite(value) for value in prom.values(expression))


@pytest.fixture(scope="module", autouse=True)
def started(daemon, tmp_path_factory):
    """From the first test on, since it takes five seconds to begin with scraping."""
    one = Prometheus(tmp_path_factory.mktemp("prometheus"), daemon)
    yield one
    one.stop()


@pytest.fixture(scope="module")
def prom(daemon, started):
    """It has scraped the daemon some times, before and after work that moved every counter."""
    deadline = time.monotonic() + 30
    seen = scraped = sum(started.values(SCRAPES))
    while scraped < seen + 3 or not started.ask("rules")["groups"][0]["rules"][0]["lastEvaluation"].startswith("2"):
        assert time.monotonic() < deadline, "no scrapes"
        ask_for_everything(daemon)
        time.sleep(0.2)
        scraped = sum(started.values(SCRAPES))
    return started


def dashboard():
    return json.loads((MONITORING / "dashboard.json").read_text())


def expressions(node):
    """Every expression of the dashboard, wherever it is."""
    if isinstance(node, dict):
        if "expr" in node:
            yield node["expr"]
        for value in node.values():
            yield from expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value)


def filled_in(expression):
    """As Grafana sends it: all of the daemons, and a span of some scrapes."""
    for variable, value in (("$instance", ".*"), ("$__rate_interval", "10s")):
        expression = expression.replace(variable, value)
    assert "$" not in expression, expression
    return expression


def test_the_daemon_is_scraped(prom, daemon):
    (target,) = prom.ask("targets", state="active")["activeTargets"]
    assert target["health"] == "up" and not target["lastError"]
    assert prom.values('up{job="gemmd"}') == [1]
    # All that /metrics has, and with its types: what Prometheus makes of it is what is meant.
    known = prom.ask("metadata")
    for name, metric in prometheus.read(daemon).items():
        assert [(one["type"], one["help"]) for one in known[name]] == [(metric.type, metric.help)]


def test_every_panel_has_data(prom):
    found = list(expressions(dashboard()["panels"]))
    assert len(found) >= 25
    for expression in found:
        assert has_data(prom, filled_in(expression)), expression
    variable = dashboard()["templating"]["list"][1]["definition"]
    name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable).groups()
    assert prom.ask(f"label/{label}/values", **{"match[]": name})
    for annotation in dashboard()["annotations"]["list"]:
        prom.values(filled_in(annotation["expr"]))  # empty where no alert fires
    assert not has_data(prom, "gemmd_no_such_metric")  # an expression without data shows


def test_every_alert_is_evaluated_on_data(prom):
    (group,) = prom.ask("rules")["groups"]
    assert [rule["name"] for rule in group["rules"]] == alert_names((MONITORING / "alerts.yml").read_text())
    for rule in group["rules"]:
        assert rule["health"] == "ok" and "lastError" not in rule, rule
        prom.values(rule["query"])
        # The condition is not met, or not for long; what it is made of is there.
        selectors = SELECTOR.findall(rule["query"])
        assert selectors, rule["query"]
        for selector in selectors:
            assert has_data(prom, selector), f"{selector} of {rule['name']}"
    assert [rule["name"] for rule in group["rules"] if rule["state"] == "firing"] == []


def test_busy_seconds_are_a_share(prom):
    shares = prom.values("rate(gemmd_device_busy_seconds_total[10s])")
    assert len(shares) >= 2 and all(0 <= share <= 1.05 for share in shares)
    assert any(share > 0 for share in shares)
    used = prom.values("gemmd_device_memory_used_bytes / gemmd_device_memory_size_bytes")
    assert used and all(0 < share <= 1 for share in used)


def test_the_dashboard_fits_together():
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        refs = [target["refId"] for target in panel.get("targets", ())]
        assert len(set(refs)) == len(refs), panel["title"]
