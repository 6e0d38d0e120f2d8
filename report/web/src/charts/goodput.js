// Goodput over the time between two checkpoints: what was played, with its standard error, and the
// formula; the best interval as a line.
import { cellText } from "../format.js";
import { rowText, rowsOf, titleOf } from "../section.js";
import { colours } from "../theme.js";

export function goodput(section) {
  const rows = rowsOf(section).filter((row) => row.interval_s > 0);
  const c = colours();
  const line = (key, colour, type) => ({
    name: titleOf(section, key),
    type: "line",
    symbolSize: type === "solid" ? 7 : 4,
    itemStyle: { color: colour },
    lineStyle: { color: colour, width: 2, type },
    data: rows.map((row) => ({ value: [row.interval_s, row[key]], row })),
  });
  const best = {
    symbol: "none",
    silent: true,
    lineStyle: { color: c.dim, type: "dashed" },
    label: { formatter: `best: ${cellText("_s", section.data.best_interval_s)}`, color: c.text },
    data: [{ xAxis: section.data.best_interval_s }],
  };
  return {
    height: 380,
    items: rows.length,
    option: {
      grid: { left: 20, right: 60, top: 60, bottom: 50, containLabel: true },
      legend: { data: ["goodput_frac", "formula_goodput_frac"].map((key) => titleOf(section, key)) },
      tooltip: { trigger: "item", formatter: ({ data }) => rowText(section, data.row) },
      xAxis: {
        type: "log",
        name: titleOf(section, "interval_s"),
        nameLocation: "middle",
        nameGap: 30,
        min: "dataMin",
        max: "dataMax",
        axisLabel: { formatter: (value) => cellText("_s", value) },
      },
      yAxis: {
        type: "value",
        scale: true,
        name: "goodput",
        axisLabel: { formatter: (value) => `${(value * 100).toFixed(2)} %` },
      },
      series: [
        { ...line("goodput_frac", c.series[0], "solid"), markLine: best },
        line("formula_goodput_frac", c.series[1], "dotted"),
      ],
    },
  };
}
