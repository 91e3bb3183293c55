// plot.js - charts by d3: its loading, axes that fit their place, and marks that are reached by keyboard.
// Of what Debian and Ubuntu package d3 gives scales, axes and lines, and leaves the marks to us: SVG that a keyboard and a screen reader reach, which a canvas of
// chart.js is not. It is the same 3.5 in all of their releases.
import { announce, s, tell } from "./dom.js";

// Loaded by the views that draw charts. It is a script of the old kind, which makes window.d3.
let loading;
export function load() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "console/d3.min.js";
    script.onload = () => resolve(window.d3);
    script.onerror = () => { loading = undefined; reject(new Error("The charts' library could not be loaded.")); };
    document.head.append(script);
  });
  return loading;
}

// Draws now, and again when the place changes its width; returns what ends that.
export function fits(place, draw) {
  let width = 0;
  const observer = new ResizeObserver(() => {
    const now = Math.floor(place.clientWidth);
    if (now === width || now === 0) return;
    width = now;
    draw(width);
  });
  observer.observe(place);
  return () => observer.disconnect();
}

export function frame(width, height, label) {
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
}

const SUPER = "⁰¹²³⁴⁵⁶⁷⁸⁹";
export function power(value) {
  const exponent = Math.round(Math.log10(value));
  if (Math.abs(Math.log10(value) - exponent) > 1e-6) return "";
  if (exponent >= -2 && exponent <= 3) return String(Number(value.toPrecision(1)));
  return `10${exponent < 0 ? "⁻" : ""}${[...String(Math.abs(exponent))].map((digit) => SUPER[digit]).join("")}`;
}

// Whole powers of ten around the values.
export function decades(values, least = [1, 10]) {
  const good = values.filter((value) => value > 0 && Number.isFinite(value));
  return [10 ** Math.floor(Math.log10(Math.min(least[0], ...good))), 10 ** Math.ceil(Math.log10(Math.max(least[1], ...good)) + 1e-9)];
}

// side: "bottom" or "left". Lines of the grid are as long as `size`.
export function axis(d3, svg, scale, side, { x = 0, y = 0, size = 0, format, values, ticks = 5, title } = {}) {
  const make = d3.svg.axis().scale(scale).orient(side).tickSize(-size, 0).tickPadding(7);
  if (values) make.tickValues(values);
  else make.ticks(ticks);
  if (format) make.tickFormat(format);
  const group = d3.select(svg).append("g").attr("class", "axis").attr("transform", `translate(${x},${y})`);
  group.call(make);
  if (title && side === "bottom") group.append("text").attr("x", (scale.range()[0] + scale.range()[1]) / 2).attr("y", 36).attr("text-anchor", "middle").text(title);
  return group;
}

export function powers([low, high]) {
  const all = [];
  for (let e = Math.round(Math.log10(low)); e <= Math.round(Math.log10(high)); e++) all.push(10 ** e);
  return all;
}

// One stop of the keyboard for all marks: arrows go from one to the next, Enter opens it.
export function reachable(svg, marks, words, open) {
  if (marks.length === 0) return;
  let at = -1;
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("role", "application");
  svg.setAttribute("aria-roledescription", "chart; arrows go from mark to mark, Enter opens one");
  const choose = (next) => {
    marks[at]?.classList.remove("chosen");
    at = (next + marks.length) % marks.length;
    marks[at].classList.add("chosen");
    const box = marks[at].getBoundingClientRect();
    tell({ clientX: box.right, clientY: box.bottom }, words(at));
    announce(words(at));
  };
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) choose(at < 0 && step < 0 ? marks.length - 1 : at + step);
    else if (event.key === "Home") choose(0);
    else if (event.key === "End") choose(marks.length - 1);
    else if (event.key === "Enter" && at >= 0 && open) open(at);
    else return;
    event.preventDefault();
  });
  svg.addEventListener("blur", () => { marks[at]?.classList.remove("chosen"); tell(); });
  marks.forEach((mark, i) => {
    mark.setAttribute("aria-hidden", "true"); // said one by one, by announce()
    mark.addEventListener("pointermove", (event) => tell(event, words(i)));
    mark.addEventListener("pointerleave", () => tell());
    if (open) mark.addEventListener("click", () => open(i));
  });
}
