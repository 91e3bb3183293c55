// tour.js - the textbook's path in eight steps, from one warp's load to the roofline; each is run here and now.
import { devices } from "../api.js";
import { card, empty, failure, figure, h, head, show as put, table, time } from "../dom.js";
import { lesson } from "../comparison.js";
import { explain, kernelCard, marked, picture, siteWords, totalsOf } from "../explanation.js";
import { fits, load } from "../plot.js";
import { ceilingsOf, roofline } from "../roof.js";

const SQUARE = { rows: 1024, cols: 1024, inner: 1024, dtype: "f32" };
const SMALL = { ...SQUARE, rows: 256, cols: 256, inner: 256 }; // of which the naive product is traced whole
const find = (report, kind, memory) => Math.max(0, report.sites.findIndex((site) => site.kind === kind && (!memory || site.memory === memory)));

function pictured(report, kind, memory) {
  const site = report.sites[find(report, kind, memory)];
  return card(`${report.op} ${report.kernel}: ${site.kind.replace("_", " ")} of ${site.memory}`, h("pre", { tabindex: "0" }, site.source), h("p", null, `${siteWords(site)} for each request of a warp.`), picture(site, site.example));
}

const whole = (report, kind, memory) => kernelCard(report, find(report, kind, memory), 0, () => { location.hash = `#/explain?op=${report.op}&kernels=${report.kernel}`; });

const STEPS = [
  { title: "A warp reads together",
    words: ["A GPU runs one function, the kernel, in thousands of threads, 32 together as the lanes of a warp. Memory is fetched in sectors of 32 bytes.", "If neighbouring lanes read neighbouring words, one request of a warp takes four sectors and uses every byte: it is coalesced.", "Here is a copy. Follow the lanes down to the memory."],
    run: async () => pictured(await explain("copy", "direct", SQUARE), "global_load") },
  { title: "When lanes are far apart",
    words: ["A transpose reads rows and writes columns, so one of the two is always against the grain.", "The naive kernel writes with a stride: each lane's word is in a sector of its own, and seven of its eight words travel for nothing.", "The store takes 32 sectors in place of 4."],
    run: async () => { const report = await explain("transpose", "naive", SQUARE); return [pictured(report, "global_store"), card("In all", totalsOf(report), h("p", null, marked(report.problem)))]; } },
  { title: "Through shared memory",
    words: ["The threads of a block share a small memory on the chip. It has no sectors: reading by columns fetches nothing in vain.", "So a block loads a tile, a square part of the matrix, by rows into shared memory, and reads it back by columns. Now both loads and stores of global memory, the large one, are coalesced.", "The sectors are now as few as there can be. Yet something else costs time."],
    run: async () => { const report = await explain("transpose", "tiled", SQUARE); return [pictured(report, "global_store"), card("In all", totalsOf(report))]; } },
  { title: "Bank conflicts",
    words: ["Shared memory has 32 banks, and each gives one word at a time.", "A column of a tile that is 32 wide lies in one bank: 32 lanes stand in line, and the load takes 32 passes in place of one.", "Orange cells are words that wait for another of the same bank."],
    run: async () => pictured(await explain("transpose", "tiled", SQUARE), "shared_load") },
  { title: "One column of padding",
    words: ["Make each row of the tile one word longer, 33 in place of 32, and a column moves on by a bank with each row.", "Now every lane has a bank of its own: one pass.", "The change to the source is a single number; find it below."],
    run: async () => whole(await explain("transpose", "padded", SQUARE), "shared_load") },
  { title: "Use each byte more than once",
    words: ["A product of two n × n matrices needs each element n times. The naive kernel asks L1 for it each time.", "With tiles in shared memory a block asks for an element once for all of its threads, and a fraction of the bytes go through L1. The limit rises by less: each operation still loads from shared memory, which takes the same way as L1.", "Compare how many operations each kernel does for a byte that it asks for."],
    run: async () => { const both = await Promise.all(["naive", "tiled"].map((kernel) => explain("matmul", kernel, SQUARE))); return [intensities(both), ...both.map((report) => card(`matmul ${report.kernel}`, totalsOf(report), h("p", null, marked(report.problem))))]; } },
  { title: "Registers, and occupancy",
    words: ["Shared memory has its limit too. So each thread keeps a small square of the result in registers, and uses what it loads several times.", "A block that needs more shared memory or registers leaves room for fewer blocks on a multiprocessor, one of the GPU's many processors: the occupancy falls.", "That may cost nothing: enough work in flight in each thread hides the latency as well as many threads do."],
    run: async () => { const all = await Promise.all(["tiled", "register_tiled"].map((kernel) => explain("matmul", kernel, SMALL))); return [intensities(all), occupancies(all)]; } },
  { title: "The roofline",
    words: ["Two limits remain: bytes and arithmetic. At few operations a byte memory is the roof, and it slopes; beyond the bend arithmetic is.", "A kernel far below the roof wastes something that the earlier steps can find, or has too little to do. One that touches it can only move fewer bytes, or right of the bend do fewer operations.", "These kernels have just been run on this machine, each a point, joined in the order in which they are taught."],
    run: async (ends) => roofs(ends) },
];

