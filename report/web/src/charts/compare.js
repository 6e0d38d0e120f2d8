// Terms of two plans, beside each other.
import { cellText } from "../format.js";
import { rowText, rowsOf } from "../section.js";
import { colours } from "../theme.js";

export function compare(section) {
  const [, a, b] = section.columns;
  const rows = rowsOf(section).filter((row) => row[a.key] || row[b.key]);
  const c = colours();
  return {
    height: 90 + 44 * rows.length,
    items: 2 * rows.length,
    option: {
      grid: { left: 10, right: 70, top: 40, bottom: 40, containLabel: true },
      legend: { data: [a.title, b.title] },
      tooltip: {
        trigger: "axis",
        axisPointer: { type: "shadow" },
        formatter: ([{ dataIndex }]) => rowText(section, rows[dataIndex]),
      },
      xAxis: { type: "value", axisLabel: { formatter: (value) => cellText(a.key, value) } },
      yAxis: { type: "category", inverse: true, data: rows.map((row) => row.term) },
      series: [a, b].map((side, index) => ({
        name: side.title,
        type: "bar",
        barMaxWidth: 14,
        itemStyle: { color: c.series[index] },
        label: {
          show: true,
          position: "right",
          color: c.text,
          formatter: ({ dataIndex }) => cellText(side.key, rows[dataIndex][side.key]),
        },
        data: rows.map((row) => row[side.key]),
      })),
    },
  };
}
