"""The contract for machines: /openapi.json says what the daemon does. Every example in it is sent, every reply is held
against it, and schemathesis makes requests of its own from it, right ones and wrong ones."""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

import jsonschema
import openapi_spec_validator
import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
SEED = int(os.environ.get("GM_SEED", "20240607"))
ALL = os.environ.get("GM_ALL", "0") not in ("", "0")
BOUNDARY = "7c0ffee1"


@pytest.fixture(scope="module")
def contract(shared_daemon):
    return shared_daemon.get("/openapi.json").ok().json()


def resolve(contract, node):
    while "$ref" in node:
        target = contract
        for name in node["$ref"].removeprefix("#/").split("/"):
            target = target[name]
        node = target
    return node


def validate(contract, schema, value):
    """By JSON Schema 2020-12, which is what OpenAPI 3.1 has."""
    whole = {"allOf": [schema], "components": contract["components"]}
    jsonschema.validate(value, whole, cls=jsonschema.Draft202012Validator)


def check(contract, operation, reply):
    """The reply is one that the document has: its status, type, headers and body."""
    assert str(reply.status) in operation["responses"], reply
    said = resolve(contract, operation["responses"][str(reply.status)])
    media_type = reply.media_type
    if "content" not in said:
        assert reply.body == b""
        return
    assert media_type in said["content"], f"{media_type} is not among {list(said['content'])}"
    for name, header in said["headers"].items():
        header, text = resolve(contract, header), reply.header(name)
        if text is None:
            assert not header.get("required"), f"{name} is missing"
        elif "content" in header:
            validate(contract, header["content"]["application/json"]["schema"], json.loads(text))
        else:
            validate(contract, header["schema"], int(text) if header["schema"].get("type") == "integer" else text)
    schema = said["content"][media_type]["schema"]
    if "contentMediaType" not in schema:
        value = reply.json() if media_type.endswith("json") else reply.body.decode()
        validate(contract, schema, value)


def operations(contract):
    for path, item in contract["paths"].items():
        for method in item.keys() - {"parameters"}:
            yield path, method.upper(), item[method]


def multipart(members):
    parts = [f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
             for name, value in members.items()]
    return "".join(parts).encode() + f"--{BOUNDARY}--\r\n".encode()


def body_of(media_type, example):
    """(bytes, Content-Type) of an example."""
    if "x-base64" in example:
        return base64.b64decode(example["x-base64"]), media_type
    if media_type == "application/json":
        return json.dumps(example["value"]).encode(), media_type
    if media_type == "multipart/form-data":
        return multipart(example["value"]), f"{media_type}; boundary={BOUNDARY}"
    return example["value"].encode(), media_type


def examples(contract):
    """(path, method, operation, query, body, Content-Type) of all there are."""
    for path, method, operation in operations(contract):
        bare = method == "GET" or "requestBody" not in operation
        for query in operation.get("x-queries", [""] if bare else []):
            yield path, method, operation, query, None if method == "GET" else b"", None
        if "requestBody" in operation:
            for media_type, content in resolve(contract, operation["requestBody"])["content"].items():
                for example in content["examples"].values():
                    yield path, method, operation, example.get("x-query", ""), *body_of(media_type, example)


def test_it_is_openapi(contract):
    openapi_spec_validator.validate(contract)
    assert contract["openapi"].startswith("3.1.")


PATH = {"{folder}": "views", "{name}": "w", "{model}": "matmul", "{region}": "mine", "{repository}": "all"}


