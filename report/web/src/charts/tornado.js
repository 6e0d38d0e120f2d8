// What limits a job: how far the step moves with more and with less of each resource.
import { cellText } from "../format.js";
import { rowText, rowsOf } from "../section.js";
import { colours } from "../theme.js";

const SIDES = [
  { key: "more_step_time_s", name: "more of it", colour: 2 },
  { key: "less_step_time_s", name: "less of it", colour: 5 },
];

export function tornado(section) {
  const rows = rowsOf(section);
  const c = colours();
  const shift = (row, side) =>
    row[side.key] === null || !row.base_step_time_s ? 0 : row[side.key] / row.base_step_time_s - 1;
  return {
    height: 90 + 30 * rows.length,
    items: rows.length * SIDES.length,
    option: {
      grid: { left: 10, right: 40, top: 40, bottom: 40, containLabel: true },
      legend: { data: SIDES.map((side) => side.name) },
      tooltip: {
        trigger: "axis",
        axisPointer: { type: "shadow" },
        formatter: ([{ dataIndex }]) => rowText(section, rows[dataIndex]),
      },
      xAxis: {
        type: "value",
        name: "change of the step",
        nameLocation: "middle",
        nameGap: 26,
        axisLabel: { formatter: (value) => cellText("_frac", value) },
      },
      yAxis: {
        type: "category",
        inverse: true,
        data: rows.map((row) => row.resource),
        axisLine: { onZero: false },
      },
      series: SIDES.map((side) => ({
        name: side.name,
        type: "bar",
        stack: "change",
        barMaxWidth: 18,
        itemStyle: { color: c.series[side.colour] },
        data: rows.map((row) => shift(row, side)),
      })),
    },
  };
}
