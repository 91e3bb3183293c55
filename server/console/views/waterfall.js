// waterfall.js - where the time of one request went, of the last 200, and of those that shared a device's streams.
import { linkTo, requests } from "../api.js";
import { STAGES, STAGE_WORDS, accountCard, legend, stageName } from "../account.js";
import { card, choice, empty, failure, figure, h, head, s, shape, show as put, table, time } from "../dom.js";
import { axis, fits, frame, load, reachable } from "../plot.js";
import { traffic } from "../traffic.js";

const MODES = [["last", "The last 200"], ["streams", "Streams"], ["one", "One request"]];
const LAST = 200, ROW = 15;

const words = (one) => `${one.account.op} ${one.account.kernel} on ${one.account.device}, ${shape(one.account.shapes.result)}\n${time(one.account.us.total)} in all, by ${one.client}\n${STAGES.filter((stage) => one.account.us[stage] !== undefined).map((stage) => `${stage} ${time(one.account.us[stage])}`).join(", ")}`;
// Requests of one trace have the same id, and after a restart numbers begin again.
export const requestLink = (one) => `#/waterfall?id=${encodeURIComponent(one.account.id)}&number=${one.number}`;
const open = (one) => { location.hash = requestLink(one); };
const end = (one) => one.arrived_us + one.account.us.total;

