// Plans as points: step time against memory, the size of a point its energy.
import { wrapped } from "../fit.js";
import { cellText } from "../format.js";
import { rowText, rowsOf } from "../section.js";
import { colours } from "../theme.js";

const SMALLEST = 8;
const LARGEST = 26;
const SPREAD = 5; // beyond it the axis of step times is logarithmic

const NAME_WIDTH = 190; // pixels of a plan's name beside its point
const NARROW = 720; // below, and of many plans, a number stands for the name
const MOST_NAMED = 12;

// The plan's degrees: what follows the micro-batch is in the tooltip and the table.
const nameOf = (plan) => String(plan).split(" mb ")[0];

export function scatter(section, width) {
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
  const middle = wide
    ? Math.sqrt(Math.max(...steps) * Math.min(...steps))
    : (Math.max(...steps) + Math.min(...steps)) / 2;
  const brief = width < NARROW || rows.length > MOST_NAMED;
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
        name: `memory of the fullest GPU; larger points take more energy${brief ? "; numbers are the rows of the table" : ""}`,
        nameTextStyle: { align: "left" },
        axisLabel: { formatter: (value) => cellText("_bytes", value) },
      },
      series: [
        {
          type: "scatter",
          labelLayout: { moveOverlap: "shiftY" },
          label: {
            show: rows.length <= 60,
            color: c.text,
            fontSize: 11,
            lineHeight: 13,
            formatter: ({ dataIndex }) =>
              brief
                ? String(dataIndex + 1)
                : wrapped(`${dataIndex + 1}: ${nameOf(rows[dataIndex].plan)}`, NAME_WIDTH).join("\n"),
          },
          data: rows.map((row) => ({
            label: { position: row.step_time_s > middle ? "left" : "right" },
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
