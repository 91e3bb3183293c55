"""The console at /, as its visitors use it: headless Chromium clicks through every view of a real daemon. Whatever the browser
complains of is a failure, and so is what axe finds."""

import concurrent.futures
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import urllib.parse
import zlib

import numpy as np
import pytest
from axe_playwright_python.base import AXE_SCRIPT, AxeResults
from playwright.sync_api import expect, sync_playwright

from daemon import BINARY, SLOW, Daemon
from keyring import Keyring, bearer

GEMMCTL = pathlib.Path(BINARY).resolve().parent.parent / "clients" / "c" / "gemmctl"
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium") or shutil.which("chromium-browser")
VIEWS = ["Playground", "Matrices", "Compare", "Explain", "Tour", "Roofline", "Waterfall", "Live"]
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
FIRST_VIEW_BYTES = 300_000

expect.set_options(timeout=30000 * SLOW)  # the simulator takes its time on a busy machine

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="there is no chromium")


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        contexts = {}

        def context(fresh=False, **options):
            """One a set of options, whose cache has the page's parts after the first visit: most of a visit's time. Tabs share nothing else."""
            options = {"viewport": DESK, "accept_downloads": True, **options}
            return browser.new_context(**options) if fresh else contexts.get(repr(options)) or contexts.setdefault(repr(options), browser.new_context(**options))

        yield context
        browser.close()


class Visitor:
    """A page that keeps what its browser complains of."""

    def __init__(self, context, url):
        self.url, self.faults, self.asked, self.expected = url, [], [], ()
        self.context = context
        self.page = self.context.new_page()
        self.page.set_default_timeout(30000 * SLOW)
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.faults.append(said.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, link=""):
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/{link}")
        expect(self.page.locator("h1")).to_be_visible()

    def go(self, view):
        self.page.get_by_role("navigation", name="Views").get_by_role("link", name=view, exact=True).click()
        expect(self.page.locator("h1")).to_have_text(view)

    def fragment(self):
        return urllib.parse.urlparse(self.page.url).fragment

    def settle(self):
        """Each view has then shown what it fetches."""
        view = self.page.locator("main").get_attribute("data-view")
        ready = {"playground": ".matrix", "matrices": ".matrix", "compare": "svg.chart", "explain": ".source .cost2", "tour": "svg.lanes", "roofline": "svg.chart",
                 "waterfall": "svg.chart", "live": "svg.chart"}[view]
        expect(self.page.locator(ready).first).to_be_visible()

    def refused(self, status):
        """What the browser itself says of a status is no fault where it was expected."""
        assert any(str(status) in fault for fault in self.faults), self.faults
        self.faults = [fault for fault in self.faults if f"status of {status}" not in fault]

    def close(self):
        elsewhere = [url for url in self.asked if not url.startswith((self.url, "data:", "blob:", "about:"))]
        self.page.close()
        assert [fault for fault in self.faults if not any(f"status of {status}" in fault for status in self.expected)] == []
        assert not elsewhere, elsewhere


@pytest.fixture
def visit(browser, shared_daemon):
    if shared_daemon.get("/").status == 404:
        pytest.skip("this gemmd was built without the console")
    visitors = []

    def one(url=None, **options):
        visitors.append(Visitor(browser(**options), url or f"http://127.0.0.1:{shared_daemon.port}"))
        return visitors[-1]

    yield one
    for visitor in visitors:
        visitor.close()


LONG = "n" * 64  # the longest name of a matrix


@pytest.fixture
def busy(daemon):
    """The daemon, with something to look at."""
    with daemon.client() as client:
        for n in (8, 64, 200):
            body = npy(np.ones((n, n), np.float32))
            for op, operands in (("matmul", 2), ("transpose", 1), ("add", 2), ("flip", 1)):
                client.post(f"/v1/{op}", body * operands, {"Content-Type": "application/x-npy"}).ok()
        for name, array in (("w", np.arange(6, dtype=np.float32).reshape(2, 3)), ("bias", np.array([[1, -1]], np.float32)), (LONG, np.ones((2, 1), np.float32))):
            assert client.request("PUT", f"/v1/matrices/{name}", npy(array), {"Content-Type": "application/x-npy"}).status in (200, 201)
    return daemon


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def accessible(page, where):
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found = AxeResults(page.evaluate("axe.run({ resultTypes: ['violations'] })"))
    assert found.violations_count == 0, f"{where}: {found.generate_report()}"


# ---- All views. ----

LINKS = {"Playground": "#/playground?op=eval&a=image:48x64", "Matrices": f"#/matrices?name={LONG}&rows=1:2", "Compare": "#/compare?op=transpose&rows=64&cols=64&run=1", "Explain": "#/explain?rows=64&cols=64", "Tour": "#/tour?step=2",
         "Roofline": "#/roofline", "Waterfall": "#/waterfall", "Live": "#/live"}


# What one can be on, or hears of: it has a name.
NAMED = {"application", "button", "combobox", "dialog", "form", "grid", "heading", "image", "link", "main", "meter", "navigation", "region", "slider", "spinbutton", "table", "textbox"}


def heard(visitor, view):
    """Chromium's own tree, which a screen reader walks through: names, one heading of the first level and none left out, a place where news is said."""
    nodes = [node for node in visitor.context.new_cdp_session(visitor.page).send("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]

    def text(node):
        return node.get("name", {}).get("value", "").strip()

    def of(node, name):
        return next((one["value"].get("value") for one in node.get("properties", []) if one["name"] == name), None)

    nameless = [node["role"]["value"] for node in nodes if node["role"]["value"] in NAMED and not text(node)]
    assert not nameless, (view, nameless)
    levels = [of(node, "level") for node in nodes if node["role"]["value"] == "heading"]
    assert levels[0] == 1 and levels.count(1) == 1, (view, levels)
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:])), (view, levels)
    assert any(of(node, "live") == "polite" and node["role"]["value"] == "status" for node in nodes), view
    assert [text(node) for node in nodes if node["role"]["value"] == "main"] == [view]
    links = {(text(node), of(node, "url")) for node in nodes if node["role"]["value"] == "link"}
    assert len({name for name, _ in links}) == len(links), (view, links)  # a name leads to one place


@pytest.mark.parametrize("options", [{"color_scheme": "light"}, {"viewport": PHONE, "color_scheme": "dark", "has_touch": True}], ids=["desk, light", "phone, dark"])
def test_every_view_is_whole_and_accessible(visit, busy, options):
    visitor = visit(**options)
    visitor.open()
    for view in VIEWS:
        visitor.page.evaluate("link => { location.hash = link }", LINKS[view])
        expect(visitor.page.locator("h1")).to_have_text(view)
        visitor.settle()
        expect(visitor.page.get_by_text("no GPU here: kernels for GPUs are simulated")).to_be_visible()
        assert visitor.page.locator("#device").evaluate("line => line.scrollWidth <= line.clientWidth"), view  # all of it
        wide = visitor.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], (view, wide)
        accessible(visitor.page, f"{view}, {options}")
        heard(visitor, view)
        assert visitor.page.title() == f"{view} · gemmd"


def test_the_way_to_every_view(visit, busy):
    visitor = visit(viewport=PHONE)
    visitor.open()
    for view in reversed(VIEWS):
        visitor.go(view)
        expect(visitor.page.locator("#views [aria-current=page]")).to_have_text([view])


def test_the_first_view_is_small(visit):
    visitor = visit(fresh=True)
    sizes = []
    visitor.page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
    for link in ("", "#/roofline"):
        sizes.clear()
        visitor.open(link)
        visitor.page.wait_for_load_state("networkidle")
        for _ in range(100):  # on a busy machine they are heard of later
            if len(sizes) > 5:
                break
            visitor.page.wait_for_timeout(100)
        assert len(sizes) > 5 and sum(sizes) < FIRST_VIEW_BYTES, (link, sum(sizes))


def test_the_policy(daemon):
    page = daemon.get("/")
    if page.status == 404:
        assert "built without" in page.json()["detail"]
        return
    policy = page.header("Content-Security-Policy")
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=|\bstyle=", page.body.decode())
    assert b"Michael Bostock" in daemon.get("/licenses").body
    assert daemon.get("/console/none.js").status == 404 and daemon.get("/console/../../etc/passwd").status == 404


def test_keyboard_alone(visit, busy):
    """From the address bar to an opened request, without a pointer."""
    visitor = visit()
    visitor.open("#/roofline")
    page = visitor.page
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    chart = page.locator("svg.chart").first
    expect(chart).to_be_visible()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('svg.chart')"):
            break
    page.keyboard.press("ArrowRight")
    expect(page.locator(".point.chosen")).to_have_count(1)
    expect(page.get_by_role("status")).to_contain_text("GFLOP/s")
    all_points = chart.locator(".point")
    for key, at in (("End", -1), ("ArrowRight", 0), ("ArrowLeft", -1), ("ArrowUp", -2), ("ArrowDown", -1), ("Home", 0)):
        page.keyboard.press(key)
        expect(all_points.nth(at if at >= 0 else all_points.count() + at)).to_have_class(re.compile("chosen"))
        expect(page.locator(".point.chosen")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Waterfall")
    assert visitor.fragment().startswith("/waterfall?id=")
    page.get_by_role("button", name="The last 200").click()
    expect(page.locator("g.pick").first).to_be_visible()
    page.locator("svg.chart").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")  # within the view: the chart that had the focus is gone
    expect(page.get_by_text(re.compile("^Request [0-9]+ by"))).to_be_visible()
    expect(page.locator("main")).to_be_focused()


def test_links_that_ask_for_what_is_not_there(visit, busy):
    """They show what there is."""
    visitor = visit()
    visitor.open()
    for link, ready in (("playground?op=constructor", "Operand b"), ("playground?op=matmul&dtype=foo&a=ramp:2x2&b=ramp:2x2", "Account"), ("compare?dtype=c64", "Choose an operation"),
                        ("explain?op=toString&kernels=naive&rows=8&cols=8", "transpose naive"), ("roofline?lesson=matmul", "Ceilings:"), ("roofline?lesson=matmul:8:foo", "Ceilings:"),
                        ("live?minutes=constructor", "Latency, median"), ("waterfall?mode=streams&from=abc&to=5", "The jobs that are shown"), ("matrices?name=w&rows=1", "Rows 1 to 2 of w"), ("matrices?name=w&rows=1:", "Rows 1 to 2 of w")):
        visitor.page.evaluate("link => { location.hash = link }", f"#/{link}")
        expect(visitor.page.get_by_text(re.compile(ready)).first).to_be_visible()
        expect(visitor.page.get_by_role("alert")).to_have_count(0)
        assert "NaN" not in visitor.page.content() + visitor.page.url, link


def test_a_view_that_failed_can_be_tried_again(visit, shared_daemon):
    visitor = visit()
    page = visitor.page
    for view, route, there in (("explain?kernels=naive&rows=8&cols=8", "**/v1/devices", "transpose naive"), ("explain?kernels=naive&rows=8&cols=8", "**/v1/kernels", "transpose naive"), ("roofline", "**/v1/requests?*", "Ceilings:"), ("matrices", "**/v1/matrices", "What is kept")):
        page.route(route, lambda route: route.fulfill(status=503, json={"code": "draining", "detail": "It is draining."}))
        visitor.open(f"#/{view}")
        expect(page.get_by_role("alert")).to_have_text("It is draining.")
        page.unroute(route)
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_text(there).first).to_be_visible()
        visitor.refused(503)
    expect(page.locator("#device")).to_contain_text("cpu:0")
    fresh = visit(fresh=True)
    fresh.page.route("**/d3.min.js", lambda route: route.abort())
    fresh.open("#/roofline")
    expect(fresh.page.get_by_role("alert")).to_have_text("The charts' library could not be loaded.")
    fresh.page.unroute("**/d3.min.js")
    fresh.page.get_by_role("button", name="Try again").click()
    expect(fresh.page.get_by_text("Ceilings:")).to_be_visible()
    fresh.faults = [fault for fault in fresh.faults if "net::ERR" not in fault]


