"""The files in deploy/ that start gemmd agree with gemmd and with each other.

Packages are listed in deploy/deps.sh alone; what a Dockerfile copies is there, and not kept from
it by .dockerignore; options of gemmd that are set are options of gemmd; no file gives it less time
to end than it was told to take; and all are what they claim to be, where there is a YAML parser.
"""
import fnmatch
import re
import subprocess

import lint

try:
    import yaml
except ImportError:
    yaml = None

DOCKERFILE, UNIT, COMPOSE, KUBERNETES = (
    "deploy/" + name for name in ("Dockerfile", "gemmd.service", "compose.yaml", "kubernetes.yaml"))
PORT = 8080
INSTALLS = re.compile(r"\b(apt-get|apt|dpkg|apk|dnf|yum|pip3?)\s+(-\S+\s+)*(install|add|-i)\b")
# Time beyond --drain-delay and --drain-timeout for answers that are made to reach their clients.
FLUSH_S = 1


def instructions(tree, path):
    """(number, line) of each, with continued lines joined and comments left out."""
    start, text = None, ""
    for number, line in tree.lines(path):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        start = start or number
        text += line.rstrip("\\").strip() + " "
        if not line.endswith("\\"):
            yield start, text.strip()
            start, text = None, ""


def seconds(text):
    """Of "1500ms", "8s", "2m" or a bare number; None where it is none of them."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", str(text).strip())
    return found and float(found.group(1)) * {"ms": 1e-3, "s": 1, "": 1, "m": 60, "h": 3600}[found.group(2)]


def options():
    """Option -> default, of this gemmd: {"GEMMD_LISTEN": "127.0.0.1:8080"}."""
    done = subprocess.run([lint.daemon(), "--help"], env=lint.daemon_environment(),
                          capture_output=True, text=True, timeout=60)
    found, name = {}, None
    for line in done.stdout.splitlines():
        option = re.match(r"  --([a-z-]+) ", line)
        if option:
            name = "GEMMD_" + option.group(1).upper().replace("-", "_")
        if name and re.match(r" +takes ", line): # else it is no variable, as --probe
            found[name] = None
        default = re.search(r"; default (\S+)$", line)
        if name and default:
            found[name] = default.group(1)
    return found


def ignored(tree, path):
    """Whether .dockerignore keeps a file from the builder: the last line that matches says."""
    verdict = False
    for _, line in tree.lines(".dockerignore"):
        pattern = line.strip().lstrip("!")
        if not pattern or line.startswith("#"):
            continue
        parts = path.split("/")
        prefixes = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
        names = [pattern, pattern[3:]] if pattern.startswith("**/") else [pattern]
        if any(fnmatch.fnmatchcase(p, n) and p.count("/") == n.count("/") for p in prefixes for n in names):
            verdict = not line.startswith("!")
    return verdict


def dockerfile(tree):
    users = []
    for number, text in instructions(tree, DOCKERFILE):
        where, (word, _, rest) = f"{DOCKERFILE}:{number}", text.partition(" ")
        if INSTALLS.search(text):
            yield f"{where}: installs packages itself; the list is in deploy/deps.sh"
        if word == "COPY" and "--from=" not in rest:
            for name in rest.split()[:-1]:
                if name != "." and not tree.matching(name, name.rstrip("/") + "/*"):
                    yield f"{where}: there is no {name}"
                elif name != "." and ignored(tree, name):
                    yield f"{where}: .dockerignore leaves {name} out"
        if word == "USER":
            users.append(rest)
        if word in ("ENTRYPOINT", "CMD") and not rest.startswith("["):
            yield f"{where}: {word} needs a shell, which is not in the image"
        if word == "HEALTHCHECK" and "CMD [" not in rest:
            yield f"{where}: HEALTHCHECK needs a shell, which is not in the image"
    if not users or not all(re.fullmatch(r"[1-9]\d*(:\d+)?", user) for user in users):
        yield f"{DOCKERFILE}: the user is {users}, not a number other than 0"


def time_to_end(settings, known):
    """Seconds that gemmd may take from SIGTERM with these settings."""
    values = [settings.get(name, known[name]) for name in ("GEMMD_DRAIN_DELAY", "GEMMD_DRAIN_TIMEOUT")]
    return sum(seconds(value) for value in values) + FLUSH_S


def timing(where, settings, grace, known):
    unknown = sorted(name for name in settings if name.startswith("GEMMD_") and name not in known)
    for name in unknown:
        yield f"{where}: {name} is no option of gemmd"
    if seconds(grace) is None:
        yield f"{where}: {grace!r} is no time"
    elif seconds(grace) <= time_to_end(settings, known):
        yield (f"{where}: {seconds(grace):g} s to end are not more than the "
               f"{time_to_end(settings, known):g} s that gemmd may take")


def unit(tree, known):
    text = tree.read(UNIT) or ""
    settings = dict(re.findall(r"^Environment=(GEMMD_\w+)=(\S+)$", text, re.M))
    grace = re.search(r"^TimeoutStopSec=(\S+)$", text, re.M)
    yield from timing(UNIT, settings, grace and grace.group(1), known)


def compose(tree, known):
    for name, service in yaml.safe_load(tree.read(COMPOSE))["services"].items():
        where = f"{COMPOSE}: {name}"
        settings = service.get("environment", {})
        yield from timing(where, settings, service.get("stop_grace_period", "10s"), known)
        for port in service.get("ports", []):
            if not str(port).endswith(f":{PORT}"):
                yield f"{where}: port {port} does not lead to {PORT}"
        build = service.get("build", {})
        if not tree.matching(str(build.get("dockerfile"))):
            yield f"{where}: there is no {build.get('dockerfile')}"
        stages = re.findall(r"^FROM .* AS (\S+)$", tree.read(DOCKERFILE) or "", re.M)
        if build.get("target") not in stages:
            yield f"{where}: {DOCKERFILE} has no target {build.get('target')}"


def kubernetes(tree, known):
    documents = list(yaml.safe_load_all(tree.read(KUBERNETES)))
    labels = {}
    for document in documents:
        if document["kind"] != "Deployment":
            continue
        template = document["spec"]["template"]
        labels, pod = template["metadata"]["labels"], template["spec"]
        for container in pod["containers"]:
            where = f"{KUBERNETES}: {container['name']}"
            settings = {entry["name"]: entry.get("value") for entry in container.get("env", [])}
            yield from timing(where, settings, pod.get("terminationGracePeriodSeconds", 30), known)
            ports = {port.get("name"): port["containerPort"] for port in container["ports"]}
            if PORT not in ports.values():
                yield f"{where}: has no port {PORT}"
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                get = container.get(probe, {}).get("httpGet", {})
                wanted = "/readyz" if probe == "readinessProbe" else "/healthz"
                if get.get("path") != wanted or get.get("port") not in ports:
                    yield f"{where}: {probe} does not ask for {wanted} at a port of the container"
    for document in documents:
        if document["kind"] == "Service" and not document["spec"]["selector"].items() <= labels.items():
            yield f"{KUBERNETES}: the Service selects {document['spec']['selector']}, the pods have {labels}"


def check(tree):
    yield from dockerfile(tree)
    known = options()
    if not known:
        yield "gemmd --help lists no options"
        return
    yield from unit(tree, known)
    if not yaml:
        lint.warn("no PyYAML here: the YAML files were not read")
        return
    for look in (compose, kubernetes):
        try:
            yield from look(tree, known)
        except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
            yield f"{COMPOSE if look is compose else KUBERNETES}: {error!r}"


HELP = """#!/bin/sh
cat <<'END'
  --listen ADDR:PORT       where
                             takes an address; default 127.0.0.1:8080
  --drain-delay TIME       waits
                             takes a time, as 5s; default 0s
  --drain-timeout TIME     ends
                             takes a time, as 8s; default 8s
