// matrix.js - matrices in the browser: made, read from text and files, written as NPY.

const KINDS = {
  f32: ["<f4", Float32Array], f64: ["<f8", Float64Array], i32: ["<i4", Int32Array], i64: ["<i8", BigInt64Array],
  f16: ["<f2", Uint16Array], bf16: ["<V2", Uint16Array],
  bool: ["|b1", Uint8Array], i8: ["|i1", Int8Array], u8: ["|u1", Uint8Array], i16: ["<i2", Int16Array], u16: ["<u2", Uint16Array], u32: ["<u4", Uint32Array], u64: ["<u8", BigUint64Array],
};
export const DTYPES = Object.keys(KINDS).slice(0, 6); // those for arithmetic
export const isType = (name) => Object.hasOwn(KINDS, name);
export const isWhole = (dtype) => /^(bool|[iu]\d+)$/.test(dtype);

// Above this a browser's tab has trouble, not gemmd.
export const ELEMENTS_MAX = 1 << 26;

// data: bits where the type has no array of its own (f16, bf16); at() gives numbers.
export class Matrix {
  constructor(shape, dtype, data) {
    Object.assign(this, { shape, dtype, data, first: 0 }); // first: the number of its first row, where it is a part
    this.cols = shape[shape.length - 1];
    this.rows = shape.slice(0, -1).reduce((a, b) => a * b, 1); // of a stack: one under the other
  }

  at(row, col) {
    const value = this.data[row * this.cols + col];
    if (this.dtype === "f16") return halfToNumber(value);
    if (this.dtype === "bf16") return bitsToFloat(value * 65536);
    return typeof value === "bigint" ? Number(value) : value;
  }

  // To be looked at: of fractions six digits. Whole numbers are never rounded, as one would not see it.
  text(row, col) {
    const value = this.data[row * this.cols + col], number = this.at(row, col);
    if (typeof value === "bigint") return String(value);
    return Number.isInteger(number) && Math.abs(number) < 1e21 ? String(number) : written(Number(number.toPrecision(6)));
  }

  // The shortest that reads back as the same value of its type.
  exact(row, col) {
    const value = this.data[row * this.cols + col], number = this.at(row, col), [least, most] = DIGITS[this.dtype] ?? [];
    if (typeof value === "bigint") return String(value);
    const store = STORES[this.dtype] ?? Math.fround, bits = STORES[this.dtype] ? value : number;
    for (let digits = least; digits <= most; digits++) {
      const short = Number(number.toPrecision(digits));
      if (Object.is(store(short), bits)) return written(short);
    }
    return written(number);
  }
}

// How many digits every number of a type can have and keep, and how many tell any two apart. JavaScript itself knows f64's.
const DIGITS = { f32: [6, 9], f16: [3, 5], bf16: [2, 4] };

const written = (number) => (Object.is(number, -0) ? "-0" : String(number).replace("Infinity", "inf").replace("NaN", "nan"));

const view = new DataView(new ArrayBuffer(8));
function bitsToFloat(bits) {
  view.setUint32(0, bits);
  return view.getFloat32(0);
}
function floatToBits(number) {
  view.setFloat32(0, number);
  return view.getUint32(0);
}

function halfToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1, power = (bits >> 10) & 31, rest = bits & 1023;
  if (power === 31) return rest ? NaN : sign * Infinity;
  return sign * (power ? 2 ** (power - 15) * (1 + rest / 1024) : 2 ** -24 * rest);
}

// To nearest, ties to even.
function numberToHalf(number) {
  if (Number.isNaN(number)) return 0x7e00;
  const sign = number < 0 || Object.is(number, -0) ? 0x8000 : 0, size = Math.abs(number);
  if (size >= 65520) return sign | 0x7c00;
  if (size < 2 ** -14) return sign | even(size * 2 ** 24);
  const power = Math.min(15, Math.floor(Math.log2(size)));
  return sign | (even(size / 2 ** power * 1024) - 1024 + ((power + 15) << 10));
}

function even(x) {
  const low = Math.floor(x), rest = x - low;
  return rest > 0.5 || (rest === 0.5 && low % 2) ? low + 1 : low;
}

