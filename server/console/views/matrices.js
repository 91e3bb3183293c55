// matrices.js - the named matrices: a table of them, a look at a part of one, and a file that becomes one.
import { ask, keyed } from "../api.js";
import { again, announce, bytes, card, download, empty, failure, field, figures, h, head, select, shape, show as put, sure, table, time } from "../dom.js";
import { DTYPES, parseNpy, readFile, toNpy } from "../matrix.js";
import { list, nameField, pathOf, refOf, write } from "../named.js";
import { grid, heatMap } from "../picture.js";

const ELEMENTS = 1 << 20; // of what is shown at a time
const TTLS = [["", "until it is deleted"], ["3600", "for an hour"], ["86400", "for a day"], ["604800", "for a week"]];

const where = (one) => `${one.device === "host" ? "host memory" : one.device}${one.durable ? ", on disk" : ""}`;
const owner = (one) => `${one.owner}${one.share ? `, shared with ${one.share === "*" ? "all keys" : one.share.replaceAll(",", ", ")}` : ""}`;

// A time of the daemon's, from now.
function moment(text) {
  if (!text) return "never";
  const us = (Date.parse(text) - Date.now()) * 1000, size = time(1e6 * Math.round(Math.abs(us) / 1e6));
  return h("time", { datetime: text, title: new Date(text).toLocaleString() }, Math.abs(us) < 1e6 ? "now" : us < 0 ? `${size} ago` : `in ${size}`);
}

