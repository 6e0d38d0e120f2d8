// Parts of a whole, as shares of it.
import { rowsOf } from "../section.js";
import { bars } from "./bars.js";

export function shares(section) {
  const rows = rowsOf(section).map((row) => ({ name: row.part, value: row.time_frac }));
  return bars(rows, { key: "_frac", most: rows.length, colour: (row) => rows.indexOf(row) });
}
