#!/usr/bin/env python3
"""openapi.py OPENAPI.YAML PROTOCOL.MD TABLES.JSON - writes the contract as JSON to standard output.

A part of the build. It adds to the hand-written document what the code has lists of (tables.c prints them): the
parameters of each operation, with the words of PROTOCOL.md, and a reply for each error that it can end with."""
import copy
import json
import re
import sys

import yaml

OURS = ("x-takes", "x-errors", "x-parameters")  # told to this program alone
# Reports have no result, and read no named matrix in part; nor do they take regions of shared memory.
NOT_OF_REPORTS = ("keep", "return", "ttl", "share", "rows", "cols", "region", "offset")
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?$"


def sentences(protocol):
    """Parameter -> what PROTOCOL.md says of its value: the last cell of a row that begins with its name."""
    said = {}
    for names, text in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|.*?([^|]+) \|$", protocol, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            said.setdefault(name, re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text).strip())
    return said


class Parameters:
    """The rows of GM_PARAM_LIST, as an operation takes them."""

    def __init__(self, tables, protocol):
        self.tables, self.said = tables, sentences(protocol)

    def of(self, takes):
        op = self.tables["op"].index(takes["operation"])
        report = "formats" in takes
        return [row for row in self.tables["parameters"]
                if row["ops"] >> op & 1 and row["name"] not in takes.get("without", ())
                and row["name"] in takes.get("only", (row["name"],))
                and not (report and row["name"].partition("_")[0] in NOT_OF_REPORTS)]

    def texts(self, takes, row):
        """The schema of a value that is written as text, in the query or as a part."""
        op = self.tables["op"].index(takes["operation"])
        reader, known = row["reader"], self.tables
        name = {"type": "string", "pattern": "^[!-~]+$", "maxLength": row["max"]}
        if row["name"] == "format":
            return {"type": "string", "enum": takes["formats"]}
        if row["name"] == "kernel":
            names = [v["name"] for v in known["variants"] if v["op"] == op]
            return {**name, "examples": ["auto", *dict.fromkeys(names)]}
        return {
            "text": name,
            "dtype": {"$ref": "#/components/schemas/RequestDtype"},
            "shape": {"type": "string", "pattern": r"^[0-9]{1,18}(x[0-9]{1,18}){0,2}$"},
            "boolean": {"type": "string", "enum": ["true", "false", "1", "0"]},
            "header": {"type": "string", "enum": ["true", "false", "1", "0"]},
            "alpha": {"type": "number"},
            "beta": {"type": "number"},
            "precision": {"type": "string", "enum": known["precision"]},
            "count": {"type": "integer", "minimum": 1, "maximum": row["max"]},
            "size": {"type": "integer", "minimum": 0},
            "nonfinite": {"type": "string", "enum": ["error", "null"]},
            "ref": {**name, "pattern": "^ref:[!-~]+$"},
            "name": {**name, "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"},
            "returns": {"type": "string", "enum": ["result", "account"]},
            "share": {**name, "pattern": r"^(\*|[A-Za-z0-9._-]{1,63}(,[A-Za-z0-9._-]{1,60})?)$"},
            "range": {"type": "string", "pattern": r"^([0-9]{1,9}|[0-9]{0,9}:[0-9]{0,9})$"},
            "plan": {"type": "string", "enum": ["plan"]},
            "gpu": {"type": "string", "enum": re.split(", | and ", row["takes"].removeprefix("one of "))},
        }[reader]

    def members(self, takes, row):
        """The schema of a member of a JSON body; None: it cannot be one."""
        if row["reader"] in ("shape", "range") or in_url(row):
            return None  # operands state their own
        text = self.texts(takes, row)
        if row["reader"] in ("boolean", "header"):
            return {"enum": [True, False, "true", "false", 1, 0, "1", "0"]}
        if row["reader"] in ("alpha", "beta"):
            return {"anyOf": [text, {"type": "string", "pattern": NUMBER, "maxLength": 40}]}
        if row["reader"] == "count":
            return {"anyOf": [text, {"type": "string", "pattern": r"^0{0,9}[1-9][0-9]{0,2}$"}]}
        return text

    def describe(self, row):
        """For people: what PROTOCOL.md says of the value, or what the code says it can be."""
        return self.said.get(row["name"], row["takes"])

    def query(self, takes):
        return [{"name": row["name"], "in": "query", "description": self.describe(row),
                 "schema": self.texts(takes, row)} for row in self.of(takes)]

    def fill(self, node, takes):
        """Adds them to the schemas of a body that say x-parameters, in place."""
        if isinstance(node, list):
            for one in node:
                self.fill(one, takes)
        if not isinstance(node, dict):
            return
        for one in node.values():
            self.fill(one, takes)
        kind = node.pop("x-parameters", None)
        for row in self.of(takes) if kind else ():
            schema = self.members(takes, row) if kind == "members" or in_url(row) else self.texts(takes, row)
            if schema and row["name"] not in node["properties"]:
                node["properties"][row["name"]] = {**schema, "description": self.describe(row)}