# ---- The playground. ----


def result(page):
    """The cells of the result that are seen."""
    expect(page.locator(".matrix td").first).to_be_visible()
    return [[float(cell) for cell in row.locator("td").all_inner_texts()] for row in page.locator(".matrix tbody tr").all()]


def test_two_typed_matrices(visit):
    visitor = visit(viewport=PHONE)
    visitor.open()
    page = visitor.page
    for name, text in (("a", "1, 2\n3, 4"), ("b", "[[5, 6], [7, 8]]")):
        page.get_by_role("group", name=f"Where {name} comes from").get_by_role("button", name="Type").click()
        page.get_by_label(f"Numbers of {name}").fill(text)
    page.evaluate("""() => {
        document.querySelector("button[type=submit]").click();
        [...document.querySelectorAll("button")].find(button => button.textContent === "aᵀ").click(); // before its answer
    }""")
    assert result(page) == [[19, 22], [43, 50]]
    heights = page.evaluate("[...document.querySelectorAll('[aria-label^=\"Download .\"]')].map(button => button.getBoundingClientRect().top)")
    assert len(heights) == 3 and len(set(heights)) == 1  # on one line
    expect(page.get_by_role("heading", name="Account")).to_be_visible()
    for line in ("curl", "Python", "gemmctl"):
        assert "matmul" in page.get_by_label(f"{line} line", exact=True).inner_text()


def test_errors_are_said_in_words(visit):
    visitor = visit()
    visitor.open()
    page = visitor.page
    page.get_by_label("Rows of b").fill("3")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("must equal")
    visitor.faults = [fault for fault in visitor.faults if "422" not in fault]  # the browser's own line on the status
    page.get_by_role("group", name="Where a comes from").get_by_role("button", name="Type").click()
    page.get_by_label("Numbers of a").fill("1, x")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("not a number")


def test_what_the_form_says_is_asked(visit, daemon):
    visitor = visit()
    visitor.open()
    page = visitor.page
    expect(page.get_by_label("Rows of a")).to_have_value("64")
    page.get_by_label("Rows of a").fill("32")  # a picture, times what is random
    assert visitor.fragment() == "/playground?op=matmul&kernel=auto&dtype=f32&precision=fp32&a=image:32x64&b=random:64x64"
    page.get_by_text("Kernel, device, type and precision").click()
    page.get_by_label("Device").select_option("cpu:0")
    page.locator("select[name=kernel]").select_option("naive")
    page.get_by_label("Precision").select_option("ieee")
    with page.expect_request("**/v1/matmul?*") as asked:
        page.get_by_role("button", name="Run", exact=True).click()
    assert urllib.parse.urlparse(asked.value.url).query == "kernel=naive&device=cpu:0&precision=ieee"
    expect(page.get_by_role("heading", name="Result, 32 × 64")).to_be_visible()
    page.get_by_label("Device").select_option("sim:0")  # which may not have that kernel
    expect(page.locator("select[name=kernel]")).to_have_value("auto")
    # While it runs it is not asked again; keeping one of a type that .npy files cannot name.
    visitor.open("#/playground?op=flip&dtype=bf16&a=ramp:2x4")
    assert result(page) == [[0.375, 0.25, 0.125, 0], [0.875, 0.75, 0.625, 0.5]]
    page.get_by_label("Keep it as").fill("kept_bf16")
    page.get_by_role("button", name="Keep", exact=True).click()
    expect(page.get_by_role("link", name="see it in Matrices")).to_be_visible()
    assert daemon.get("/v1/matrices/kept_bf16?rows=0:0", {"Accept": "application/x-npy"}).header("Gemmd-Dtype") == "bf16"
    daemon.request("DELETE", "/v1/matrices/kept_bf16")
    visitor.refused(404)
    page.route("**/v1/flip?*", lambda route: None)  # whose answer does not come
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("button", name="Running")).to_be_disabled()
    # The line is in the clipboard; what is pasted into another view is no operand.
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.unroute_all()
    visitor.open("#/playground?op=flip&a=text:1,2")
    page.get_by_role("button", name="Copy the curl line").click()
    expect(page.get_by_role("button", name="Copy the curl line")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.get_by_label("curl line", exact=True).inner_text()
    visitor.go("Live")
    page.evaluate(HAND, ["paste", "main", "", "1,2"])
    page.evaluate("new Promise(requestAnimationFrame)")
    assert visitor.fragment() == "/live?minutes=1"
    for one in ("paste", "drop"):  # beside an operand a file does not take the place of the page
        assert page.evaluate("""kind => { const event = new (kind === "drop" ? DragEvent : ClipboardEvent)(kind, { bubbles: true, cancelable: true });
            document.querySelector("main").dispatchEvent(event); return event.defaultPrevented; }""", one) == (one == "drop")


HAND = """([kind, selector, name, content]) => {
    const data = new DataTransfer(), Kind = kind === "drop" ? DragEvent : ClipboardEvent;
    if (name) data.items.add(new File([new Uint8Array(content)], name)); else data.setData("text/plain", content);
    document.querySelector(selector).dispatchEvent(new Kind(kind, { [kind === "drop" ? "dataTransfer" : "clipboardData"]: data, bubbles: true, cancelable: true }));
}"""


def test_what_is_dropped_or_pasted_is_in_the_link(visit):
    """Wherever it is dropped on an operand, and without a field to paste into."""
    visitor = visit()
    visitor.open("#/playground")
    page = visitor.page
    page.evaluate(HAND, ["drop", ".operand", "a.npy", list(npy(np.array([[0.1, 1, 2], [3, 4, 5]])))])
    expect(page.get_by_role("form").get_by_text("a.npy: 2 × 3, f64.")).to_be_visible()
    page.get_by_role("group", name="Where b comes from").get_by_role("button", name="Kept").focus()
    page.evaluate(HAND, ["paste", ".operand + .operand button", "", "x,y\n1,2\n3,4\n5,6"])
    expect(page.get_by_label("Numbers of b")).to_have_value("x,y\n1,2\n3,4\n5,6")
    page.get_by_text("Kernel, device, type and precision").click()
    page.get_by_label("Element type").select_option("f64")
    page.get_by_role("button", name="Run", exact=True).click()
    assert result(page) == [[13.1, 16.2], [40, 52]]
    visitor.open("#" + visitor.fragment())
    assert result(page) == [[13.1, 16.2], [40, 52]]
    page.evaluate(HAND, ["drop", ".operand + .operand", "b.npy", list(npy(np.ones((3, 4000), np.float32)))])
    expect(page.get_by_text("The link to this view cannot hold it")).to_be_visible()
    assert "&b=" not in visitor.fragment()
    page.evaluate(HAND, ["paste", "body", "a.csv", list(b"1,2\n3")])  # no operand has the focus: it is the first
    expect(page.get_by_role("form").get_by_text("a.csv: Row 2 has 1 numbers")).to_be_visible()
    page.evaluate(HAND, ["paste", "body", "a.csv", list(b"1,2\n3,4")])
    expect(page.get_by_text("a.csv: 2 × 2, f64.")).to_be_visible()  # of the type that was chosen


@pytest.mark.parametrize("name, content", [("a.npy", npy(np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)))), ("a.csv", b"x;y;z\r\n0;1;2\r\n3;4;5\r\n"),
                                           ("a.json", json.dumps({"shape": [2, 3], "data": list(range(6))}).encode())])
def test_files_in_and_out(visit, name, content):
    visitor = visit()
    visitor.open("#/playground?op=transpose")
    page = visitor.page
    page.get_by_role("group", name="Where a comes from").get_by_role("button", name="File").click()
    page.get_by_label("File for a").set_input_files({"name": name, "mimeType": "application/octet-stream", "buffer": content})
    expect(page.get_by_role("form").get_by_text(re.compile(r"2 × 3, f"))).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("heading", name="Result, 3 × 2")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download .npy").click()
    got = np.load(download.value.path())
    assert np.array_equal(got, np.arange(6).reshape(2, 3).T)
    assert open(download.value.path(), "rb").read().index(b"\n") % 64 == 63  # its elements are aligned
    with page.expect_download() as download:
        page.get_by_role("button", name="Download .csv").click()
    assert open(download.value.path()).read() == "0,3\n1,4\n2,5\n"
    with page.expect_download() as download:
        page.get_by_role("button", name="Download .svg").click()
    assert "<title>3x2 f" in open(download.value.path()).read()


def test_each_type_goes_round(visit):
    """What the page makes and reads of a type is what gemmd means by it: flipped twice it is the same."""
    visitor = visit()
    visitor.open("#/playground")
    page = visitor.page
    for dtype in ("f32", "f64", "f16", "bf16", "i32", "i64"):
        page.evaluate("link => { location.hash = link }", f"#/playground?op=flip&dtype={dtype}&a=ramp:2x4")
        expect(page.locator("select[name=dtype]")).to_have_value(dtype)
        row = result(page)[0]
        assert row == ([3, 2, 1, 0] if dtype.startswith("i") else [0.375, 0.25, 0.125, 0]), dtype
        assert f"dtype={dtype}" in visitor.fragment()


def test_types_that_only_a_link_names_have_matrices_too(visit):
    """Of more elements than the smallest type has numbers."""
    visitor = visit()
    visitor.open("#/playground?op=flip&dtype=u8&a=image:20x20")
    expect(visitor.page.locator("select[name=dtype]")).to_have_value("u8")
    assert all(number % 1 == 0 for number in result(visitor.page)[0])
    for dtype in ("bool", "i8", "u8", "i16", "u16", "u32", "u64"):
        for kind in ("random", "identity", "ramp", "image"):
            numbers = visitor.page.evaluate("""async ([kind, dtype]) => {
                const { generate } = await import(new URL("console/matrix.js", document.baseURI));
                return [...generate(kind, 40, 10, dtype).data].map(Number); }""", [kind, dtype])
            assert len(numbers) == 400 and len(set(numbers)) > 1, (kind, dtype)
            assert min(numbers) >= (0 if dtype[0] in "bu" else -100), (kind, dtype)
            assert dtype != "bool" or max(numbers) == 1, kind


def csv_of_transposed(visitor, dtype, text):
    """What the page shows, and downloads as CSV, of typed numbers."""
    visitor.open("#/playground?" + urllib.parse.urlencode({"op": "transpose", "dtype": dtype, "a": f"text:{text}"}))
    page = visitor.page
    expect(page.locator(".matrix td").first).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download .csv").click()
    return page.locator(".matrix td").all_inner_texts(), open(download.value.path()).read().split()


