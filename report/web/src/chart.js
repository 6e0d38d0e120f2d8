// A chart of a section: drawn by ECharts, described for screen readers, saved as SVG or PNG.
import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import {
  AriaComponent,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  TooltipComponent,
} from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";
import { accuracy } from "./charts/accuracy.js";
import { compare } from "./charts/compare.js";
import { curve } from "./charts/curve.js";
import { goodput } from "./charts/goodput.js";
import { intervals } from "./charts/intervals.js";
import { layout } from "./charts/layout.js";
import { links } from "./charts/links.js";
import { memory } from "./charts/memory.js";
import { scatter } from "./charts/scatter.js";
import { shares } from "./charts/shares.js";
import { timeline } from "./charts/timeline.js";
import { tornado } from "./charts/tornado.js";
import { waterfall } from "./charts/waterfall.js";
import { download, element } from "./dom.js";
import { fitted } from "./fit.js";
import { colours } from "./theme.js";

echarts.use([
  BarChart, CustomChart, LineChart, ScatterChart, AriaComponent, DataZoomComponent, GridComponent,
  LegendComponent, MarkLineComponent, TooltipComponent, CanvasRenderer, SVGRenderer,
]);

// Each gives {option, height, items, renderer, zoom} of a section and the pixels across: ECharts'
// option, pixels, how many things are drawn, "canvas" where they are very many, and whether the time
// axis can be zoomed. `stands`: how many things those drawn stand for, where that is another number.
const KINDS = {
  accuracy, compare, curve, goodput, intervals, layout, links, memory, scatter, shares, timeline,
  tornado, waterfall,
};

const PAPER = 1120; // pixels across of a picture for slides

const drawn = []; // every chart of the page

const made = (section, width) => fitted(KINDS[section.chart](section, width), width);

// What all options share. Tooltips are drawn, not written as markup: names in them stay names.
function completed(option) {
  const c = colours();
  const axis = (given) => ({
    ...given,
    axisLabel: { color: c.dim, ...given.axisLabel },
    axisLine: { lineStyle: { color: c.line }, ...given.axisLine },
    splitLine: { lineStyle: { color: c.line }, ...given.splitLine },
    nameTextStyle: { color: c.dim, ...given.nameTextStyle },
  });
  return {
    animation: false,
    backgroundColor: c.back,
    color: c.series,
    textStyle: { color: c.text, fontFamily: "system-ui, sans-serif" },
    aria: { enabled: true },
    ...option,
    xAxis: [option.xAxis].flat().map(axis),
    yAxis: [option.yAxis].flat().map(axis),
    legend: option.legend && { textStyle: { color: c.text }, top: 0, ...option.legend },
    tooltip: option.tooltip && {
      renderMode: "richText",
      confine: true,
      backgroundColor: c.back,
      borderColor: c.line,
      textStyle: { color: c.text, fontSize: 12 },
      ...option.tooltip,
    },
  };
}

// The chart once more on paper of its own, for slides.
function exported(chart, renderer) {
  const sheet = element("div");
  const once = made(chart.section, PAPER);
  sheet.style.cssText = `position:absolute;left:-9999px;width:${PAPER}px`;
  sheet.style.height = `${once.height}px`;
  document.body.append(sheet);
  const copy = echarts.init(sheet, null, { renderer });
  const option = completed(once.option);
  if (chart.made.zoom) option.dataZoom = chart.instance.getOption().dataZoom;
  copy.setOption(option);
  const url = copy.getDataURL({ type: renderer === "svg" ? "svg" : "png", pixelRatio: 2 });
  copy.dispose();
  sheet.remove();
  return url;
}

// Moves the shown stretch of the time axis, for those without a mouse.
function zoomBy(chart, factor, shift) {
  const { start, end } = chart.instance.getOption().dataZoom[0];
  const width = Math.min(100, (end - start) * factor);
  let from = (start + end - width) / 2 + shift * (end - start);
  from = Math.max(0, Math.min(100 - width, from));
  chart.instance.dispatchAction({ type: "dataZoom", start: from, end: from + width });
}

function toolsOf(chart) {
  const button = (label, act) => element("button", { type: "button", onclick: act }, label);
  const zoom = chart.made.zoom
    ? [
        button("Zoom in", () => zoomBy(chart, 0.5, 0)),
        button("Zoom out", () => zoomBy(chart, 2, 0)),
        button("Earlier", () => zoomBy(chart, 1, -0.5)),
        button("Later", () => zoomBy(chart, 1, 0.5)),
        button("All", () => zoomBy(chart, Infinity, 0)),
      ]
    : [];
  const save = ["svg", "png"].map((kind) =>
    button(`Save as ${kind.toUpperCase()}`, () =>
      download(exported(chart, kind === "svg" ? "svg" : "canvas"), `${chart.section.id}.${kind}`),
    ),
  );
  return element("div", { class: "tools" }, ...zoom, ...save);
}

function draw(chart) {
  const zoom = chart.made?.zoom ? chart.instance?.getOption().dataZoom : undefined;
  chart.instance?.dispose();
  chart.width = chart.place.clientWidth || PAPER;
  chart.made = made(chart.section, chart.width);
  chart.place.style.height = `${chart.made.height}px`;
  chart.place.dataset.items = chart.made.items;
  chart.instance = echarts.init(chart.place, null, { renderer: chart.made.renderer ?? "svg" });
  chart.instance.setOption(completed(chart.made.option));
  if (zoom) chart.instance.dispatchAction({ type: "dataZoom", start: zoom[0].start, end: zoom[0].end });
  chart.place.dataset.stands = chart.made.stands ?? chart.made.items;
  // ECharts' own description lists raw numbers; the section's words and table say more.
  chart.place.setAttribute("role", "img");
  chart.place.setAttribute("aria-label", `Chart: ${chart.section.title}. The figures are in the table below.`);
}

export function chartOf(section) {
  const place = element("div", { class: "chart", "data-chart": section.chart, id: `chart-${section.id}` });
  const chart = { section, place, instance: null, made: KINDS[section.chart](section, PAPER) };
  drawn.push(chart);
  return element("figure", {}, toolsOf(chart), place);
}

export const chartsRedraw = () => drawn.forEach(draw);
export const chartsResize = () =>
  drawn.filter((chart) => chart.place.clientWidth !== chart.width).forEach(draw);

// For tests and for pictures: the charts by their sections' names.
window.meshwrightCharts = {
  instance: (id) => drawn.find((chart) => chart.section.id === id)?.instance,
  picture: (id, kind) =>
    exported(drawn.find((chart) => chart.section.id === id), kind === "svg" ? "svg" : "canvas"),
};