END
"""
IMAGE = """FROM ubuntu:24.04 AS build
COPY deploy/image.sh deploy/
RUN deploy/image.sh \\
    dependencies
COPY . .
FROM scratch AS cpu
COPY --from=build /image /
USER 65532:65532
HEALTHCHECK --interval=10s \\
    CMD ["/usr/bin/gemmd", "--probe"]
ENTRYPOINT ["/usr/bin/gemmd"]
"""
SERVICES = """services:
  gemmd:
    build: {context: .., dockerfile: deploy/Dockerfile, target: cpu}
    ports: ["127.0.0.1:8080:8080"]
    environment: {GEMMD_DRAIN_TIMEOUT: 8s}
    stop_grace_period: 15s
"""
CLUSTER = """kind: Deployment
spec:
  template:
    metadata: {labels: {app: gemmd}}
    spec:
      terminationGracePeriodSeconds: 35
      containers:
        - name: gemmd
          env: [{name: GEMMD_DRAIN_DELAY, value: 10s}, {name: GEMMD_DRAIN_TIMEOUT, value: 20s}]
          ports: [{name: http, containerPort: 8080}]
          startupProbe: {httpGet: {path: /healthz, port: http}}
          livenessProbe: {httpGet: {path: /healthz, port: http}}
          readinessProbe: {httpGet: {path: /readyz, port: http}}
