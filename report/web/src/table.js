// The table of a section: what its chart shows, for those who do not see it, and to copy.
import { element } from "./dom.js";
import { cellText } from "./format.js";

const WIDE = 60; // letters; longer texts get a wide column
const MANY_COLUMNS = 6;

function isNumeric(section, index) {
  return section.rows.some((row) => typeof row[index] === "number");
}

// The one row of many columns stands upright.
function uprightOf(section) {
  return section.columns.map((column, index) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, column.title),
      element("td", {}, cellText(column.key, section.rows[0][index])),
    ),
  );
}

function rowsAndHead(section) {
  if (section.rows.length === 1 && section.columns.length > MANY_COLUMNS)
    return [element("tbody", {}, ...uprightOf(section))];
  const numeric = section.columns.map((_, index) => isNumeric(section, index));
  const wide = section.columns.map((_, index) =>
    section.rows.some((row) => typeof row[index] === "string" && row[index].length > WIDE),
  );
  const classOf = (index) => (numeric[index] ? "number" : wide[index] ? "wide" : undefined);
  const head = element(
    "tr",
    {},
    ...section.columns.map((column, index) =>
      element("th", { scope: "col", class: numeric[index] && "number" }, column.title),
    ),
  );
  const rows = section.rows.map((row) =>
    element(
      "tr",
      {},
      ...section.columns.map((column, index) =>
        element("td", { class: classOf(index) }, cellText(column.key, row[index])),
      ),
    ),
  );
  return [element("thead", {}, head), element("tbody", {}, ...rows)];
}

export function tableOf(section) {
  const caption = element("caption", { class: "skip" }, section.title);
  const table = element("table", {}, caption, ...rowsAndHead(section));
  return element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${section.title}` },
    table,
  );
}
