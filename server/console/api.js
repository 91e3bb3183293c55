// api.js - asks the daemon. The key, where one is needed, is asked for once and kept for the tab.
import { download, failure, h, show } from "./dom.js";

const KEPT = "gemmd-key";

export class Refused extends Error {
  constructor(status, code, detail, at) {
    super(detail);
    Object.assign(this, { status, code, detail, at }); // at: the character of an expression, from 1
  }
}

let asking;
function askForKey(why) {
  asking ??= new Promise((resolve) => {
    const input = h("input", { type: "password", autocomplete: "off", required: true, name: "key" });
    const dialog = h("dialog", { "aria-labelledby": "key-title" }, h("form", { method: "dialog", onsubmit: () => {
      sessionStorage.setItem(KEPT, input.value.replace(/[^\x21-\x7e]/g, "")); // a header cannot have what is copied along unseen
    } },
    h("h2", { id: "key-title" }, "This gemmd wants a key"),
    h("p", { class: "muted" }, why),
    h("label", null, "Key (ID.SECRET)", input),
    h("p", { class: "small muted" }, "It is kept with this tab, for as long as the browser remembers the tab."),
    h("button", { class: "main" }, "Go on")));
    dialog.addEventListener("close", () => {
      dialog.remove();
      asking = undefined;
      resolve(sessionStorage.getItem(KEPT));
    });
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
  return asking;
}

async function problem(response) {
  const text = await response.text();
  try {
    const { code, detail, error, at } = JSON.parse(text);
    return new Refused(response.status, code, detail ?? error ?? text, at);
  } catch {
    return new Refused(response.status, "", `gemmd answered ${response.status} and said nothing more.`);
  }
}

export const keyed = () => sessionStorage.getItem(KEPT) !== null;
export const forgetKey = () => sessionStorage.removeItem(KEPT);

// The response, where its status is 2xx; else throws Refused.
export async function ask(path, { method = "GET", body, headers = {}, signal } = {}) {
  for (;;) {
    const key = sessionStorage.getItem(KEPT);
    let response;
    try {
      // Without credentials the browser does not ask for a password of its own.
      response = await fetch(path, { method, body, signal, credentials: "omit",
        headers: key ? { ...headers, Authorization: `Bearer ${key}` } : headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused(0, "unreachable", "gemmd does not answer. Is it still running?");
    }
    if (response.ok) return response;
    const refused = await problem(response);
    if (response.status !== 401) throw refused;
    if (sessionStorage.getItem(KEPT) !== key) continue; // asked for meanwhile
    sessionStorage.removeItem(KEPT);
    if (!(await askForKey(key ? "That key is not known here." : "Whoever runs it has one for you."))) throw refused;
  }
}

export async function get(path, options) {
  return (await ask(path, options)).json();
}

// A link to what the API draws or writes. A link has no key to show, so where one is needed the page fetches it, and it is downloaded.
export function linkTo(path, name, words) {
  const said = h("span");
  return [h("a", { href: path, onclick: async (event) => {
    if (!keyed()) return;
    event.preventDefault();
    await ask(path).then(async (response) => { download(name, await response.blob()); show(said); }).catch((error) => show(said, failure(error)));
  } }, words), said];
}

let devicesKept, kernelsKept;
export function devices() {
  devicesKept ??= get("v1/devices").catch((error) => { devicesKept = undefined; throw error; });
  return devicesKept;
}
export function kernels() {
  kernelsKept ??= get("v1/kernels").then((all) => all.kernels).catch((error) => { kernelsKept = undefined; throw error; });
  return kernelsKept;
}

// Names of the kernels of an operation that a device has, in the order of the lesson.
export async function kernelsOf(op, device) {
  const all = (await kernels()).filter((one) => one.op === op && (!device || one.devices.some((name) => name === device || name.startsWith(`${device}:`))));
  return [...new Set(all.map((one) => one.name))];
}

export const requests = (query = "limit=1000") => get(`v1/requests?${query}`);