---
kind: Service
spec: {selector: {app: gemmd}}
"""
GOOD = {"gemmd": HELP, "deploy/image.sh": "#!/bin/sh\n", ".dockerignore": "# ours\n*\n!deploy/*.sh\n**/*.md\n",
        DOCKERFILE: IMAGE, UNIT: "TimeoutStopSec=20\nEnvironment=GEMMD_DRAIN_DELAY=5s\n",
        COMPOSE: SERVICES, KUBERNETES: CLUSTER}


def bad(path, old, new):
    assert old in GOOD[path], old
    return {**GOOD, path: GOOD[path].replace(old, new, 1)}


PLANTED = [
    (bad(DOCKERFILE, "RUN deploy", "RUN apt-get update && apt-get -y install gcc && deploy"), "Dockerfile:3: installs"),
    (bad(DOCKERFILE, "COPY deploy/image.sh", "COPY deploy/gone.sh"), "there is no deploy/gone.sh"),
    (bad(".dockerignore", "!deploy/*.sh", "!deploy/*.txt"), "leaves deploy/image.sh out"),
    (bad(".dockerignore", "**/*.md", "**/image.sh"), "leaves deploy/image.sh out"),
    (bad(DOCKERFILE, "USER 65532:65532", "USER gemmd"), "the user is ['gemmd']"),
    (bad(DOCKERFILE, "USER 65532:65532", "USER 0"), "the user is ['0']"),
    (bad(DOCKERFILE, "USER 65532:65532\n", ""), "the user is []"),
    (bad(DOCKERFILE, 'ENTRYPOINT ["/usr/bin/gemmd"]', "ENTRYPOINT gemmd"), "ENTRYPOINT needs a shell"),
    (bad(DOCKERFILE, 'CMD ["/usr/bin/gemmd", "--probe"]', "CMD gemmd --probe"), "HEALTHCHECK needs a shell"),
    (bad(UNIT, "TimeoutStopSec=20", "TimeoutStopSec=14"), "service: 14 s to end are not more than the 14 s"),
    (bad(UNIT, "TimeoutStopSec=20\n", ""), "None is no time"),
    (bad(UNIT, "GEMMD_DRAIN_DELAY=5s", "GEMMD_DRIAN_DELAY=5s"), "GEMMD_DRIAN_DELAY is no option"),
    (bad(COMPOSE, "15s", "9s"), "compose.yaml: gemmd: 9 s to end"),
    (bad(COMPOSE, ":8080:8080", ":8080:80"), "does not lead to 8080"),
    (bad(COMPOSE, "target: cpu", "target: tpu"), "has no target tpu"),
    (bad(COMPOSE, "GEMMD_DRAIN_TIMEOUT", "GEMMD_DRAIN"), "GEMMD_DRAIN is no option"),
    (bad(COMPOSE, "services:", "services: ["), "compose.yaml: "),
    (bad(KUBERNETES, "35", "30"), "30 s to end"),
    (bad(KUBERNETES, "containerPort: 8080", "containerPort: 80"), "has no port 8080"),
    (bad(KUBERNETES, "path: /readyz", "path: /healthz"), "readinessProbe does not ask for /readyz"),
    (bad(KUBERNETES, "livenessProbe: {httpGet: {path: /healthz, port: http}}", "livenessProbe: {}"), "livenessProbe"),
    (bad(KUBERNETES, "selector: {app: gemmd}", "selector: {app: other}"), "the Service selects"),
]
if not yaml:
    PLANTED = [case for case in PLANTED if case[0][COMPOSE] == SERVICES and case[0][KUBERNETES] == CLUSTER]
CLEAN = [GOOD]
lint.main(globals())
