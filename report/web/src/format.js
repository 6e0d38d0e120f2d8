// Quantities as people read them, by the unit that a column's key ends with. The same rules as
// document_cell_text in report/document_cell.c.

const plain = (value) => {
  const size = Math.abs(value);
  let decimals = size >= 99.95 || size === 0 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  if (Number.isInteger(value) && size < 1000) decimals = 0;
  if (size > 0 && size < 0.0995) decimals = 2 - Math.floor(Math.log10(size));
  if (decimals > 9) return "0";
  return value.toFixed(decimals);
};

const scaled = (value, units) => {
  let unit = 0;
  if (Math.abs(value) < 0.0005) value = 0; // what is left of a difference, also below 0
  while (unit + 1 < units.length && Math.abs(value) >= 999.5) {
    value /= 1e3;
    unit++;
  }
  return units[unit] ? `${plain(value)} ${units[unit]}` : plain(value);
};

export const seconds = (value) => scaled(value * 1e9, ["ns", "us", "ms", "s"]);

// "9.10 min", "21.3 days": of a run, no step takes as long.
const LONG_S = 1000;
const SPANS = [[2 * 86400, 86400, "days"], [2 * 3600, 3600, "h"], [0, 60, "min"]];
const span = (value) => {
  if (value < LONG_S) return seconds(value);
  const [, unit, name] = SPANS.find(([from]) => value >= from);
  return `${plain(value / unit)} ${name}`;
};

export const bytes = (value) => scaled(value, ["B", "kB", "MB", "GB", "TB", "PB"]);
export const count = (value) => scaled(value, ["", "k", "M", "G", "T"]);
export const percent = (value) => `${(value * 100).toFixed(1)} %`;

const flops = (value) =>
  value >= 1e15 && value < 1e16
    ? `${(value / 1e12).toFixed(0)} TFLOP/s`
    : scaled(value, ["", "k", "M", "G", "T", "P", "E"].map((prefix) => `${prefix}FLOP/s`));

const RULES = [
  [/flops_per_s(_per_gpu)?$/, flops],
  [/bytes_per_s$/, (value) => `${bytes(value)}/s`],
  [/_bytes$/, bytes],
  [/_per_s(_per_gpu)?$/, count],
  [/_s$/, span],
  [/^change_frac$/, (value) => `${value < 0 ? "" : "+"}${percent(value)}`],
  [/_frac$/, percent],
  [/usd_per_1e9_tokens$/, (value) => `${plain(value)} USD`],
  [/joules_per_token$/, (value) => `${plain(value)} J`],
  [/_tokens$/, plain],
  [/_figure$/, (value) => (value >= 1000 ? count(value) : plain(value))],
];

// A cell of a column as text.
export function cellText(key, cell) {
  if (cell === null || cell === undefined) return "";
  if (typeof cell !== "number") return String(cell);
  if (cell === 0) return "0";
  if (key.startsWith("difference")) return `${cell < 0 ? "-" : "+"}${cellText(key.slice(10), Math.abs(cell))}`;
  const rule = RULES.find(([pattern]) => pattern.test(key));
  return rule ? rule[1](cell) : String(Number(cell.toPrecision(6)));
}
