// account.js - one account: its figures, its stages as a bar, and the limit that it came up against.
import { bytes, card, figure, figures, h, s, shape, table, tells, time } from "./dom.js";

export const STAGES = ["receive", "decode", "queue", "h2d", "prepare", "kernel", "d2h", "encode"];
export const STAGE_WORDS = {
  receive: "reading the body", decode: "text to elements", queue: "waiting for a worker, the device or the thread that answers", h2d: "copy to the device",
  prepare: "rearranging operands", kernel: "the kernel", d2h: "copy from the device", encode: "elements to text",
};

// For legends: what an abbreviation stands for is said there, too.
export const stageName = (stage) => (stage.includes("2") ? `${stage}: ${STAGE_WORDS[stage]}` : stage);

export function legend(classes, names) {
  return h("ul", { class: "legend" }, names.map((name, i) => h("li", null, s("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, s("rect", { width: 10, height: 10, rx: 2, class: classes[i] })), name)));
}

export function stageBar(us) {
  const total = STAGES.reduce((sum, stage) => sum + (us[stage] ?? 0), 0) || 1, svg = s("svg", { class: "chart", viewBox: "0 0 1000 22", height: 22, preserveAspectRatio: "none", role: "img",
    "aria-label": STAGES.filter((stage) => us[stage] !== undefined).map((stage) => `${stage} ${time(us[stage])}`).join(", ") });
  let x = 0;
  for (const stage of STAGES) {
    if (us[stage] === undefined) continue;
    const width = (us[stage] / total) * 1000;
    svg.append(tells(s("rect", { x, y: 0, width: Math.max(width, 1), height: 22, class: `s-${stage}` }), () => `${stage}: ${time(us[stage])}\n${STAGE_WORDS[stage]}`));
    x += width;
  }
  return svg;
}

// In words: what limits this, and how close it came.
export function verdict(account) {
  if (account.accesses) {
    const a = account.accesses, ratio = a.global_sectors / a.global_sectors_min;
    return `Simulated, so there is no time. Its warps touched ${figure(ratio)} times the sectors that must move${a.shared_wavefronts ? `, and took ${figure(a.shared_wavefronts / a.shared_wavefronts_ideal)} times the ideal passes over shared memory` : ""}.`;
  }
  if (account.percent_of_roofline !== undefined && account.bound === "compute")
    return `Arithmetic is the limit: ${figure(account.percent_of_roofline)} % of what ${account.device} reaches in ${account.roof}.`;
  if (account.percent_of_roofline !== undefined)
    return `Memory is the limit at ${figure(account.intensity)} operations a byte: ${figure(account.percent_of_roofline)} % of the roofline (${account.roof}).`;
  if (account.op === "eval") return account.percent_of_copy === undefined ? "" : `Its steps together move their bytes at ${figure(account.percent_of_copy)} % of the rate of a copy.`;
  if (account.percent_of_copy !== undefined) return `Only bytes are moved: ${figure(account.percent_of_copy)} % of the rate of a copy.`;
  return "";
}

const PLACED = { asked: "as asked", shape: "chosen by shape", load: "chosen by load" };

export function accountCard(account, linked = true) {
  const used = STAGES.filter((stage) => account.us[stage] !== undefined);
  return card(null, h("div", { class: "between" }, h("h2", null, "Account"), linked ? h("a", { href: `#/waterfall?id=${encodeURIComponent(account.id)}`, class: "small" }, "See it as a waterfall") : null),
    figures([
      ["Kernel", account.kernel], ["Device", account.device, PLACED[account.placed]], ["Total", time(account.us.total)],
      account.us.kernel !== undefined && ["In the kernel", time(account.us.kernel)],
      account.gflops > 0 && ["Rate", figure(account.gflops), "GFLOP/s"], account.effective_gbs > 0 && ["Bandwidth", figure(account.effective_gbs), "GB/s"],
      ["Bytes that must move", bytes(account.bytes_min)],
    ]),
    h("p", null, verdict(account)), account.doubt ? h("p", { class: "note" }, `Faster than the ceiling (${account.doubt}): that was measured too low, as on a busy machine.`) : null,
    stageBar(account.us), legend(used.map((stage) => `s-${stage}`), used),
    account.steps ? h("details", null, h("summary", null, "Each step"), table("Steps of the expression", [["Step"], ["Kernel"], ["Result"], ["Time", true]],
      account.steps.map((step, i) => [`${i + 1}. ${step.op}`, step.kernel, shape(step.shape), time(step.us)]))) : null,
    h("details", null, h("summary", null, "Each stage"), table(`Stages of ${account.op} ${shape(account.shapes.result)}`, [["Stage"], ["Time", true], ["What it is", false, true]],
      used.map((stage) => [stage, time(account.us[stage]), STAGE_WORDS[stage]]))));
}
