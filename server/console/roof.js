// roof.js - the roofline (Williams, Waterman, Patterson 2009): points under the ceilings of a device.
import { figure, s } from "./dom.js";
import { axis, decades, frame, power, powers, reachable } from "./plot.js";

// Every ceiling that was measured, or is the maker's or published; one without a figure is not there.
export function ceilingsOf(device) {
  const slopes = [], flats = [];
  if (device.copy_gbs > 0) slopes.push({ name: "dram", gbs: device.copy_gbs, why: "a copy, as measured" });
  if (device.link_in_gbs > 0) slopes.push({ name: "link", gbs: device.link_in_gbs, why: "over the link, as measured" });
  for (const { gflops, roof } of Object.values(device.peaks ?? {}))
    if (!flats.some((one) => one.name === roof)) flats.push({ name: roof, gflops, why: "as measured or stated" });
  const gpu = device.gpu, theirs = gpu && `the maker's, of ${gpu.name}`;
  if (device.gpu?.l2_gbs > 0) slopes.push({ name: "L2", gbs: device.gpu.l2_gbs, why: "what fits in its cache: from published measurements of this GPU model" });
  if (gpu && device.kind === "sim") { // where nothing is timed
    slopes.push({ name: "dram", gbs: gpu.dram_gbs, why: theirs });
    flats.push({ name: "fp32", gflops: gpu.fp32_gflops, why: theirs });
  }
  if (gpu?.tensor_f16_gflops) flats.push({ name: "tensor f16, bf16", gflops: gpu.tensor_f16_gflops, why: theirs }, { name: "tensor tf32", gflops: gpu.tensor_tf32_gflops, why: theirs },
    { name: "tensor fp64", gflops: gpu.tensor_fp64_gflops, why: theirs });
  return { slopes, flats };
}

export function ceilingWords({ slopes, flats }) {
  return [...slopes.map((one) => `${one.name} ${figure(one.gbs)} GB/s`), ...flats.map((one) => `${one.name} ${figure(one.gflops)} GFLOP/s`)].join(", ");
}