@pytest.mark.parametrize("dtype, text, shown, csv", [("i32", "2000000001,-2147483648", ["2000000001", "-2147483648"], ["2000000001", "-2147483648"]),
                                                     ("i64", "9007199254740991", ["9007199254740991"], ["9007199254740991"]),
                                                     ("f64", "2000000001,0.3333333333333333", ["2000000001", "0.333333"], ["2000000001", "0.3333333333333333"]),
                                                     ("f32", "0.1,0.33333334", ["0.1", "0.333333"], ["0.1", "0.33333334"]),
                                                     ("f16", "0.1,0.3333", ["0.0999756", "0.333252"], ["0.1", "0.3333"]),
                                                     ("bf16", "0.1,2.7", ["0.100098", "2.70313"], ["0.1", "2.7"])])
def test_numbers_are_shown_and_downloaded(visit, dtype, text, shown, csv):
    """Whole numbers in full; a fraction may be short where it is looked at, and in a file is the number that it was."""
    assert csv_of_transposed(visit(), dtype, text) == (shown, csv)


def test_numbers_that_a_type_does_not_have(visit):
    """Said where they are typed or in a file, and never rounded or wrapped."""
    visitor = visit()
    visitor.open("#/playground?op=transpose&dtype=i32&a=text:1")
    page = visitor.page
    run, alert = page.get_by_role("button", name="Run", exact=True), page.get_by_role("alert")
    for text, words in (("3000000000", "beyond what i32"), ("2.7", "2.7 is no whole number"), ('{"shape": [1, 2], "data": [null, 1]}', "not a number"),
                        ('{"shape": [1, 1], "dtype": "i64", "data": [9007199254740993]}', "exactly")):
        page.get_by_label("Numbers of a").fill(text)
        run.click()
        expect(alert).to_contain_text(words)
    page.evaluate(HAND, ["drop", ".operand", "a.csv", list(b"1,2.5")])
    expect(page.get_by_role("form").get_by_text("2.5 is no whole number")).to_be_visible()
    run.click()
    expect(alert).to_contain_text("2.5 is no whole number")
    page.get_by_text("Kernel, device, type and precision").click()
    page.get_by_label("Element type").select_option("f32")
    expect(page.get_by_text("a.csv: 1 × 2, f32.")).to_be_visible()
    run.click()
    assert result(page) == [[1], [2.5]]
    page.route("**/v1/transpose", lambda route: route.abort())
    page.get_by_role("button", name="Download .svg").click()
    expect(alert).to_contain_text("gemmd does not answer")
    visitor.faults = [fault for fault in visitor.faults if "net::ERR" not in fault]
    page.evaluate("void (history.replaceState = () => { throw new DOMException('too often', 'SecurityError') })")
    typed(page, "a", "1,2,3")
    expect(page.get_by_role("img", name="Heat map of a: 1 by 3, from 1 to 3")).to_be_visible()


READ = """async (list) => {
    const { parseText, toCsv, toText } = await import("/console/matrix.js");
    return Promise.all(list.map(async ([text, dtype]) => {
        try {
            const matrix = parseText(text, dtype), linked = toText(matrix, 4000);
            return [matrix.shape, Array.from(matrix.data, (_, i) => matrix.exact(0, i)), await toCsv(matrix).text(), linked && await toCsv(parseText(linked)).text()];
        } catch (error) { return error.message; }
    }));
}"""


def test_texts_are_read_as_gemmd_reads_them(visit, daemon):
    visitor = visit()
    visitor.open()

    def kind(text):
        return "application/json" if text[0] in "[{" else "text/csv"

    good = [("inf, inf\n1, 2", "f32"), ('"1";"2"\n"3";4', "f32"), ("nan;-INF\n+.5;1.", "f64"), ("x,y\n1,2", "f32"), ("x\n\n1\n2\n\n \n3\n4", "f32"), ("1,2\n3,4\n\n5,6\n7,8\n", "i32"), ("-0,65519", "f16"), ("[[-0, 1e-400]]", "f64"),
            ("[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]", "f32"), ("[[[1, 2]]]", "i64"), ('{"shape": [2, 1, 2], "data": [1, 2, 3, 4]}', "bf16"), ('{"shape": [1, 2], "dtype": "bool", "data": [true, false]}', "bool")]
    for (text, dtype), (shape, elements, csv, linked) in zip(good, visitor.page.evaluate(READ, good)):
        flipped = daemon.post(f"/v1/flip?dtype={dtype}", text.encode(), {"Content-Type": kind(text), "Accept": "application/x-npy"}).ok()
        back = daemon.post(f"/v1/flip?dtype={dtype}", flipped.body, {"Content-Type": "application/x-npy", "Accept": "text/csv"}).ok()
        assert "x".join(map(str, shape)) == back.header("Gemmd-Shape"), text
        assert csv == back.body.decode().replace("-0.0", "-0"), text
        assert elements == csv.replace("\n\n", "\n").strip().replace("\n", ",").split(","), text
        assert linked == (None if "n" in csv else csv), text
    bad = [("0x10,1", "f32", "not a number"), ("1,inf", "i32", "inf is no whole number"), ("70000,1", "f16", "70000 is beyond what f16"), ("3.396e38,1", "bf16", None), ("3.4e39,1", "bf16", "beyond what bf16"), ("1e39,1", "f32", "beyond what f32"),
           ("[[1e400,1]]", "f64", "beyond what f64"), ("1e400", "f64", "1e400 is beyond what f64"), ("1,2\n\n3,4\n5,6", "f32", "Matrix 2 of the stack has 2 rows"), ('{"shape": [1, 1], "dtype": "foo", "data": [1]}', "f32", "type foo"), ('{"shape": [1, 1, 1, 1], "data": [1]}', "f32", "stacks")]
    for (text, dtype, words), said in zip(bad, visitor.page.evaluate(READ, bad)):
        status = daemon.post(f"/v1/transpose?dtype={dtype}", text.encode(), {"Content-Type": kind(text)}).status
        assert (status, type(said)) == (200, list) if words is None else status >= 400 and words in said, (text, said, status)


MATRIX = """async ([content]) => {
    const { parseNpy } = await import("/console/matrix.js");
    try { return Array.from(parseNpy(new Uint8Array(content).buffer).data, Number); } catch (error) { return error.message; }
}"""


def png(rows):
    """A picture of these rows of (red, green, blue)."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    lines = b"".join(b"\0" + bytes(channel for point in row for channel in point) for row in rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


PRIMARIES = png([[(255, 0, 0), (0, 255, 0), (0, 0, 255)], [(0, 0, 0), (255, 255, 255), (128, 128, 128)]])


def test_pictures_as_matrices(visit):
    """By their brightness; and what a file is called is not what it is."""
    visitor = visit()
    visitor.open("#/playground?op=transpose")
    page = visitor.page
    page.get_by_role("group", name="Where a comes from").get_by_role("button", name="File").click()
    file, about = page.get_by_label("File for a"), page.get_by_role("form")
    file.set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": PRIMARIES})
    expect(about.get_by_text("a.png: 2 × 3, f32.")).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("heading", name="Result, 3 × 2")).to_be_visible()
    assert np.allclose(result(page), np.array([[0.2126, 0.7152, 0.0722], [0, 1, 128 / 255]]).T, atol=1e-3)
    file.set_input_files({"name": "a.svg", "mimeType": "image/svg+xml", "buffer": b"<svg xmlns='http://www.w3.org/2000/svg'/>"})
    expect(page.get_by_text("A drawing has no points").first).to_be_visible()
    file.set_input_files({"name": "matrix.bin", "mimeType": "", "buffer": npy(np.ones((4, 5)))})
    expect(about.get_by_text("matrix.bin: 4 × 5, f64.")).to_be_visible()
    file.set_input_files({"name": "large.npy", "mimeType": "", "buffer": npy(np.ones((1, 1)))[:128].replace(b"(1, 1), }         ", b"(9000, 9000), }   ")})
    expect(page.get_by_text("too large for a page").first).to_be_visible()


def test_npy_files(visit):
    visitor = visit()
    visitor.open()
    for shape in ((3,), (2, 3), (2, 2, 2), (2, 3, 4)):
        array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        assert visitor.page.evaluate(MATRIX, [list(npy(np.asfortranarray(array)))]) == array.ravel().tolist(), shape
    for dtype in (">f4", ">i8", ">u2"):
        assert visitor.page.evaluate(MATRIX, [list(npy(np.array([[1, 2, 258]], dtype)))]) == [1, 2, 258], dtype
    one = npy(np.array([[1]], np.float32))
    second = io.BytesIO()
    np.lib.format.write_array(second, np.array([[7, 8]], np.float32), version=(2, 0))
    for content, words in ((second.getvalue(), [7, 8]), (npy(np.ones((2, 2, 2, 2), np.float32)), "stacks"), (one[:40], "within its header"), (one[:-1], "before its last element"), (one + one, "follows the last element"), (npy(np.ones((1, 1), np.complex64)), "type c8"),
                           (npy(np.array([[16256]], np.uint16).view("V2")), [16256])):  # the bits of a bf16
        said = visitor.page.evaluate(MATRIX, [list(content)])
        assert said == words or words in said, (words, said)


PICTURE = """async ([rows, cols, elements]) => {
    const { Matrix } = await import("/console/matrix.js"), { heatMap } = await import("/console/picture.js"), data = new Float64Array(rows * cols);
    for (const [i, value] of elements) data[i] = value;
    const canvas = heatMap(new Matrix([rows, cols], "f64", data), "m").querySelector("canvas");
    return [canvas.getAttribute("aria-label"), [...canvas.getContext("2d").getImageData(0, 0, 2, 1).data]];
}"""


def test_heat_maps(visit):
    visitor = visit()
    visitor.open()
    # Of all elements, though not all are drawn.
    assert visitor.page.evaluate(PICTURE, [1000, 1000, [[1001, 5]]])[0] == "Heat map of m: 1000 by 1000, from 0 to 5"
    words, pixels = visitor.page.evaluate(PICTURE, [1, 2, [[0, -1e308], [1, 1e308]]])
    assert words.endswith("from -1.0e+308 to 1.0e+308")
    assert pixels[:3] == [68, 1, 84] and pixels[4] > 250, pixels


def test_a_table_of_any_size(visit):
    visitor = visit()
    visitor.open("#/playground?op=flip&dtype=i32&a=ramp:500000x3")
    page = visitor.page
    box = page.locator(".matrix")
    expect(box).to_be_visible()
    assert page.locator(".matrix tr").count() < 40
    box.evaluate("box => { box.scrollTop = box.scrollHeight }")
    expect(page.get_by_role("rowheader", name="499999")).to_be_visible()
    last = [499999 * 3 + c for c in (2, 1, 0)]
    assert page.locator(".matrix tbody tr").last.locator("td").all_inner_texts() == [str(n % 1000) for n in last]


# ---- Expressions and named matrices. ----


def typed(page, name, text):
    page.get_by_role("group", name=f"Where {name} comes from").get_by_role("button", name="Type").click()
    page.get_by_label(f"Numbers of {name}").fill(text)


@pytest.fixture
def from_elsewhere(tmp_path, monkeypatch):
    """What the lines for curl, Python and gemmctl give where they are pasted, and a.npy and b.npy are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(pathlib.Path(__file__).parents[2] / "clients" / "python" / "src")

    def paste(page, **arrays):
        for name, array in arrays.items():
            np.save(f"{name}.npy", array)
        lines = {name: page.get_by_label(f"{name} line", exact=True).inner_text() for name in ("curl", "Python", "gemmctl")}
        names = {}
        exec(lines["Python"], names)
        results = [np.asarray(names["result"])]
        names["client"].close()
        for name in ("curl", *(["gemmctl"] if GEMMCTL.exists() else [])):
            subprocess.run(["bash", "-c", lines[name]], env={**os.environ, "PATH": f"{GEMMCTL.parent}:{os.environ['PATH']}"}, check=True, timeout=60 * SLOW)
            results.append(np.load("result.npy"))
            os.unlink("result.npy")
        return results

    return paste