function numberToBf16(number) {
  if (Number.isNaN(number)) return 0x7fc0;
  let bits = floatToBits(number);
  const near = Math.fround(number);
  if (near !== number && Number.isFinite(near)) bits = (Math.abs(near) > Math.abs(number) ? bits - 1 : bits) | 1; // cut off, and odd: it is rounded once
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

const STORES = { f16: numberToHalf, bf16: numberToBf16 }; // to the bits that a Matrix has of it

const BEYOND = { f16: 65520, bf16: 2 ** 128 - 2 ** 119, f32: 2 ** 128 - 2 ** 103 }; // the least number that would be rounded to infinity

// Throws for what a type cannot hold, and never rounds it to infinity or wraps it.
export function fromNumbers(shape, dtype, numbers) {
  const [, Kind] = KINDS[dtype];
  const data = new Kind(numbers.length);
  if (isWhole(dtype)) storeWhole(data, dtype, numbers);
  else for (let i = 0; i < numbers.length; i++) {
    if (Math.abs(numbers[i]) >= BEYOND[dtype] && Number.isFinite(numbers[i])) throw new Error(`${numbers[i]} is beyond what ${dtype} can hold.`);
    data[i] = STORES[dtype] ? STORES[dtype](numbers[i]) : numbers[i];
  }
  return new Matrix(shape, dtype, data);
}

function storeWhole(data, dtype, numbers) {
  const store = typeof data[0] === "bigint" ? BigInt : Number;
  for (let i = 0; i < numbers.length; i++) {
    const number = numbers[i];
    if (!Number.isInteger(number)) throw new Error(`${written(number)} is no whole number, and ${dtype} has no others.`);
    data[i] = store(number);
    if (Number(data[i]) !== number || (dtype === "bool" && number > 1)) throw new Error(`${number} is beyond what ${dtype} can hold.`);
    // A greater one may have been rounded when its digits were read.
    if (!Number.isSafeInteger(number)) throw new Error(`This page reads whole numbers up to ${Number.MAX_SAFE_INTEGER} exactly, and here is a greater one. Take it from a .npy file.`);
  }
}

// ---- Made. ----

export const GENERATORS = [["random", "Random"], ["identity", "Identity"], ["ramp", "Ramp"], ["image", "Picture"]];

// The same numbers for the same seed, so that a link shows the same matrix.
function random(seed) {
  let state = (seed * 2654435761 + 1) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// Whole numbers that every reader can check in the head, within what the type can hold.
function wholeOf(dtype) {
  const signed = dtype.startsWith("i"), largest = { bool: 1, i8: 127, u8: 255 }[dtype] ?? 999;
  return { ramp: (i) => i % (largest + 1),
    image: (height) => (dtype === "bool" ? Number(height > 0) : Math.trunc(signed ? 100 * height : 100 + 100 * height)),
    random: (next) => (dtype === "bool" ? Math.floor(next() * 2) : Math.floor(next() * 19) - (signed ? 9 : 0)) };
}

export function generate(kind, rows, cols, dtype = "f32", seed = 1) {
  if (!(rows >= 1 && cols >= 1 && rows * cols <= ELEMENTS_MAX))
    throw new Error(`A matrix here has at least one row and column, and at most ${ELEMENTS_MAX.toLocaleString("en")} elements.`);
  const numbers = new Float64Array(rows * cols), next = random(seed), whole = isWhole(dtype) && wholeOf(dtype);
  for (let r = 0, i = 0; r < rows; r++)
    for (let c = 0; c < cols; c++, i++)
      numbers[i] = kind === "identity" ? Number(r === c)
        : kind === "ramp" ? (whole ? whole.ramp(i) : i / numbers.length)
          : kind === "image" ? (whole ? whole.image(ripple(r / rows, c / cols)) : ripple(r / rows, c / cols))
            : whole ? whole.random(next) : next() * 2 - 1;
  return fromNumbers([rows, cols], dtype, numbers);
}

// Rings, with a corner that tells which way up the picture is.
function ripple(y, x) {
  if (x < 0.22 && y < 0.22 && (x < 0.06 || y < 0.06)) return 1;
  const distance = Math.hypot(x - 0.62, y - 0.4);
  return Math.cos(distance * 34) * Math.exp(-distance * 2.4);
}

// ---- Read. ----

// One dimension is a row, none a single number.
function shapeOf(dims) {
  if (dims.length > 3) throw new Error("This page shows matrices and stacks of them.");
  return dims.length === 0 ? [1, 1] : dims.length === 1 ? [1, dims[0]] : dims;
}

// where(i): the place of the i-th. Of bool also true and false are numbers.
function numbersOf(list, dtype, where) {
  const bad = list.findIndex((one) => typeof one !== "number" && !(dtype === "bool" && typeof one === "boolean"));
  if (bad >= 0) throw new Error(`${where(bad)} not a number.`);
  return dtype === "bool" ? list.map(Number) : list;
}

// matrices: of how many, one under the other, these are the rows; undefined: it is no stack.
function fromRows(rows, dtype, matrices) {
  const lists = rows.map((row) => (Array.isArray(row) ? row : [row]));
  const cols = lists[0]?.length ?? 0;
  const wrong = lists.findIndex((row) => row.length !== cols);
  if (wrong >= 0) throw new Error(`Row ${wrong + 1} has ${lists[wrong].length} numbers, and the first has ${cols}.`);
  const numbers = numbersOf(lists.flat(), dtype, (i) => `Row ${Math.floor(i / cols) + 1} has something that is`);
  return fromNumbers(matrices ? [matrices, lists.length / matrices, cols] : [lists.length, cols], dtype, numbers);
}

function fromStack(stack, dtype) {
  const wrong = stack.findIndex((rows) => rows.length !== stack[0].length);
  if (wrong >= 0) throw new Error(`Matrix ${wrong + 1} of the stack has ${stack[wrong].length ?? 0} rows, and the first has ${stack[0].length}.`);
  return fromRows(stack.flat(), dtype, stack.length);
}

function parseJson(text, dtype) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`This begins like JSON, but is not: ${error.message}`);
  }
  const rows = Array.isArray(value);
  if (!rows && !(Array.isArray(value.data) && Array.isArray(value.shape))) throw new Error('JSON is rows, [[1, 2], [3, 4]], or {"shape": [2, 2], "data": [1, 2, 3, 4]}.');
  const flat = (rows ? value : value.data).flat(Infinity);
  if (flat.some((one) => Math.abs(one) === Infinity)) throw new Error("A number here is beyond what f64 can hold."); // JSON has no word for infinity, so it had digits
  if (rows) return Array.isArray(value[0]?.[0]) ? fromStack(value, dtype) : fromRows(Array.isArray(value[0]) ? value : [value], dtype);
  const shape = shapeOf(value.shape), type = value.dtype ?? dtype;
  if (!isType(type)) throw new Error(`This page knows no elements of type ${type}.`);
  if (flat.length !== shape.reduce((a, b) => a * b)) throw new Error(`The shape says ${value.shape.join(" x ") || "one number"}, and there are ${flat.length} numbers.`);
  return fromNumbers(shape, type, numbersOf(flat, type, (i) => `Number ${i + 1} of "data" is`));
}

