// explain.js - kernels side by side: what each access costs, and which lanes touch what.
import { devices, kernels } from "../api.js";
import { again, announce, card, choice, empty, failure, field, h, head, select, show as put } from "../dom.js";
import { examplesOf, explain, kernelCard, likeSite, siteWords } from "../explanation.js";

const OPS = ["transpose", "matmul", "add", "flip", "copy"].map((op) => [op, op]);
const LESSONS = { transpose: ["naive", "tiled", "padded"], matmul: ["naive", "tiled", "register_tiled"], add: ["float3", "float3_staged", "float3_soa"], flip: ["shared", "vectorized"], copy: ["direct", "vector"] };
const SHAPES = { transpose: [1024, 1024], matmul: [1024, 1024], add: [4096, 3], flip: [1024, 1024], copy: [1024, 1024] };

export function show(main, parameters, keep) {
  const op = Object.hasOwn(LESSONS, parameters.get("op")) ? parameters.get("op") : "transpose", number = (name, otherwise) => Math.max(1, Math.round(Number(parameters.get(name))) || otherwise);
  const state = { op, kernels: parameters.get("kernels")?.split(",").filter(Boolean) ?? LESSONS[op], rows: number("rows", SHAPES[op][0]), cols: number("cols", SHAPES[op][1]), inner: number("inner", 1024),
    dtype: parameters.get("dtype") ?? "f32", gpu: parameters.get("gpu") ?? "", warp: Math.max(0, Math.round(Number(parameters.get("warp"))) || 0), sites: parameters.get("sites")?.split(",").map(Number) ?? [] };
  const settings = h("div", { class: "row" }), beside = h("div", { class: "row" }), place = h("div", { class: "lines" });
  let stop, reports = [], reachable = [], dtypes = [state.dtype];

  put(main, head("Explain", "Kernels as a GPU runs them, traced by the simulator: the cost of each access, and why."),
    h("form", { class: "card", "aria-label": "What to explain", onsubmit: (event) => { event.preventDefault(); go(); } }, settings, beside), place);

  const wanted = () => state.kernels.filter(Boolean); // of three selects
  const save = () => keep({ ...state, kernels: wanted().join(","), inner: state.op === "matmul" ? state.inner : undefined, sites: state.sites.join(","), warp: state.warp || undefined });

  async function begin() {
    let gpus = [];
    try {
      const [facts, all] = await Promise.all([devices(), kernels()]);
      gpus = facts.gpus.map((gpu) => gpu.name);
      const here = all.filter((one) => one.op === state.op && one.devices.some((name) => name.startsWith("sim")));
      reachable = [...new Set(here.map((one) => one.name))];
      dtypes = [...new Set(here.flatMap((one) => one.dtypes))];
      if (!dtypes.includes(state.dtype)) state.dtype = "f32";
    } catch (error) {
      return put(place, failure(error), again(begin));
    }
    state.kernels = state.kernels.filter((name) => reachable.includes(name));
    if (state.kernels.length === 0) state.kernels = LESSONS[state.op].filter((name) => reachable.includes(name));
    const size = (label, key) => field(label, h("input", { type: "number", min: 1, max: 100000000, required: true, value: state[key], oninput: (event) => { state[key] = Math.round(Number(event.target.value)); } }));
    put(settings, choice("Operation", OPS, state.op, (value) => {
      Object.assign(state, { op: value, kernels: LESSONS[value], rows: SHAPES[value][0], cols: SHAPES[value][1], sites: [], warp: 0 });
      begin();
    }), size("Rows", "rows"), size("Columns", "cols"), state.op === "matmul" ? size("Inner", "inner") : null, field("Element type", select(dtypes, state.dtype, (value) => { state.dtype = value; })),
    field("GPU", select([["", "as simulated"], ...gpus.map((name) => [name, name])], state.gpu, (value) => { state.gpu = value; })));
    put(beside, [0, 1, 2].map((i) => field(["Kernel", "Second kernel", "Third kernel"][i], select([["", "none"], ...reachable.map((name) => [name, name])], state.kernels[i] ?? "", (value) => {
      state.kernels[i] = value;
      state.sites = [];
    }, `kernel${i}`))), h("button", { type: "submit", class: "main" }, "Explain"));
    go();
  }

  async function go() {
    stop?.abort();
    stop = new AbortController();
    save();
    if (wanted().length === 0) return put(place, card(null, empty("Choose a kernel.")));
    put(place, h("div", { class: "card" }, empty("Tracing. This takes a second or two.")));
    try {
      reports = await Promise.all(wanted().map((kernel) => explain(state.op, kernel, state, stop.signal)));
      if (reports.some((report) => report.sites.length === 0)) throw new Error("Nothing is accessed: the matrix has no elements.");
      reports.forEach((report, i) => { if (!report.sites[state.sites[i]]) state.sites[i] = likeSite(report, reports[i - 1]?.sites[state.sites[i - 1]].kind); });
      state.sites.length = reports.length;
      draw();
      announce(`Explained: ${wanted().join(", ")}`);
    } catch (error) {
      if (error.name !== "AbortError") put(place, failure(error));
    }
  }

  function draw(focused) {
    save();
    const warps = Math.max(...reports.map((report, i) => examplesOf(report.sites[state.sites[i]]).length)), at = Math.min(state.warp, warps - 1);
    const columns = h("div", { class: "beside" }), fill = (focused) => put(columns, reports.map((report, i) => kernelCard(report, state.sites[i], state.warp, (site) => {
      state.sites[i] = site;
      draw(i);
    }, i === focused)));
    const output = h("output", { class: "muted small" }, `warp ${at} of ${warps}`);
    const sites = reports.map((report, i) => field(`Access of ${report.kernel}`, select(report.sites.map((site, k) => [String(k), `line ${site.line}, ${site.kind.replace("_", " ")} ${site.memory}: ${siteWords(site)}`]), String(state.sites[i]), (value) => {
      state.sites[i] = Number(value);
      draw();
    })));
    const slider = warps > 1 ? h("label", { class: "grow" }, "Warp of the block ", h("input", { type: "range", min: 0, max: warps - 1, value: at, "aria-valuetext": `warp ${at} of ${warps}`, oninput: (event) => {
      state.warp = Number(event.target.value);
      output.textContent = `warp ${state.warp} of ${warps}`;
      event.target.setAttribute("aria-valuetext", output.textContent);
      save();
      fill();
    } }), output) : null;
    put(place, card("What is shown", h("div", { class: "row" }, sites, slider),
      h("ul", { class: "legend" }, [["cost0", "as few as there can be"], ["cost1", "up to 4 times as many"], ["cost2", "more"]].map(([cost, words]) => h("li", null, h("span", { class: `swatch ${cost}` }), words)))), columns);
    fill(focused);
  }

  begin();
  return () => stop?.abort();
}