def test_an_expression(visit, busy, from_elsewhere):
    visitor = visit(viewport=PHONE)
    visitor.open()
    page = visitor.page
    page.get_by_role("button", name="Expression").click()
    expect(page.get_by_label("Expression", exact=True)).to_have_value("tanh(a @ b + 1)")
    page.get_by_label("Expression", exact=True).fill("(a @ w + bias.sum()) * np.maximum(a, 1) == 2")
    expect(page.get_by_role("heading", name="Operand a")).to_be_visible()
    expect(page.get_by_role("heading", name="Operand b")).to_have_count(0)
    page.get_by_label("Expression", exact=True).fill("b - (a @ w) / 2 if")
    typed(page, "a", "1, 2\n3, 4")
    typed(page, "b", "[[10, 20, 30]]")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Run", exact=True).click()
    place = page.get_by_label("Where in the expression")
    expect(place).to_have_text("b - (a @ w) / 2 if\n                ^")
    accessible(page, "an error in an expression")
    visitor.refused(400)
    page.get_by_label("Expression", exact=True).fill("b - (a @ w) / 2")
    page.keyboard.press("Enter")
    a, b, w = np.array([[1, 2], [3, 4]], np.float32), np.array([[10, 20, 30]], np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = b - a @ w / 2
    assert result(page) == expected.tolist()
    page.get_by_text("The plan").click()
    expect(page.get_by_label("The plan")).to_contain_text("matmul(a, w")
    page.get_by_text("Each step").click()
    expect(page.get_by_role("table", name="Steps of the expression")).to_contain_text("matmul")
    accessible(page, "an expression")
    assert all(np.array_equal(got, expected) for got in from_elsewhere(page, a=a, b=b))
    # Kept, it is a name in the next expression.
    for name in ("kept_1", "2nd"):
        page.get_by_label("Keep it as").fill(name)
        page.get_by_role("button", name="Keep", exact=True).click()
    expect(page.get_by_role("link", name="see it in Matrices")).to_be_visible()
    page.get_by_label("Keep it as").fill("kept_1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="There is a matrix kept_1. Replace it?")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Replace").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_label("Expression", exact=True).fill("kept_1.T > 0")
    expect(page.get_by_role("heading", name=re.compile("^Operand"))).to_have_count(0)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("heading", name="Result, 3 × 2")).to_be_visible()
    with page.expect_download() as download:  # of a type that no operand has
        page.get_by_role("button", name="Download .npy").click()
    got = np.load(download.value.path())
    assert got.dtype == bool and np.array_equal(got, expected.T > 0)
    visitor.refused(404)  # kept_1 was not there yet
    visitor.open("#" + visitor.fragment())  # brings it back
    expect(page.get_by_role("heading", name="Result, 3 × 2")).to_be_visible()


def test_kept_operands(visit, busy, from_elsewhere):
    visitor = visit()
    visitor.open()
    page = visitor.page
    page.get_by_role("group", name="Where b comes from").get_by_role("button", name="Kept").click()
    page.get_by_label("Named matrix for b").select_option("w")
    typed(page, "a", "1, 2")
    page.get_by_role("button", name="Run", exact=True).click()
    assert result(page) == [[6, 9, 12]]
    assert all(np.array_equal(got, [[6, 9, 12]]) for got in from_elsewhere(page, a=np.array([[1, 2]], np.float32)))
    visitor.open("#/playground?op=matmul&a=ref:bias&b=ref:w")
    assert result(page) == [[-3, -3, -3]]
    assert all(np.array_equal(got, [[-3, -3, -3]]) for got in from_elsewhere(page))
    visitor.open("#/playground?op=eval&expr=(a+%40+w).T&a=ref:bias&device=cpu")
    assert result(page) == [[-3]] * 3
    assert all(np.array_equal(got, [[-3]] * 3) for got in from_elsewhere(page))
    # What is made here is there to be downloaded.
    visitor.open("#/playground?op=matmul&a=random:5x7&b=ramp:7x3&dtype=f64")
    expect(page.locator(".matrix")).to_be_visible()
    made = {}
    for name in ("a", "b"):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Download {name}.npy").click()
        made[name] = np.load(download.value.path())
    assert made["a"].shape == (5, 7) and made["b"].shape == (7, 3)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download .npy").click()
    assert all(np.array_equal(got, np.load(download.value.path())) for got in from_elsewhere(page, **made))
    # What the page cannot show is computed all the same.
    with busy.client() as client:
        complex_one = npy(np.array([[1 + 2j, 3]], np.complex64))
        assert client.request("PUT", "/v1/matrices/z", complex_one, {"Content-Type": "application/x-npy"}).status in (200, 201)
    visitor.open("#/playground?op=transpose&a=ref:z")
    expect(page.get_by_role("alert")).to_contain_text("cannot show elements of type c8")
    expect(page.get_by_role("heading", name="Account")).to_be_visible()
    assert "ref:z" in page.get_by_label("curl line", exact=True).inner_text()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download .npy").click()
    assert np.array_equal(np.load(download.value.path()), [[1 + 2j], [3]])

    def larger(route):
        stats = json.loads((reply := route.fetch()).headers["gemmd-stats"])
        stats["shapes"]["result"] = [9000, 9000]
        route.fulfill(response=reply, headers={**reply.headers, "gemmd-stats": json.dumps(stats)})

    page.route("**/v1/flip?*", larger)
    visitor.open("#/playground?op=flip&a=ref:w")
    expect(page.get_by_role("alert")).to_have_text("The result, 9000 × 9000, is too large for a page; ask for it with curl.")
    expect(page.get_by_label("curl line", exact=True)).to_be_visible()
    visitor.open("#/playground?op=transpose&a=ref:gone")
    expect(page.get_by_role("alert")).to_contain_text("no named matrix 'gone'")
    visitor.refused(404)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    """A daemon with keys, and these by name."""
    ring = Keyring(str(tmp_path_factory.mktemp("keyed") / "keys"))
    for name, roles in (("ann", "use"), ("bob", "use"), ("eve", "read"), ("may", "use")):
        ring.add(name, roles)
    daemon = Daemon("--keys", ring.path)
    yield daemon, ring.keys
    daemon.stop()


def test_matrices(visit, keyed):
    """As a team uses them: each has a key and matrices of its own, and reads what others share."""
    daemon, keys = keyed
    visitor = visit(f"http://127.0.0.1:{daemon.port}")
    page = visitor.page
    page.add_init_script(f"location.protocol === 'about:' || sessionStorage.setItem('gemmd-key', '{keys['ann']}')")
    visitor.open("#/matrices")
    expect(page.get_by_text("Nothing is kept under a name")).to_be_visible()
    accessible(page, "no matrices")
    upload = page.get_by_role("form", name="Send a matrix")

    def send(name, content, mime="", **fields):
        upload.get_by_label(re.compile("^File")).set_input_files({"name": name, "mimeType": mime, "buffer": content})
        for label, value in fields.items():
            (upload.get_by_label(label).select_option if label in ("Element type", "Keep it") else upload.get_by_label(label).fill)(value)
        upload.get_by_role("button", name="Send it").click()

    numbers = np.arange(12, dtype=np.float64).reshape(4, 3)
    send("my table.csv", b"0,1,2\n3,4,5\n6,7,8\n9,10,11\n", "text/csv", **{"Element type": "f64", "Keep it": "3600", "Share it": "bob"})
    row = page.get_by_role("row", name=re.compile("Show ann.my_table"))
    for words in ("ann, shared with bob", "4 × 3", "f64", "96 B", "host memory", re.compile(r"in (60|59\.\d) min")):
        expect(row).to_contain_text(words)
    visitor.refused(404)
    # Some of its rows; a range that it does not have; the whole.
    rows = page.get_by_role("form", name="Rows to show")
    assert result(page) == numbers.tolist()
    rows.get_by_label("From row").fill("1")
    rows.get_by_label("Up to row").fill("3")
    page.keyboard.press("Enter")
    expect(page.get_by_role("rowheader", name="0", exact=True)).to_have_count(0)
    assert result(page) == numbers[1:3].tolist()
    assert visitor.fragment() == "/matrices?name=ann.my_table&rows=1:3"
    with page.expect_download() as download:
        page.get_by_role("button", name="Heat map as SVG").click()
    assert "<title>2x3 f64, from 3 to 8</title>" in open(download.value.path()).read()
    rows.get_by_label("Up to row").fill("0")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("rows asks for 1 to 0")
    visitor.refused(400)
    with page.expect_download() as download:
        row.get_by_role("button", name="Download").click()
    assert np.array_equal(np.load(download.value.path()), numbers)
    # A link brings it back. What is there already is replaced only when asked; what is no matrix is refused.
    visitor.open("#/matrices?name=ann.my_table&rows=2:4")
    assert result(page) == numbers[2:].tolist()
    send("my table.npy", npy(numbers[:1]))
    dialog = page.get_by_role("dialog", name="There is a matrix my_table. Replace it?")
    accessible(page, "the question")
    dialog.get_by_role("button", name="Cancel").click()
    expect(row).to_contain_text("4 × 3")
    send("notes.npy", b"notes", Name="notes")
    expect(upload.get_by_role("alert")).to_contain_text("Content-Type")
    visitor.refused(404)
    visitor.refused(415)
    # A picture is sent as numbers, and a name begins with no digit; all keys may read it.
    upload.get_by_label("Name").fill("")
    send("2nd.png", PRIMARIES, "image/png", **{"Share it": "*"})
    second = page.get_by_role("row", name=re.compile("Show ann._2nd"))
    for words in ("ann, shared with all keys", "2 × 3", "f32", "24 B", "never"):
        expect(second).to_contain_text(words)
    visitor.refused(404)
    expect(second).to_have_class("chosen")
    second.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(second).to_have_count(0)
    assert visitor.fragment() == "/matrices"  # what is gone is no longer in the link
    # What another has written meanwhile is not replaced, and without an answer nothing is.
    page.route("**/v1/matrices/my_table?rows=0:0", lambda route: route.fulfill(status=404), times=1)
    send("my table.npy", npy(numbers[:1]), Name="my_table")
    expect(upload.get_by_role("alert")).to_contain_text("If-None-Match wants none")
    visitor.refused(412)
    visitor.refused(404)
    page.route("**/v1/matrices/my_table?rows=0:0", lambda route: route.fulfill(headers={"ETag": '"older"'}), times=1)
    send("my table.npy", npy(numbers[:1]), Name="my_table")
    page.get_by_role("dialog").get_by_role("button", name="Replace").click()
    expect(upload.get_by_role("alert")).to_contain_text("If-Match")
    visitor.refused(412)
    page.route("**/v1/matrices/my_table?rows=0:0", lambda route: route.fulfill(status=503), times=1)
    send("my table.npy", npy(numbers[:1]), Name="my_table")
    expect(upload.get_by_role("alert")).to_contain_text("503")
    visitor.refused(503)
    expect(row).to_contain_text("4 × 3")
    # The colleague reads it, and no more than that.
    row.get_by_role("link", name="Use as b").click()
    typed(page, "a", "1, 0, 0, 0")
    page.get_by_text("Kernel, device, type and precision").click()
    page.get_by_label("Element type").select_option("f64")
    page.get_by_role("button", name="Run", exact=True).click()
    assert result(page) == [[0, 1, 2]]
    assert '-u ":$GEMMD_KEY"' in page.get_by_label("curl line", exact=True).inner_text()
    page.evaluate("key => sessionStorage.setItem('gemmd-key', key)", keys["bob"])
    visitor.go("Matrices")
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("alert")).to_contain_text("shared with this key read-only")
    visitor.refused(403)
    page.evaluate("key => sessionStorage.setItem('gemmd-key', key)", keys["ann"])
    page.get_by_role("button", name="Refresh").click()
    row.get_by_role("button", name="Delete").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(row).to_be_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing is kept under a name")).to_be_visible()
    page.evaluate("key => sessionStorage.setItem('gemmd-key', key)", keys["eve"])
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_role("alert")).to_contain_text("role use")
    visitor.refused(403)


