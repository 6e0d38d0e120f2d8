// Cells of a section's table by the keys of its columns.
export function rowsOf(section) {
  return section.rows.map((row) =>
    Object.fromEntries(section.columns.map((column, index) => [column.key, row[index]])),
  );
}

export function titleOf(section, key) {
  return section.columns.find((column) => column.key === key).title;
}
