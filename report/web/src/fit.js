// Fits a chart to the width that the page has for it: what does not fit in a line stands in more,
// and the chart grows by as much. Nothing is cut off, and no label lies over another.

const FONT = "12px system-ui, sans-serif";
const LINE = 15; // pixels of a line of text
const LEGEND_MARK = 42; // of an entry's mark and the gaps around it
const LEGEND_LINE = 24;
const LABELS_SHARE = 0.3; // of the width, at most, for the labels of lying bars
const LABELS_MOST = 340;

let context = null;

export function textWidth(text) {
  context ??= document.createElement("canvas").getContext("2d");
  context.font = FONT;
  return context.measureText(text).width;
}

// Pieces of a word that is wider than a line.
function pieces(word, width) {
  const parts = [];
  let part = "";
  for (const letter of word) {
    if (part && textWidth(part + letter) > width) {
      parts.push(part);
      part = "";
    }
    part += letter;
  }
  return [...parts, part];
}

// The text in lines of at most so many pixels.
export function wrapped(text, width) {
  const lines = [];
  for (const word of String(text).split(" ").flatMap((one) => pieces(one, width))) {
    const last = lines[lines.length - 1];
    if (last !== undefined && textWidth(`${last} ${word}`) <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

// Labels of lying bars: all rows are as high as the one with most lines needs.
function fitRows(made, axis, width) {
  const most = Math.min(LABELS_MOST, Math.max(72, LABELS_SHARE * width));
  const lines = axis.data.map((text) => wrapped(text, most));
  const needed = LINE * Math.max(...lines.map((one) => one.length)) + 8;
  const rows = axis.data.length;
  const grid = made.option.grid;
  const now = (made.height - (grid.top ?? 0) - (grid.bottom ?? 0)) / rows;
  if (needed > now) made.height += rows * (needed - now);
  const texts = new Map(axis.data.map((text, index) => [String(text), lines[index].join("\n")]));
  axis.axisLabel = {
    ...axis.axisLabel,
    width: undefined,
    overflow: "none",
    interval: 0,
    lineHeight: LINE,
    formatter: (text) => texts.get(String(text)) ?? text,
  };
}

function fitLegend(made, width) {
  const { legend, grid } = made.option;
  let lines = 1;
  let used = 0;
  for (const name of legend.data) {
    const needed = textWidth(name) + LEGEND_MARK;
    if (used > 0 && used + needed > width - 20) {
      lines++;
      used = 0;
    }
    used += needed;
  }
  made.option.legend = { left: 10, width: width - 20, ...legend };
  grid.top = (grid.top ?? 0) + LEGEND_LINE * (lines - 1);
  made.height += LEGEND_LINE * (lines - 1);
}

// The name above an axis that stands.
function fitName(made, axis, width) {
  const lines = wrapped(axis.name, width - 100);
  axis.name = lines.join("\n");
  axis.nameTextStyle = { ...axis.nameTextStyle, align: "left", lineHeight: LINE, padding: [0, 0, 0, -10] };
  const { grid } = made.option;
  grid.top = (grid.top ?? 0) + LINE * (lines.length - 1);
  made.height += LINE * (lines.length - 1);
}

// made: what a chart gives (chart.js), which is changed; width: pixels
export function fitted(made, width) {
  const { option } = made;
  option.grid = { ...option.grid };
  const [xAxis, yAxis] = [option.xAxis, option.yAxis];
  if (option.legend?.data) fitLegend(made, width);
  if (yAxis?.name && yAxis.type !== "category") fitName(made, yAxis, width);
  if (yAxis?.type === "category" && yAxis.data?.length) fitRows(made, yAxis, width);
  if (xAxis && !Array.isArray(xAxis) && xAxis.type !== "category")
    xAxis.splitNumber = Math.max(2, Math.min(8, Math.floor(width / 150)));
  for (const axis of [xAxis, yAxis].flat())
    if (axis && axis.show !== false) axis.axisLabel = { hideOverlap: true, ...axis.axisLabel };
  return made;
}