def test_more_matrices_than_a_page_has(visit, keyed):
    daemon, keys = keyed
    one = npy(np.ones((1, 1), np.float32))
    with daemon.client() as client:
        for n in range(1100):
            assert client.request("PUT", f"/v1/matrices/m{n}", one, {"Content-Type": "application/x-npy", **bearer(keys["may"])}).status == 201
    visitor = visit(f"http://127.0.0.1:{daemon.port}")
    page = visitor.page
    page.add_init_script(f"location.protocol === 'about:' || sessionStorage.setItem('gemmd-key', '{keys['may']}')")
    visitor.open("#/matrices")
    expect(page.locator("caption")).to_have_text(re.compile("named matrices of several pages$"))
    names = page.locator(".scroll tbody th button")
    first = names.count()
    page.get_by_role("button", name="Next page").click()
    expect(page.get_by_role("button", name="First page")).to_be_visible()
    expect(names).to_have_count(1100 - first)
    shown = names.last.inner_text()
    names.last.click()
    assert result(page) == [[1]]
    visitor.open("#" + visitor.fragment())
    expect(page.get_by_role("heading", name=f"may.{shown}, 1 × 1 f32")).to_be_visible()


# ---- What others see of requests. ----


def test_roofline_and_waterfall(visit, start):
    daemon = start()
    with daemon.client() as client:
        for _ in range(3):
            account = client.post("/v1/matmul", npy(np.ones((40, 40), np.float32)) * 2, {"Content-Type": "application/x-npy"}).ok().stats
        client.post("/v1/transpose", npy(np.ones((300, 300), np.float32)), {"Content-Type": "application/x-npy"}).ok()
    visitor = visit(f"http://127.0.0.1:{daemon.port}")
    visitor.open("#/roofline")
    page = visitor.page
    expect(page.locator("circle.point.o-matmul")).to_have_count(3)
    expect(page.locator("circle.point.o-transpose")).to_have_count(1)
    for words in ("dram", "fp32"):
        expect(page.locator("svg.chart").first).to_contain_text(words)
    page.locator("circle.point.o-matmul").last.hover()
    expect(page.locator(".tip")).to_contain_text("40 × 40")
    page.get_by_label("Device").select_option("sim:0")
    expect(page.locator("svg.chart").first).to_contain_text("L2")
    page.get_by_label("Device").select_option("cpu:0")
    page.get_by_label("Join a comparison").select_option("matmul:512")
    expect(page.locator("path.lesson")).to_have_count(1)
    visitor.open("#/roofline?lesson=matmul:64x64x64:f64")  # as Compare links to it
    expect(page.locator("path.lesson")).to_have_count(1)
    expect(page.get_by_label("Join a comparison").locator("option").last).to_have_text("matmul, 64 × 64 × 64, f64")
    page.locator("circle.point.o-transpose").click()
    expect(page.get_by_role("heading", name=re.compile("^transpose by"))).to_be_visible()
    expect(page.locator("rect.s-kernel").first).to_be_visible()
    visitor.open(f"#/waterfall?id={account['id']}")
    expect(page.get_by_role("heading", name=re.compile("^matmul by"))).to_be_visible()
    drawn = daemon.get("/" + page.get_by_role("link", name="This picture as SVG").get_attribute("href")).ok().body.decode()
    assert f"{account['us']['kernel']:.1f} us" in drawn and "result 40x40" in drawn
    page.get_by_role("button", name="The last 200").click()
    expect(page.locator("g.pick")).to_have_count(4)
    page.get_by_role("button", name="Shares of each").click()
    assert "scale=own" in visitor.fragment()
    page.get_by_role("button", name="Make some traffic").click()
    expect(page.locator("g.pick")).to_have_count(18)
    page.get_by_role("button", name="Streams").click()
    expect(page.locator("rect.stream").first).to_be_visible()
    before = visitor.fragment()
    # Jobs of three streams at one time, as a GPU has them: seen to overlap, and the same as SVG.
    body = npy(np.ones((128, 128), np.float32))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for reply in pool.map(lambda _: daemon.post("/v1/transpose?device=sim&kernel=tiled", body, {"Content-Type": "application/x-npy"}), range(24)):
            reply.ok()
    page.get_by_role("button", name="Refresh").click()
    # On a busy machine a pause among them may have ended one burst and begun another.
    shown = page.get_by_text(re.compile(r"^\d+ jobs on 3 streams"))
    expect(shown).to_be_visible()
    jobs = int(shown.inner_text().split()[0])
    assert 3 <= jobs <= 24
    first, second = (page.evaluate("""top => [...document.querySelectorAll("rect.job")].filter(job => Number(job.getAttribute("y")) === top)
        .map(job => [Number(job.getAttribute("x")), Number(job.getAttribute("x")) + Number(job.getAttribute("width"))])""", top) for top in
        page.evaluate("[...document.querySelectorAll('rect.stream')].slice(-2).map(row => Number(row.getAttribute('y')) + 3)"))
    assert any(a[0] < b[1] and b[0] < a[1] for a in first for b in second), (first, second)
    drawn = daemon.get("/" + page.get_by_role("link", name="This picture as SVG").get_attribute("href")).ok().body
    assert drawn.count(b"<g><title>") == jobs and all(b"sim:0 stream %d" % n in drawn for n in range(3))
    page.get_by_role("button", name="Closer").click()
    assert visitor.fragment() != before and "from=" in visitor.fragment()
    accessible(page, "streams")
    with daemon.client() as client:  # of one trace
        for op in ("transpose", "flip"):
            client.post(f"/v1/{op}", npy(np.ones((2, 5), np.float32)), {"Content-Type": "application/x-npy", "X-Request-Id": "trace-1"}).ok()
    visitor.open("#/waterfall")
    for nth, op in ((0, "flip"), (1, "transpose")):
        page.locator("g.pick").nth(nth).click()
        expect(page.get_by_role("heading", name=re.compile(f"^{op} by"))).to_be_visible()
        page.go_back()
    visitor.open("#/waterfall?id=nobody")
    expect(page.get_by_text("no longer among the last 1,000")).to_be_visible()


def test_the_ceilings_of_a_gpu(visit, shared_daemon):
    """As GET /v1/devices tells of one: all are named, in a picture of either width."""
    gpu = next(one for one in shared_daemon.get("/v1/devices").json()["gpus"] if one["name"] == "H200")
    other = {"name": "cuda:1", "kind": "cuda", "default": False, "model": "another"}
    device = {"name": "cuda:0", "kind": "cuda", "default": True, "model": "NVIDIA H200", "streams": 3, "copy_gbs": 4300.0, "link_in_gbs": 51.2, "gpu": gpu,
              "peaks": {"f32": {"gflops": 66908.0, "roof": "fp32"}, "f64": {"gflops": 33454.0, "roof": "fp64"}}}
    for size in (DESK, PHONE):
        visitor = visit(viewport=size)
        visitor.page.route("**/v1/devices", lambda route: route.fulfill(json={"devices": [other, device], "gpus": [gpu]}))
        visitor.open("#/roofline")
        chart = visitor.page.locator("svg.chart").first
        for words in ("dram 4,300", "L2 9,670", "link 51.2", "fp32 66,908", "tensor f16, bf16 1,070,531", "tensor tf32 535,265"):
            expect(chart).to_contain_text(words)
        expect(visitor.page.locator("#device")).to_have_text("cuda:0 · NVIDIA H200")
        # Memory's roof ends where that of arithmetic begins.
        (slope,) = chart.locator("line.roof:not(.soft)").evaluate_all("all => all.filter(one => one.getAttribute('y1') !== one.getAttribute('y2')).map(one => Number(one.getAttribute('y2')))")
        (flat,) = chart.locator("line.roof:not(.soft)").evaluate_all("all => all.filter(one => one.getAttribute('y1') === one.getAttribute('y2')).map(one => Number(one.getAttribute('y1')))")
        assert abs(slope - flat) < 0.01
        ceilings = visitor.page.evaluate("async device => (await import('/console/roof.js')).ceilingsOf(device)", device)
        assert [(one["name"], one["gbs"]) for one in ceilings["slopes"]] == [("dram", 4300), ("link", 51.2), ("L2", gpu["l2_gbs"])]
        assert [(one["name"], one["gflops"]) for one in ceilings["flats"]] == [("fp32", 66908), ("fp64", 33454), ("tensor f16, bf16", gpu["tensor_f16_gflops"]), ("tensor tf32", gpu["tensor_tf32_gflops"]),
                                                                            ("tensor fp64", gpu["tensor_fp64_gflops"])]


def test_live(visit, start):
    daemon = start()
    visitor = visit(f"http://127.0.0.1:{daemon.port}")
    visitor.open("#/live")
    page = visitor.page
    expect(page.get_by_text("Nobody has asked for anything yet.")).to_be_visible()
    page.get_by_role("button", name="Make some traffic").click()
    expect(page.get_by_role("table", name=re.compile("Of the last 14 accounts"))).to_be_visible()
    expect(page.get_by_role("rowheader", name="127.0.0.1")).to_be_visible()
    page.get_by_role("button", name="5 minutes").click()
    assert visitor.fragment() == "/live?minutes=5"
    assert page.get_by_role("table", name="Jobs on each device now").count() == 1  # at once, and not with the next second
    expect(page.get_by_role("table", name="Of the last 10 seconds, by accounts")).to_contain_text("cpu:0, stream 0")
    # The page is drawn anew each second; who reads it stays where he is.
    visitor.page.set_viewport_size(PHONE)
    link, table = page.get_by_role("link", name="See the requests one by one"), page.get_by_role("region", name=re.compile("the slowest first"))
    assert table.evaluate("box => { box.firstChild.dataset.old = 1; box.scrollLeft = box.scrollWidth > 0 && 60; return box.scrollLeft }") == 60
    link.focus()
    expect(page.locator("[data-old]")).to_have_count(0)
    expect(link).to_be_focused()
    assert table.evaluate("box => box.scrollLeft") == 60
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Go on")).to_be_visible()
    page.goto("about:blank")  # before its daemon is gone


