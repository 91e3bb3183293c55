// comparison.js - runs every kernel of an operation on the same matrices.
import { get } from "./api.js";
import { generate, toNpy } from "./matrix.js";

export function compare(op, { rows, cols, inner, dtype, device, repeat }, signal) {
  const shapes = { matmul: [[rows, inner], [inner, cols]], add: [[rows, cols], [rows, cols]] }[op] ?? [[rows, cols]];
  const query = new URLSearchParams({ format: "json" });
  if (device) query.set("device", device);
  if (repeat) query.set("repeat", repeat);
  if (dtype === "bf16") query.set("dtype", "bf16");
  return get(`v1/compare/${op}?${query}`, { method: "POST", signal, headers: { "Content-Type": "application/x-npy" },
    body: new Blob(shapes.map(([r, c], i) => toNpy(generate("random", r, c, dtype, i + 1)))) });
}