// points: {x, y, op, words, open}. lines: lists of points to be joined. y is GFLOP/s.
export function roofline(d3, width, { slopes, flats, points, lines = [], label }) {
  const narrow = width < 560, height = narrow ? 380 : 440, left = 46, right = 12, top = 14, bottom = 46;
  const svg = frame(width, height, label);
  const xs = decades(points.flatMap((p) => [p.x / 1.5, p.x * 1.5]), [0.1, 100]), peak = Math.max(0, ...flats.map((one) => one.gflops));
  const ys = decades([...points.map((p) => p.y), peak * 1.3, ...flats.map((one) => one.gflops)], [peak > 0 ? peak / 1000 : 1, 100]);
  const x = d3.scale.log().domain(xs).range([left, width - right]), y = d3.scale.log().domain(ys).range([height - bottom, top]);
  axis(d3, svg, x, "bottom", { y: height - bottom, size: height - bottom - top, values: powers(xs), format: power, title: "operations per byte that must move" });
  axis(d3, svg, y, "left", { x: left, size: width - left - right, values: powers(ys), format: power });
  svg.append(s("text", { x: left + 6, y: top + 12, class: "muted halo" }, "GFLOP/s"));
  const most = Math.max(0, ...slopes.map((one) => one.gbs));
  for (const one of slopes) {
    const low = Math.max(xs[0], ys[0] / one.gbs), high = Math.min(xs[1], (peak || ys[1]) / one.gbs);
    if (!(low < high)) continue;
    const [x1, y1, x2, y2] = [x(low), y(low * one.gbs), x(high), y(high * one.gbs)];
    const angle = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
    svg.append(s("line", { class: one.name === "dram" ? "roof" : "roof soft", x1, y1, x2, y2 }));
    const part = one.name === "dram" ? 0.5 : 0.25, at = [x1 + (x2 - x1) * part, y1 + (y2 - y1) * part];
    svg.append(s("text", { class: "halo", "text-anchor": "middle", transform: `translate(${at[0]},${at[1]}) rotate(${angle}) translate(0,-7)` }, `${one.name} ${figure(one.gbs)} GB/s`, s("title", null, one.why)));
  }
  const named = [{ x: left + 6, end: left + 60, y: top + 12 }];
  for (const one of [...flats].sort((a, b) => b.gflops - a.gflops)) {
    const from = most > 0 ? Math.max(left, x(Math.max(xs[0], Math.min(xs[1], one.gflops / most)))) : left, at = y(one.gflops);
    svg.append(s("line", { class: one.gflops === peak ? "roof" : "roof soft", x1: from, x2: width - right, y1: at, y2: at }));
    // Its name is above it, as far right as those of others leave room; else left of it, where nothing is.
    const words = `${one.name} ${figure(one.gflops)}${narrow ? "" : " GFLOP/s"}`, wide = words.length * 6.6;
    const places = [...d3.range(width - right - 2, from + wide, -20).map((end) => [end, at - 6]), [from - 6, at + 4], [from - 6, at - 8], [from - 6, at + 16], [Math.max(from - 6, left + wide + 4), at - 6]];
    const [end, base] = places.find(([end, base]) => end - wide > left && named.every((other) => end < other.x || end - wide > other.end || Math.abs(base - other.y) > 12)) ?? places.at(-1);
    named.push({ x: end - wide, end, y: base });
    svg.append(s("text", { class: "halo", "text-anchor": "end", x: end, y: base }, words, s("title", null, one.why)));
  }
  const line = d3.svg.line().x((p) => x(p.x)).y((p) => y(p.y));
  for (const list of lines) svg.append(s("path", { class: "lesson", d: line(list) }));
  const marks = points.map((p) => s("circle", { class: `point o-${p.op}`, cx: x(p.x), cy: y(p.y), r: narrow ? 6 : 5 }));
  svg.append(...marks);
  for (const list of lines)
    list.forEach((p, i) => {
      if (i > 0 && Math.abs(y(p.y) - y(list[i - 1].y)) < 12) return;
      svg.append(s("text", { class: "halo", x: x(p.x) - 9, y: y(p.y) + 4, "text-anchor": "end" }, p.name));
    });
  reachable(svg, marks, (i) => points[i].words, (i) => points[i].open?.());
  return svg;
}

// What does no arithmetic has no place under a roofline; it is held against a copy.
export function moves(d3, width, { slopes, points, label }) {
  const height = 220, left = 46, right = 12, top = 22, bottom = 12, svg = frame(width, height, label);
  const ys = decades([...points.map((p) => p.y), ...slopes.map((one) => one.gbs)], [1, 10]);
  const y = d3.scale.log().domain(ys).range([height - bottom, top]), x = d3.scale.linear().domain([-0.5, Math.max(points.length, 12) - 0.5]).range([left + 8, width - right]);
  axis(d3, svg, y, "left", { x: left, size: width - left - right, values: powers(ys), format: power });
  svg.append(s("text", { x: left + 6, y: 12, class: "muted" }, "GB/s, in the order in which they came"));
  for (const one of slopes) {
    svg.append(s("line", { class: "roof", x1: left, x2: width - right, y1: y(one.gbs), y2: y(one.gbs) }));
    svg.append(s("text", { class: "halo", "text-anchor": "end", x: width - right - 2, y: y(one.gbs) - 6 }, `${one.name} ${figure(one.gbs)} GB/s`, s("title", null, one.why)));
  }
  const marks = points.map((p, i) => s("circle", { class: `point o-${p.op}`, cx: x(i), cy: y(p.y), r: 5 }));
  svg.append(...marks);
  reachable(svg, marks, (i) => points[i].words, (i) => points[i].open?.());
  return svg;
}