def test_live_after_a_restart(visit, start):
    """What the daemon before it did is not among what this one does."""
    daemon = start()
    visitor = visit(f"http://127.0.0.1:{daemon.port}")
    page = visitor.page

    def older(route):  # the first one has run for an hour
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "now_us": response.json()["now_us"] + 3.6e9})

    page.route("**/v1/requests?*", older)
    visitor.open("#/live")
    page.get_by_role("button", name="Make some traffic").click()
    expect(page.get_by_role("table", name=re.compile("Of the last 14 accounts"))).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    page.unroute_all(behavior="wait")
    daemon.stop()
    daemon = start("--listen", f"127.0.0.1:{daemon.port}", listen=False)
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("Nobody has asked for anything yet.")).to_be_visible()
    visitor.faults = [fault for fault in visitor.faults if "net::ERR" not in fault]  # of what was under way as it stopped
    with daemon.client() as client:
        client.post("/v1/transpose", npy(np.ones((8, 8), np.float32)), {"Content-Type": "application/x-npy"}).ok()
    expect(page.get_by_role("table", name=re.compile("Of the last 1 accounts"))).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    page.goto("about:blank")  # before its daemon is gone


def test_the_slowest_client(visit, keyed):
    """As one finds it who may see the requests of all."""
    daemon, keys = keyed
    with daemon.client() as client:
        for name, n in (("ann", 8), ("may", 1500), ("ann", 16)):
            client.post("/v1/transpose", npy(np.ones((n, n), np.float32)), {"Content-Type": "application/x-npy", **bearer(keys[name])}).ok()
    visitor = visit(f"http://127.0.0.1:{daemon.port}")
    page = visitor.page
    page.add_init_script(f"location.protocol === 'about:' || sessionStorage.setItem('gemmd-key', '{keys['eve']}')")
    visitor.open("#/live")
    clients = page.get_by_role("table", name=re.compile("the slowest first"))
    page.get_by_role("button", name="Make some traffic").click()
    expect(page.get_by_role("alert")).to_contain_text("role use")
    with page.expect_response("**/v1/stats"):
        pass
    page.evaluate("new Promise(requestAnimationFrame)")
    expect(page.get_by_role("alert")).to_contain_text("role use")  # still there after a second
    visitor.refused(403)
    expect(clients.get_by_role("rowheader").first).to_have_text("may")
    page.get_by_role("button", name="Pause").click()
    clients.get_by_role("link", name="Requests of may").click()
    expect(page.get_by_text("Only requests of may.")).to_be_visible()
    expect(page.locator("g.pick")).to_have_count(1)
    visitor.open("#" + visitor.fragment())
    expect(page.locator("g.pick")).to_have_count(1)
    page.get_by_role("table", name=re.compile("^Medians")).get_by_role("link").last.click()
    expect(page.get_by_role("heading", name="transpose by blocked, 1500 × 1500")).to_be_visible()
    page.go_back()
    page.get_by_role("button", name="Show those of all").click()
    expect(page.locator("g.pick")).not_to_have_count(1)
    assert visitor.fragment() == "/waterfall"


# ---- What is shown of what gemmd says. ----


def told(number, op="transpose", at=0.0, client="127.0.0.1", us=None, ran=None, **account):
    """A row of GET /v1/requests: its stages one after the other from the time at which it came."""
    us = us or {"receive": 10.0, "kernel": 80.0, "encode": 10.0}
    begins = [at + sum(list(us.values())[:i]) for i in range(len(us))]
    rates = {"effective_gbs": 4.0, "percent_of_copy": 40.0, "copy_gbs": 10.0, "flops": 0, "intensity": 0.0, "bound": "memory", "roof": "dram"}
    return {"number": number, "client": client, "arrived_unix_us": 1.7e15 + at, "arrived_us": at, "stages": [{"stage": stage, "start_us": begin, "us": us[stage]} for stage, begin in zip(us, begins)],
            "ran": ran or {"start_us": at, "us": sum(us.values()), "stream": 0},
            "account": {"id": f"id{number}", "op": op, "kernel": "tiled", "device": "cpu:0", "dtype": "f32", "shapes": {"a": [2, 3], "result": [3, 2]}, "us": {**us, "total": sum(us.values())}, "bytes_min": 48, **rates, **account}}


def tell(visitor, requests, now_us=1e6):
    visitor.page.route("**/v1/requests?*", lambda route: route.fulfill(json={"now_us": now_us, "requests": requests}))


def test_figures(visit):
    visitor = visit()
    visitor.open()
    figures = visitor.page.evaluate("""async () => {
        const { figure, time, bytes, shape } = await import("/console/dom.js"), { power, decades } = await import("/console/plot.js"), { verdict } = await import("/console/account.js");
        const cpu = { device: "cpu:0", roof: "fp32", op: "matmul", percent_of_roofline: 12.34, intensity: 5, percent_of_copy: 40 };
        return [
            [0, 0.00012, 0.00123, 12.345, 999.4, 999.6, 1000, 1234567, 1e15, -2.5, NaN, undefined].map(figure),
            [0.5, 999.4, 999.6, 1000, 12345, 999600, 1e6, 119e6, 120e6, 7199e6, 7200e6, 48 * 3600e6, undefined].map(time),
            [0, 1023, 1024, 2 ** 20, 1.5 * 2 ** 30, 2 ** 40, NaN].map(bytes), shape([2, 3]), [0.01, 1, 1000, 1e4, 1e-5, 2].map(power), decades([3, 450]),
            [{ ...cpu, bound: "compute" }, { ...cpu, bound: "memory" }, { op: "eval", percent_of_copy: 40 }, { op: "eval" }, { op: "flip", percent_of_copy: 40 }, { op: "flip" },
                { accesses: { global_sectors: 8, global_sectors_min: 4, shared_wavefronts: 6, shared_wavefronts_ideal: 2 } }, { accesses: { global_sectors: 8, global_sectors_min: 4, shared_wavefronts: 0 } }].map(verdict),
        ];
    }""")
    assert figures == [
        ["0", "1.2e-4", "0.00123", "12.3", "999", "1,000", "1,000", "1,234,567", "1.0e+15", "-2.5", "–", "–"],
        ["0.5 µs", "999 µs", "1 ms", "1 ms", "12.3 ms", "1 s", "1 s", "119 s", "2 min", "120 min", "2 h", "2 days", "–"],
        ["0 B", "1023 B", "1 KiB", "1 MiB", "1.5 GiB", "1 TiB", "–"], "2 × 3", ["0.01", "1", "1000", "10⁴", "10⁻⁵", ""], [1, 1000],
        ["Arithmetic is the limit: 12.3 % of what cpu:0 reaches in fp32.", "Memory is the limit at 5 operations a byte: 12.3 % of the roofline (fp32).", "Its steps together move their bytes at 40 % of the rate of a copy.", "",
         "Only bytes are moved: 40 % of the rate of a copy.", "", "Simulated, so there is no time. Its warps touched 2 times the sectors that must move, and took 3 times the ideal passes over shared memory.",
         "Simulated, so there is no time. Its warps touched 2 times the sectors that must move."],
    ]


def test_an_account_in_full(visit, daemon):
    """Its bar has the stages end to end, each as wide as its share of the time."""
    visitor = visit()
    page = visitor.page
    tell(visitor, [told(1, us={"receive": 100.0, "queue": 300.0, "kernel": 500.0, "encode": 100.0}, placed="shape", doubt="copy_gbs", gflops=2.5, steps=[{"op": "matmul", "kernel": "naive", "shape": [3, 2], "us": 1500.0}])])
    visitor.open("#/waterfall?id=id1")
    account = page.get_by_role("heading", name="Account").locator("xpath=ancestor::section")
    for words in ("chosen by shape", "Faster than the ceiling (copy_gbs)", "2.5 GFLOP/s", "4 GB/s", "48 B", "In the kernel500 µs"):
        expect(account).to_contain_text(words)
    assert account.locator("svg.chart rect").evaluate_all("all => all.filter(one => one.classList.value.startsWith('s-') && one.hasAttribute('y')).map(one => [one.classList.value, Number(one.getAttribute('x')), Number(one.getAttribute('width'))])") == [
        ["s-receive", 0, 100], ["s-queue", 100, 300], ["s-kernel", 400, 500], ["s-encode", 900, 100]]
    account.get_by_text("Each step").click()
    assert account.get_by_role("table", name="Steps of the expression").locator("tbody tr").all_inner_texts() == ["1. matmul\tnaive\t3 × 2\t1.5 ms"]
    expect(account.get_by_role("link", name="See it as a waterfall")).to_have_count(0)  # it is one


def test_waterfalls_of_three(visit, daemon):
    visitor = visit()
    page = visitor.page
    three = [told(1, at=0.0), told(2, "flip", at=50.0, client="bob", us={"receive": 10.0, "kernel": 190.0}), told(3, "add", at=60.0, us={"receive": 40.0, "kernel": 10.0}), told(4, "flip", at=100_000.0, us={"receive": 4.0, "kernel": 4.0})]
    tell(visitor, three)
    visitor.open("#/waterfall?scale=own")
    expect(page.locator("g.pick")).to_have_count(4)
    names = page.locator("g.pick text").all_text_contents()
    assert [name.split()[0] for name in names] == ["flip", "add", "flip", "transpose"]  # the newest first
    ends = page.locator("g.pick").evaluate_all("all => all.map(one => Math.round(Math.max(...[...one.querySelectorAll('[class^=s-]')].map(bar => Number(bar.getAttribute('x')) + Number(bar.getAttribute('width'))))))")
    assert len(set(ends)) == 1, ends  # each fills the width
    clients = page.get_by_role("table", name=re.compile("^Medians"))
    assert [row.split("\t") for row in clients.locator("tbody tr").all_inner_texts()] == [["bob", "1", "200 µs", "0 µs", "200 µs"], ["127.0.0.1", "3", "50 µs", "0 µs", "100 µs"]]
    assert clients.get_by_role("link").evaluate_all("all => all.map(one => one.hash)") == ["#/waterfall?client=bob", "#/waterfall?id=id2&number=2", "#/waterfall?client=127.0.0.1", "#/waterfall?id=id1&number=1"]
    visitor.open("#/waterfall?id=id2")
    beside = page.get_by_role("table", name="Requests that overlapped with it").locator("tbody tr")
    assert [row.split("\t")[2] for row in beside.all_inner_texts()] == ["−50 µs", "+10 µs"]  # and not what came later
    expect(page.get_by_role("heading", name="flip by tiled, 3 × 2")).to_be_visible()
    # A part of the time, which a link can say; a burst ends where 20 ms are without a job.
    visitor.open("#/waterfall?mode=streams")
    expect(page.get_by_text("3 jobs on 1 streams within")).to_be_visible()
    visitor.open("#/waterfall?mode=streams&from=55&to=99")
    expect(page.get_by_text("3 jobs on 1 streams within 44 µs")).to_be_visible()
    for name, window in (("Later", "from=77&to=121"), ("Earlier", "from=55&to=99"), ("Closer", "from=66&to=88"), ("Wider", "from=55&to=99")):
        page.get_by_role("button", name=name, exact=True).click()
        assert visitor.fragment() == f"/waterfall?mode=streams&{window}", name
    visitor.open("#/waterfall?client=bob")
    expect(page.locator("g.pick")).to_have_count(1)
    page.get_by_role("button", name="Show those of all").click()
    expect(page.locator("g.pick")).to_have_count(4)
    tell(visitor, [told(n) for n in range(1, 302)])
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("g.pick")).to_have_count(200)
    page.locator("g.pick").first.click()
    expect(page.get_by_text("Request 301 by")).to_be_visible()


