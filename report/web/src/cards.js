// The answer at a glance: cards above the prose, of the first plan of the report.
import { element } from "./dom.js";
import { bytes, cellText, count, percent, seconds } from "./format.js";
import { rowsOf } from "./section.js";

const BUDGET_TOKENS = 1e12;
const SECONDS_PER_DAY = 86400;

const grouped = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");

// Its figures: those of an estimate, else of the best plan of a search.
function figuresOf(report) {
  const sections = report.parts.flatMap((part) => part.sections);
  const one = sections.find((section) => section.id === "figures") ??
    sections.find((section) => section.chart === "intervals");
  return one && one.rows.length > 0 ? rowsOf(one)[0] : null;
}

function stepCard(row) {
  const { step_time_low_s: low, step_time_high_s: high } = row;
  return ["One step", seconds(row.step_time_s), low && high ? `between ${seconds(low)} and ${seconds(high)}` : ""];
}

function speedCard(row) {
  const each = row.tokens_per_s_per_gpu ? `${count(row.tokens_per_s_per_gpu)} on each GPU, ` : "";
  return ["Tokens a second", count(row.tokens_per_s), `${each}${percent(row.mfu_frac)} of the peak`];
}

function budgetCard(row) {
  const days = BUDGET_TOKENS / row.tokens_per_s / SECONDS_PER_DAY;
  const long = days < 2 ? cellText("_s", days * SECONDS_PER_DAY) : `${days.toFixed(1)} days`;
  const usd = row.usd_per_1e9_tokens > 0 ? `${grouped((row.usd_per_1e9_tokens * BUDGET_TOKENS) / 1e9)} USD, ` : "";
  return ["A trillion tokens", long, `${usd}computing alone`];
}

function memoryCard(row) {
  const all = row.memory_available_bytes ? `of ${bytes(row.memory_available_bytes)} ` : "";
  const fits = row.fits_probability_frac;
  const chance = fits === undefined || fits === null ? "" : `, fits with ${fits > 0.99 ? "over 99 %" : percent(fits)}`;
  return ["Memory of the fullest GPU", bytes(row.memory_device_bytes), `${all}${chance}`.replace(" ,", ",")];
}

function certaintyCard(row) {
  const { step_time_s: step, step_time_low_s: low, step_time_high_s: high } = row;
  if (!low || !high) return null;
  return ["Certainty of the step", `-${percent(1 - low / step)} to +${percent(high / step - 1)}`,
    "eight of ten such predictions are so near"];
}

export function cardsOf(report) {
  const row = figuresOf(report);
  if (!row || !row.step_time_s) return null;
  const cards = [stepCard(row), speedCard(row), budgetCard(row), memoryCard(row), certaintyCard(row)];
  return element(
    "dl",
    { class: "cards" },
    ...cards.filter(Boolean).map(([title, figure, more]) =>
      element("div", { class: "card" }, element("dt", {}, title), element("dd", { class: "figure" }, figure),
        element("dd", {}, more)),
    ),
  );
}
