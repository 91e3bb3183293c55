// playground.js - one operation on matrices that are made, typed, pasted or dropped; its result and its account.
import { ask, devices, kernelsOf, keyed } from "../api.js";
import { accountCard } from "../account.js";
import { announce, card, choice, copyable, download, empty, failure, field, h, head, select, shape, show as put } from "../dom.js";
import { DTYPES, ELEMENTS_MAX, GENERATORS, Matrix, generate, isType, parseNpy, parseText, readFile, toCsv, toNpy, toText } from "../matrix.js";
import { list, nameField, refOf, write } from "../named.js";
import { grid, heatMap } from "../picture.js";

const OPS = [["matmul", "a × b"], ["transpose", "aᵀ"], ["add", "a + b"], ["flip", "Flip"], ["eval", "Expression"]];
const OPERANDS = { matmul: ["a", "b"], add: ["a", "b"], transpose: ["a"], flip: ["a"], eval: ["a", "b"] };

// The names in an expression that are no function, attribute or option.
const namesIn = (expr) => expr.match(/(?<![\w.])[A-Za-z_]\w*\b(?!\s*(?:\(|=(?!=)))/g) ?? [];

// What a link says of an operand: random:64x64, ref:NAME, text:1,2. A matrix of more characters than a link should have is not in it.
const LINKED = 4000;
function spec(text, otherwise) {
  const [, kind, rows, cols] = /^(random|identity|ramp|image):(\d+)x(\d+)$/.exec(text ?? "") ?? [];
  return kind ? { kind, rows: Number(rows), cols: Number(cols) } : { kind: otherwise, rows: 64, cols: 64 };
}

class Operand {
  constructor(name, parameters, seed, changed) {
    Object.assign(this, { name, seed, changed, way: "make", text: "" });
    const said = parameters.get(name) ?? "";
    this.made = spec(said, name === "a" ? "image" : "random");
    if (said.startsWith("ref:")) Object.assign(this, { way: "kept", kept: said.slice(4) });
    if (said.startsWith("text:")) Object.assign(this, { way: "type", text: said.slice(5) });
    const over = (on) => (event) => { event.preventDefault(); this.place.classList.toggle("over", on); };
    this.place = h("div", { class: "lines operand", ondragover: over(true), ondragleave: over(false), ondrop: (event) => { over(false)(event); this.take(event.dataTransfer); } });
    this.draw();
  }

  // What a link has of it, for elements of a type.
  said(dtype) {
    if (this.way === "make") return `${this.made.kind}:${this.made.rows}x${this.made.cols}`;
    if (this.way === "kept") return this.kept ? `ref:${this.kept}` : undefined;
    const text = this.way === "type" ? this.text : this.fileText(dtype);
    return text?.trim() && text.length <= LINKED ? `text:${text}` : undefined;
  }

  fileText(dtype) {
    try {
      return this.read && toText(this.read(dtype), LINKED);
    } catch {
      return undefined; // not numbers of that type, as the preview says
    }
  }

  // What was dropped or pasted: a file, or text.
  take(data) {
    const [file] = data.files, text = data.getData("text/plain");
    if (!file && !text) return;
    this.way = file ? "file" : "type";
    if (!file) this.text = text;
    this.draw();
    this.changed();
    if (file) this.open(file);
  }

  async open(file) {
    try {
      this.read = await readFile(file);
      this.file = file.name;
      this.read("f32"); // whether it is a matrix at all
      this.fault = undefined;
    } catch (error) {
      this.read = undefined;
      this.fault = `${file.name}: ${error.message}`;
    }
    this.draw();
    this.changed();
    announce(this.fault ?? `${file.name} is operand ${this.name}`);
  }

  // The matrix, ref:NAME for one that gemmd has, or an error that says what to do.
  matrix(dtype) {
    if (this.way === "make") return generate(this.made.kind, this.made.rows, this.made.cols, dtype, this.seed);
    if (this.way === "type") return parseText(this.text, dtype);
    if (this.way === "kept" && !this.kept) throw new Error(`No named matrix is chosen for ${this.name}.`);
    if (this.way === "kept") return `ref:${this.kept}`;
    if (!this.read) throw new Error(this.fault ?? `Choose, drop or paste a file for ${this.name}.`);
    return this.read(dtype);
  }

  draw() {
    const { name } = this;
    const number = (label, key) => field(label, h("input", { type: "number", min: 1, max: 65536, value: this.made[key], "aria-label": `${label} of ${name}`,
      oninput: (event) => { this.made[key] = Math.round(Number(event.target.value)); this.changed(); } }));
    this.preview = h("div");
    const ways = choice(`Where ${name} comes from`, [["make", "Generate"], ["type", "Type"], ["file", "File"], ["kept", "Kept"]], this.way, (way) => {
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
      kept: () => this.pick(),
    };
    put(this.place, h("div", { class: "between" }, h("h2", { class: "sub" }, `Operand ${name}`), ways), parts[this.way](), this.preview);
  }

  drop() {
    this.about = h("p", { class: "small muted" }, "A .npy, .csv or JSON file, or a picture. It goes to gemmd only.");
    return h("div", { class: "drop" }, field(`File for ${this.name}: choose, drop or paste it`, h("input", { type: "file", accept: ".npy,.csv,.tsv,.txt,.json,image/*", onchange: (event) => event.target.files[0] && this.open(event.target.files[0]) })), this.about);
  }

  // The name and the shape of the file, and whether a link has it.
  tell(dtype) {
    put(this.about, `${this.file}:`); // and not what it was for another type, where it is nothing for this one
    const matrix = this.read(dtype);
    put(this.about, `${this.file}: ${shape(matrix.shape)}, ${matrix.dtype}.${this.said(dtype) ? "" : " The link to this view cannot hold it; kept as a named matrix it is in it."}`);
  }

  // One of the named matrices. `listed` is there when they are.
  pick() {
    const place = h("div", { class: "lines" });
    this.listed = list().then(({ matrices }) => {
      this.kept ??= matrices[0] && refOf(matrices[0]);
      this.facts = (ref) => matrices.find((one) => refOf(one) === ref);
      const options = matrices.map((one) => [refOf(one), `${refOf(one)}: ${shape(one.shape)}, ${one.dtype}`]);
      if (this.kept && !this.facts(this.kept)) options.push([this.kept, this.kept]); // of another page of the list, or gone
      put(place, options.length ? field("Named matrix", select(options, this.kept, (kept) => { this.kept = kept; this.changed(); }, `${this.name}-kept`, `Named matrix for ${this.name}`))
        : h("p", { class: "small muted" }, "Nothing is kept here yet. Keep a result, or send a file in ", h("a", { href: "#/matrices" }, "Matrices"), "."));
      this.changed();
    }).catch((error) => put(place, failure(error)));
    return place;
  }
}

export function show(main, parameters, keep) {
  const state = { op: "matmul", expr: "tanh(a @ b + 1)", kernel: "auto", device: "", dtype: "f32", precision: "fp32" };
  for (const name of Object.keys(state)) if (parameters.get(name)) state[name] = parameters.get(name);
  if (!Object.hasOwn(OPERANDS, state.op)) state.op = "matmul";
  if (!isType(state.dtype)) state.dtype = "f32";
  const named = () => (state.op === "eval" ? OPERANDS.eval.filter((name) => namesIn(state.expr).includes(name)) : OPERANDS[state.op]);
  const changed = () => { keep({ ...state, expr: state.op === "eval" ? state.expr : undefined, ...Object.fromEntries(named().map((name) => [name, operands[name].said(state.dtype)])) }); preview(); };
  const operands = { a: new Operand("a", parameters, 1, () => changed()), b: new Operand("b", parameters, 2, () => changed()) };
  const formula = h("div", { class: "maybe" }), inputs = h("div", { class: "lines" }), settings = h("div", { class: "row" }), result = h("div", { class: "lines" });
  const run = h("button", { type: "submit", class: "main" }, "Run");

  function preview() {
    for (const name of named()) {
      const operand = operands[name];
      try {
        const small = operand.way === "make" && operand.made.rows * operand.made.cols > 1 << 20;
        if (operand.way === "file" && operand.read) operand.tell(state.dtype);
        if (small || operand.way === "kept" || (operand.way === "type" && !operand.text.trim()) || (operand.way === "file" && !operand.read && !operand.fault)) put(operand.preview);
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
      state.op === "eval" ? null : field("Kernel", select([["auto", "auto: gemmd chooses"], ...names], state.kernel, (value) => { state.kernel = value; changed(); }, "kernel")),
      field("Device", select([["", "chosen by gemmd"], ...places], state.device, (value) => { state.device = value; state.kernel = "auto"; changed(); drawSettings(); }, "device")),
      field("Element type", select(DTYPES.includes(state.dtype) ? DTYPES : [...DTYPES, state.dtype], state.dtype, (value) => { state.dtype = value; changed(); }, "dtype")),
      field("Precision", select(["fp32", "ieee", "tf32", "bf16"], state.precision, (value) => { state.precision = value; changed(); }, "precision")));
  }

  function drawInputs() {
    put(formula, state.op === "eval" ? expression() : null);
    put(inputs, named().map((name) => operands[name].place));
    changed();
  }

  function expression() {
    return h("div", { class: "lines" }, field("Expression", h("input", { name: "expr", class: "mono", value: state.expr, required: true, autocomplete: "off", autocapitalize: "off", spellcheck: "false", oninput: (event) => {
      const before = named().join();
      state.expr = event.target.value;
      if (named().join() !== before) put(inputs, named().map((name) => operands[name].place));
      changed();
    } })), h("p", { class: "small muted" }, "As NumPy writes it: + - * / @ **, comparisons, .T, slices, sum mean max min, where, exp log sqrt abs tanh, maximum minimum. Names other than a and b are ",
      h("a", { href: "#/matrices" }, "named matrices"), "."));
  }

  async function go(event) {
    event?.preventDefault();
    run.disabled = true;
    run.textContent = "Running";
    const asked = { ...state }, names = named(); // whatever the form says by the time of the answer
    let raw, rest = [];
    try {
      const query = new URLSearchParams(), given = {};
      await Promise.all(names.map((name) => operands[name].listed));
      for (const name of names) given[name] = operands[name].matrix(asked.dtype);
      const sent = Object.values(given).filter((one) => one instanceof Matrix);
      if (asked.kernel !== "auto") query.set("kernel", asked.kernel);
      if (asked.device) query.set("device", asked.device);
      if (asked.precision !== "fp32") query.set("precision", asked.precision);
      if (sent.some((one) => one.dtype === "bf16")) query.set("dtype", "bf16");
      const request = requestOf(asked, query, given, sent);
      const response = await ask(request.path, { ...request, headers: { Accept: "application/x-npy" } });
      const account = JSON.parse(response.headers.get("Gemmd-Stats"));
      rest = [accountCard(account), commands(asked, query, request.path, given, (name, ref) => operands[name].facts?.(ref) ?? { shape: account.shapes[name] ?? [], dtype: account.dtype, etag: "" })];
      const dims = account.shapes.result;
      if (dims.reduce((a, b) => a * b) > ELEMENTS_MAX) {
        response.body.cancel();
        throw new Error(`The result, ${shape(dims)}, is too large for a page; ask for it with curl.`);
      }
      raw = await response.arrayBuffer();
      const matrix = parseNpy(raw);
      drawResult(matrix, account, request, rest);
      if (result.getBoundingClientRect().top > innerHeight * 0.7) result.scrollIntoView({ behavior: "smooth" });
      announce(`Done: the result is ${shape(matrix.shape)}, by ${account.kernel} on ${account.device}`);
    } catch (error) {
      put(result, card("Result", failure(error), error.at ? h("pre", { tabindex: "0", "aria-label": "Where in the expression" },
        asked.expr, h("b", { class: "caret", "aria-hidden": "true" }, `\n${" ".repeat(error.at - 1)}^`)) : null,
      raw ? h("p", null, h("button", { type: "button", onclick: () => download("result.npy", new Blob([raw])) }, "Download .npy")) : null), rest);
    }
    run.disabled = false;
    run.textContent = "Run";
  }

  function drawResult(matrix, account, request, rest) {
    const kept = h("div", { class: "maybe" }), trouble = h("div", { class: "maybe" }), plan = h("pre", { tabindex: "0", "aria-label": "The plan" });
    put(result,
      card(null, h("div", { class: "between" }, h("h2", null, `Result, ${shape(matrix.shape)}`),
        h("div", { class: "row tight" },
          h("span", { class: "small muted" }, "Download"), [[".npy", () => toNpy(matrix)], [".csv", () => toCsv(matrix)],
            [".svg", async () => (await ask(request.path, { ...request, headers: { Accept: "image/svg+xml" } })).blob()]].map(([kind, make]) =>
            h("button", { type: "button", class: "quiet", "aria-label": `Download ${kind}`, onclick: async () => {
              try {
                download(`result${kind}`, await make());
                put(trouble);
              } catch (error) {
                put(trouble, failure(error));
              }
            } }, kind)))), trouble,
      heatMap(matrix, "the result"), grid(matrix, "the result"),
      account.op === "eval" ? h("details", { ontoggle: () => plan.textContent || ask(`${request.path}${request.path.includes("?") ? "&" : "?"}explain=plan`, { ...request, headers: { Accept: "text/plain" } })
        .then((response) => response.text()).then((text) => put(plan, text.trim()), (error) => put(plan, error.message)) }, h("summary", null, "The plan: which steps compute it"), plan) : null,
      h("form", { class: "row", "aria-label": "Keep the result", onsubmit: async (event) => {
        event.preventDefault();
        const name = event.target.elements.name.value;
        try {
          const row = await write(name, toNpy(matrix), matrix.dtype === "bf16" ? "?dtype=bf16" : "");
          if (!row) return;
          put(kept, h("p", null, `${name} is kept: `, h("a", { href: `#/matrices?name=${refOf(row)}` }, "see it in Matrices"), "."));
          announce(`${name} is kept`);
        } catch (error) {
          put(kept, failure(error));
        }
      } }, nameField("Keep it as"), h("button", null, "Keep")), kept),
      rest);
  }

  put(main, head("Playground", "Operations and expressions on matrices, and where their time went."),
    h("div", { class: "columns wide" },
      h("form", { class: "card", "aria-label": "What to compute", onsubmit: go },
        choice("Operation", OPS, state.op, (op) => { state.op = op; state.kernel = "auto"; drawInputs(); drawSettings(); }),
        formula, inputs, h("details", { open: Boolean(parameters.get("kernel") || parameters.get("device")) }, h("summary", null, "Kernel, device, type and precision"), settings), h("div", { class: "row" }, run)),
      result));
  drawInputs();
  drawSettings();
  // Pasted anywhere but where text is typed: it is the operand that has the focus, or the first.
  const paste = (event) => {
    if (event.target.closest?.("input:not([type=file], [type=number]), textarea, dialog") || named().length === 0) return;
    event.preventDefault();
    const at = named().find((name) => operands[name].place.contains(document.activeElement)) ?? named()[0];
    operands[at].take(event.clipboardData);
  };
  document.addEventListener("paste", paste);
  if (parameters.has("op")) go();
  else put(result, h("div", { class: "card" }, empty("The result appears here: as a picture, as numbers, and with the account of its time.",
    h("button", { type: "button", class: "main", onclick: go }, "Run this product"))));
  return () => document.removeEventListener("paste", paste);
}

// What is asked: matrices go in the body, names of what gemmd has in the address; of an expression all are parts.
function requestOf({ op, expr }, query, given, sent) {
  const address = new URLSearchParams(query);
  let body = sent.length ? new Blob(sent.map(toNpy), { type: "application/x-npy" }) : undefined;
  if (op === "eval") {
    body = new FormData();
    body.set("expr", expr);
  }
  for (const [name, one] of Object.entries(given))
    if (op === "eval") body.set(name, one instanceof Matrix ? toNpy(one) : one);
    else if (!(one instanceof Matrix)) address.set(name, one);
  return { method: "POST", path: `v1/${op}${address.size ? `?${address.toString().replaceAll("%3A", ":")}` : ""}`, body };
}

// The same by other means, with files in place of what was made here. facts: of a named operand.
function commands({ op, expr }, query, path, given, facts) {
  const quoted = `'${expr.replaceAll("'", "'\\''")}'`, url = `'${location.origin}/${path}'`, curl = `curl${keyed() ? ' -u ":$GEMMD_KEY"' : ""}`;
  const pythonOptions = [...query].map(([name, value]) => `, ${name}="${value}"`).join(""), ctlOptions = [...query].map(([name, value]) => ` --${name} ${value}`).join("");
  const each = Object.entries(given).map(([name, one]) => {
    if (one instanceof Matrix) return { name, file: `${name}.npy`, part: `@${name}.npy`, ctl: `${name}.npy`, python: `numpy.load("${name}.npy")` };
    const { shape: dims, dtype, etag } = facts(name, one.slice(4));
    return { name, part: one, ctl: one, python: `gemmd.NamedMatrix("${one.slice(4)}", (${dims.join(", ")}), "${dtype}", "${etag}")` };
  });
  const files = each.filter(({ file }) => file).map(({ file }) => file), all = (text, between) => each.map(text).join(between);
  const lines = op === "eval" ? [`${curl} --form-string expr=${quoted}${all(({ name, part }) => ` -F ${name}=${part}`, "")} ${url} -o result.npy`,
    `${JSON.stringify(expr)}, {${all(({ name, python }) => `"${name}": ${python}`, ", ")}}`, `${quoted}${all(({ name, ctl }) => ` ${name}=${ctl}`, "")}`]
    : [files.length === 0 ? `${curl} -X POST -H 'Accept: application/x-npy' ${url} -o result.npy` : files.length === 1 ? `${curl} --data-binary @${files[0]} ${url} -o result.npy`
      : `cat ${files.join(" ")} | ${curl} --data-binary @- ${url} -o result.npy`, all(({ python }) => python, ", "), all(({ ctl }) => ctl, " ")];
  return card("The same from elsewhere", files.length ? h("p", { class: "small muted" }, "These read the operands from files, which are here: ", each.filter(({ file }) => file).map(({ name, file }) =>
    h("button", { type: "button", class: "quiet", "aria-label": `Download ${file}`, onclick: () => download(file, toNpy(given[name])) }, file))) : null, copyable("curl", lines[0]),
    copyable("Python", `import gemmd, numpy\nclient = gemmd.Client("${location.origin}")\nresult = client.${op}(${lines[1]}${pythonOptions})\nprint(result.account)`),
    copyable("gemmctl", `gemmctl --url ${location.origin} ${op} ${lines[2]}${ctlOptions} -o result.npy`));
}
