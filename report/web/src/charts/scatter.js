// Plans as points: step time against memory, the size of a point its energy.
import { cellText } from "../format.js";
import { rowText, rowsOf } from "../section.js";
import { colours } from "../theme.js";

const SMALLEST = 8;
const LARGEST = 26;
const SPREAD = 5; // beyond it the axis of step times is logarithmic

export function scatter(section) {
  const rows = rowsOf(section);
  const c = colours();
  const energies = rows.map((row) => row.joules_per_token).filter((value) => value !== null);
  const [least, most] = [Math.min(...energies), Math.max(...energies)];
  const size = (row) =>
    row.joules_per_token === null || most === least
      ? SMALLEST + 2
      : SMALLEST + ((LARGEST - SMALLEST) * (row.joules_per_token - least)) / (most - least);
  const steps = rows.map((row) => row.step_time_s);
  const wide = Math.max(...steps) > SPREAD * Math.min(...steps);
  const available = rows[0].memory_available_bytes;
  return {
    height: 400,
    items: rows.length,
    option: {
      grid: { left: 20, right: 70, top: 36, bottom: 50, containLabel: true },
      tooltip: {
        trigger: "item",
        formatter: ({ dataIndex }) => rowText(section, rows[dataIndex]),
      },
      xAxis: {
        type: wide ? "log" : "value",
        scale: true,
        name: "step time",
        nameLocation: "middle",
        nameGap: 30,
        axisLabel: { formatter: (value) => cellText("_s", value) },
      },
      yAxis: {
        type: "value",
        scale: true,
        name: "memory of the fullest GPU; larger points take more energy",
        nameTextStyle: { align: "left" },
        axisLabel: { formatter: (value) => cellText("_bytes", value) },
      },
      series: [
        {
          type: "scatter",
          data: rows.map((row) => ({
            value: [row.step_time_s, row.memory_device_bytes],
            symbolSize: size(row),
            itemStyle: { opacity: 0.75, borderColor: c.back, borderWidth: 1 },
          })),
          markLine: available
            ? {
                symbol: "none",
                silent: true,
                lineStyle: { color: c.bad, type: "dashed" },
                label: { formatter: cellText("_bytes", available), color: c.bad },
                data: [{ yAxis: available }],
              }
            : undefined,
        },
      ],
    },
  };
}
