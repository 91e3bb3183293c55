// dom.js - elements, figures as text, and the few parts that all views are made of.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function s(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

// What one calls a control: that of the same name takes its place when a part is drawn anew.
const called = (one) => `${one.tagName} ${one.name} ${one.getAttribute("aria-label")} ${one.closest("label")?.firstChild.textContent} ${one.tagName === "BUTTON" || one.tagName === "A" ? one.textContent : ""}`;

const find = (place, name) => [...place.querySelectorAll("a, button, input, select, textarea, summary, [tabindex]")].find((one) => called(one) === name);

// The focus stays on the control that has it, and tables where they are scrolled to.
export function show(place, ...children) {
  const at = document.activeElement, focused = at !== place && place.contains(at) ? called(at) : undefined;
  const scrolled = [...place.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
  place.replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (focused) find(place, focused)?.focus({ preventScroll: true });
  place.querySelectorAll(".scroll").forEach((box, i) => {
    if (scrolled[i] && box.scrollWidth > 0) [box.scrollLeft, box.scrollTop] = scrolled[i]; // asked for its width it is laid out, and can be scrolled
  });
  return place;
}

// ---- Figures. ----

const group = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

// Three digits: more would be noise.
export function figure(value) {
  if (value === undefined || value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e15) return value.toExponential(1);
  if (size >= 999.5) return group.format(Math.round(value));
  return size >= 0.001 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
}

export function time(us) {
  if (us === undefined || us === null || !Number.isFinite(us)) return "–";
  for (const [size, unit] of [[86400e6, "days"], [3600e6, "h"], [60e6, "min"]])
    if (us >= 2 * size) return `${figure(us / size)} ${unit}`;
  if (us >= 999.5e3) return `${figure(us / 1e6)} s`;
  return us >= 999.5 ? `${figure(us / 1000)} ms` : `${figure(us)} µs`;
}

export function bytes(n) {
  if (!Number.isFinite(n)) return "–";
  for (const [size, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
    if (n >= size) return `${figure(n / size)} ${unit}`;
  return `${n} B`;
}

export function shape(dims) {
  return (dims ?? []).join(" × ");
}

// ---- Parts. ----

export function head(title, words) {
  return h("div", { class: "head" }, h("h1", null, title), h("p", null, words));
}

export function card(title, ...children) {
  return h("section", { class: "card", "aria-label": title ?? undefined }, title ? h("h2", null, title) : null, children);
}

export function field(label, control) {
  return h("label", null, label, control);
}

export function select(options, value, onchange, name, said) {
  const list = options.map((one) => (Array.isArray(one) ? one : [one, one]));
  const element = h("select", { onchange: () => onchange?.(element.value), name, "aria-label": said },
    list.map(([key, text]) => h("option", { value: key }, text)));
  element.value = list.some(([key]) => key === value) ? value : list[0]?.[0] ?? "";
  return element;
}

// A row of buttons of which one is pressed.
export function choice(label, options, value, onchange) {
  const buttons = options.map(([key, text]) =>
    h("button", { type: "button", "aria-pressed": String(key === value), onclick: () => {
      for (const one of buttons) one.setAttribute("aria-pressed", String(one === buttons[options.findIndex(([k]) => k === key)]));
      onchange(key);
    } }, text));
  return h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, label), buttons);
}

export function figures(pairs) {
  return h("dl", { class: "figures" }, pairs.filter(Boolean).map(([name, value, unit]) =>
    h("div", null, h("dt", null, name), h("dd", null, value, unit ? h("small", null, ` ${unit}`) : null))));
}

// columns: [title, is a number, wraps]. A cell is text or an element. The first cell names its row.
export function table(caption, columns, rows, chosen) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, h("table", null,
    h("caption", null, h("span", null, caption)),
    h("thead", null, h("tr", null, columns.map(([title, n]) => h("th", { scope: "col", class: n ? "n" : null }, title)))),
    h("tbody", null, rows.map((cells, r) => h("tr", { class: chosen?.(r) ? "chosen" : null }, cells.map((cell, c) =>
      c === 0 ? h("th", { scope: "row" }, cell)
        : h("td", { class: columns[c][1] ? "n" : columns[c][2] ? "wrap" : null }, cell)))))));
}

export function failure(error) {
  const words = error?.detail ?? error?.message ?? String(error);
  announce(words);
  return h("p", { class: "error", role: "alert" }, words);
}

export const again = (act) => h("div", null, h("button", { type: "button", onclick: act }, "Try again"));

// Asks before what cannot be taken back.
export function sure(question, yes) {
  const at = document.activeElement;

  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "sure-title" }, h("form", { method: "dialog" }, h("h2", { id: "sure-title" }, question),
      h("div", { class: "row" }, h("button", { value: "yes", class: "main" }, yes), h("button", { value: "", autofocus: true }, "Cancel"))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (!at.isConnected) find(document, called(at))?.focus({ preventScroll: true }); // it was drawn anew meanwhile
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

export function empty(words, ...actions) {
  return h("div", { class: "empty" }, h("p", null, words), actions);
}

// Also read out to those who do not see the page change.
export function announce(words) {
  document.getElementById("said").textContent = words;
}

export function copyable(name, text) {
  const button = h("button", { type: "button", class: "quiet", "aria-label": `Copy the ${name} line`, onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block);
      button.textContent = "Selected";
    }
    announce(`${name}: ${button.textContent}`);
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  } }, "Copy");
  const block = h("pre", { tabindex: "0", "aria-label": `${name} line` }, text);
  return h("div", null, h("h3", { class: "small muted" }, name), h("div", { class: "copyable" }, block, button));
}

export function download(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// ---- What is told where the pointer is. ----

let tip;
export function tell(event, words) {
  tip ??= document.body.appendChild(h("div", { class: "tip", "aria-hidden": "true", hidden: true }));
  tip.hidden = !words;
  if (!words) return;
  tip.textContent = words;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18}px`;
}

export function tells(element, words) {
  element.addEventListener("pointermove", (event) => tell(event, words()));
  element.addEventListener("pointerleave", () => tell());
  return element;
}
