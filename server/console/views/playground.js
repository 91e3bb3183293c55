// playground.js - one operation on matrices that are made, typed, pasted or dropped; its result and its account.
import { ask, devices, kernelsOf } from "../api.js";
import { accountCard } from "../account.js";
import { announce, card, choice, copyable, download, empty, failure, field, h, head, select, shape, show as put } from "../dom.js";
import { DTYPES, GENERATORS, generate, parseFile, parseNpy, parseText, toCsv, toNpy } from "../matrix.js";
import { grid, heatMap } from "../picture.js";

const OPS = [["matmul", "a × b"], ["transpose", "aᵀ"], ["add", "a + b"], ["flip", "Flip rows"]];
const OPERANDS = { matmul: ["a", "b"], add: ["a", "b"], transpose: ["a"], flip: ["a"] };

// What a link says of an operand: random:64x64. One that was typed is not in the link.
function spec(text, otherwise) {
  const [, kind, rows, cols] = /^(random|identity|ramp|image):(\d+)x(\d+)$/.exec(text ?? "") ?? [];
  return kind ? { kind, rows: Number(rows), cols: Number(cols) } : { kind: otherwise, rows: 64, cols: 64 };
}

class Operand {
  constructor(name, parameters, seed, changed) {
    Object.assign(this, { name, seed, changed, way: "make", text: "" });
    this.made = spec(parameters.get(name), name === "a" ? "image" : "random");
    this.place = h("div", { class: "lines" });
    this.draw();
  }

  get said() {
    return this.way === "make" ? `${this.made.kind}:${this.made.rows}x${this.made.cols}` : undefined;
  }

  // The matrix, or an error that says what to do.
  matrix(dtype) {
    if (this.way === "make") return generate(this.made.kind, this.made.rows, this.made.cols, dtype, this.seed);
    if (this.way === "type") return parseText(this.text, dtype);
    if (!this.file) throw new Error(`Choose or drop a file for ${this.name}.`);
    return this.file;
  }

  draw() {
    const { name } = this;
    const number = (label, key) => field(label, h("input", { type: "number", min: 1, max: 65536, value: this.made[key], "aria-label": `${label} of ${name}`,
      oninput: (event) => { this.made[key] = Math.round(Number(event.target.value)); this.changed(); } }));
    this.preview = h("div");
    const ways = choice(`Where ${name} comes from`, [["make", "Generate"], ["type", "Type"], ["file", "File"]], this.way, (way) => {
      this.way = way;
      this.draw();
      this.changed();
    });
    const parts = {
      make: () => h("div", { class: "row" },
        field("Kind", select(GENERATORS, this.made.kind, (kind) => { this.made.kind = kind; this.changed(); }, `${name}-kind`, `Kind of ${name}`)), number("Rows", "rows"), number("Columns", "cols")),
      type: () => field(`Numbers of ${name}: a row a line, or JSON`, h("textarea", { rows: 5, spellcheck: "false", value: this.text, placeholder: "1, 2\n3, 4",
        oninput: (event) => { this.text = event.target.value; this.changed(); } })),
      file: () => this.drop(),
    };
    put(this.place, h("div", { class: "between" }, h("h2", { class: "sub" }, `Operand ${name}`), ways), parts[this.way](), this.preview);
  }

  drop() {
    const take = async (file, dtype) => {
      if (!file) return;
      try {
        this.file = await parseFile(file, dtype);
        said.textContent = `${file.name}: ${shape(this.file.shape)}, ${this.file.dtype}`;
      } catch (error) {
        this.file = undefined;
        said.textContent = error.message;
      }
      announce(said.textContent);
      this.changed();
    };
    const said = h("p", { class: "small muted" }, this.file ? `${shape(this.file.shape)}, ${this.file.dtype}` : "A .npy, .csv or JSON file, or a picture. It goes to gemmd only.");
    return h("div", { class: "drop", ondragover: (event) => { event.preventDefault(); event.currentTarget.classList.add("over"); },
      ondragleave: (event) => event.currentTarget.classList.remove("over"),
      ondrop: (event) => { event.preventDefault(); event.currentTarget.classList.remove("over"); take(event.dataTransfer.files[0]); } },
    field(`File for ${this.name}, or drop it here`, h("input", { type: "file", accept: ".npy,.csv,.tsv,.txt,.json,image/*", onchange: (event) => take(event.target.files[0]) })), said);
  }
}

