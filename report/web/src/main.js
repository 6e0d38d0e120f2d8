// Builds the page of a report from the document that it carries (report/document.h).
import { cardsOf } from "./cards.js";
import { chartOf, chartsRedraw, chartsResize } from "./chart.js";
import { element } from "./dom.js";
import { tableOf } from "./table.js";
import { themeWatch } from "./theme.js";

const MANY_ROWS = 12;

function sectionOf(section) {
  const id = `section-${section.id}`;
  const chart = section.chart && section.rows.length > 0 ? chartOf(section) : null;
  // Beside a chart, and where it is long, the table is there for those who want it.
  const label = chart ? "The figures as a table" : `Table of ${section.rows.length} rows`;
  const table =
    chart || section.rows.length > MANY_ROWS
      ? element("details", {}, element("summary", {}, label), tableOf(section))
      : tableOf(section);
  return element(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    element("h3", { id: `${id}-title` }, section.title),
    section.text ? element("p", { class: "text" }, section.text) : null,
    chart,
    table,
  );
}

function partOf(part, index) {
  return element(
    "section",
    { id: `part-${index}` },
    element("h2", {}, part.title),
    part.text ? element("p", { class: "text" }, part.text) : null,
    ...part.sections.map(sectionOf),
  );
}

function contentsOf(report) {
  const links = report.parts.map((part, index) =>
    element("li", {}, element("a", { href: `#part-${index}` }, part.title)),
  );
  return element("nav", { "aria-label": "Contents" }, element("ul", {}, ...links));
}

function pageOf(report, theme) {
  const toggle = element("button", { type: "button", onclick: () => theme.toggle() }, "Light or dark");
  return [
    element("a", { class: "skip", href: "#main" }, "To the content"),
    element(
      "header",
      {},
      element("div", { class: "top" }, element("span", {}, report.report), toggle),
      element("h1", {}, report.title),
      cardsOf(report),
      report.summary.length > 0
        ? element("div", { class: "summary" }, ...report.summary.map((text) => element("p", {}, text)))
        : null,
      contentsOf(report),
    ),
    element("main", { id: "main" }, ...report.parts.map(partOf)),
    element(
      "footer",
      {},
      `Made by ${report.report}. This page needs no network; charts are drawn by Apache ECharts.`,
    ),
  ];
}

// Paper has every table but the longest, whole charts, and light colours.
function printSetUp(theme) {
  const opened = [];
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details:not([open])")) {
      if (details.querySelectorAll("tbody tr").length > 60) continue;
      details.open = true;
      opened.push(details);
    }
    theme.print(true);
  });
  window.addEventListener("afterprint", () => {
    for (const details of opened.splice(0)) details.open = false;
    theme.print(false);
  });
}

const report = JSON.parse(document.getElementById("document").textContent);
const theme = themeWatch(chartsRedraw);
document.getElementById("report").replaceChildren(...pageOf(report, theme));
chartsRedraw();
printSetUp(theme);
window.addEventListener("resize", chartsResize);