// What gemmd takes for a number in CSV; undefined: it is none.
function cellNumber(cell) {
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(cell)) {
    if (!Number.isFinite(Number(cell))) throw new Error(`${cell} is beyond what f64 can hold.`);
    return Number(cell);
  }
  const [, sign, word] = /^([+-]?)(nan|inf|infinity)$/i.exec(cell) ?? [];
  return word && (/^n/i.test(word) ? NaN : sign === "-" ? -Infinity : Infinity);
}

function parseCsv(text, dtype) {
  const lines = text.split(/\r\n|\r|\n/).map((line) => line.trim());
  const separator = lines.map((line) => /[,;\t]/.exec(line)?.[0]).findLast(Boolean) ?? /\s+/;
  const rows = lines.map((line) => line && line.split(separator).map((cell) => cellNumber(cell.trim().replace(/^"(.*)"$/, "$1"))));
  if (rows.length > 1 && rows[0].every((one) => one === undefined)) rows.shift(); // a line of names
  const stack = [[]]; // an empty line begins another matrix
  for (const row of rows)
    if (row) stack.at(-1).push(row);
    else if (stack.at(-1).length) stack.push([]);
  return stack.length > 1 ? fromStack(stack, dtype) : fromRows(stack[0], dtype);
}

export function parseText(text, dtype = "f32") {
  const trimmed = text.trim();
  if (!trimmed) throw new Error("Type some numbers, such as 1, 2 on one line and 3, 4 on the next.");
  return /^[[{]/.test(trimmed) ? parseJson(trimmed, dtype) : parseCsv(trimmed, dtype);
}

export function parseNpy(buffer) {
  const start = new Uint8Array(buffer, 0, Math.min(12, buffer.byteLength)), about = new DataView(buffer);
  if (start.length < 12 || String.fromCharCode(...start.subarray(1, 6)) !== "NUMPY") throw new Error("This is not a .npy file.");
  const wide = start[6] >= 2, length = wide ? about.getUint32(8, true) : about.getUint16(8, true), begin = (wide ? 12 : 10) + length;
  if (begin > buffer.byteLength) throw new Error("The file ends within its header.");
  const text = new TextDecoder("latin1").decode(new Uint8Array(buffer, wide ? 12 : 10, length));
  const [, order, descr] = /'descr':\s*'([<>|=]?)([^']+)'/.exec(text) ?? [], fortran = /'fortran_order':\s*True/.test(text);
  const dims = (/'shape':\s*\(([^)]*)\)/.exec(text)?.[1] ?? "").split(",").map((one) => one.trim()).filter(Boolean).map(Number), shape = shapeOf(dims);
  const [dtype, [, Kind] = []] = Object.entries(KINDS).find(([, [name]]) => name.slice(1) === descr) ?? []; // of bf16 NumPy itself writes |V2
  if (!Kind) throw new Error(`This page cannot show elements of type ${descr ?? "unknown"}; gemmd may know them all the same.`);
  const count = shape.reduce((a, b) => a * b), size = Kind.BYTES_PER_ELEMENT, end = begin + count * size;
  if (count > ELEMENTS_MAX) throw new Error("The file is too large for a page; send it with curl.");
  if (buffer.byteLength < end) throw new Error("The file ends before its last element.");
  if (buffer.byteLength > end) throw new Error("Something follows the last element, and a file here has one matrix.");
  const bytes = new Uint8Array(buffer.slice(begin, end));
  if (order === ">") for (let i = 0; i < bytes.length; i += size) bytes.subarray(i, i + size).reverse();
  const data = new Kind(bytes.buffer);
  return new Matrix(shape, dtype, fortran ? turned(data, shape) : data);
}

