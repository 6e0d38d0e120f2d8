// Where the time of a step goes: each part stands on the ones before it.
import { cellText } from "../format.js";
import { rowsOf } from "../section.js";
import { colours } from "../theme.js";

const NARROW = 600; // pixels: below, the two figures of a bar stand above each other

export function waterfall(section, width) {
  const [right, join] = width < NARROW ? [62, "\n"] : [122, ", "];
  const rows = rowsOf(section);
  const c = colours();
  let sum = 0;
  const bars = rows.map((row) => {
    const whole = row === rows[rows.length - 1];
    const base = whole ? 0 : sum;
    sum += row.time_s;
    return { base, row, whole };
  });
  const colour = ({ row, whole }) =>
    whole ? c.dim : row.term === "computing" || row.term === "optimizer" ? c.series[2] : c.series[5];
  return {
    height: 60 + 34 * rows.length,
    items: rows.length,
    option: {
      grid: { left: 10, right, top: 10, bottom: 40, containLabel: true },
      tooltip: {
        trigger: "item",
        formatter: ({ dataIndex }) =>
          `${rows[dataIndex].term}\n${cellText("_s", rows[dataIndex].time_s)}, ${cellText("_frac", rows[dataIndex].share_frac)}`,
      },
      xAxis: { type: "value", max: "dataMax", axisLabel: { formatter: (value) => cellText("_s", value) } },
      yAxis: { type: "category", inverse: true, data: rows.map((row) => row.term) },
      series: [
        {
          type: "bar",
          stack: "step",
          silent: true,
          itemStyle: { color: "transparent" },
          data: bars.map((bar) => bar.base),
        },
        {
          type: "bar",
          stack: "step",
          barMaxWidth: 22,
          label: {
            show: true,
            position: "right",
            color: c.text,
            lineHeight: 14,
            formatter: ({ dataIndex }) =>
              `${cellText("_s", rows[dataIndex].time_s)}${join}${cellText("_frac", rows[dataIndex].share_frac)}`,
          },
          data: bars.map((bar) => ({ value: bar.row.time_s, itemStyle: { color: colour(bar) } })),
        },
      ],
    },
  };
}
