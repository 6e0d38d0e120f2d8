// Memory of each stage: what is held, stacked, against what there is.
import { cellText } from "../format.js";
import { rowText, rowsOf } from "../section.js";
import { colours } from "../theme.js";

const APART = ["stage", "device_bytes", "available_bytes"];

export function memory(section) {
  const rows = rowsOf(section);
  const c = colours();
  const parts = section.columns.filter((column) => !APART.includes(column.key));
  const limits = rows.map((row) => row.available_bytes);
  const most = Math.max(...limits, ...rows.map((row) => row.device_bytes));
  // Where all have the same, one line across; a line through one stage would be a point.
  const alike = new Set(limits).size === 1;
  const limit = {
    name: "there is",
    type: "line",
    step: "middle",
    symbol: "none",
    lineStyle: { color: c.bad, width: 2, type: "dashed" },
    itemStyle: { color: c.bad },
    data: alike ? [] : limits,
    markLine:
      alike
        ? {
            symbol: "none",
            silent: true,
            lineStyle: { color: c.bad, width: 2, type: "dashed" },
            label: { formatter: cellText("_bytes", limits[0]), color: c.bad },
            data: [{ yAxis: limits[0] }],
          }
        : undefined,
  };
  return {
    height: 380,
    items: rows.length * parts.length,
    option: {
      grid: { left: 10, right: 70, top: 60, bottom: 36, containLabel: true },
      legend: { data: [...parts.map((part) => part.title), ...(alike ? [] : ["there is"])] },
      tooltip: {
        trigger: "axis",
        axisPointer: { type: "shadow" },
        formatter: ([{ dataIndex }]) => rowText(section, rows[dataIndex]),
      },
      xAxis: {
        type: "category",
        name: "stage",
        nameLocation: "middle",
        nameGap: 24,
        data: rows.map((row) => String(row.stage)),
      },
      yAxis: {
        type: "value",
        max: most * 1.05,
        axisLabel: { formatter: (value) => cellText("_bytes", value), showMaxLabel: false },
      },
      series: [
        ...parts.map((part) => ({
          name: part.title,
          type: "bar",
          stack: "memory",
          barMaxWidth: 70,
          data: rows.map((row) => row[part.key]),
        })),
        limit,
      ],
    },
  };
}