export function show(main, parameters, keep) {
  const state = { mode: MODES.some(([mode]) => mode === parameters.get("mode")) ? parameters.get("mode") : "last", id: parameters.get("id") ?? "", number: Number(parameters.get("number")) || undefined, client: parameters.get("client") ?? "" };
  const [from, to] = ["from", "to"].map((name) => parseFloat(parameters.get(name)));
  if (from < to) Object.assign(state, { from, to });
  if (state.id) state.mode = "one";
  const place = h("div", { class: "lines" }), whose = h("div", { class: "maybe" });
  state.scale = parameters.get("scale") === "own" ? "own" : "one";
  let ends = [], over = false;

  put(main, head("Waterfall", "Each request as a line of its stages: what it waited for, and for how long."),
    h("div", { class: "row" }, choice("What to show", MODES, state.mode, (mode) => { state.mode = mode; state.id = ""; draw(); }),
      h("button", { type: "button", onclick: () => draw() }, "Refresh"), h("button", { type: "button", onclick: more }, "Make some traffic")), whose, place);

  async function more(event) {
    event.target.disabled = true;
    await traffic().catch((error) => put(place, failure(error)));
    event.target.disabled = false;
    state.from = state.to = undefined;
    draw();
  }

  async function draw() {
    keep({ mode: state.mode === "last" || state.id ? undefined : state.mode, scale: state.mode === "last" && state.scale === "own" ? "own" : undefined, id: state.id, number: state.id ? state.number : undefined, client: state.id ? undefined : state.client, from: state.from, to: state.to });
    ends.forEach((stop) => stop());
    ends = [];
    try {
      const [d3, { requests: every }] = await Promise.all([load(), requests()]);
      if (over) return;
      put(whose, state.client && !state.id ? h("p", { class: "note" }, `Only requests of ${state.client}. `, h("button", { type: "button", class: "quiet", onclick: () => { state.client = ""; draw(); } }, "Show those of all")) : null);
      const list = state.client && !state.id ? every.filter((one) => one.client === state.client) : every;
      if (list.length === 0) put(place, h("div", { class: "card" }, empty(every.length ? `None of the last requests is of ${state.client}.` : "No request was answered yet. Run something in the playground, or make some traffic.", h("button", { type: "button", class: "main", onclick: more }, "Make some traffic"))));
      else ({ last: drawLast, streams: drawStreams, one: drawOne })[state.mode](d3, list);
    } catch (error) {
      put(place, failure(error));
    }
  }

  function chart(label, height, paint) {
    const box = h("div");
    ends.push(fits(box, (width) => put(box, paint(width, height, label))));
    return box;
  }

  // ---- The last ones, each from its own arrival. ----

  function drawLast(d3, all) {
    const list = all.slice(-LAST).reverse(), longest = Math.max(...list.map((one) => one.account.us.total));
    const label = `The last ${list.length} requests, the newest first; the longest took ${time(longest)}`;
    put(place, card(null, h("div", { class: "between" }, legend(STAGES.map((stage) => `s-${stage}`), STAGES.map(stageName)), choice("Scale", [["one", "One clock"], ["own", "Shares of each"]], state.scale, (scale) => { state.scale = scale; draw(); })),
      chart(label, 40 + list.length * ROW, (width, height) => {
        const left = width < 560 ? 104 : 210, svg = frame(width, height, label), own = state.scale === "own", x = d3.scale.linear().domain([0, own ? 100 : longest]).range([left, width - 14]);
        axis(d3, svg, x, "top", { y: 28, size: 0, ticks: width < 560 ? 3 : 6, format: (n) => (own ? `${n} %` : n ? time(n) : "0") });
        const rows = list.map((one, i) => {
          const top = 32 + i * ROW, name = left < 200 ? `${one.account.op} ${one.number}` : `${one.account.op} ${one.account.kernel} ${shape(one.account.shapes.result)}`;
          return s("g", { class: "pick" }, s("rect", { class: "hit", x: 0, y: top, width, height: ROW }), s("text", { x: left - 8, y: top + 11, "text-anchor": "end", class: "muted" }, name.length > 34 ? `${name.slice(0, 33)}…` : name),
            bars(one, own ? (us) => x((100 * us) / one.account.us.total) : x, top + 2, ROW - 4, one.arrived_us));
        });
        svg.append(...rows);
        reachable(svg, rows, (i) => words(list[i]), (i) => open(list[i]));
        return svg;
      }),
      h("p", { class: "small muted" }, "A dashed outline is the time on the device, where its stages are not measured. ", linkTo("v1/requests/waterfall.svg?limit=200", "waterfall.svg", "The last 200 as SVG"), ".")), byClient(all));
  }

  // Who waited, and for how long: the slowest client first.
  function byClient(all) {
    const clients = new Map();
    for (const one of all) clients.set(one.client, [...(clients.get(one.client) ?? []), one]);
    const rows = [...clients].map(([name, list]) => ({ name, n: list.length, total: middle(list.map((one) => one.account.us.total)), wait: middle(list.map((one) => one.account.us.queue ?? 0)), slowest: list.reduce((a, b) => (a.account.us.total > b.account.us.total ? a : b)) }));
    rows.sort((a, b) => b.total - a.total);
    return card("By client", table("Medians over the last accounts, the slowest client first", [["Client"], ["Requests", true], ["Total", true], ["Waiting", true], ["Its slowest", true]],
      rows.map((row) => [clientLink(row.name), figure(row.n), time(row.total), time(row.wait), h("a", { href: requestLink(row.slowest) }, time(row.slowest.account.us.total))])));
  }

  // ---- Streams: what was on which, at one time. ----

  function drawStreams(d3, all) {
    const list = all.filter((one) => one.ran).sort((a, b) => a.ran.start_us - b.ran.start_us);
    if (list.length === 0) return put(place, h("div", { class: "card" }, empty("No request has had a device yet.")));
    const [from, to] = state.from < state.to ? [state.from, state.to] : burst(list);
    const streams = [...new Set(list.map(streamOf))].sort(), seen = list.filter((one) => one.ran.start_us <= to && one.ran.start_us + one.ran.us >= from);
    const label = `${seen.length} job${seen.length === 1 ? "" : "s"} on ${new Set(seen.map(streamOf)).size} streams within ${time(to - from)}`;
    const move = (a, b) => () => { state.from = Math.max(0, Math.round(from + (to - from) * a)); state.to = Math.max(state.from + 10, Math.round(from + (to - from) * b)); draw(); };
    put(place, card(null, h("div", { class: "between" }, h("p", { class: "muted" }, label), h("div", { class: "row tight" },
      [["Earlier", -0.5, 0.5], ["Later", 0.5, 1.5], ["Closer", 0.25, 0.75], ["Wider", -0.5, 1.5]].map(([name, a, b]) => h("button", { type: "button", onclick: move(a, b) }, name)),
      h("button", { type: "button", onclick: () => { state.from = state.to = undefined; draw(); } }, "Busiest burst"))),
    chart(label, 44 + streams.length * 46, (width, height) => {
      const left = width < 560 ? 108 : 150, svg = frame(width, height, label), x = d3.scale.linear().domain([from, to]).range([left, width - 14]).clamp(true);
      axis(d3, svg, d3.scale.linear().domain([0, to - from]).range(x.range()), "top", { y: 28, size: 0, ticks: width < 560 ? 3 : 6, format: (us) => (us ? `+${time(us)}` : "0") });
      streams.forEach((name, i) => {
        svg.append(s("rect", { x: left, y: 36 + i * 46, width: width - left - 14, height: 38, rx: 4, class: "stream" }), s("text", { x: left - 8, y: 59 + i * 46, "text-anchor": "end" }, name));
      });
      const marks = seen.map((one) => {
        const top = 39 + streams.indexOf(streamOf(one)) * 46, group = s("g", { class: "pick" }, s("rect", { class: "job", x: x(one.ran.start_us), y: top, width: Math.max(1, x(one.ran.start_us + one.ran.us) - x(one.ran.start_us)), height: 32, rx: 2 }));
        for (const span of one.stages)
          if (["h2d", "prepare", "kernel", "d2h"].includes(span.stage)) group.append(s("rect", { class: `s-${span.stage}`, x: x(span.start_us), y: top, width: Math.max(0.5, x(span.start_us + span.us) - x(span.start_us)), height: 32 }));
        return group;
      });
      svg.append(...marks);
      reachable(svg, marks, (i) => words(seen[i]), (i) => open(seen[i]));
      return svg;
    }), legend(["s-h2d", "s-prepare", "s-kernel", "s-d2h", "job"], [...["h2d", "prepare", "kernel", "d2h"].map(stageName), "on the device, in none of these"]),
    h("p", { class: "small muted" }, "Where a copy of one stream lies above a kernel of another, they overlap. A cpu has one stream; small jobs run beside it on the event threads. ", linkTo(`v1/requests/streams.svg?limit=1000&from_us=${Math.max(0, Math.floor(from))}&to_us=${Math.ceil(to)}`, "streams.svg", "This picture as SVG"), "."),
    table("The jobs that are shown", [["Job"], ["Stream"], ["Began", true], ["On the device", true], ["Waited", true]], seen.slice(0, 60).map((one) => [
      h("a", { href: requestLink(one) }, `${one.account.op} ${one.number}`), streamOf(one), `+${time(Math.max(0, one.ran.start_us - from))}`, time(one.ran.us), time(one.account.us.queue)]))));
  }

  // ---- One. ----

  function drawOne(d3, list) {
    const one = state.id ? list.findLast((other) => other.account.id === state.id && (!state.number || other.number === state.number)) : list.reduce((a, b) => (a.account.us.total > b.account.us.total ? a : b));
    if (!one) return put(place, h("div", { class: "card" }, empty("That request is no longer among the last 1,000, or is another client's.", h("button", { type: "button", onclick: () => { state.id = ""; state.mode = "last"; draw(); } }, "Show the last ones"))));
    const { account } = one, spans = one.stages, total = account.us.total, label = `Stages of ${account.op} ${account.kernel}: ${spans.map((span) => `${span.stage} ${time(span.us)}`).join(", ")}`;
    const beside = list.filter((other) => other !== one && other.arrived_us < end(one) && end(other) > one.arrived_us);
    put(place, card(`${account.op} by ${account.kernel}, ${shape(account.shapes.result)}`,
      h("p", { class: "muted small" }, `Request ${one.number} by ${one.client}, ${new Date(one.arrived_unix_us / 1000).toLocaleTimeString()}${state.id ? "" : ": the slowest of the last"}. Id `, h("span", { class: "mono" }, account.id)),
      chart(label, 44 + spans.length * 30, (width, height) => {
        const left = width < 560 ? 84 : 130, svg = frame(width, height, label), x = d3.scale.linear().domain([0, total]).range([left, width - 74]);
        axis(d3, svg, x, "top", { y: 28, size: 0, ticks: width < 560 ? 3 : 6, format: (us) => (us ? time(us) : "0") });
        const rows = spans.map((span, i) => {
          const start = span.start_us - one.arrived_us, top = 36 + i * 30, x1 = x(start), x2 = Math.max(x1 + 1.5, x(start + span.us));
          return s("g", null, s("rect", { class: "hit", x: 0, y: top, width, height: 28 }), s("text", { x: left - 10, y: top + 18, "text-anchor": "end" }, span.stage), s("rect", { class: `s-${span.stage}`, x: x1, y: top + 4, width: x2 - x1, height: 20, rx: 2 }),
            s("text", { x: x2 + 6, y: top + 18, class: "muted" }, time(span.us)));
        });
        svg.append(...rows);
        reachable(svg, rows, (i) => `${spans[i].stage}: ${time(spans[i].us)}, ${time(spans[i].start_us - one.arrived_us)} after it came\n${STAGE_WORDS[spans[i].stage]}`);
        return svg;
      }), h("p", { class: "small muted" }, linkTo(`v1/requests/waterfall.svg?id=${account.id}`, `${account.id}.svg`, "This picture as SVG"))), accountCard(account, false),
    beside.length ? card("At the same time", table("Requests that overlapped with it", [["Request"], ["Client"], ["Came", true], ["Total", true]], beside.slice(0, 30).map((other) => [
      h("a", { href: requestLink(other) }, `${other.account.op} ${other.account.kernel} ${shape(other.account.shapes.result)}`), other.client, `${other.arrived_us < one.arrived_us ? "−" : "+"}${time(Math.abs(other.arrived_us - one.arrived_us))}`, time(other.account.us.total)]))) : null);
  }

  draw();
  return () => { over = true; ends.forEach((stop) => stop()); };
}

