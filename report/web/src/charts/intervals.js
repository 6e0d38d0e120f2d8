// Plans side by side: their step times and 80 % intervals.
import { cellText } from "../format.js";
import { rowsOf } from "../section.js";
import { colours } from "../theme.js";
import { whiskers } from "./whiskers.js";

const MOST = 20;

export function intervals(section) {
  const rows = rowsOf(section).slice(0, MOST);
  const c = colours();
  const ends = rows
    .map((row, index) => [index, row.step_time_low_s, row.step_time_high_s])
    .filter(([, low, high]) => low !== null && high !== null);
  return {
    height: 60 + 36 * rows.length,
    items: rows.length,
    option: {
      grid: { left: 10, right: 30, top: 10, bottom: 30, containLabel: true },
      tooltip: {
        trigger: "item",
        formatter: ({ dataIndex }) => {
          const row = rows[dataIndex];
          return `${row.plan}\n${cellText("_s", row.step_time_s)} (${cellText("_s", row.step_time_low_s)} to ${cellText("_s", row.step_time_high_s)})\n${cellText("_bytes", row.memory_device_bytes)}`;
        },
      },
      xAxis: { type: "value", axisLabel: { formatter: (value) => cellText("_s", value) } },
      yAxis: {
        type: "category",
        inverse: true,
        data: rows.map((row) => `${row.rank}: ${row.plan}`),
      },
      series: [
        {
          type: "bar",
          barMaxWidth: 18,
          label: {
            show: true,
            position: "insideLeft",
            color: "#ffffff",
            textBorderColor: "#000000",
            textBorderWidth: 2,
            formatter: ({ dataIndex }) => cellText("_s", rows[dataIndex].step_time_s),
          },
          data: rows.map((row, index) => ({
            value: row.step_time_s,
            itemStyle: { color: c.series[index === 0 ? 2 : 0] },
          })),
        },
        whiskers(ends, c.text, true),
      ],
    },
  };
}