// From Fortran's order, in which the first index runs fastest, to that of C.
function turned(data, shape) {
  const [cols, rows, stack = 1] = [...shape].reverse(), to = new data.constructor(data.length);
  let i = 0;
  for (let k = 0; k < stack; k++) for (let r = 0; r < rows; r++) for (let c = 0; c < cols; c++) to[i++] = data[k + stack * (r + rows * c)];
  return to;
}

// The brightness of a picture, 0 to 1.
async function parsePicture(file) {
  const bitmap = await createImageBitmap(file), scale = Math.min(1, 1024 / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
  const numbers = Float64Array.from({ length: pixels.length / 4 }, (_, i) => (0.2126 * pixels[4 * i] + 0.7152 * pixels[4 * i + 1] + 0.0722 * pixels[4 * i + 2]) / 255);
  return (dtype) => fromNumbers([canvas.height, canvas.width], dtype, isWhole(dtype) ? numbers.map((one) => Math.trunc(100 * one)) : numbers);
}

// What gives the matrix in a file for an element type, which .npy files say themselves.
export async function readFile(file) {
  if (/svg/.test(file.type)) throw new Error("A drawing has no points; take a picture of another kind, such as PNG.");
  if (file.type.startsWith("image/")) return parsePicture(file);
  const buffer = await file.arrayBuffer();
  if (/\.npy$/i.test(file.name) || new Uint8Array(buffer)[0] === 0x93) {
    const matrix = parseNpy(buffer);
    return () => matrix;
  }
  const text = new TextDecoder().decode(buffer), read = {};
  return (dtype) => (read[dtype] ??= parseText(text, dtype));
}

// ---- Written. ----

// As JSON, whose numbers are exact; undefined where that takes more than `most` characters, or has numbers that are not read from it.
export function toText(matrix, most) {
  if (matrix.data.length > most / 2) return undefined;
  const data = Array.from(matrix.data, (_, i) => matrix.at(0, i)), text = `{"shape":[${matrix.shape}],"dtype":"${matrix.dtype}","data":[${data.map(written)}]}`;
  return data.every(isWhole(matrix.dtype) ? Number.isSafeInteger : Number.isFinite) && text.length <= most ? text : undefined;
}

export function toNpy(matrix) {
  const [descr] = KINDS[matrix.dtype];
  const dims = `(${matrix.shape.join(", ")}${matrix.shape.length === 1 ? "," : ""})`;
  let text = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${dims}, }`;
  text += `${" ".repeat((64 - ((10 + text.length + 1) % 64)) % 64)}\n`;
  const before = new Uint8Array(10 + text.length);
  before.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, text.length & 255, text.length >> 8]);
  for (let i = 0; i < text.length; i++) before[10 + i] = text.charCodeAt(i);
  return new Blob([before, matrix.data], { type: "application/x-npy" });
}

export function toCsv(matrix) {
  const lines = [], apart = matrix.shape.at(-2);
  for (let r = 0; r < matrix.rows; r++)
    lines.push(...(r > 0 && r % apart === 0 ? [""] : []), Array.from({ length: matrix.cols }, (_, c) => matrix.exact(r, c)).join(","));
  return new Blob([`${lines.join("\n")}\n`], { type: "text/csv" });
}