export function show(main, parameters, keep) {
  const state = { op: "matmul", kernel: "auto", device: "", dtype: "f32", precision: "fp32" };
  for (const name of Object.keys(state)) if (parameters.get(name)) state[name] = parameters.get(name);
  if (!OPERANDS[state.op]) state.op = "matmul";
  const changed = () => { keep({ ...state, ...Object.fromEntries(OPERANDS[state.op].map((name) => [name, operands[name].said])) }); preview(); };
  const operands = { a: new Operand("a", parameters, 1, () => changed()), b: new Operand("b", parameters, 2, () => changed()) };
  const inputs = h("div", { class: "lines" }), settings = h("div", { class: "row" }), result = h("div", { class: "lines" });
  const run = h("button", { type: "submit", class: "main" }, "Run");

  function preview() {
    for (const name of OPERANDS[state.op]) {
      const operand = operands[name];
      try {
        const small = operand.way === "make" && operand.made.rows * operand.made.cols > 1 << 20;
        if (small || (operand.way === "type" && !operand.text.trim()) || (operand.way === "file" && !operand.file)) put(operand.preview);
        else put(operand.preview, heatMap(operand.matrix(state.dtype), name, 150));
      } catch (error) {
        put(operand.preview, h("p", { class: "small muted" }, error.message));
      }
    }
  }

  async function drawSettings() {
    let names = [], places = [];
    try {
      places = (await devices()).devices.map((one) => [one.name, `${one.name} (${one.model})`]);
      names = await kernelsOf(state.op, state.device);
    } catch (error) {
      put(result, failure(error));
    }
    put(settings,
      field("Kernel", select([["auto", "auto: gemmd chooses"], ...names], state.kernel, (value) => { state.kernel = value; changed(); }, "kernel")),
      field("Device", select([["", "chosen by gemmd"], ...places], state.device, (value) => { state.device = value; state.kernel = "auto"; changed(); drawSettings(); }, "device")),
      field("Element type", select(DTYPES, state.dtype, (value) => { state.dtype = value; changed(); }, "dtype")),
      field("Precision", select(["fp32", "ieee", "tf32", "bf16"], state.precision, (value) => { state.precision = value; changed(); }, "precision")));
  }

  function drawInputs() {
    put(inputs, OPERANDS[state.op].map((name) => operands[name].place));
    changed();
  }

  async function go(event) {
    event?.preventDefault();
    run.disabled = true;
    run.textContent = "Running";
    try {
      const query = new URLSearchParams();
      if (state.kernel !== "auto") query.set("kernel", state.kernel);
      if (state.device) query.set("device", state.device);
      if (state.precision !== "fp32") query.set("precision", state.precision);
      if (state.dtype === "bf16") query.set("dtype", "bf16");
      const matrices = OPERANDS[state.op].map((name) => operands[name].matrix(state.dtype));
      const response = await ask(`v1/${state.op}${query.size ? `?${query}` : ""}`, { method: "POST",
        headers: { "Content-Type": "application/x-npy", Accept: "application/x-npy" }, body: new Blob(matrices.map(toNpy)) });
      const account = JSON.parse(response.headers.get("Gemmd-Stats"));
      const matrix = parseNpy(await response.arrayBuffer());
      drawResult(matrix, account, query);
      if (result.getBoundingClientRect().top > innerHeight * 0.7) result.scrollIntoView({ behavior: "smooth" });
      announce(`Done: the result is ${shape(matrix.shape)}, by ${account.kernel} on ${account.device}`);
    } catch (error) {
      put(result, card("Result", failure(error)));
    }
    run.disabled = false;
    run.textContent = "Run";
  }

  function drawResult(matrix, account, query) {
    put(result,
      card(null, h("div", { class: "between" }, h("h2", null, `Result, ${shape(matrix.shape)}`),
        h("div", { class: "row tight" },
          h("button", { type: "button", class: "quiet", onclick: () => download("result.npy", toNpy(matrix)) }, "Download .npy"),
          h("button", { type: "button", class: "quiet", onclick: () => download("result.csv", toCsv(matrix)) }, "Download .csv"))),
      heatMap(matrix, "the result"), grid(matrix, "the result")),
      accountCard(account), commands(state.op, query));
  }

  put(main, head("Playground", "Multiply, add, transpose or flip a matrix, and see where the time went."),
    h("div", { class: "columns wide" },
      h("form", { class: "card", "aria-label": "What to compute", onsubmit: go },
        choice("Operation", OPS, state.op, (op) => { state.op = op; state.kernel = "auto"; drawInputs(); drawSettings(); }),
        inputs, h("details", { open: Boolean(parameters.get("kernel") || parameters.get("device")) }, h("summary", null, "Kernel, device, type and precision"), settings), h("div", { class: "row" }, run)),
      result));
  drawInputs();
  drawSettings();
  if (parameters.has("op")) go();
  else put(result, h("div", { class: "card" }, empty("The result appears here: as a picture, as numbers, and with the account of its time.",
    h("button", { type: "button", class: "main", onclick: go }, "Run this product"))));
}

// The same by other means, with files in place of what was made here.
function commands(op, query) {
  const names = OPERANDS[op], text = query.size ? `?${query}` : "", url = `${location.origin}/v1/${op}${text}`;
  const pythonOptions = [...query].map(([name, value]) => `, ${name}="${value}"`).join(""), ctlOptions = [...query].map(([name, value]) => ` --${name} ${value}`).join("");
  const files = names.map((name) => `${name}.npy`);
  return card("The same from elsewhere",
    copyable("curl", names.length === 1 ? `curl --data-binary @a.npy '${url}' -o result.npy` : `cat ${files.join(" ")} | curl --data-binary @- '${url}' -o result.npy`),
    copyable("Python", `import gemmd, numpy\nclient = gemmd.Client("${location.origin}")\nresult = client.${op}(${names.map((name) => `numpy.load("${name}.npy")`).join(", ")}${pythonOptions})\nprint(result.account)`),
    copyable("gemmctl", `gemmctl --url ${location.origin} ${op} ${files.join(" ")}${ctlOptions} -o result.npy`));
}