def test_rooflines_of_some(visit, daemon):
    visitor = visit()
    page = visitor.page
    flat = {"flops": 100, "intensity": 2.0, "bound": "compute", "roof": "fp32", "percent_of_roofline": 75.0}
    tell(visitor, [told(1, "matmul", gflops=2.0, **flat), told(2, "matmul", gflops=200.0, **flat), told(3, "flip")])
    visitor.open("#/roofline?device=cpu:0")
    circles = page.locator("circle.point.o-matmul")
    expect(circles).to_have_count(2)
    (low_x, low), (high_x, high) = circles.evaluate_all("all => all.map(one => [Number(one.getAttribute('cx')), Number(one.getAttribute('cy'))])")
    assert low_x == high_x and high < low - 20  # two powers of ten apart
    rows = page.get_by_role("table", name=re.compile("^The last requests")).locator("tbody tr")
    assert [row.split("\t")[0] + row.split("\t")[-1] for row in rows.all_inner_texts()] == ["flip 340 %", "matmul 275 %", "matmul 175 %"]
    page.get_by_label("Operation").select_option("matmul")
    expect(page.locator("circle.point")).to_have_count(2)
    assert "op=matmul" in page.get_by_role("link", name="This picture as SVG").get_attribute("href") and "op=matmul" in visitor.fragment()
    page.get_by_label("Operation").select_option("flip")
    expect(page.get_by_text("None of the last requests fits")).to_have_count(0)
    expect(page.locator("circle.point.o-flip")).to_have_count(1)
    tell(visitor, [told(n, "matmul", gflops=2.0, **flat) for n in range(1, 61)])
    page.get_by_label("Operation").select_option("matmul")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text("matmul 60")
    visitor.page.set_viewport_size(PHONE)
    expect(page.locator("svg.chart").first).to_have_attribute("width", re.compile("^3[0-9][0-9]$"))  # it is drawn anew
    # rows x inner x columns of a comparison that it is asked to join.
    with page.expect_request("**/v1/compare/matmul?*") as asked:
        page.evaluate("location.hash = '#/roofline?lesson=matmul:8x24x16'")
    assert re.findall(rb"'shape': \((\d+, \d+)\)", asked.value.post_data_buffer) == [b"8, 24", b"24, 16"]
    expect(page.locator("path.lesson")).to_have_count(1)


def test_live_figures(visit, daemon):
    """Of what the last 10 seconds had."""
    visitor = visit()
    page = visitor.page
    slow = [told(n, at=1e6, client="bob", us={"queue": 10.0 * n, "kernel": 90.0 * n}, ran={"start_us": 1e6, "us": 1e6, "stream": 0}) for n in range(1, 11)]
    stats = daemon.get("/v1/stats").json()
    stats["queues"]["cpu:0"]["queued"] = 7
    tell(visitor, slow, 2e6)
    page.route("**/v1/stats", lambda route: route.fulfill(json=stats))
    visitor.open("#/live")
    for name, figure in (("Latency, median", "600 µs"), ("Latency, 99 %", "1 ms"), ("Waiting", "7")):
        expect(page.locator("dt", has_text=name).locator("+ dd").first).to_have_text(figure)
    page.get_by_role("button", name="Pause").click()
    clients = page.get_by_role("table", name=re.compile("the slowest first"))
    expect(clients.locator("tbody tr")).to_have_count(1)
    assert [row.split("\t") for row in clients.locator("tbody tr").all_inner_texts()] == [["bob", "10", "600 µs", "1 ms", "60 µs", "10 s"]]
    streams = page.get_by_role("table", name="Of the last 10 seconds, by accounts").locator("tbody tr")
    assert streams.all_inner_texts() == ["cpu:0, stream 0\t10\t10 %"]  # of one launch: together they took a second


def test_comparisons_that_went_wrong(visit, daemon):
    visitor = visit()
    page = visitor.page

    def compared(route):
        report = (reply := route.fetch()).json()
        own = [row for row in report["rows"] if not row["baseline"]]
        own[0]["error"] = {"verdict": "wrong", "wrong": 3}
        own[1]["error"] = {"verdict": "compared", "different": 0}
        report["reference"]["against"] = "naive"
        for n, row in enumerate(report["rows"], 1):
            row.update(effective_gbs=n, percent_of_copy=100.0 + n * 2, kernel_us_median=10.0 * n)
        route.fulfill(response=reply, json=report)

    page.route("**/v1/compare/transpose?*", compared)
    visitor.open("#/compare?op=transpose&rows=64&cols=64&dtype=bf16&run=1")
    table = page.get_by_role("table")
    for words in ("WRONG in 3 elements", "as that of naive"):
        expect(table).to_contain_text(words)
    expect(page.get_by_role("heading", name="transpose 64 × 64 bf16 on cpu:0")).to_be_visible()
    bars = page.locator("svg.chart").first.locator("g.pick")
    count = bars.count()
    assert [bar.locator("text").all_text_contents()[-1] for bar in bars.all()] == [str(n) for n in range(1, count + 1)]
    assert "WRONG" in bars.locator("text").all_text_contents() and [row.split("\t")[-3] for row in table.locator("tbody tr").all_inner_texts()] == [f"{100 + 2 * n} %" for n in range(1, count + 1)]
    expect(page.get_by_text("Above 100 %: these matrices fit a cache")).to_be_visible()
    assert [row.split(" ")[1].split("\t")[0] for row in table.locator("tr.chosen").all_inner_texts()] == ["(auto)"]
    page.get_by_role("button", name="As taught").click()
    taught = [one["name"] for one in daemon.get("/v1/kernels").json()["kernels"] if one["op"] == "transpose" and "cpu:0" in one["devices"]]
    shown = [re.sub(r" \(.*", "", name) for name in table.get_by_role("rowheader").all_inner_texts()]
    assert "copy" in table.get_by_role("rowheader").first.inner_text() and [name for name in shown if name in taught] == taught
    page.unroute_all()
    page.route("**/v1/compare/transpose?*", lambda route: None)  # whose answer does not come
    page.locator("form").get_by_role("button", name="Compare").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_pictures_of_matrices(visit, busy):
    visitor = visit()
    page = visitor.page
    visitor.open("#/matrices?name=w&rows=1:2")
    page.locator("canvas.heat").hover(position={"x": 2, "y": 2})
    expect(page.locator(".tip")).to_have_text("row 1, column 0: 3")
    assert page.locator(".scale").inner_text().split() == ["3", "5"]
    assert page.locator(".matrix tbody tr").first.get_attribute("aria-rowindex") == "2"
    page.locator(".matrix").scroll_into_view_if_needed()
    visitor.open("#/playground?op=transpose&dtype=i32&a=text:-2000000001,5")
    expect(page.locator(".matrix td")).to_have_text(["-2000000001", "5"])
    expect(page.locator(".matrix td[title]")).to_have_attribute("title", "-2000000001")  # whole, where it is cut off
    assert page.evaluate("""async () => {
        const { fromNumbers } = await import("/console/matrix.js"), { heatMap, grid } = await import("/console/picture.js");
        const canvas = heatMap(fromNumbers([1, 4], "f64", [NaN, -Infinity, 2, Infinity]), "m").querySelector("canvas"), pixels = canvas.getContext("2d").getImageData(0, 0, 2, 1).data;
        return [canvas.getAttribute("aria-label"), [...pixels.slice(0, 3)]];
    }""") == ["Heat map of m: 1 by 4, from 2 to 2", [213, 94, 0]]
    # Where several lanes want a word, it is no conflict.
    assert page.evaluate("""async () => {
        const { picture } = await import("/console/explanation.js"), site = { kind: "shared_load", memory: "tile", verdict: "broadcast", wavefronts_per_request: 1, ideal_wavefronts_per_request: 1 };
        const drawn = picture(site, { addresses: [...Array(31).fill(0), 4], bytes_per_lane: 4 });
        return [drawn.querySelector("p").textContent, [...drawn.querySelectorAll("text.on")].map(one => one.textContent), drawn.querySelectorAll(".conflict").length];
    }""") == ["No bank has two words to give: one pass.", ["0+", "31"], 0]
    # What is told is within the window, however low the pointer is.
    for y in (5, 895):
        assert page.evaluate("""async (y) => {
            const { tell } = await import("/console/dom.js");
            tell({ clientX: 1275, clientY: y }, "a line, and another");
            const box = document.querySelector(".tip").getBoundingClientRect();
            return box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth; }""", y), y


# ---- The lessons. ----


def test_compare(visit):
    visitor = visit()
    visitor.open("#/compare")
    page = visitor.page
    for size in ("Rows", "Columns", "Inner"):
        page.get_by_label(size, exact=True).fill("96")
    page.evaluate("""() => {
        document.querySelector("button[type=submit]").click();
        [...document.querySelectorAll("button")].find(button => button.textContent === "transpose").click(); // before its answer
    }""")
    table = page.get_by_role("table")
    expect(table).to_contain_text("naive")
    expect(table).to_contain_text("(auto)")
    expect(table).to_contain_text("within the bound")
    expect(page.locator("svg.chart").first).to_contain_text(re.compile("error [0-9.]+e-[0-9]+"))  # beside its bar
    expect(page.get_by_text(re.compile("auto takes (blocked|openblas): estimated at"))).to_be_visible()
    expect(page.get_by_role("columnheader", name="Estimated")).to_have_count(1)
    expect(page.get_by_role("link", name="The choice in full")).to_have_attribute("href", re.compile("choose/matmul"))
    expect(page.get_by_role("link", name="See them under the roofline")).to_have_attribute("href", re.compile("lesson=matmul:96x96x96:f32$"))
    expect(page.locator("svg.chart")).to_have_count(2)
    with page.expect_download() as download:
        page.get_by_role("button", name="Compare again, as SVG").click()
    assert download.value.suggested_filename == "matmul.svg"
    drawn = open(download.value.path(), encoding="utf-8").read()
    assert "naive</text>" in drawn and "matmul" in drawn
    page.get_by_role("button", name="As taught").click()
    link = visitor.fragment()
    assert "op=matmul" in link and "rows=96" in link and "order=lesson" in link and "run=1" in link
    visitor.open("#" + link)  # brings all of it back
    expect(page.get_by_label("Inner", exact=True)).to_have_value("96")
    expect(page.get_by_role("table")).to_contain_text("naive")

    def compared(route):  # as of matrices for which plain loops would take too long
        report = (reply := route.fetch()).json()
        first, second = [row for row in report["rows"] if not row["baseline"]][:2]
        del first["error"]
        second["error"] = {"verdict": "compared", "different": 7, "first": 0}
        report["reference"]["against"] = first["kernel"]
        route.fulfill(response=reply, json=report)

    page.route("**/v1/compare/transpose?*", compared, times=1)
    visitor.open("#/compare?op=transpose&rows=64&cols=64&run=1")
    for words in ("the others are compared with it", re.compile("DIFFERS from that of [a-z_]+ in 7 elements")):
        expect(page.get_by_role("table")).to_contain_text(words)
    expect(page.locator("#said")).to_have_text(re.compile(r"^\d+ kernels; the fastest is (?!memcpy)"))
    page.get_by_role("link", name="Compare those for GPUs, simulated").click()  # for which there are estimates
    expect(page.get_by_label("Device")).to_have_value("sim:0")
    expect(page.get_by_role("row", name=re.compile("^naive "))).to_contain_text(re.compile(r"[0-9.]+ µs launch"))
    expect(page.get_by_text(re.compile("On a real H200, .* auto takes grouped"))).to_be_visible()
    expect(page.locator("#said")).to_have_text(re.compile(r"^\d+ kernels$"))  # of which none is timed
    page.get_by_role("link", name="Why, of skinny").click()  # of these matrices, though few shapes suit it
    expect(page.get_by_role("heading", name="transpose skinny")).to_be_visible()
    assert "rows=128&cols=128" in visitor.fragment()


