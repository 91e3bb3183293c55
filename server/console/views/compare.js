// compare.js - every kernel of an operation on the same matrices: time, rate, ceiling, error, and why.
import { devices, kernelsOf, linkTo } from "../api.js";
import { announce, card, choice, download, empty, failure, field, figure, h, head, s, select, shape, show as put, table, time } from "../dom.js";
import { choose, compare, drawing } from "../comparison.js";
import { DTYPES } from "../matrix.js";
import { axis, fits, frame, load, reachable } from "../plot.js";

const OPS = [["matmul", "matmul"], ["transpose", "transpose"], ["add", "add"], ["flip", "flip"]];

export function show(main, parameters, keep) {
  const number = (name, otherwise) => Math.max(1, Math.min(8192, Math.round(Number(parameters.get(name))) || otherwise));
  const state = { op: OPS.some(([op]) => op === parameters.get("op")) ? parameters.get("op") : "matmul", rows: number("rows", 512), cols: number("cols", 512), inner: number("inner", 512),
    dtype: DTYPES.includes(parameters.get("dtype")) ? parameters.get("dtype") : "f32", device: parameters.get("device") ?? "", order: parameters.get("order") ?? "speed" };
  const settings = h("div", { class: "row" }), place = h("div", { class: "lines" });
  let asked, report, chosen, ends = [], stop, lesson = [], explained = new Set(), all = []; // asked: what the report is of, whatever the form says by now

  put(main, head("Compare", "Every kernel of an operation on the same matrices, each alone on the device, its result checked."),
    h("form", { class: "card", "aria-label": "What to compare", onsubmit: (event) => { event.preventDefault(); go(); } }, settings), place);

  async function drawSettings() {
    const size = (label, key) => field(label, h("input", { type: "number", min: 1, max: 8192, required: true, value: state[key], oninput: (event) => { state[key] = Math.round(Number(event.target.value)); } }));
    let places = [];
    try {
      places = (await devices()).devices.map((one) => [one.name, `${one.name} (${one.model})`]);
    } catch (error) {
      put(place, failure(error));
    }
    put(settings, choice("Operation", OPS, state.op, (op) => { state.op = op; drawSettings(); }), size("Rows", "rows"), size("Columns", "cols"), state.op === "matmul" ? size("Inner", "inner") : null,
      field("Element type", select(DTYPES, state.dtype, (value) => { state.dtype = value; })),
      field("Device", select([["", "the preferred one"], ...places], state.device, (value) => {
        state.device = value;
        if (value.startsWith("sim") && state.rows === 512) Object.assign(state, { rows: 128, cols: 128, inner: 128 });
        drawSettings();
      })), h("button", { type: "submit", class: "main" }, "Compare"));
  }

  async function go() {
    stop?.abort();
    const mine = stop = new AbortController(), now = { ...state };
    save(now);
    put(place, h("div", { class: "card" }, empty("Each kernel runs alone, one after the other. This takes some seconds.", h("button", { type: "button", onclick: () => stop.abort() }, "Stop"))));
    announce("Comparing");
    try {
      const [compared, names] = await Promise.all([compare(now.op, now, mine.signal), kernelsOf(now.op, now.device)]);
      all = (await devices()).devices;
      const [choice] = await Promise.all([choose(now.op, now, compared.device, mine.signal), load()]);
      for (const op of [now.op, "copy"]) for (const name of await kernelsOf(op, "sim")) explained.add(`${op} ${name}`);
      if (mine !== stop) return;
      [asked, report, lesson, chosen] = [now, compared, names, choice];
      draw();
      const own = report.rows.filter((row) => !row.baseline), best = own.find((row) => row.kernel_us_median > 0); // the fastest first
      announce(`${own.length} kernels${best ? `; the fastest is ${best.kernel}` : ""}`);
    } catch (error) {
      if (mine !== stop) return; // another run has begun
      put(place, error.name === "AbortError" ? h("div", { class: "card" }, empty("Stopped.")) : failure(error));
    }
  }

  const save = (what) => keep({ ...what, inner: what.op === "matmul" ? what.inner : undefined, order: state.order, run: 1 });

  function draw() {
    ends.forEach((end) => end());
    ends = [];
    save(asked);
    const rows = report.rows.slice(), simulated = !rows.some((row) => row.kernel_us_median > 0);
    if (state.order === "lesson") rows.sort((a, b) => rank(a) - rank(b));
    const ran = rows.filter((row) => !row.failure), box = h("div"), charts = [];
    const simulator = all.find((one) => one.kind === "sim"), moves = !(report.flops > 0), estimates = new Map(chosen.candidates.map((one) => [one.kernel, one])), estimated = chosen.candidates.some((one) => one.estimated_us > 0);
    const estimate = (row) => { const one = estimates.get(row.kernel); return row.op === report.op && one?.estimated_us > 0 ? h("span", null, time(one.estimated_us), h("small", { class: "muted" }, ` ${one.most}`)) : "–"; };
    if (simulated) charts.push(["Sectors moved, times the fewest", ran.filter((row) => row.accesses), (row) => row.accesses.global_sectors_ratio, figure, 1, "each byte once"]);
    else charts.push(moves ? ["GB/s", ran, (row) => row.effective_gbs, figure, report.copy_gbs, "a copy"] : ["GFLOP/s", ran, (row) => row.gflops, figure, report.roofline_gflops, `the roofline (${report.bound})`],
      ["Time of the kernel, median", ran, (row) => row.kernel_us_median, time]);
    put(place, card(null, h("div", { class: "between" }, h("h2", null, `${report.op} ${shape(report.shapes.result)} ${report.dtype} on ${report.device}`),
      choice("Order", [["speed", "Fastest first"], ["lesson", "As taught"]], state.order, (order) => { state.order = order; draw(); })),
    report.device.startsWith("cpu") && simulator && !all.some((one) => one.kind === "cuda") ? h("p", { class: "note" }, "These are kernels for the CPU. ", h("a", { href: `#/compare?op=${asked.op}&rows=128&cols=128&inner=128&dtype=${asked.dtype}&device=${simulator.name}&run=1` }, "Compare those for GPUs, simulated"), ".") : null,
    simulated ? h("p", { class: "note" }, `${report.device} is simulated: kernels are not timed there. What they do to memory is counted.`) : null, box,
    h("p", { class: "small" }, h("button", { type: "button", class: "quiet", onclick: (event) => fetchDrawing(event.target) }, "Compare again, as SVG")),
    report.flops > 0 && !simulated ? h("p", { class: "small" }, h("a", { href: `#/roofline?device=${report.device}&lesson=${report.op}:${lessonShape()}:${asked.dtype}` }, "See them under the roofline")) : null),
    card("Figures, errors and reasons", table(`Checked against ${report.reference.what}`, [["Kernel"], ...(estimated ? [["Estimated", true]] : []), ...(simulated ? [["Sectors", true], ["Shared passes", true], ["Barriers", true]] : [["Time", true], [moves ? "GB/s" : "GFLOP/s", true], ["Of the ceiling", true]]), ["Error", false, true], ["What it does", false, true]],
      rows.map((row) => [h("span", null, row.kernel, row.auto ? h("strong", null, " (auto)") : null, row.baseline ? " (a copy)" : null), ...(estimated ? [estimate(row)] : []), ...(simulated ? [figure(row.accesses?.global_sectors), figure(row.accesses?.shared_wavefronts), figure(row.accesses?.barriers)]
        : [time(row.kernel_us_median), figure(moves ? row.effective_gbs : row.gflops), row.percent_of_roofline ?? row.percent_of_copy ? `${figure(moves ? row.percent_of_copy : row.percent_of_roofline)} %` : "–"]), row.failure ? row.failure.detail : errorWords(row, report),
        h("span", null, row.note, " ", explained.has(`${row.op} ${row.kernel}`) && !report.device.startsWith("cpu") ? h("a", { href: `#/explain?op=${row.op}&kernels=${row.kernel}&rows=${asked.rows}&cols=${asked.cols}&inner=${asked.inner}&dtype=${asked.dtype}`, "aria-label": `Why, of ${row.kernel}` }, "Why?") : null)]), (i) => rows[i].auto),
    rows.some((row) => row.percent_of_copy > 105) ? h("p", { class: "small muted" }, "Above 100 %: these matrices fit a cache, which the copy that is the ceiling does not.") : null,
    h("p", { class: "note" }, `${simulated ? `On a real ${chosen.device}, which has other needs than a simulation of it, auto` : "auto"} takes ${chosen.reason}.`), h("p", { class: "small muted" }, `"auto" is what gemmd takes for these shapes if no kernel is named. `, linkTo(chosen.link, "choice.txt", "The choice in full"), ".")));
    ends.push(fits(box, (width) => put(box, charts.map(([title, list, value, text, ceiling, name], i) => bars(window.d3, width, title, list, value, text, ceiling, name, i === 0, report)))));
  }

  // For papers and slides.
  async function fetchDrawing(button) {
    button.disabled = true;
    try {
      download(`${asked.op}.svg`, await drawing(asked.op, asked));
    } catch (error) {
      put(place, failure(error));
    }
    button.disabled = false;
  }

  const lessonShape = () => [asked.rows, asked.op === "matmul" ? asked.inner : undefined, asked.cols].filter(Boolean).join("x");
  const rank = (row) => (row.baseline ? -1 : lesson.indexOf(row.kernel));
  drawSettings();
  if (parameters.has("run")) go();
  else put(place, h("div", { class: "card" }, empty("Which kernel is fastest, by how much, and is it as exact? Choose an operation and compare.", h("button", { type: "button", class: "main", onclick: go }, "Compare"))));
  return () => { stop?.abort(); ends.forEach((end) => end()); };
}

