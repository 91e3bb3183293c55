// comparison.js - runs every kernel of an operation on the same matrices.
import { ask, get } from "./api.js";
import { generate, toNpy } from "./matrix.js";

function request(op, { rows, cols, inner, dtype, device, repeat }, format, signal) {
  const shapes = { matmul: [[rows, inner], [inner, cols]], add: [[rows, cols], [rows, cols]] }[op] ?? [[rows, cols]];
  const query = new URLSearchParams({ format });
  if (device) query.set("device", device);
  if (repeat) query.set("repeat", repeat);
  if (dtype === "bf16") query.set("dtype", "bf16");
  return [`v1/compare/${op}?${query}`, { method: "POST", signal, headers: { "Content-Type": "application/x-npy" },
    body: new Blob(shapes.map(([r, c], i) => toNpy(generate("random", r, c, dtype, i + 1)))) }];
}

export function compare(op, what, signal) {
  return get(...request(op, what, "json", signal));
}

// The same as SVG: it runs again.
export async function drawing(op, what) {
  return (await ask(...request(op, what, "svg"))).blob();
}
