// explanation.js - how a kernel accesses memory: its source coloured by cost, and one warp's request as a picture.
import { ask, get, linkTo } from "./api.js";
import { card, figure, figures, h, s, tells } from "./dom.js";

export function explain(op, kernel, { rows, cols, inner, dtype, gpu }, signal) {
  const query = new URLSearchParams({ format: "json", kernel });
  if (op === "matmul") {
    query.set("shape_a", `${rows}x${inner}`);
    query.set("shape_b", `${inner}x${cols}`);
  } else query.set("shape", `${rows}x${cols}`);
  if (dtype) query.set("dtype", dtype);
  if (gpu) query.set("gpu", gpu);
  return get(`v1/explain/${op}?${query}`, { signal }).then((report) => Object.assign(report, { link: `v1/explain/${op}?${query}`.replace("format=json", "format=svg") }));
}

// ---- Sites. ----

export const isShared = (site) => site.kind.startsWith("shared");
export const unitsOf = (site) => (isShared(site) ? site.wavefronts_per_request : site.sectors_per_request);
export const idealOf = (site) => (isShared(site) ? site.ideal_wavefronts_per_request : site.ideal_sectors_per_request);

// 0: as good as it gets; 1: some waste; 2: much.
export function costOf(site) {
  const ratio = unitsOf(site) / idealOf(site);
  return ratio <= 1.1 ? 0 : ratio <= 4 ? 1 : 2;
}

export function siteWords(site) {
  const unit = isShared(site) ? "wavefront" : "sector", units = unitsOf(site);
  return `${figure(units)} ${unit}${units === 1 ? "" : "s"}, ideal ${figure(idealOf(site))}`;
}

// Where another kernel wastes most: the same kind of access here, so that both can be compared.
export function likeSite(report, kind) {
  const worst = worstSite(report), like = report.sites.findIndex((site) => site.kind === kind);
  return like >= 0 && costOf(report.sites[worst]) === 0 ? like : worst;
}

// The site that costs most beyond its ideal.
export function worstSite(report) {
  const waste = (site) => (unitsOf(site) / idealOf(site) - 1) * site.requests;
  return report.sites.reduce((worst, site, i, all) => (waste(site) > waste(all[worst]) * 1.001 ? i : worst), 0);
}

// ---- The source. ----