function bars(one, x, top, height, origin) {
  const list = one.stages.map((span) => s("rect", { class: `s-${span.stage}`, x: x(span.start_us - origin), y: top, width: Math.max(0.4, x(span.start_us - origin + span.us) - x(span.start_us - origin)), height }));
  if (one.ran) list.push(s("rect", { class: "ran", x: x(one.ran.start_us - origin), y: top, width: Math.max(0.4, x(one.ran.start_us - origin + one.ran.us) - x(one.ran.start_us - origin)), height }));
  return list;
}

export const clientLink = (name) => h("a", { href: `#/waterfall?client=${encodeURIComponent(name)}`, "aria-label": `Requests of ${name}` }, name);
const streamOf = (one) => (one.ran.stream === undefined ? `${one.account.device} inline` : `${one.account.device} stream ${one.ran.stream}`);
const middle = (list) => list.sort((a, b) => a - b)[list.length >> 1];

// Of the bursts, jobs without a pause of 20 ms between them, the one with most; of equals the last. At most its last 60 jobs.
function burst(list) {
  const finish = (one) => one.ran.start_us + one.ran.us, bursts = [];
  let end = -Infinity;
  for (const one of list) {
    if (one.ran.start_us - end > 20000) bursts.push([]);
    bursts.at(-1).push(one);
    end = Math.max(end, finish(one));
  }
  const best = bursts.reduce((a, b) => (b.length >= a.length ? b : a)).slice(-60), from = best[0].ran.start_us, to = Math.max(...best.map(finish)), room = (to - from) * 0.03 + 5;
  return [from - room, to + room];
}
