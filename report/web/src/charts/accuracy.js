// The mean error of predictions, family by family of published measurements.
import { rowsOf } from "../section.js";
import { bars } from "./bars.js";

export function accuracy(section) {
  const rows = rowsOf(section)
    .filter((row) => row.mape_frac !== null)
    .map((row) => ({ name: `${row.family} (${row.num_cases})`, value: row.mape_frac, all: row.family === "all" }));
  return bars(rows, { key: "mape_frac", most: 60, colour: (row) => (row.all ? 1 : 0) });
}
