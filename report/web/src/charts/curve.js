// A grid of changes: step time (or what data.figure names) over the first axis, a line for each combination of the others, with
// its 80 % interval as a band.
import { cellText } from "../format.js";
import { rowsOf, titleOf } from "../section.js";
import { colours } from "../theme.js";

const name = (value) => (value === null ? "" : String(value));

// Points with a step, in lines by what is fixed beside the first axis.
function linesOf(rows, axes) {
  const lines = new Map();
  for (const row of rows) {
    if (row.step_time_s === null || row.note) continue;
    const key = axes.slice(1).map((axis) => `${axis.split(".").pop()} ${name(row[axis])}`).join(", ");
    if (!lines.has(key)) lines.set(key, []);
    lines.get(key).push(row);
  }
  return lines;
}

// The area between low and high, drawn as one polygon at the first of its points.
function band(points, colour) {
  return {
    type: "custom",
    silent: true,
    z: 1,
    encode: { x: 0, y: [1, 2] },
    data: points.length > 1 ? points : [],
    renderItem: ({ dataIndex }, api) =>
      dataIndex === 0 && {
        type: "polygon",
        shape: {
          points: [
            ...points.map(([x, low]) => api.coord([x, low])),
            ...[...points].reverse().map(([x, , high]) => api.coord([x, high])),
          ],
        },
        style: { fill: colour, opacity: 0.18 },
      },
  };
}

export function curve(section) {
  const rows = rowsOf(section);
  const c = colours();
  const figure = section.data.figure ?? "step_time_s";
  const axes = section.columns.slice(0, section.data.num_axes).map((column) => column.key);
  const numeric = rows.every((row) => typeof row[axes[0]] === "number");
  const categories = [...new Set(rows.map((row) => name(row[axes[0]])))];
  const x = (row) => (numeric ? row[axes[0]] : categories.indexOf(name(row[axes[0]])));
  const lines = linesOf(rows, axes);
  const series = [...lines].flatMap(([key, points], index) => {
    const colour = c.series[index % c.series.length];
    const sorted = numeric ? [...points].sort((a, b) => x(a) - x(b)) : points;
    const ends = sorted
      .filter((row) => figure === "step_time_s" && row.step_time_low_s !== null && row.step_time_high_s !== null)
      .map((row) => [x(row), row.step_time_low_s, row.step_time_high_s]);
    return [
      band(ends, colour),
      {
        name: key || titleOf(section, figure),
        type: "line",
        symbolSize: 8,
        itemStyle: { color: colour },
        lineStyle: { color: colour, width: 2 },
        data: sorted.map((row) => ({ value: [x(row), row[figure]], row })),
      },
    ];
  });
  return {
    height: 400,
    items: [...lines.values()].reduce((sum, points) => sum + points.length, 0),
    option: {
      grid: { left: 20, right: 40, top: axes.length > 1 ? 50 : 36, bottom: 50, containLabel: true },
      legend: axes.length > 1 ? { data: [...lines.keys()] } : undefined,
      tooltip: {
        trigger: "item",
        formatter: ({ data }) =>
          section.columns
            .filter((column) => data.row[column.key] !== null && data.row[column.key] !== "")
            .map((column) => `${column.title}: ${cellText(column.key, data.row[column.key])}`)
            .join("\n"),
      },
      xAxis: {
        type: numeric ? "value" : "category",
        data: numeric ? undefined : categories,
        scale: true,
        name: titleOf(section, axes[0]),
        nameLocation: "middle",
        nameGap: 30,
        axisLabel: numeric ? { formatter: (value) => cellText(axes[0], value) } : {},
      },
      yAxis: {
        type: "value",
        name: titleOf(section, figure),
        nameTextStyle: { align: "left" },
        min: 0,
        axisLabel: { formatter: (value) => cellText(figure, value) },
      },
      series,
    },
  };
}
