"""proto/openapi.yaml and the code agree, both ways: routes and their methods, members of JSON documents, media types.
(Parameters and errors cannot differ: the build takes them from the code's own lists.)"""
import re

import lint

try:
    import yaml
except ImportError:
    yaml = None

CONTRACT, ROUTES, PAGES = "proto/openapi.yaml", "server/api/routes.c", "server/api/routes.h"

# The schemas that describe what a file writes. What others than that file add to them, or it writes elsewhere, is said by name.
WRITERS = {
    "server/request/account.c": ("Account Accesses Shapes StageTimes", "a b c total_us"),
    "server/api/compare/json.c": ("Comparison ComparisonRow Shapes", "a b c result"),
    "server/api/choose.c": ("Choice Candidate", "launch math shared l2 dram wait passes"),
    "server/api/explain/json.c": ("Explanation Site Launch ExplanationTotals Shapes", "a b c"),
    "server/api/info.c": ("Kernels Devices Device Gpu Queue Stats", ""),
    "server/request/reply.c": ("Problem", ""),
    "server/api/matrices/matrices.c": ("NamedMatrix NamedMatrices", ""),
}


def value(expression, arguments):
    """Of a C expression that is made of string literals and a macro's parameters."""
    parts = re.findall(r'"([^"]*)"|(\w+)', expression)
    return "".join(text if not name else arguments.get(name, "") for text, name in parts)


def macros(text):
    """Name -> (parameters, body) of those that make rows of the table."""
    for name, parameters, body in re.findall(r"#define (\w+)\(([^)]*)\)((?:[^\n]*\\\n)*[^\n]*)", text):
        yield name, ([p.strip() for p in parameters.split(",")], body)


def optional(path):
    """The paths that a row answers: what is in [brackets] may be left out. A variable that is a part of a segment is
    documented as the whole."""
    path = re.sub(r"/[^/{[]+\{variant\}", "/{model}", path)
    found = re.fullmatch(r"(.*)\[(.*)\](.*)", path)
    if not found:
        return [path]
    before, inner, after = found.groups()
    return optional(before + after) + optional(before + inner + after)


def rows(text, known, given):
    """(method, path) of the rows that a text makes, in which macros' parameters stand for what is given."""
    for name, arguments in re.findall(r"(\w+)\(([^()]*)\)", text):
        if name not in known:
            continue
        parameters, body = known[name]
        inner = {p: value(a, given) for p, a in zip(parameters, arguments.split(","))}
        method, path = (re.search(rf"\.{field} = ([^,]+),", body) for field in ("method", "path"))
        if not method:
            yield from rows(body, known, inner)
            continue
        for one in optional(value(path.group(1), inner)):
            yield value(method.group(1), inner), one


def routes(tree):
    """(method, path) of each row of the table."""
    text, pages = tree.read(ROUTES) or "", tree.read(PAGES) or ""
    known = dict(macros(text))
    table = text.partition("routes[] = {")[2].partition("};")[0]
    yield from rows(table, known, {})
    listed = pages.partition("#define GM_PAGES(")[2].partition("\n#define")[0]
    for macro in re.findall(r"GM_PAGES\((\w+)\)", table):
        yield from rows(re.sub(r"\bX\(", macro + "(", listed), known, {})


def documented(contract):
    return {(method.upper(), path) for path, item in contract["paths"].items() for method in item if method != "parameters"}


def members_written(text):
    """The names that a file gives to members of JSON documents."""
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    names = set(re.findall(r'\b(?:json_object_set_new|gm_json_line_\w+|set_\w+)\(\s*&?\w+,\s*"(\w+)"', code))
    for pair in re.findall(r'\b(?:json_object_set_new|set_\w+)\(\s*\w+,\s*[^"();]*\?\s*"(\w+)"\s*:\s*"(\w+)"', code):
        names |= set(pair)
    for packed in re.findall(r'json_pack\("\{[^"]*"((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)', code):
        arguments = re.sub(r"\((?:[^()]|\([^()]*\))*\)", "", packed)
        names |= set(re.findall(r'"(\w+)"', arguments))
    return names


def members_described(node):
    """Those of a schema and of all within it."""
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    names = set(node.get("properties", ())) if isinstance(node, dict) else set()
    return names.union(*map(members_described, inner))


def members(tree, contract):
    for path, (schemas, others) in WRITERS.items():
        text = tree.read(path)
        if text is None:
            continue
        written, described = members_written(text), set()
        for name in schemas.split():
            described |= members_described(contract["components"]["schemas"].get(name, {}))
        for name in sorted(written - described - set(others.split())):
            yield f"{path} writes the member {name!r}, which no schema of {schemas} in {CONTRACT} has"
        for name in sorted(described - written - set(others.split())):
            yield f"{CONTRACT} has a member {name!r} in one of {schemas}, which {path} does not write"