def test_examples(daemon, contract):
    """Each is answered 200, in each format that the reply can have."""
    sent = 0
    with daemon.client() as client:
        for path, method, operation, query, body, media_type in examples(contract):
            said = resolve(contract, operation["responses"].get("200", {})).get("content", {})
            wanted = [None, *said] if method == "POST" and path.startswith("/v1/") else [None]
            for accept in wanted:
                headers = {"Content-Type": media_type} if media_type else {}
                if accept:
                    headers["Accept"] = accept
                if path == "/v1/eval" and accept == "text/plain":
                    query = "explain=plan"  # the plan is a text, the result is not
                target = f"{path}?{query}" if query else path
                target = target.replace("{file}", "live.js" if "{folder}" in target else "app.js")
                for name, value in PATH.items():
                    target = target.replace(name, value)
                reply = client.request(method, target, body, headers)
                if path.startswith(("/docs", "/console")) or path == "/":
                    assert reply.status == 200 or "was built without" in reply.json()["detail"], (target, reply)
                elif "sharedmemory" in path:  # as the options and the client have it
                    assert reply.status in (200, 403, 404), (target, reply)
                elif "/matrices/" in path:  # as the name is there already, or not
                    assert reply.status in (200, 201, 204, 404), (target, reply)
                elif "200" not in operation["responses"]:
                    assert reply.status == 400, (target, reply)
                else:
                    assert reply.status == 200, (target, body, headers, reply.body)
                    assert accept in (None, reply.media_type), (target, accept, reply)
                check(contract, operation, reply)
                sent += 1
    assert sent > 100


def sample(contract, schema):
    """Some value that a schema of a parameter has, as text."""
    schema = resolve(contract, schema)
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] != "string":
        return str(max(schema.get("minimum", 1), 1))
    texts = ("8x8", "ref:w", "auto", "w", "0:1", *schema.get("examples", ()))
    return next(text for text in texts if re.search(schema.get("pattern", ""), text))


def test_every_parameter_is_taken(contract, daemon):
    """What the document grants to a route, the route does not refuse."""
    seen = 0
    for path, method, operation in operations(contract):
        for one in operation.get("parameters", []):
            parameter = resolve(contract, one)
            if parameter["in"] != "query" or not path.startswith("/v1/"):
                continue
            value = urllib.parse.quote(sample(contract, parameter["schema"]))
            small = "&shape=8x8" if method == "GET" and path.startswith("/v1/explain/") and "shape" not in parameter["name"] else ""
            target = f"{path.replace('{name}', 'w')}?{parameter['name']}={value}{small}"
            reply = daemon.request(method, target, None if method == "GET" else b"[[1]]")
            detail = "" if reply.status < 400 else reply.json()["detail"]
            assert reply.status != 405 and "no parameter" not in detail and "does not take" not in detail, (method, target, reply)
            seen += 1
    assert seen > 300


def test_conditions_stand_where_a_name_is_given(contract):
    seen = 0
    for path, method, operation in operations(contract):
        names = {resolve(contract, one)["name"] for one in operation.get("parameters", [])}
        if "keep" in names or path.endswith("/infer") or (method in ("PUT", "DELETE") and "/matrices/" in path):
            assert {"If-Match", "If-None-Match"} <= names, (method, path)
            seen += 1
    assert seen >= 9
    assert "500" in contract["paths"]["/v1/matrices/{name}"]["delete"]["responses"]


def test_examples_follow_their_schemas(contract):
    for _, _, operation in operations(contract):
        for media_type, content in resolve(contract, operation.get("requestBody", {"content": {}}))["content"].items():
            for example in content["examples"].values():
                if "value" in example and media_type in ("application/json", "multipart/form-data"):
                    validate(contract, content["schema"], example["value"])
        names = {p["name"]: p["schema"] for p in (resolve(contract, one) for one in operation.get("parameters", []))}
        for query in operation.get("x-queries", []):
            for name, value in urllib.parse.parse_qsl(query):
                assert name in names
                number = names[name].get("type") in ("number", "integer")
                validate(contract, names[name], float(value) if number else value)


