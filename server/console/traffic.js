// traffic.js - some requests of all kinds and sizes, several at a time, for whoever has none to look at.
import { ask } from "./api.js";
import { generate, toNpy } from "./matrix.js";

const MIX = [
  ["matmul", 64], ["transpose", 512], ["matmul", 256], ["add", 512], ["matmul", 512], ["flip", 512], ["matmul", 128], ["transpose", 1024],
  ["matmul", 384], ["add", 1024], ["matmul", 768], ["matmul", 32], ["transpose", 256], ["matmul", 512],
];

export async function traffic() {
  const waiting = MIX.slice();
  async function client() {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [op, n] = next, one = toNpy(generate("random", n, n));
      const operands = op === "matmul" || op === "add" ? [one, one] : [one];
      await (await ask(`v1/${op}`, { method: "POST", headers: { "Content-Type": "application/x-npy" }, body: new Blob(operands) })).arrayBuffer();
    }
  }
  await Promise.all(Array.from({ length: 5 }, client));
}