def in_url(row):
    """Regions of shared memory are named in the query alone; a body has operands where the query names them."""
    return row["name"].startswith(("region", "offset")) or row["reader"] == "ref"


def error_replies(name, rule, errors):
    """{HTTP status: reply} of a set of codes."""
    if "only" in rule:
        unknown = set(rule["only"]) - {e["code"] for e in errors}
        rows = [e for e in errors if e["code"] in rule["only"]]
    else:
        unknown = set(rule["without"]) - {e["code"] for e in errors}
        rows = [e for e in errors if e["code"] not in rule["without"]]
    if unknown:
        sys.exit(f"openapi.yaml: x-errors of {name} names {unknown}, which proto/status.h does not have")
    replies = {}
    for status in sorted({e["status"] for e in rows}):
        codes = [e for e in rows if e["status"] == status]
        headers = {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}
        for header in {401: ["WWW-Authenticate"], 405: ["Allow"], 415: ["Accept", "Accept-Encoding"], 429: ["Retry-After", "RateLimit", "RateLimit-Policy"],
                       503: ["Retry-After"]}.get(status, []):
            headers[header] = {"$ref": f"#/components/headers/{header}"}
        replies[status] = {
            "description": "; ".join(f"`{e['code']}`: {e['title'][0].lower() + e['title'][1:]}"
                                     if e["title"][1:2].islower() else f"`{e['code']}`: {e['title']}"
                                     for e in codes),
            "headers": headers,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/V2Error"}}}
            if rule.get("form") == "v2" else {"application/problem+json": {"schema": {"allOf": [
                {"$ref": "#/components/schemas/Problem"},
                {"properties": {"status": {"const": status},
                                "code": {"enum": [e["code"] for e in codes]}}},
            ]}}},
        }
    return replies


def complete(document, tables, protocol):
    tables = {name: rows[1:] if isinstance(rows, list) else rows for name, rows in tables.items()}
    errors = [e for e in tables["errors"] if e["status"] >= 400]
    parameters = Parameters(tables, protocol)
    components = document["components"]
    schemas = components["schemas"]
    document["info"]["version"] = tables["version"]
    schemas["Dtype"] = {"type": "string", "enum": tables["dtype"]}
    schemas["RequestDtype"]["enum"] = list(dict.fromkeys(tables["dtype"] + tables["numpy"]))
    schemas["Op"] = {"type": "string", "enum": tables["op"]}
    schemas["ErrorCode"] = {"type": "string", "enum": [e["code"] for e in errors]}
    schemas["StageTimes"]["properties"] = {
        **{stage: {"type": "number", "minimum": 0} for stage in tables["stage"]},
        **schemas["StageTimes"]["properties"]}

    sets = {name: error_replies(name, rule, errors)
            for name, rule in {**document.pop("x-errors"), "any": {"without": []}}.items()}
    for name, replies in sets.items():
        for status, reply in replies.items():
            components["responses"][f"{name}-{status}"] = reply

    bodies = components["requestBodies"]
    used = set()
    for item in document["paths"].values():
        for method in item.keys() - {"parameters"}:
            operation = item[method]
            chosen = operation.pop("x-errors")
            for status in sets[chosen]:
                operation["responses"][str(status)] = {"$ref": f"#/components/responses/{chosen}-{status}"}
            takes = operation.pop("x-takes", None)
            if takes:
                operation["parameters"] = operation.get("parameters", []) + parameters.query(takes)
            if takes and "requestBody" in operation:
                used.add(operation["requestBody"]["$ref"].rsplit("/", 1)[1])
                body = copy.deepcopy(bodies[operation["requestBody"]["$ref"].rsplit("/", 1)[1]])
                parameters.fill(body, takes)
                components["requestBodies"][operation["operationId"]] = body
                operation["requestBody"] = {"$ref": f"#/components/requestBodies/{operation['operationId']}"}
    for name in used:
        del bodies[name]
    return document


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    source, protocol, tables = sys.argv[1:]
    # By way of JSON, so that what YAML names twice is there twice.
    document = json.loads(json.dumps(yaml.safe_load(read(source))))
    done = complete(document, json.loads(read(tables)), read(protocol))
    text = json.dumps(done, ensure_ascii=False, separators=(",", ":"))
    for name in OURS:
        if f'"{name}"' in text:
            sys.exit(f"openapi.py: {name} is left in the document")
    sys.stdout.write(text + "\n")
