// Horizontal bars of one figure, the first on top; longer lists show their first ones.
import { cellText } from "../format.js";
import { colours } from "../theme.js";

// rows: [{name, value}]; key: of the value's column; most: bars at the most; max: of the axis
export function bars(rows, { key, most, max, colour }) {
  const c = colours();
  const shown = rows.slice(0, most);
  return {
    height: 60 + 24 * shown.length,
    items: shown.length,
    option: {
      grid: { left: 10, right: 70, top: 10, bottom: 30, containLabel: true },
      tooltip: {
        trigger: "item",
        formatter: ({ dataIndex }) =>
          `${shown[dataIndex].name}\n${cellText(key, shown[dataIndex].value)}`,
      },
      xAxis: { type: "value", max, axisLabel: { formatter: (value) => cellText(key, value) } },
      yAxis: { type: "category", inverse: true, data: shown.map((row) => row.name) },
      series: [
        {
          type: "bar",
          barMaxWidth: 16,
          label: {
            show: true,
            position: "right",
            color: c.text,
            formatter: ({ dataIndex }) => cellText(key, shown[dataIndex].value),
          },
          data: shown.map((row) => ({
            value: row.value,
            itemStyle: { color: c.series[colour?.(row) ?? 0] },
          })),
        },
      ],
    },
  };
}
