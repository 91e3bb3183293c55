// app.js - which view is shown, and the link that brings it back: #/VIEW?NAME=VALUE&...
import { devices, forgetKey, keyed } from "./api.js";
import { failure, h, show, tell } from "./dom.js";

const VIEWS = [
  ["playground", "Playground"], ["matrices", "Matrices"], ["compare", "Compare"], ["explain", "Explain"], ["tour", "Tour"],
  ["roofline", "Roofline"], ["waterfall", "Waterfall"], ["live", "Live"],
];

const main = document.getElementById("main"), forget = document.getElementById("forget");
let shown, leave, turn = 0, later;

function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const view = VIEWS.some(([name]) => name === path) ? path : "playground";
  return { view, parameters: new URLSearchParams(query) };
}

// Makes the link say what the view shows, without a step in the browser's history.
function keep(view, state) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state))
    if (value !== undefined && value !== null && value !== "") query.set(name, value);
  const text = query.toString().replaceAll("%3A", ":").replaceAll("%2C", ",");
  clearTimeout(later);
  try {
    history.replaceState(null, "", `#/${view}${text ? `?${text}` : ""}`);
  } catch { // Firefox and Safari allow it only so often, as when one types fast
    later = setTimeout(keep, 2000, view, state);
  }
}

async function go() {
  const { view, parameters } = place();
  const mine = ++turn;
  leave?.();
  leave = undefined;
  clearTimeout(later);
  tell();
  describe();
  for (const dialog of document.querySelectorAll("dialog:not([aria-labelledby=key-title])")) dialog.close(); // that of a view that is left
  for (const link of document.querySelectorAll("#views a"))
    if (link.hash === `#/${view}`) {
      link.setAttribute("aria-current", "page");
      // scrollIntoView would have Tab go on from the link, in some releases of Chromium.
      link.closest("ul").scrollLeft = link.offsetLeft - link.offsetWidth;
    } else link.removeAttribute("aria-current");
  main.setAttribute("aria-label", VIEWS.find(([name]) => name === view)[1]); // said when it gets the focus
  document.title = `${VIEWS.find(([name]) => name === view)[1]} · gemmd`;
  try {
    const module = await import(`./views/${view}.js`);
    if (mine !== turn) return;
    show(main);
    main.dataset.view = view;
    const left = module.show(main, parameters, (state) => mine === turn && keep(view, state));
    leave = typeof left === "function" ? left : undefined;
  } catch (error) {
    if (mine === turn) show(main, failure(error));
  }
  if (shown && (shown !== view || document.activeElement === document.body)) main.focus({ preventScroll: true });
  scrollTo(0, 0);
  shown = view;
}

async function describe() {
  const line = document.getElementById("device");
  try {
    const { devices: all } = await devices();
    const one = all.find((device) => device.default) ?? all[0];
    const gpu = all.some((device) => device.kind === "cuda");
    line.textContent = `${one.name} · ${one.model}${gpu ? "" : " · no GPU here: kernels for GPUs are simulated"}`;
    line.title = line.textContent;
  } catch (error) {
    line.textContent = error.message;
  }
  forget.hidden = !keyed();
}

show(document.getElementById("views"), VIEWS.map(([name, title]) => h("li", null, h("a", { href: `#/${name}` }, title))));
forget.addEventListener("click", () => { forgetKey(); location.reload(); });
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
// A file that is dropped beside its place does not replace the page.
for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.target.closest?.("input, textarea") || event.preventDefault());
addEventListener("hashchange", go);
document.getElementById("views").addEventListener("click", (event) => { if (event.target.hash === location.hash) go(); }); // again: no hash changes
go();
