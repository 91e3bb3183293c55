// named.js - named matrices: the list, what is said of one, and how one is written.
import { ask, get } from "./api.js";
import { field, h, sure } from "./dom.js";

// A page of them: { matrices, used_bytes, limit_bytes, next }.
export const list = (path = "v1/matrices") => get(path);

// What an operand calls it. With keys a name has its owner before it, so that a link means the same to a colleague.
export const refOf = (one) => (one.owner ? `${one.owner}.${one.name}` : one.name);
export const pathOf = (ref) => `v1/matrices/${encodeURIComponent(ref)}`;

export function nameField(label) {
  return field(label, h("input", { name: "name", required: true, pattern: "[A-Za-z_][A-Za-z0-9_]{0,63}", placeholder: "weights", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    title: "Letters, digits and _, no digit first, 64 at most" }));
}

// Gives the matrix in `body` a name, and asks before it replaces one. The matrix's row of the list; undefined: it was not to be replaced.
export async function write(name, body, query = "", headers = {}) {
  const before = await ask(`${pathOf(name)}?rows=0:0`, { method: "HEAD", headers: { Accept: "application/x-npy" } })
    .then((response) => response.headers.get("ETag"), (error) => { if (error.status !== 404) throw error; });
  if (before && !(await sure(`There is a matrix ${name}. Replace it?`, "Replace"))) return undefined;
  return get(`${pathOf(name)}${query}`, { method: "PUT", body, headers: { ...headers, ...(before ? { "If-Match": before } : { "If-None-Match": "*" }) } });
}
