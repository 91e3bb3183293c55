// roofline.js - every request a point under the ceilings of its device; the kernels of one comparison joined by a line.
import { devices, linkTo, requests } from "../api.js";
import { legend, verdict } from "../account.js";
import { again, card, empty, failure, field, figure, h, head, select, shape, show as put, table, time } from "../dom.js";
import { lesson } from "../comparison.js";
import { DTYPES } from "../matrix.js";
import { fits, load } from "../plot.js";
import { ceilingWords, ceilingsOf, moves, roofline } from "../roof.js";
import { traffic } from "../traffic.js";
import { requestLink } from "./waterfall.js";

const OPS = ["matmul", "add", "transpose", "flip", "eval"];
const LESSON = new RegExp(`^(matmul|add):([1-9]\\d*(?:x[1-9]\\d*){0,2})(?::(${DTYPES.join("|")}))?$`); // operation, rows x inner x columns, element type

export function show(main, parameters, keep) {
  const state = { device: parameters.get("device") ?? "", op: parameters.get("op") ?? "", lesson: LESSON.test(parameters.get("lesson")) ? parameters.get("lesson") : "" };
  const place = h("div", { class: "lines" }), chosen = h("div");
  let ends = [], over = false;

  put(main, head("Roofline", "How close each request came to what the device can do. Left of the bend memory is the limit, right of it arithmetic."), place);

  async function draw() {
    keep(state);
    ends.forEach((end) => end());
    ends = [];
    try {
      const [d3, { devices: all }, { requests: list }] = await Promise.all([load(), devices(), requests()]);
      if (over) return;
      const timed = list.filter((one) => one.account.us.kernel > 0 && one.account.effective_gbs > 0);
      const device = all.find((one) => one.name === state.device) ?? all.find((one) => timed.at(-1)?.account.device === one.name) ?? all.find((one) => one.default) ?? all[0];
      const mine = timed.filter((one) => one.account.device === device.name && (!state.op || one.account.op === state.op));
      const taught = state.lesson ? await lessonOf(state.lesson, device) : [];
      if (!over) drawAll(d3, all, device, mine, taught, list);
    } catch (error) {
      if (!over) put(place, failure(error), again(draw));
    }
  }

  function drawAll(d3, all, device, mine, taught, list) {
    const { slopes, flats } = ceilingsOf(device);
    for (const { account } of mine) // of several products, as split ones have it
      if (account.bound === "compute" && account.roof?.includes(",") && !flats.some((one) => one.name === account.roof)) flats.push({ name: account.roof, gflops: account.roofline_gflops, why: "of the kernel that split the operands" });
    const point = (one) => ({ op: one.account.op, words: words(one), open: () => open(one), x: one.account.intensity, y: one.account.gflops > 0 ? one.account.gflops : one.account.effective_gbs });
    const computing = mine.filter((one) => one.account.gflops > 0).map(point), moving = mine.filter((one) => !(one.account.gflops > 0)).map(point);
    const chart = h("div"), lower = h("div"), simulated = device.kind === "sim";
    const nothing = computing.length + moving.length + taught.length === 0;
    put(place, card(null, h("div", { class: "row" },
      field("Device", select(all.map((one) => [one.name, `${one.name} (${one.model})`]), device.name, (value) => { state.device = value; draw(); })),
      field("Operation", select([["", "all"], ...OPS], state.op, (value) => { state.op = value; draw(); })),
      field("Join a comparison", select(lessons(), state.lesson, (value) => { state.lesson = value; draw(); })),
      h("button", { type: "button", onclick: draw }, "Refresh")),
    simulated ? h("p", { class: "note" }, `${device.name} only simulates ${device.gpu?.name ?? "a GPU"}: its runs have no times, and so no points. The ceilings are published ones.`) : null,
    chart, legend(OPS.map((op) => `o-${op}`), OPS),
    nothing && !simulated ? empty(list.length ? "None of the last requests fits this choice." : "No request was made yet.", h("button", { type: "button", class: "main", onclick: async (event) => {
      event.target.disabled = true;
      await traffic().then(draw, (error) => put(place, failure(error), again(draw)));
    } }, "Make some")) : null,
    h("p", { class: "small muted" }, `Ceilings: ${ceilingWords({ slopes, flats })}. ${slopes.some((one) => one.name === "L2") ? "What stays in the L2 cache may rise to its roof. " : ""}One that is not known is not drawn. `,
      linkTo(`v1/requests/roofline.svg?limit=1000&device=${device.name}${state.op ? `&op=${state.op}` : ""}`, "roofline.svg", "This picture as SVG"), ", for papers and slides.")),
    moving.length ? card("What only moves bytes", lower) : null, chosen,
    mine.length ? card("The same as a table", table("The last requests, the newest first", [["Request"], ["Kernel"], ["Shape"], ["Kernel time", true], ["GFLOP/s", true], ["GB/s", true], ["Of the roof", true]],
      mine.slice(-50).reverse().map((one) => [h("a", { href: requestLink(one) }, `${one.account.op} ${one.number}`), one.account.kernel, shape(one.account.shapes.result), time(one.account.us.kernel),
        figure(one.account.gflops), figure(one.account.effective_gbs), `${figure(one.account.percent_of_roofline ?? one.account.percent_of_copy)} %`]))) : null);
    const label = `Roofline of ${device.name}: ${computing.length} requests under ${[...slopes, ...flats].map((one) => one.name).join(", ")}`;
    ends.push(fits(chart, (width) => put(chart, roofline(d3, width, { slopes, flats, points: [...computing, ...taught], lines: taught.length ? [taught] : [], label }))));
    if (moving.length) ends.push(fits(lower, (width) => put(lower, moves(d3, width, { slopes, points: moving, label: `${moving.length} requests that only move bytes` }))));
  }

  function lessons() {
    const list = [["", "none"], ["matmul:512", "matmul, 512 × 512"], ["matmul:1024", "matmul, 1024 × 1024"]];
    return !state.lesson || list.some(([name]) => name === state.lesson) ? list : [...list, [state.lesson, state.lesson.replaceAll(":", ", ").replace(/(?<=\d)x/g, " × ")]];
  }

  function open(one) {
    location.hash = requestLink(one);
  }

  draw();
  return () => { over = true; ends.forEach((end) => end()); };
}

function words(one) {
  const { account } = one;
  return `${account.op} ${account.kernel}, ${shape(account.shapes.result)} ${account.dtype}\n${account.gflops > 0 ? `${figure(account.gflops)} GFLOP/s at ${figure(account.intensity)} operations a byte` : `${figure(account.effective_gbs)} GB/s`}, ${time(account.us.kernel)}\n${verdict(account)}\nby ${one.client}`;
}

// The kernels of one product, in the order in which they are taught.
async function lessonOf(text, device) {
  const [, op, dims, dtype = "f32"] = LESSON.exec(text), on = device.kind === "sim" ? "" : device.name, sizes = dims.split("x").map(Number), rows = sizes[0], cols = sizes.at(-1), inner = sizes.length === 3 ? sizes[1] : rows;
  const { report, rows: list } = await lesson(op, { rows, cols, inner, dtype, device: on });
  return list.map((row) => ({
    op, name: row.kernel, x: report.flops / report.bytes_min, y: row.gflops, words: `${row.kernel}: ${figure(row.gflops)} GFLOP/s, ${time(row.kernel_us_median)}\n${row.note}`,
    open: () => { location.hash = `#/compare?op=${op}&rows=${rows}&cols=${cols}&inner=${inner}&dtype=${dtype}&device=${on}&run=1`; },
  }));
}

