import { cellText } from "./format.js";

// Cells of a section's table by the keys of its columns.
export function rowsOf(section) {
  return section.rows.map((row) =>
    Object.fromEntries(section.columns.map((column, index) => [column.key, row[index]])),
  );
}

export function titleOf(section, key) {
  return section.columns.find((column) => column.key === key).title;
}

// A row in words, a line for each of its cells: what a chart says of a mark.
export function rowText(section, row) {
  return section.columns.map((column) => `${column.title}: ${cellText(column.key, row[column.key])}`).join("\n");
}
