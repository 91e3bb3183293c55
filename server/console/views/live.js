// live.js - the daemon as it is now, once a second: queue, throughput, latency, memory, devices, clients.
import { devices, get, linkTo, requests } from "../api.js";
import { bytes, card, choice, failure, figure, figures, h, head, s, show as put, table, time } from "../dom.js";
import { axis, fits, frame, load } from "../plot.js";
import { traffic } from "../traffic.js";
import { clientLink } from "./waterfall.js";

const MINUTES = ["1", "5"];
const KEPT = 300;

export function show(main, parameters, keep) {
  const state = { minutes: MINUTES.includes(parameters.get("minutes")) ? parameters.get("minutes") : "1" };
  const now = h("div"), charts = h("div", { class: "columns" }), tables = h("div", { class: "lines" }), trouble = h("div"), failed = h("div", { class: "maybe" });
  const history = [], accounts = new Map();
  let streams = {};
  devices().then((facts) => { streams = Object.fromEntries(facts.devices.map((one) => [one.name, one.streams])); }).catch(() => {});
  let stats, timer, over = false, since = 0, nowUs = 0, before, boxes, d3, stopped = false, ends = [], seen = 0;

  const pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => {
    hold(!stopped);
    tick();
  } }, "Pause");
  put(main, head("Live", "What the daemon does at this moment, asked once a second."),
    h("div", { class: "row" }, choice("How far back", [["1", "1 minute"], ["5", "5 minutes"]], state.minutes, (minutes) => { state.minutes = minutes; keep(state); draw(); }), pause,
      h("button", { type: "button", onclick: async (event) => {
        event.target.disabled = true;
        put(failed);
        await traffic().catch((error) => put(failed, failure(error)));
        event.target.disabled = false;
      } }, "Make some traffic")), failed, trouble, now, charts, h("p", { class: "small muted" }, linkTo("v1/requests/live.svg?limit=1000", "live.svg", "The last minute as SVG"), ", by the last 1,000 accounts."), tables);
  keep(state);

  function hold(on) {
    stopped = on;
    pause.setAttribute("aria-pressed", String(on));
    pause.textContent = on ? "Go on" : "Pause";
  }

  async function tick() {
    if (over || stopped) return;
    clearTimeout(timer);
    const begun = performance.now();
    try {
      let news = await requests(`limit=1000&since=${since}`);
      if (news.now_us < nowUs) { // a daemon that was started since: its clock and its numbers begin again
        forget();
        news = await requests("limit=1000&since=0");
      }
      for (const one of news.requests) {
        accounts.set(one.number, one);
        since = one.number;
        seen++;
      }
      nowUs = news.now_us;
      while (accounts.size > 1000) accounts.delete(accounts.keys().next().value);
      stats = await get("v1/stats").catch((error) => { if (error.status === 403) return undefined; throw error; });
      d3 ??= await load();
      if (over) return;
      sample(news);
      put(trouble, stats ? null : h("p", { class: "note" }, "This key has not the role read: what is shown is of its own requests alone."));
      draw();
    } catch (error) {
      if (over) return;
      if (trouble.textContent !== error.message) put(trouble, failure(error)); // else it would be read out each second
      if (error.status === 401) hold(true); // else it would ask for the key each second
    }
    if (!over && !stopped) timer = setTimeout(tick, Math.max(100, 1000 - (performance.now() - begun)));
  }

  function forget() {
    since = nowUs = seen = 0;
    accounts.clear();
    before = undefined;
  }

  function sample(news) {
    const at = Date.now() / 1000, answered = stats ? Object.entries(stats.answered).filter(([path]) => /^\/v1\/(matmul|transpose|add|flip|eval)$|infer/.test(path)).reduce((sum, [, n]) => sum + n, 0) : seen; // numbers count the requests of all
    const totals = [...accounts.values()].filter((one) => one.arrived_us > news.now_us - 10e6).map((one) => one.account.us.total).sort((a, b) => a - b);
    const busy = stats ? Object.fromEntries(Object.entries(stats.queues).map(([name, queue]) => [name, queue.busy_s])) : {};
    const gap = before ? at - before.at : 1;
    history.push({ at, rate: before ? Math.max(0, (answered - before.answered) / gap) : 0, p50: totals[totals.length >> 1], p99: totals[Math.floor(totals.length * 0.99)],
      queued: stats ? Object.values(stats.queues).reduce((sum, queue) => sum + queue.queued, 0) : undefined, memory: stats?.memory.used_bytes,
      busy: before ? Object.fromEntries(Object.entries(busy).map(([name, seconds]) => [name, Math.min(1, Math.max(0, (seconds - (before.busy[name] ?? 0)) / gap))])) : {} });
    before = { at, answered, busy };
    while (history.length > KEPT) history.shift();
  }

  const series = () => history.slice(-60 * Number(state.minutes));

  function draw() {
    const last = history.at(-1);
    if (!last || !d3) return;
    if (stats) put(now, card(null, figures([
      ["Requests a second", figure(last.rate)], ["Latency, median", time(last.p50)], ["Latency, 99 %", time(last.p99)], ["Waiting", figure(last.queued)],
      ["Connections", figure(stats.connections)], ["Memory in use", bytes(stats.memory.used_bytes), `of ${bytes(stats.memory.limit_bytes)}`], ["Up for", time(stats.uptime_s * 1e6)],
    ]), stats.draining ? h("p", { class: "note" }, "It is draining: no new work is taken.") : null));
    else put(now, card(null, figures([["Requests a second", figure(last.rate)], ["Latency, median", time(last.p50)], ["Latency, 99 %", time(last.p99)]])));
    drawCharts();
    drawTables();
  }

  function drawCharts() {
    const names = Object.keys(history.at(-1).busy).filter((name) => !name.startsWith("sim") || history.some((one) => one.busy[name] > 0));
    const list = [
      ["Requests a second", [["requests", (one) => one.rate, "l-blue"]], figure, undefined, 10],
      ["Latency", [["99th percentile", (one) => one.p99, "l-red"], ["median", (one) => one.p50, "l-blue"]], time, undefined, 1000],
      ["Jobs that wait", [["waiting", (one) => one.queued, "l-blue"]], figure, undefined, 10],
      ["Memory in use", [["memory", (one) => one.memory / 2 ** 20, "l-blue"]], (n) => `${figure(n)} MiB`, undefined, 8],
      ["Busy share of devices", names.map((name, i) => [name, (one) => one.busy[name], ["l-blue", "l-red", "l-green", "l-pink"][i % 4]]), (n) => `${figure(100 * n)} %`, 1],
    ];
    boxes ??= list.map(([title]) => {
      const box = h("div");
      charts.append(card(title, box));
      ends.push(fits(box, () => drawCharts()));
      return box;
    });
    list.forEach(([title, lines, text, most, least], i) => { if (boxes[i].clientWidth) put(boxes[i], plot(boxes[i].clientWidth, title, lines, text, most, least)); });
  }

  function plot(width, title, lines, text, most, least = 0) {
    const data = series(), height = 150, left = 62, end = data.at(-1).at, values = lines.flatMap(([, value]) => data.map(value)).filter(Number.isFinite);
    const svg = frame(width, height, `${title}: ${lines.map(([name, value]) => `${name} ${text(value(data.at(-1)))}`).join(", ")}`);
    const x = d3.scale.linear().domain([-60 * Number(state.minutes), 0]).range([left, width - 8]), y = d3.scale.linear().domain([0, most ?? Math.max(least, Math.max(...values, 0) * 1.15)]).range([height - 24, 10]);
    axis(d3, svg, y, "left", { x: left, size: width - left - 8, ticks: 3, format: (n) => (n ? text(n) : "0") });
    axis(d3, svg, x, "bottom", { y: height - 24, values: [-60, -45, -30, -15, 0].map((n) => n * Number(state.minutes)), format: (at) => (at ? `−${-at} s` : "now") });
    const path = (value) => d3.svg.line().defined((one) => Number.isFinite(value(one))).x((one) => x(one.at - end)).y((one) => y(value(one)));
    const named = []; // where the names of the lines are: no two in one place
    for (const [name, value, style] of lines) {
      svg.append(s("path", { class: `line ${style}`, d: path(value)(data.filter((one) => one.at - end >= x.domain()[0])) ?? "" }));
      const latest = data.at(-1);
      if (lines.length < 2 || !Number.isFinite(value(latest))) continue;
      let at = Math.max(18, y(value(latest)) - 6);
      while (named.some((other) => Math.abs(other - at) < 13)) at = at > 32 ? at - 13 : Math.max(...named) + 13;
      named.push(at);
      svg.append(s("text", { class: "halo muted", x: width - 10, y: at, "text-anchor": "end" }, name));
    }
    return svg;
  }

  // Jobs of each stream, and the time in which it had any: jobs of one launch, or of several event threads, are there together.
  function streamRows() {
    const rows = new Map(), from = nowUs - 10e6;
    for (const { ran, account } of [...accounts.values()].filter((one) => one.ran && one.ran.start_us + one.ran.us > from).sort((a, b) => a.ran.start_us - b.ran.start_us)) {
      const name = ran.stream === undefined ? `${account.device}, event threads` : `${account.device}, stream ${ran.stream}`, row = rows.get(name) ?? { jobs: 0, us: 0, end: from }, end = ran.start_us + ran.us;
      rows.set(name, { jobs: row.jobs + 1, us: row.us + Math.max(0, end - Math.max(row.end, ran.start_us)), end: Math.max(row.end, end) });
    }
    return [...rows].sort().map(([name, { jobs, us }]) => [name, jobs, us]);
  }

  function drawTables() {
    const clients = new Map();
    for (const one of accounts.values()) {
      const row = clients.get(one.client) ?? { n: 0, totals: [], waits: [], device: 0 };
      row.n++;
      row.totals.push(one.account.us.total);
      row.waits.push(one.account.us.queue ?? 0);
      row.device += one.ran?.us ?? 0;
      clients.set(one.client, row);
    }
    const at = (list, part) => list.sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * part))];
    const rows = [...clients].sort((a, b) => at(b[1].totals, 0.99) - at(a[1].totals, 0.99));
    put(tables,
      stats ? card("Devices", table("Jobs on each device now", [["Device"], ["Streams", true], ["Waiting", true], ["Running", true], ["Busy since the last second", true], ["Queue slots", true]],
        Object.entries(stats.queues).map(([name, queue]) => [name, figure(streams[name]), figure(queue.queued), figure(queue.running), history.at(-1).busy[name] === undefined ? "–" : `${figure(100 * history.at(-1).busy[name])} %`, figure(queue.capacity)]))) : null,
      card("Streams", streamRows().length ? table("Of the last 10 seconds, by accounts", [["Stream"], ["Jobs", true], ["Busy", true]], streamRows().map(([name, jobs, us]) => [name, figure(jobs), us > 0 && us < 1e3 ? "< 0.01 %" : `${figure(us / 1e5)} %`])) : h("p", { class: "muted" }, "No job has had a device in the last 10 seconds.")),
      card("Clients", rows.length ? table(`Of the last ${accounts.size} accounts, the slowest first`, [["Client"], ["Requests", true], ["Median", true], ["99th percentile", true], ["Waiting, median", true], ["Time of devices", true]],
        rows.map(([name, row]) => [clientLink(name), figure(row.n), time(at(row.totals, 0.5)), time(at(row.totals, 0.99)), time(at(row.waits, 0.5)), time(row.device)])) : h("p", { class: "muted" }, "Nobody has asked for anything yet."),
      h("p", { class: "small" }, h("a", { href: "#/waterfall" }, "See the requests one by one"))));
  }

  tick();
  return () => { over = true; clearTimeout(timer); ends.forEach((end) => end()); };
}