const texts = new Map();
function textOf(file) {
  const name = file.replace(/^.*kernels\/cuda\//, "").replaceAll("/", ".");
  if (!texts.has(name)) texts.set(name, ask(`console/kernels/${name}`).then((response) => response.text()).catch(() => undefined));
  return texts.get(name);
}

// Of each file the lines around its accesses; of a file that is not here those lines alone.
export async function listing(report, chosen, choose) {
  const files = [...new Set(report.sites.map((site) => site.file))];
  return Promise.all(files.map(async (file) => {
    const sites = report.sites.map((site, i) => [site, i]).filter(([site]) => site.file === file), text = await textOf(file);
    const lines = text ? text.split("\n") : [], first = Math.max(1, Math.min(...sites.map(([site]) => site.line)) - 12), last = Math.min(lines.length, Math.max(...sites.map(([site]) => site.line)) + 6);
    const wanted = text ? Array.from({ length: last - first + 1 }, (_, i) => first + i) : [...new Set(sites.map(([site]) => site.line))];
    return h("div", { class: "lines" }, h("p", { class: "small muted mono" }, file), h("div", { class: "source", tabindex: "0", role: "region", "aria-label": `Source of ${file}` }, wanted.map((number) => {
      const here = sites.filter(([site]) => site.line === number), cost = here.length ? Math.max(...here.map(([site]) => costOf(site))) : undefined;
      const style = cost === undefined ? "" : `cost${cost}`, line = h("code", { class: style }, h("b", null, String(number)), h("span", null, lines[number - 1] ?? here[0]?.[0].source ?? ""));
      return here.length === 0 ? line : [line, h("div", { class: `tags ${style}` }, here.map(([site, i]) =>
        h("button", { type: "button", class: "site", "aria-pressed": String(i === chosen), onclick: () => choose(i) }, `${site.kind.replace("_", " ")} ${site.memory}: ${siteWords(site)}`)))];
    })));
  }));
}

// ---- The picture: lanes to sectors, or lanes to banks. ----

const WIDE = 704, LANE = 22;
const SECTOR = 32, WORD = 4, BANKS = 32;

export function picture(site, example) {
  const { words, under, svg } = isShared(site) ? banks(site, example) : sectors(site, example);
  return h("div", { class: "lines" }, h("p", { class: "shown" }, words), h("div", { class: "warp" }, svg), h("p", { class: "small muted" }, under, " ",
    h("button", { type: "button", class: "quiet", onclick: () => enlarge(site, example) }, "Larger")));
}

// Beside others, or on a phone, the lanes are too small for their numbers.
function enlarge(site, example) {
  const { words, under, svg } = isShared(site) ? banks(site, example) : sectors(site, example);
  const dialog = h("dialog", { class: "large", "aria-labelledby": "large-title", onclose: () => dialog.remove() }, h("form", { method: "dialog" }, h("h2", { id: "large-title" }, words),
    h("div", { class: "warp", tabindex: "0", role: "region", "aria-label": "The picture" }, svg), h("p", { class: "small muted" }, under), h("div", null, h("button", { class: "main" }, "Close"))));
  document.body.append(dialog);
  dialog.showModal();
}

function lanesRow(active, y) {
  return active.map((on, lane) => [s("rect", { class: on ? "cell used" : "cell idle", x: lane * LANE, y, width: LANE - 2, height: 18, rx: 3 }), s("text", { class: on ? "on" : "muted", x: lane * LANE + 10, y: y + 13 }, String(lane))]);
}

function base(height, words) {
  return s("svg", { class: "chart lanes", viewBox: `-2 0 ${WIDE + 4} ${height}`, width: WIDE, height, role: "img", "aria-label": words });
}

function sectors(site, example) {
  const at = example.addresses, size = example.bytes_per_lane, touched = new Map();
  at.forEach((address) => {
    if (address === null) return;
    for (let byte = address; byte < address + size; byte++) {
      const sector = Math.floor(byte / SECTOR);
      if (!touched.has(sector)) touched.set(sector, new Set());
      touched.get(sector).add(byte);
    }
  });
  const list = [...touched.keys()].sort((a, b) => a - b), used = [...touched.values()].reduce((sum, set) => sum + set.size, 0), part = list.length ? (100 * used) / (list.length * SECTOR) : 0;
  const stores = site.kind !== "global_load", words = `${figure(part)} % of ${stores ? "its sectors is written" : "what is fetched is used"}: ${list.length} sector${list.length === 1 ? "" : "s"} of 32 bytes for ${used} bytes.`;
  const svg = base(100, words), gaps = list.filter((sector, i) => i > 0 && sector > list[i - 1] + 1).length, gap = gaps ? Math.min(10, 200 / gaps) : 0;
  const wide = (WIDE - gaps * gap) / Math.max(1, list.length), places = new Map();
  let x = 0;
  list.forEach((sector, i) => {
    if (i > 0 && sector > list[i - 1] + 1) x += gap;
    places.set(sector, x);
    x += wide;
  });
  const where = (byte) => places.get(Math.floor(byte / SECTOR)) + ((((byte % SECTOR) + SECTOR) % SECTOR) / SECTOR) * wide;
  at.forEach((address, lane) => { if (address !== null) svg.append(s("line", { class: "wire", x1: lane * LANE + 10, y1: 20, x2: where(address) + Math.min(wide, (size / SECTOR) * wide) / 2, y2: 70 })); });
  svg.append(...lanesRow(at.map((address) => address !== null), 1).flat());
  for (const sector of list) {
    const left = places.get(sector), step = Math.min(size, WORD) || WORD;
    const group = s("g", null, s("rect", { class: "waste", x: left + 0.5, y: 70, width: Math.max(1, wide - 1), height: 26 }));
    for (let byte = sector * SECTOR; byte < (sector + 1) * SECTOR; byte += step)
      if (touched.get(sector).has(byte)) group.append(s("rect", { class: "used cell", x: where(byte), y: 70, width: (step / SECTOR) * wide, height: 26 }));
    group.append(s("rect", { class: "bound", x: left + 0.5, y: 70, width: Math.max(1, wide - 1), height: 26 }));
    svg.append(tells(group, () => `sector at byte ${sector * SECTOR} of ${site.memory}: ${touched.get(sector).size} of 32 bytes are ${stores ? "written" : "used"}`));
  }
  const span = list.length ? (list[list.length - 1] - list[0] + 1) * SECTOR : 0;
  const under = `${site.memory}, from byte ${list.length ? list[0] * SECTOR : 0}: ${list.length === 1 ? "one sector" : `${list.length} sectors within ${figure(span)} bytes`}${gaps ? ", with gaps between them" : ""}. Above: the lanes. ${stores ? "Blue: written; grey: the rest of these sectors." : "Blue: used; grey: fetched and not used."}`;
  return { words, under, svg };
}

function banks(site, example) {
  const rows = new Map(), words = new Array(BANKS).fill(0), active = example.addresses.map((address) => address !== null);
  example.addresses.forEach((address, lane) => {
    if (address === null) return;
    for (let word = Math.floor(address / WORD); word * WORD < address + example.bytes_per_lane; word++) {
      const row = Math.floor(word / BANKS), bank = word - row * BANKS;
      if (!rows.has(row)) rows.set(row, new Map());
      if (!rows.get(row).has(bank)) { rows.get(row).set(bank, []); words[bank]++; }
      rows.get(row).get(bank).push(lane);
    }
  });
  const list = [...rows.keys()].sort((a, b) => a - b), most = Math.max(1, ...words), cell = list.length > 12 ? 13 : 20;
  const used = words.filter((n) => n > 0).length;
  const conflicts = site.verdict.endsWith("bank conflict"), passes = unitsOf(site), wide = example.bytes_per_lane > WORD && passes > 1 && costOf(site) === 0;
  const said = wide ? `${figure(passes)} passes, the least for ${example.bytes_per_lane} bytes a lane: in each a bank gives one word`
    : most === 1 ? (conflicts ? "this warp takes one pass; others have conflicts" : "no bank has two words to give: one pass")
      : conflicts ? `${used} of 32 banks ${used === 1 ? "is" : "are"} used, and one has ${most} words to give, one after the other`
        : `a bank has ${most} words to give, but compilers load neighbouring words at once, as vectors, which has no conflict`;
  const height = 22 + list.length * cell, svg = base(height, `${said}. ${siteWords(site)}`);
  for (let bank = 0; bank < BANKS; bank++) svg.append(s("text", { class: "muted", x: bank * LANE + 10, y: 12 }, String(bank)));
  list.forEach((row, i) => {
    for (let bank = 0; bank < BANKS; bank++) {
      const lanes = rows.get(row).get(bank), x = bank * LANE, y = 20 + i * cell;
      const box = s("g", null, s("rect", { class: !lanes ? "cell idle" : conflicts && words[bank] > 1 ? "cell conflict" : "cell used", x, y, width: LANE - 2, height: cell - 2, rx: 2 }), lanes ? s("text", { class: "on", x: x + 10, y: y + cell / 2 + 2.5 }, lanes.length > 1 ? `${lanes[0]}+` : String(lanes[0])) : null);
      svg.append(lanes ? tells(box, () => `bank ${bank}, word ${row * BANKS + bank} of ${site.memory}: lane${lanes.length > 1 ? "s" : ""} ${lanes.join(", ")}${words[bank] > 1 ? `; the bank has ${words[bank]} words to give` : ""}`) : box);
    }
  });
  const under = `The 32 banks of shared memory; in the cells the lanes that want that word, ${active.filter(Boolean).length} lanes of ${example.bytes_per_lane} bytes. ${conflicts ? "Blue: alone in its bank. Orange: words of one bank, one after the other." : "Blue: no lane waits for another."}`;
  return { words: `${said[0].toUpperCase()}${said.slice(1)}.`, under, svg };
}

// ---- One kernel, whole. ----

export function totalsOf(report) {
  const t = report.totals;
  return figures([
    t.global_sectors_ratio !== undefined && ["Sectors, times the fewest", figure(t.global_sectors_ratio), "×"],
    t.shared_wavefronts > 0 && ["Shared passes, times ideal", figure(t.shared_wavefronts / t.shared_wavefronts_ideal), "×"],
    t.occupancy && ["Occupancy", figure(t.occupancy.percent), `% by ${t.occupancy.limited_by}`],
    t.executed_intensity !== undefined && ["Operations a byte moved", figure(t.executed_intensity)],
  ]);
}

// choose(i): another site. warp: which of the examples.
export function kernelCard(report, site, warp, choose, focus) {
  const chosen = report.sites[site], list = examplesOf(chosen), example = list[Math.min(warp, list.length - 1)], source = h("div", { class: "lines" }, h("p", { class: "muted small" }, "Reading the source"));
  listing(report, site, choose).then((parts) => {
    source.replaceChildren(...parts);
    const here = source.querySelector("[aria-pressed=true]"), box = here?.closest(".source");
    if (box) box.scrollTop += here.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 4;
    if (focus) here?.focus({ preventScroll: true });
  });
  return card(`${report.op} ${report.kernel}`, h("div", { class: "lesson-text small-lesson" }, [report.problem, report.cure, capital(report.totals.roofline.place)].filter(Boolean).map((words) => h("p", null, marked(words)))), totalsOf(report),
    h("div", { class: "lines" }, h("h3", null, `${chosen.kind.replace("_", " ")} of ${chosen.memory}, line ${chosen.line}`), h("p", { class: "small muted" }, `Block ${example.block.join(", ")}, warp ${example.warp}: ${chosen.verdict}`), picture(chosen, example)),
    source, h("p", { class: "small" }, linkTo(report.link, `${report.op}-${report.kernel}.svg`, `All pictures of ${report.kernel} as SVG`)));
}

export function examplesOf(site) {
  return site.warps?.length ? site.warps : [site.example];
}

// Names in `backticks` as code.
export function marked(words) {
  return words.split("`").map((part, i) => (i % 2 ? h("code", null, part) : part));
}

const capital = (words) => (words ? `${words[0].toUpperCase()}${words.slice(1)}.`.replace("..", ".") : words);
