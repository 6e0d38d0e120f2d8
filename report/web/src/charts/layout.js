// The machines: every GPU in its node, coloured by its pipeline stage.
import { colours } from "../theme.js";

const CELL = 22; // pixels of a GPU, and of a node's row
const FIELDS = ["node", "index", "rank", "stage", "dp", "cp", "tp"];

function gpusOf(section) {
  return section.data.gpus.map((cells) =>
    Object.fromEntries(FIELDS.map((field, index) => [field, cells[index]])),
  );
}

export function layout(section) {
  const gpus = gpusOf(section);
  const c = colours();
  const gpuOf = new Map(gpus.map((gpu) => [gpu.rank, gpu]));
  const nodes = [...new Set(gpus.map((gpu) => gpu.node))].sort((a, b) => a - b);
  const rowOf = new Map(nodes.map((node, index) => [node, index]));
  const perNode = section.data.gpus_per_node;
  // Few nodes have a row each; of many several share one, side by side.
  const side = Math.max(1, Math.ceil(nodes.length / 24));
  const labels = [];
  for (let first = 0; first < nodes.length; first += side)
    labels.push(side === 1 ? `node ${nodes[first]}` : `from node ${nodes[first]}`);
  const place = (gpu) => {
    const row = rowOf.get(gpu.node);
    return [(row % side) * (perNode + 0.4) + gpu.index, Math.floor(row / side)];
  };
  const stages = [...new Set(gpus.map((gpu) => gpu.stage))].sort((a, b) => a - b);
  const layersOf = new Map(section.rows.map((row) => [row[0], row[3]]));
  const label = (gpu) => (side * perNode <= 16 ? `dp${gpu.dp} cp${gpu.cp} tp${gpu.tp}` : "");
  const colour = (stage) => c.series[stage % c.series.length];
  return {
    height: 90 + CELL * 1.25 * labels.length,
    items: gpus.length,
    renderer: gpus.length > 256 ? "canvas" : "svg",
    option: {
      grid: { left: 10, right: 10, top: 40, bottom: 10, containLabel: true },
      legend: { data: stages.slice(0, 24).map((stage) => `stage ${stage}`), selectedMode: false },
      tooltip: {
        trigger: "item",
        formatter: ({ data }) => {
          const gpu = data.gpu;
          return `node ${gpu.node}, GPU ${gpu.index}: rank ${gpu.rank}\nstage ${gpu.stage}, layers ${layersOf.get(gpu.stage)}\ntp ${gpu.tp}, cp ${gpu.cp}, dp ${gpu.dp}`;
        },
      },
      xAxis: { type: "value", min: 0, max: side * (perNode + 0.4), show: false },
      yAxis: { type: "category", inverse: true, data: labels, axisTick: { show: false } },
      series: stages.map((stage) => ({
        name: `stage ${stage}`,
        type: "custom",
        progressive: 0,
        itemStyle: { color: colour(stage) },
        data: gpus
          .filter((gpu) => gpu.stage === stage)
          .map((gpu) => ({ value: [...place(gpu), gpu.rank], gpu })),
        renderItem: (_, api) => {
          const [left, middle] = api.coord([api.value(0), api.value(1)]);
          const [width, height] = api.size([1, 1]);
          const gpu = gpuOf.get(api.value(2));
          return {
            type: "rect",
            shape: { x: left + 1, y: middle - height * 0.42, width: width - 2, height: height * 0.84, r: 3 },
            style: { fill: colour(stage) },
            textContent: {
              style: { text: label(gpu), fill: "#ffffff", stroke: "#000000", lineWidth: 1.5, fontSize: 10 },
            },
            textConfig: { position: "inside" },
          };
        },
      })),
    },
  };
}
