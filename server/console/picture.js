// picture.js - a matrix as a heat map, and as a table that scrolls at any size.
import { figure, h, tells } from "./dom.js";
import { isWhole } from "./matrix.js";

// Viridis (van der Walt and Smith, 2015) at nine places: even steps for every kind of sight, and in grey.
const VIRIDIS = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [109, 205, 89], [253, 231, 37]];

function colour(part) {
  const at = Math.min(0.99999, Math.max(0, part)) * (VIRIDIS.length - 1), i = Math.floor(at), rest = at - i;
  return VIRIDIS[i].map((low, k) => low + (VIRIDIS[i + 1][k] - low) * rest);
}

// The least and the greatest of all that are finite.
function extent(matrix) {
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < matrix.data.length; i++) {
    const value = matrix.at(0, i);
    if (value < low && value > -Infinity) low = value;
    if (value > high && value < Infinity) high = value;
  }
  return low <= high ? [low, high] : [0, 0];
}

const places = (n, most) => Array.from({ length: Math.min(n, most) }, (_, i) => Math.floor((i * n) / Math.min(n, most)));

// Of a matrix with more rows or columns than pixels, evenly chosen ones are drawn.
export function heatMap(matrix, name, height = 300) {
  const rows = places(matrix.rows, 320), cols = places(matrix.cols, 480);
  if (rows.length === 0 || cols.length === 0) return h("p", { class: "muted" }, `${name} is empty.`);
  const [low, high] = extent(matrix), span = high / 2 - low / 2; // halves, since the whole may be beyond the largest number
  const canvas = h("canvas", { class: "heat", role: "img", width: cols.length, height: rows.length,
    "aria-label": `Heat map of ${name}: ${matrix.shape.join(" by ")}, from ${figure(low)} to ${figure(high)}` });
  const context = canvas.getContext("2d"), image = context.createImageData(cols.length, rows.length);
  let at = 0;
  for (const r of rows) for (const c of cols) {
    const value = matrix.at(r, c), [red, green, blue] = Number.isNaN(value) ? [213, 94, 0] : colour((value / 2 - low / 2) / (span || 1));
    image.data[at++] = red; image.data[at++] = green; image.data[at++] = blue; image.data[at++] = 255;
  }
  context.putImageData(image, 0, 0);
  canvas.style.aspectRatio = String(Math.min(4, Math.max(0.6, cols.length / rows.length)));
  canvas.style.maxWidth = `${Math.max(height / 2, height * Math.min(4, Math.max(0.6, cols.length / rows.length)))}px`;
  let where = "";
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const r = rows[Math.min(rows.length - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * rows.length)))];
    const c = cols[Math.min(cols.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * cols.length)))];
    where = `row ${matrix.first + r}, column ${c}: ${matrix.text(r, c)}`;
  });
  tells(canvas, () => where);
  const bar = h("canvas", { width: 128, height: 1, "aria-hidden": "true" }), strip = bar.getContext("2d"), line = strip.createImageData(128, 1);
  for (let i = 0; i < 128; i++) line.data.set([...colour(i / 127), 255], 4 * i);
  strip.putImageData(line, 0, 0);
  return h("div", { class: "lines" }, canvas, h("div", { class: "scale" }, figure(low), bar, figure(high)));
}

const ROW = 27, COLUMN = 104, LONG = 172; // an i64 has up to 20 characters
const TALLEST = 8e6; // browsers end at 16 to 33 million pixels; beyond, a pixel stands for several rows

// Has in the document only the cells that are seen.
export function grid(matrix, name) {
  const long = /64$/.test(matrix.dtype) && isWhole(matrix.dtype), column = long ? LONG : COLUMN;
  const body = h("tbody"), headRow = h("tr"), shown = h("table", { role: "grid", "aria-label": name,
    "aria-rowcount": matrix.rows + 1, "aria-colcount": matrix.cols + 1 }, h("thead", null, headRow), body);
  const space = h("div", null, shown);
  const box = h("div", { class: long ? "matrix long" : "matrix", tabindex: "0", role: "region", "aria-label": `Elements of ${name}, ${matrix.shape.join(" by ")}: scroll for more` }, space);
  const high = (matrix.rows + 1) * ROW, wide = (matrix.cols + 1) * column;
  const tall = Math.min(high, TALLEST), across = Math.min(wide, TALLEST);
  space.style.height = `${tall}px`;
  space.style.width = `${across}px`;
  if (tall < 320) box.style.height = `${tall + 16}px`;
  let last = "";
  function draw() {
    const seenRows = Math.ceil(box.clientHeight / ROW) + 1, seenCols = Math.ceil(box.clientWidth / column) + 1;
    const first = start(box.scrollTop, box.clientHeight, tall, matrix.rows, seenRows, ROW);
    const left = start(box.scrollLeft, box.clientWidth, across, matrix.cols, seenCols, column);
    shown.style.transform = `translate(${left.at}px, ${first.at}px)`;
    const key = `${first.index},${left.index},${seenRows},${seenCols}`;
    if (key === last) return;
    last = key;
    const cols = range(left.index, Math.min(matrix.cols, left.index + seenCols));
    headRow.replaceChildren(h("th", { scope: "col" }, h("span", { class: "unseen" }, "row")), ...cols.map((c) => h("th", { scope: "col", "aria-colindex": c + 2 }, String(c))));
    body.replaceChildren(...range(first.index, Math.min(matrix.rows, first.index + seenRows)).map((r) =>
      h("tr", { "aria-rowindex": r + 2 }, h("th", { scope: "row" }, String(matrix.first + r)), cols.map((c) => cell(matrix.text(r, c), c)))));
  }
  box.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(draw).observe(box);
  return box;
}

// One that is cut off is whole where the pointer rests on it.
const cell = (text, c) => h("td", { "aria-colindex": c + 2, title: text.length > 10 ? text : undefined }, text);

// The first row or column that is seen, and where to put it.
function start(scroll, room, size, count, seen, step) {
  const end = Math.max(1, size - room), last = Math.max(0, count + 1 - Math.floor(room / step) + 1);
  const index = size < (count + 1) * step ? Math.round((scroll / end) * last) : Math.floor(scroll / step);
  return { index: Math.max(0, Math.min(index, Math.max(0, count - seen + 2))), at: scroll };
}

const range = (from, to) => Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