export function show(main, parameters, keep) {
  const state = { after: parameters.get("after"), name: parameters.get("name"), rows: parameters.get("rows") };
  const kept = h("div", { class: "lines" }), seen = h("div", { class: "maybe" });
  let page = { matrices: [] };

  async function draw() {
    keep(state);
    try {
      page = await list(`v1/matrices${state.after ? `?after=${state.after}` : ""}`);
      put(kept, drawList());
      shared.hidden = !keyed();
      await drawChosen();
    } catch (error) {
      put(kept, failure(error), again(draw));
    }
  }

  function drawList() {
    const all = page.matrices, turn = (after) => { Object.assign(state, { after, name: null, rows: null }); draw(); };
    const owned = all.some((one) => one.owner), columns = [["Name"], owned && ["Owner"], ["Shape"], ["Type"], ["Bytes", true], ["Where it is"], ["Last use"], ["Expires"], ["Actions"]].filter(Boolean);
    const { used_bytes: used, limit_bytes: limit } = page;
    return card(null, h("div", { class: "between" }, h("h2", null, "What is kept"), h("button", { type: "button", class: "quiet", onclick: draw }, "Refresh")),
      figures([["Memory of all named matrices", bytes(used), `of ${bytes(limit)}`]]), h("meter", { max: limit, value: used, "aria-label": "Memory of all named matrices" }),
      all.length === 0 ? empty("Nothing is kept under a name that this page may read. Send a file below, or keep a result of the playground.", h("a", { class: "button", href: "#/playground" }, "To the playground"))
        : table(`${all.length} named matrices${page.next || state.after ? " of several pages" : ""}`, columns, all.map((one) => [look(one), owned && owner(one), shape(one.shape), one.dtype, bytes(one.bytes), where(one), moment(one.used), moment(one.expires), actions(one)].filter((cell) => cell !== false)), (r) => refOf(all[r]) === state.name),
      state.after || page.next ? h("div", { class: "row" }, state.after ? h("button", { type: "button", onclick: () => turn(null) }, "First page") : null,
        page.next ? h("button", { type: "button", onclick: () => turn(page.next.split("=")[1]) }, "Next page") : null) : null,
      h("p", { class: "small muted" }, "On a GPU they are in its memory, and in the host's while others need the room. What is not on disk ends with the daemon."));
  }

  // The name in its row, which shows the matrix.
  function look(one) {
    return h("button", { type: "button", class: "quiet", "aria-label": `Show ${refOf(one)}`, onclick: (event) => {
      Object.assign(state, { name: refOf(one), rows: null });
      keep(state);
      for (const row of kept.querySelectorAll("tbody tr")) row.classList.toggle("chosen", row.contains(event.target));
      drawChosen();
    } }, one.name);
  }

  function actions(one) {
    const ref = refOf(one), button = (text, act) => h("button", { type: "button", class: "quiet", "aria-label": `${text} ${ref}`, onclick: () => act().catch((error) => put(seen, failure(error))) }, text);
    const use = (name) => h("a", { class: "button quiet", "aria-label": `Use as ${name}: ${ref}`, href: `#/playground?${name}=ref:${ref}` }, `Use as ${name}`);
    return h("div", { class: "actions" }, use("a"), use("b"), button("Download", async () => download(`${ref}.npy`, await (await ask(pathOf(ref), { headers: { Accept: "application/x-npy" } })).blob())),
    button("Delete", async () => {
      if (!(await sure(`Delete ${ref}? It cannot be brought back.`, "Delete"))) return;
      await ask(pathOf(ref), { method: "DELETE" });
      announce(`${ref} is deleted`);
      if (state.name === ref) Object.assign(state, { name: null, rows: null });
      await draw();
      main.focus({ preventScroll: true }); // its button is gone
    }));
  }

  // Some rows of the one that is chosen: never more than a page can hold.
  async function drawChosen() {
    const one = page.matrices.find((other) => refOf(other) === state.name), ref = state.name;
    if (!one) return put(seen, ref ? card("Not there", h("p", null, `There is no named matrix ${ref} on this page. It may be deleted, or have expired.`)) : null);
    const [cols, rows, stack = 1] = [...one.shape].reverse(), most = Math.max(1, Math.floor(ELEMENTS / Math.max(1, stack * cols))), wide = Math.floor(ELEMENTS / stack);
    // As in the API: 2:5, 2:, :5, and 2 for that one row.
    const [, begin, range, end] = /^(\d*)(:?)(\d*)$/.exec(state.rows ?? ":") ?? [], from = Number(begin || 0), to = end ? Number(end) : range || !begin ? rows : from + 1;
    const part = h("div", { class: "lines" }), trouble = h("div", { class: "maybe" });
    const number = (value) => h("input", { type: "number", min: 0, max: rows, value, required: true });
    const first = number(from), last = number(Math.min(to, from + most));

    const save = (part) => ask(`${pathOf(ref)}?rows=${part}${cols > wide ? `&cols=0:${wide}` : ""}`, { headers: { Accept: "image/svg+xml" } }).then(async (response) => { download(`${ref}.svg`, await response.blob()); put(trouble); }).catch((error) => put(trouble, failure(error)));

    async function fill() {
      last.value = Math.min(Number(last.value), Number(first.value) + most);
      try {
        if (wide < 1) throw new Error("The stack has more matrices than a page can show. Download it.");
        const response = await ask(`${pathOf(ref)}?rows=${first.value}:${last.value}${cols > wide ? `&cols=0:${wide}` : ""}`, { headers: { Accept: "application/x-npy" } });
        const matrix = parseNpy(await response.arrayBuffer());
        if (stack === 1) matrix.first = Number(first.value);
        put(part, heatMap(matrix, ref), h("p", null, h("button", { type: "button", class: "quiet", onclick: () => save(`${first.value}:${last.value}`) }, "Heat map as SVG")), trouble, matrix.data.length ? grid(matrix, ref) : null, cols > wide ? h("p", { class: "small muted" }, `The first ${wide.toLocaleString("en")} columns.`) : null);
        announce(`Rows ${first.value} to ${last.value} of ${ref}`);
      } catch (error) {
        put(part, failure(error));
      }
    }

    put(seen, card(null, h("div", { class: "between" }, h("h2", null, `${ref}, ${shape(one.shape)} ${one.dtype}`), actions(one)),
      h("form", { class: "row", "aria-label": "Rows to show", onsubmit: (event) => {
        event.preventDefault();
        fill();
        state.rows = `${first.value}:${last.value}`;
        keep(state);
      } }, field("From row", first), field("Up to row", last), h("button", null, "Show rows"),
      h("p", { class: "small muted" }, `The last one is not among them, as in Python.${rows > most ? ` At most ${most.toLocaleString("en")} at a time.` : ""}`)), part));
    await fill();
    if (seen.getBoundingClientRect().top > innerHeight * 0.7) seen.scrollIntoView({ behavior: "smooth" });
  }

  // ---- A file that becomes one. ----

  const said = h("div", { class: "maybe" }), name = nameField("Name"), dtype = select([["", "as the file says"], ...DTYPES], "", null, "dtype"), ttl = select(TTLS, "", null, "ttl");
  const file = h("input", { type: "file", required: true, accept: ".npy,.csv,.tsv,.txt,.json,image/*", onchange: () => {
    name.lastChild.value ||= (file.files[0]?.name ?? "").replace(/\.\w+$/, "").replace(/\W/g, "_").replace(/^(?=\d)/, "_").slice(0, 64);
  } });
  const share = h("input", { name: "share", placeholder: "nobody; * is all", autocomplete: "off" }), shared = field("Share it with the keys", share), send = h("button", { class: "main" }, "Send it");

  async function upload(event) {
    event.preventDefault();
    send.disabled = true;
    put(said);
    try {
      const [one] = file.files, query = new URLSearchParams(Object.entries({ dtype: dtype.value, ttl: ttl.value, share: share.value }).filter(([, value]) => value)), picture = one.type.startsWith("image/");
      const row = await write(name.lastChild.value, picture ? toNpy((await readFile(one))(dtype.value || "f32")) : new Blob([one]), query.size ? `?${query}` : "",
        // Else the first bytes say what it is, and not what the browser takes its name for.
        /\.(csv|tsv|txt)$/i.test(one.name) ? { "Content-Type": "text/csv" } : {});
      if (row) {
        announce(`${row.name} is kept`);
        Object.assign(state, { name: refOf(row), rows: null });
        await draw();
      }
    } catch (error) {
      put(said, failure(error));
    }
    send.disabled = false;
  }

  put(main, head("Matrices", "What gemmd keeps under a name: sent once, and then an operand of anything."), kept, seen,
    h("form", { class: "card", "aria-label": "Send a matrix", onsubmit: upload }, h("h2", null, "Send a matrix"),
      h("div", { class: "row" }, field("File: .npy, .csv, JSON or a picture", file), name, field("Element type", dtype), field("Keep it", ttl), shared, send), said));
  draw();
}