def media_types(tree, contract):
    replies = contract["components"]["responses"]
    codecs = {m for path in tree.matching("proto/*/codec_*.c")
              for m in re.findall(r'\.media_type = "([^"]+)"', tree.read(path))}
    reports = set(re.findall(r'X\([A-Z]+, "\w+", "([^"]+)", "', tree.read("server/request/accept.h") or ""))
    for reply, ours in (("Result", codecs), ("Explanation", reports)):
        said = set(replies.get(reply, {}).get("content", {}))
        for one in sorted(ours ^ said):
            where = "the code" if one in ours else CONTRACT
            yield f"{one} is a media type of {reply} in {where} alone"


def check(tree):
    if yaml is None:
        raise lint.Skip("there is no PyYAML")
    contract = yaml.safe_load(tree.read(CONTRACT) or "{}")
    ours, theirs = set(routes(tree)), documented(contract) if contract else set()
    if not ours:
        yield f"no routes were found in {ROUTES}"
    for method, path in sorted(ours - theirs):
        yield f"{CONTRACT} does not have {method} {path}"
    for method, path in sorted(theirs - ours):
        yield f"{CONTRACT} has {method} {path}, which {ROUTES} does not"
    if contract:
        yield from members(tree, contract)
        yield from media_types(tree, contract)


GOOD = {
    ROUTES: '#define RUN(kind, run_path) \\\n    {.method = "POST", .path = "/v1" run_path, .op = kind}\n'
            "#define BOTH(how, its_path) \\\n    {.method = how, .path = its_path, .op = 1}\n"
            '#define TWO(k) \\\n    BOTH("GET", "/two/" k), \\\n        BOTH("POST", "/two/" k)\n'
            '#define PAGE(p, f, x) {.method = "GET", .path = p, .handle = f},\n'
            'static const struct gm_route routes[] = {\n    RUN(ADD, "/add"),\n    BOTH("PUT", "/m[/{n}]"),\n    TWO("more"),\n'
            "    GM_PAGES(PAGE)};\n",
    PAGES: '#define GM_PAGES(X) \\\n    X("/stats", f, false) \\\n    X("/docs", g, false)\n#define OTHER\n',
    "server/request/reply.c": 'json_pack("{s:s, s:o, s:i}", "type", x, "title", f(y, "no"), "status", 3);\n'
                              'set_rate(o, a > b ? "code" : "detail", 2);\njson_object_set_new(o, "error", z);\n',
    "proto/csv/codec_csv.c": '.media_type = "text/csv",\n',
    "server/request/accept.h": 'X(SVG, "svg", "image/svg+xml", "")\n',
    CONTRACT: """
paths:
  /v1/add: {post: {}}
  /m: {put: {}}
  "/m/{n}": {put: {}}
  /two/more: {get: {}, post: {}, parameters: []}
  /stats: {get: {}}
  /docs: {get: {}}
components:
  responses: {Result: {content: {text/csv: {}}}, Explanation: {content: {image/svg+xml: {}}}}
  schemas:
    Problem:
      properties: {type: {}, title: {}, status: {}, code: {}, detail: {type: array, items: {properties: {error: {}}}}}
""",
}


def changed(path, before, after):
    assert before in GOOD[path]
    return {**GOOD, path: GOOD[path].replace(before, after)}


PLANTED = [
    (changed(CONTRACT, "  /v1/add: {post: {}}\n", ""), "does not have POST /v1/add"),
    (changed(CONTRACT, "/v1/add: {post", "/v1/add: {get"), "does not have POST /v1/add"),
    (changed(CONTRACT, "  /stats", "  /more: {get: {}}\n  /stats"), "has GET /more, which"),
    (changed(CONTRACT, '  "/m/{n}": {put: {}}\n', ""), "does not have PUT /m/{n}"),
    (changed(CONTRACT, "{get: {}, post: {}, p", "{get: {}, p"), "does not have POST /two/more"),
    (changed(PAGES, "/docs", "/pictures"), "does not have GET /pictures"),
    ({**GOOD, ROUTES: ""}, "no routes were found"),
    ({**GOOD, CONTRACT: ""}, "does not have GET /docs"),
    (changed(CONTRACT, "status: {}, ", ""), "writes the member 'status'"),
    (changed(CONTRACT, "status: {}, ", "status: {}, more: {}, "), "has a member 'more'"),
    (changed(CONTRACT, "{error: {}}", "{fault: {}}"), "writes the member 'error'"),
    (changed("server/request/reply.c", '"detail"', '"hint"'), "writes the member 'hint'"),
    (changed("proto/csv/codec_csv.c", "text/csv", "text/tab"), "text/csv is a media type of Result in"),
    (changed("server/request/accept.h", "svg+xml", "png"), "image/png is a media type of Explanation in the code"),
]
CLEAN = [GOOD]
lint.main(globals())