def test_explain(visit):
    visitor = visit()
    visitor.open("#/explain")
    page = visitor.page
    cards = page.locator(".beside > section")
    expect(cards).to_have_count(3)
    for card, words in ((0, "12.5 % of its sectors is written"), (1, "one has 32 words to give"), (2, "No bank has two words")):
        expect(cards.nth(card)).to_contain_text(words)
    expect(cards.nth(1).locator(".source .cost2").first).to_contain_text("tile[x]")
    assert "format=svg" in cards.nth(1).get_by_role("link", name="All pictures of tiled as SVG").get_attribute("href")
    with page.expect_response("**/v1/explain/transpose?format=svg*") as drawn:
        page.evaluate("link => fetch(link)", cards.nth(1).get_by_role("link", name="All pictures of tiled as SVG").get_attribute("href"))
    assert drawn.value.headers["content-type"].startswith("image/svg+xml")
    page.get_by_label("Access of tiled").select_option("0")  # as its button in the source does
    expect(cards.nth(1).locator(".site[aria-pressed=true]")).to_contain_text("global load")
    access = page.get_by_label("Access of tiled")
    access.select_option(access.locator("option", has_text="shared load").get_attribute("value"))
    expect(cards.nth(1).locator(".site[aria-pressed=true]")).to_contain_text("shared load")
    # The source is scrolled to the access that the picture shows.
    assert cards.nth(1).locator(".site[aria-pressed=true]").evaluate("""one => {
        const at = one.getBoundingClientRect(), box = one.closest(".source").getBoundingClientRect();
        return at.top >= box.top && at.bottom <= box.bottom }""")
    load = cards.nth(0).get_by_role("button", name=re.compile("^global load a"))
    load.focus()
    page.keyboard.press("Enter")
    expect(cards.nth(0)).to_contain_text("100 % of what is fetched is used")
    expect(load).to_be_focused()
    cards.nth(1).get_by_role("button", name="Larger").click()
    dialog = page.get_by_role("dialog", name="1 of 32 banks is used")
    assert dialog.locator("svg.lanes").bounding_box()["width"] >= 700
    accessible(page, "a larger picture")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.get_by_label("Warp of the block").focus()
    page.keyboard.press("ArrowRight")
    expect(cards.nth(0)).to_contain_text("Block 0, 0, 0, warp 1")
    expect(cards.nth(0)).to_contain_text("a, from byte 4096")  # the next row
    link = visitor.fragment()
    assert "warp=1" in link and "rows=1024" in link
    visitor.open("#" + link.replace("rows=1024", "rows=64"))  # less to trace
    expect(cards.nth(0)).to_contain_text("100 % of what is fetched is used")
    page.get_by_label("GPU").select_option("RTX 4090")
    page.get_by_label("Element type").select_option("f64")
    page.locator("form").get_by_role("button", name="Explain").click()
    expect(cards.nth(0)).to_contain_text("8 sectors of 32 bytes for 256 bytes")
    page.get_by_label("Element type").select_option("c128")
    page.locator("form").get_by_role("button", name="Explain").click()
    expect(cards.nth(0)).to_contain_text("16 sectors of 32 bytes for 512 bytes")
    page.get_by_role("button", name="add", exact=True).click()  # which has no complex numbers
    expect(cards.nth(2)).to_contain_text("add float3_soa")
    expect(page.get_by_label("Element type")).to_have_value("f32")
    # What is explained is what the form says.
    chosen = [page.locator(f"select[name=kernel{i}]") for i in range(3)]
    for select, kernel, explained in ((0, "", ["float3_staged", "float3_soa"]), (1, "float3", ["float3", "float3_soa"])):
        chosen[select].select_option(kernel)
        page.locator("form").get_by_role("button", name="Explain").click()
        expect(cards.locator("h2")).to_have_text([f"add {name}" for name in explained])
        assert [one.input_value() for one in chosen] == ["", *(["float3_staged"] if select == 0 else ["float3"]), "float3_soa"]
    # Wide accesses take several passes, and no lane waits for another.
    wide = visit()
    wide.open("#/explain?op=transpose&kernels=padded&rows=64&cols=64&dtype=c128")
    wide.page.locator(".beside").get_by_role("button", name=re.compile("^shared (load|store)")).first.click()
    expect(wide.page.locator(".beside")).to_contain_text("4 passes, the least for 16 bytes a lane")
    expect(wide.page.locator("svg.lanes .conflict")).to_have_count(0)
    wide.open("#/explain?kernels=naive&rows=8&cols=8&warp=999")  # more than a block has
    expect(wide.page.get_by_role("button", name="Larger")).to_have_count(1)
    warps = int(wide.page.get_by_label("Warp of the block").get_attribute("max"))
    expect(wide.page.locator("output")).to_have_text(f"warp {warps} of {warps + 1}")
    page.get_by_label("Rows").fill("")
    page.locator("form").get_by_role("button", name="Explain").click()
    expect(page.locator("input:invalid")).to_have_count(1)
    page.get_by_label("Rows").fill("8")
    for one in chosen:
        one.select_option("")
    page.locator("form").get_by_role("button", name="Explain").click()
    expect(page.get_by_text("Choose a kernel.")).to_be_visible()
    chosen[0].select_option("float3")
    page.locator("form").get_by_role("button", name="Explain").click()
    page.get_by_role("button", name="Larger").click()
    page.evaluate("location.hash = '#/compare'")
    expect(page.locator("h1")).to_have_text("Compare")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_tour(visit, shared_daemon):
    visitor = visit()
    page = visitor.page

    def another_way_round(route):
        report = (reply := route.fetch()).json()
        route.fulfill(response=reply, json={**report, "rows": report["rows"][::-1]})

    page.route("**/v1/compare/**", another_way_round)  # as where a later kernel is the slower one
    visitor.open("#/tour")
    for step in range(1, 9):
        expect(page.locator("h2").first).to_have_text(re.compile(rf"^{step}\. "))
        expect(page.get_by_text("Running it")).to_have_count(0)
        expect(page.locator("main svg.chart, main table").first).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        if step < 8:
            page.get_by_role("button", name=re.compile("^Next: ")).click()
    assert visitor.fragment() == "/tour?step=8"
    expect(page.locator("path.lesson")).to_have_count(1)
    expect(page.locator("h2").first).to_be_focused()
    # In the order of the lesson, which is that of GET /v1/kernels, and not of speed.
    taught = [one["name"] for one in shared_daemon.get("/v1/kernels").json()["kernels"] if one["op"] == "matmul" and "cpu:0" in one["devices"]]
    shown = page.get_by_role("table", name="What was measured").get_by_role("rowheader").all_inner_texts()
    assert len(shown) > 1 and shown == [name for name in taught if name in shown]
    page.get_by_role("button", name="Back").click()
    expect(page.locator("h2").first).to_have_text(re.compile(r"^7\. "))
    blocks = page.get_by_role("table", name=re.compile("^On ")).locator("tbody tr")
    expect(blocks.first).to_contain_text("tiled")
    tiled = shared_daemon.get("/v1/explain/matmul?format=json&kernel=tiled&shape_a=256x256&shape_b=256x256").json()
    assert blocks.first.inner_text().split("\t")[1:4] == [f"{np.prod(tiled['launches'][-1]['block']):,}", f"{tiled['launches'][-1]['shared_bytes']:,}", str(tiled["totals"]["occupancy"]["blocks"])]
    for link, words in (("step=99", r"^8\. "), ("step=-1", r"^1\. ")):
        visitor.open(f"#/tour?{link}")
        expect(page.locator("h2").first).to_have_text(re.compile(words))
    # What its words say is what its pictures show.
    expect(page.get_by_role("heading", name="copy direct: global load of a")).to_be_visible()
    expect(page.get_by_text("4 sectors, ideal 4 for each request")).to_be_visible()
    visitor.open("#/tour?step=5")
    expect(page.get_by_role("heading", name="transpose padded")).to_be_visible()
    expect(page.get_by_text("No bank has two words to give: one pass.")).to_be_visible()


# ---- Keys. ----


def test_a_key_is_asked_for_once(visit, keyed):
    daemon, keys = keyed
    visitor = visit(f"http://127.0.0.1:{daemon.port}")
    visitor.open("#/live")
    page = visitor.page
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("wants a key")
    accessible(page, "the dialog")
    dialog.get_by_label(re.compile("^Key")).fill("no.key")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("not known here")
    dialog.get_by_label(re.compile("^Key")).fill(keys["ann"] + " \u200b")  # as some programs have it copied
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("has not the role read")).to_be_visible()
    # Its own requests are counted, and not those of others.
    pause = page.get_by_role("button", name="Pause")
    pause.click()
    with daemon.client() as client:
        for name, n in (("bob", 300), ("ann", 1)):
            for _ in range(n):
                client.post("/v1/flip", npy(np.ones((2, 2), np.float32)), {"Content-Type": "application/x-npy", **bearer(keys[name])}).ok()
    page.evaluate("[...document.querySelectorAll('button')].filter(one => one.textContent === 'Go on').forEach(one => { one.click(); one.click(); })")  # once
    rate = page.locator("dt", has_text="Requests a second").locator("+ dd")
    expect(rate).not_to_have_text("0")
    assert 0 < float(rate.inner_text()) < 10
    visitor.open("#/playground?op=matmul")  # the same tab: not asked again
    expect(page.locator(".matrix")).to_be_visible()
    visitor.open("#/live")
    with page.expect_download() as drawn:  # a link has no key to show
        page.get_by_role("link", name="The last minute as SVG").click()
    assert "Requests a second" in open(drawn.value.path()).read()
    page.get_by_role("button", name="Forget the key").click()
    expect(dialog).to_contain_text("wants a key")
    assert page.evaluate("sessionStorage.length") == 0
    assert page.evaluate("localStorage.length") == 0 and page.evaluate("document.cookie") == ""
    visitor.expected = (401, 403)  # as they come, the last after this
    another = visit(f"http://127.0.0.1:{daemon.port}")
    another.open("#/live")
    expect(another.page.get_by_role("dialog")).to_contain_text("wants a key")
    another.page.keyboard.press("Escape")
    expect(another.page.get_by_role("button", name="Go on", pressed=True)).to_be_visible()  # it does not ask each second
    another.expected = (401,)