function intensities(reports) {
  return card("Operations for each byte through L1", table("The same product by two kernels", [["Kernel"], ["Bytes through L1", true], ["Times the fewest", true], ["Operations a byte", true], ["At most, GFLOP/s", true]],
    reports.map((report) => [report.kernel, figure(report.totals.bytes_moved), figure(report.totals.global_sectors_ratio), figure(report.totals.executed_intensity), figure(report.totals.roofline.attainable_gflops)])),
  h("p", { class: "small muted" }, `"At most" is what memory and caches of ${reports[0].totals.roofline.gpu} allow, by the bytes that each of them moves for this kernel.`));
}

function occupancies(reports) {
  return card("Occupancy", table(`On ${reports[0].totals.occupancy.gpu}`, [["Kernel"], ["Threads a block", true], ["Shared bytes a block", true], ["Blocks that fit", true], ["Occupancy", true], ["Limited by"]],
    reports.map((report) => { const launch = report.launches.at(-1), o = report.totals.occupancy; return [report.kernel, figure(launch.block.reduce((a, b) => a * b)), figure(launch.shared_bytes), figure(o.blocks), `${figure(o.percent)} %`, o.limited_by]; })));
}

async function roofs(ends) {
  const [{ devices: all }, d3] = await Promise.all([devices(), load()]), device = all.find((one) => one.default) ?? all[0];
  const size = device.kind === "cuda" ? SQUARE : SMALL; // a GPU has too little to do with the small one
  const { report, rows } = await lesson("matmul", { ...size, device: device.kind === "sim" ? "cpu" : device.name }), place = all.find((one) => one.name === report.device) ?? device;
  const points = rows.map((row) => ({ op: "matmul", name: row.kernel, x: report.flops / report.bytes_min, y: row.gflops, words: `${row.kernel}: ${figure(row.gflops)} GFLOP/s, ${time(row.kernel_us_median)}\n${row.note}` }));
  const { slopes, flats } = ceilingsOf(place), box = h("div");
  ends.push(fits(box, (width) => put(box, roofline(d3, width, { slopes, flats, points, lines: [points], label: `Kernels of matmul under the roofline of ${place.name}` }))));
  return [card(`${size.rows} × ${size.cols} on ${place.name}, ${place.model}`, place.kind === "cpu" ? h("p", { class: "note" }, "There is no GPU here, so these are the kernels of the cpu. The roofline is drawn the same way.") : null, box),
    card(null, table("What was measured", [["Kernel"], ["Time", true], ["GFLOP/s", true], ["Of the roof", true]], points.map((point) => { const row = report.rows.find((one) => one.kernel === point.name); return [row.kernel, time(row.kernel_us_median), figure(row.gflops), `${figure(row.percent_of_roofline)} %`]; })),
      h("p", null, "That is the whole path. ", h("a", { href: "#/explain" }, "Explain other kernels"), ", or ", h("a", { href: "#/compare" }, "compare them on matrices of your size"), "."))];
}

export function show(main, parameters, keep) {
  let step = Math.min(STEPS.length, Math.max(1, Math.round(Number(parameters.get("step"))) || 1)), turn = 0, ends = [];
  const place = h("div", { class: "lines" });
  put(main, head("Tour", "Why is the naive kernel slow? Eight steps from one load to the roofline, each run while you look."), place);

  async function draw(focus) {
    const mine = ++turn, { title, words, run } = STEPS[step - 1], result = h("div", { class: "lines", "aria-live": "polite" }, h("div", { class: "card" }, empty("Running it")));
    ends.forEach((end) => end());
    ends = [];
    keep({ step });
    const heading = h("h2", { tabindex: "-1" }, `${step}. ${title}`), go = (to) => () => { step = to; draw(true); };
    put(place, h("nav", { "aria-label": "Steps" }, h("ol", { class: "steps" }, STEPS.map((one, i) => h("li", null, h("button", { type: "button", "aria-current": i + 1 === step ? "step" : null, "aria-label": `Step ${i + 1}: ${one.title}`, onclick: go(i + 1) }, String(i + 1)))))),
      h("section", { class: "card" }, heading, h("div", { class: "lesson-text" }, words.map((sentence) => h("p", null, sentence))), h("div", { class: "row" },
        step > 1 ? h("button", { type: "button", onclick: go(step - 1) }, "Back") : null, step < STEPS.length ? h("button", { type: "button", class: "main", onclick: go(step + 1) }, `Next: ${STEPS[step].title.toLowerCase()}`) : null)), result);
    if (focus) heading.focus();
    try {
      const parts = await run(ends);
      if (mine === turn) put(result, [parts].flat());
    } catch (error) {
      if (mine === turn) put(result, failure(error));
    }
  }

  draw();
  return () => { turn++; ends.forEach((end) => end()); };
}
