// comparison.js - runs every kernel of an operation on the same matrices.
import { ask, get, kernelsOf } from "./api.js";
import { generate, toNpy } from "./matrix.js";

const shapesOf = (op, { rows, cols, inner }) => ({ matmul: [[rows, inner], [inner, cols]], add: [[rows, cols], [rows, cols]] }[op] ?? [[rows, cols]]);

function request(op, what, format, signal) {
  const { dtype, device } = what, shapes = shapesOf(op, what);
  const query = new URLSearchParams({ format });
  if (device) query.set("device", device);
  if (dtype === "bf16") query.set("dtype", "bf16");
  return [`v1/compare/${op}?${query}`, { method: "POST", signal, headers: { "Content-Type": "application/x-npy" },
    body: new Blob(shapes.map(([r, c], i) => toNpy(generate("random", r, c, dtype, i + 1)))) }];
}

export function compare(op, what, signal) {
  return get(...request(op, what, "json", signal));
}

// The same in the order in which the kernels are taught: those of the operation that were timed.
export async function lesson(op, what) {
  const [report, names] = await Promise.all([compare(op, what), kernelsOf(op, what.device)]);
  return { report, rows: report.rows.filter((row) => row.gflops > 0 && row.op === op).sort((a, b) => names.indexOf(a.kernel) - names.indexOf(b.kernel)) };
}

// The same as SVG: it runs again.
export async function drawing(op, what) {
  return (await ask(...request(op, what, "svg"))).blob();
}

// What each kernel was estimated to take, and why auto takes which.
export function choose(op, what, device, signal) {
  const query = new URLSearchParams({ format: "json", dtype: what.dtype, device });
  shapesOf(op, what).forEach((dims, i) => query.set(op === "matmul" || i ? `shape_${"ab"[i]}` : "shape", dims.join("x")));
  return get(`v1/choose/${op}?${query}`, { signal }).then((choice) => ({ ...choice, link: `v1/choose/${op}?${query}`.replace("format=json", "format=text") }));
}
