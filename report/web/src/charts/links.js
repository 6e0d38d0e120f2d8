// How busy the busiest links are; links that are alike to the last digit share a bar.
import { rowsOf } from "../section.js";
import { bars } from "./bars.js";

const MOST = 16;

export function links(section) {
  const alike = new Map();
  for (const row of rowsOf(section)) {
    const kind = row.link.replace(/[:\d.]+/g, " ").replace(/\s+/g, " ").trim();
    const key = `${kind} ${row.utilization_frac}`;
    const group = alike.get(key);
    if (group) group.num++;
    else alike.set(key, { first: row.link, num: 1, value: row.utilization_frac });
  }
  const rows = [...alike.values()].map(({ first, num, value }) => ({
    name: num > 1 ? `${first} and ${num - 1} alike` : first,
    value,
  }));
  return bars(rows, { key: "utilization_frac", most: MOST });
}