WRONG = [
    ("POST", "/v1/transpose", b"", {"Content-Type": "application/json"}, 400),
    ("POST", "/v1/transpose", b"[[1],", {"Content-Type": "application/json"}, 400),
    ("POST", "/v1/transpose?kernle=naive", b"[[1]]", {"Content-Type": "application/json"}, 400),
    ("POST", "/v1/transpose", b"[[1]]", {"Content-Type": "application/json", "Accept": "image/png"}, 406),
    ("POST", "/v1/transpose", b"hello", {"Content-Type": "text/html"}, 415),
    ("POST", "/v1/matmul", b'{"a": [[1, 2]], "b": [[1, 2]]}', {"Content-Type": "application/json"}, 422),
    ("POST", "/v1/matmul?kernel=nothing", b'{"a": [[1]], "b": [[1]]}', {"Content-Type": "application/json"}, 422),
    ("POST", "/v1/compare/add?format=npy", b'{"a": [[1]], "b": [[1]]}', {"Content-Type": "application/json"}, 400),
    ("GET", "/v1/explain/copy?device=cpu", None, {}, 422),
    ("GET", "/v1/explain/copy?shape=99999999x99999999", None, {}, 422),
    ("GET", "/v1/explain/matmul?timeout_ms=1&kernel=tiled&shape=2000x2000", None, {}, 503),
    ("GET", "/v1/stats", None, {"X-Long": "x" * 13000}, 431),
]


@pytest.mark.parametrize("method, target, body, headers, status", WRONG)
def test_errors(daemon, contract, method, target, body, headers, status):
    reply = daemon.request(method, target, body, headers)
    assert reply.status == status, reply
    check(contract, contract["paths"][target.partition("?")[0]][method.lower()], reply)


def test_errors_of_no_operation(daemon, contract):
    """404 and 405, which belong to no operation, are documented too."""
    for method, path, status in (("GET", "/v3", 404), ("DELETE", "/v1/matmul", 405)):
        reply = daemon.request(method, path)
        assert reply.status == status
        check(contract, {"responses": {str(status): {"$ref": f"#/components/responses/any-{status}"}}}, reply)


def test_objects_are_closed(contract):
    """Each object that is described says additionalProperties."""
    def look(node, where):
        if isinstance(node, dict):
            if node.get("type") == "object" and "openapi" not in node.get("required", []):
                assert "additionalProperties" in node, where
            for name, one in node.items():
                look(one, f"{where}/{name}")
        if isinstance(node, list):
            for index, one in enumerate(node):
                look(one, f"{where}/{index}")

    look(contract, "")


def test_the_page_loads_nothing_from_elsewhere(daemon):
    page = daemon.get("/docs")
    if page.status == 404:
        pytest.skip(page.json()["detail"])
    policy = page.header("Content-Security-Policy")
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    text = page.body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=|\bstyle=", text)
    parts = re.findall(r'(?:src|href)="([^"]+)"', text)
    assert len([p for p in parts if p.startswith("docs/")]) == 3
    for part in parts:
        assert ":" not in part.replace("data:,", "") and not part.startswith("//")
        if not part.startswith("data:"):
            daemon.get("/" + part).ok()
    assert b"SwaggerUIBundle" in daemon.get("/docs/swagger-ui-bundle.js").body
    assert b"SmartBear" in daemon.get("/licenses").body


def test_the_licences(daemon):
    text = daemon.get("/licenses").ok().body.decode()
    for words in ("Apache License", "libmicrohttpd", "jansson", "MIT License", (ROOT / "NOTICE").read_text()):
        assert words in text


# What runs by default takes seconds: an operation of each kind with all of schemathesis' values for each member and parameter,
# and a few random requests to each.
KINDS = "^/(v1/(add|kernels|stats)|metrics|readyz|docs|licenses)$"


@pytest.mark.parametrize("options", [["--phases", "coverage,fuzzing", "--max-examples", "50"]] if ALL else [
    ["--phases", "coverage", "--include-path-regex", KINDS],
    ["--phases", "fuzzing", "--max-examples", "3"],
], ids=lambda options: options[1])
def test_schemathesis_finds_nothing(daemon, options, tmp_path):
    command = [str(pathlib.Path(sys.executable).parent / "st"), "--no-color", "run", daemon.url("/openapi.json"),
               "--seed", str(SEED), "--warnings", "off", *options]
    # It keeps what it finds where it runs, and finds its configuration there.
    for name in ("schemathesis.toml", "schemathesis_hooks.py"):
        (tmp_path / name).symlink_to(HERE / name)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stdout[:20000] + done.stderr
    tried = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert tried and int(tried.group(1)) > 50, done.stdout