// Where plain loops would take too long, results are compared with that of another kernel.
function errorWords({ error, kernel }, { reference: { against } }) {
  if (!error) return kernel === against ? "the others are compared with it" : "–";
  const size = error.max_relative !== undefined ? `${figure(error.max_relative)} of the largest element` : "";
  if (error.verdict === "compared")
    return !error.different ? `as that of ${against}` : error.max_relative > 0 ? `${size} from that of ${against}` : `DIFFERS from that of ${against} in ${error.different} elements`;
  return error.verdict === "exact" ? "exact" : error.verdict === "wrong" ? `WRONG in ${error.wrong} elements` : `within the bound${size && `, ${size}`}`;
}

// In a word, for its bar.
function errorWord({ error, kernel }, { reference: { against } }) {
  if (!error) return kernel === against ? "the reference" : "not checked";
  if (error.verdict === "exact" || error.verdict === "wrong") return error.verdict === "exact" ? "exact" : "WRONG";
  return error.max_relative > 0 ? `error ${figure(error.max_relative)}` : error.different ? "DIFFERS" : "the same";
}

// checked: the error of each result is under its kernel's name.
function bars(d3, width, title, rows, value, text, ceiling, name, checked, report) {
  const ROW = checked ? 38 : 30, left = width < 560 ? 108 : 150, height = (ceiling > 0 ? 66 : 52) + rows.length * ROW, first = ceiling > 0 ? 38 : 24, label = `${title}: ${rows.map((row) => `${row.kernel} ${text(value(row))}`).join(", ")}`;
  const svg = frame(width, height, label), most = Math.max(ceiling ?? 0, ...rows.map((row) => value(row) || 0)) || 1, x = d3.scale.linear().domain([0, most]).range([left, width - 80]);
  svg.append(s("text", { x: 0, y: 14, "font-weight": 600 }, title));
  axis(d3, svg, x, "bottom", { y: height - 22, size: height - 26 - first, ticks: width < 560 ? 3 : 6, format: (n) => (n ? text(n) : "0") });
  const marks = rows.map((row, i) => {
    const top = first + i * ROW, wide = Math.max(1, x(value(row) || 0) - left);
    return s("g", { class: "pick" }, s("rect", { class: "hit", x: 0, y: top, width, height: ROW }), s("text", { x: left - 10, y: top + (checked ? 17 : 19), "text-anchor": "end", "font-weight": row.auto ? 700 : 400 }, row.kernel),
      checked ? s("text", { class: "muted", x: left - 10, y: top + 31, "text-anchor": "end" }, errorWord(row, report)) : null,
      s("rect", { class: row.baseline ? "o-copy" : `o-${row.op}`, x: left, y: top + ROW / 2 - 10, width: wide, height: 20, rx: 3 }), s("text", { class: "halo", x: left + wide + 7, y: top + ROW / 2 + 4 }, text(value(row))));
  });
  svg.append(...marks);
  if (ceiling > 0) {
    svg.append(s("line", { class: "roof soft", x1: x(ceiling), x2: x(ceiling), y1: first - 2, y2: height - 22 }));
    svg.append(s("text", { class: "halo muted", x: x(ceiling), y: first - 8, "text-anchor": x(ceiling) > width / 2 ? "end" : "start" }, `${name}: ${text(ceiling)}`));
  }
  reachable(svg, marks, (i) => `${rows[i].kernel}: ${text(value(rows[i]))}${rows[i].auto ? ", what auto takes" : ""}\n${rows[i].note}\nresult: ${errorWords(rows[i], report)}`);
  return svg;
}
