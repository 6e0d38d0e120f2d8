// The machines: every GPU in its node, coloured by its pipeline stage. Of many GPUs nodes that do
// the same work but for the replica that they work for are one row, "x 32".
import { textWidth } from "../fit.js";
import { colours } from "../theme.js";

const CELL = 22; // pixels of a GPU, and of a node's row
const MOST_UNFOLDED = 64; // GPUs
const FIELDS = ["node", "index", "rank", "stage", "dp", "cp", "tp"];

function gpusOf(section) {
  return section.data.gpus.map((cells) =>
    Object.fromEntries(FIELDS.map((field, index) => [field, cells[index]])),
  );
}

// Nodes with their GPUs, and what tells one from another.
function nodesOf(gpus) {
  const nodes = new Map();
  for (const gpu of gpus) {
    if (!nodes.has(gpu.node)) nodes.set(gpu.node, []);
    nodes.get(gpu.node).push(gpu);
  }
  return [...nodes]
    .sort(([a], [b]) => a - b)
    .map(([node, own]) => {
      own.sort((a, b) => a.index - b.index);
      return { node, gpus: own, work: own.map(({ index, stage, cp, tp }) => [index, stage, cp, tp].join()).join(" ") };
    });
}

// Neighbours that are alike are one row.
function runsOf(nodes) {
  const rows = [];
  for (const node of nodes) {
    const last = rows[rows.length - 1];
    if (last && last.work === node.work) {
      last.times++;
      last.to = node.node;
    } else rows.push({ ...node, times: 1, to: node.node });
  }
  return rows;
}

// Where a few nodes are repeated in their order: these few. null where they are not.
function periodOf(nodes) {
  for (let period = 2; 2 * period <= nodes.length; period++) {
    if (nodes.length % period !== 0) continue;
    if (nodes.every(({ work }, index) => work === nodes[index % period].work)) return period;
  }
  return null;
}

function rowsOf(section, gpus) {
  const nodes = nodesOf(gpus);
  const { stage_gpus: all, stage_gpus_drawn: drawn } = section.data;
  const more = all && drawn ? all / drawn : 1; // not in the document, and alike
  if (gpus.length * more <= MOST_UNFOLDED)
    return nodes.map((node) => ({ ...node, times: 1, label: `node ${node.node}` }));
  let rows = runsOf(nodes);
  const period = periodOf(nodes);
  let every = "";
  if (period && period < rows.length) {
    rows = nodes.slice(0, period).map((node) => ({ ...node, times: nodes.length / period, to: node.node }));
    every = `, every ${period}`;
  }
  return rows.map((row) => {
    const times = Math.round(row.times * more);
    const name = more > 1 || every ? `from node ${row.node}` : row.times > 1 ? `nodes ${row.node}-${row.to}` : `node ${row.node}`;
    return { ...row, times, label: times > 1 ? `${name}${every} (x ${times})` : name, folded: times > 1 };
  });
}

export function layout(section, width) {
  const gpus = gpusOf(section);
  const c = colours();
  const rows = rowsOf(section, gpus);
  const gpuOf = new Map(gpus.map((gpu) => [gpu.rank, gpu]));
  const perNode = section.data.gpus_per_node;
  // Few nodes have a row each; of many several share one, side by side.
  const side = Math.max(1, Math.ceil(rows.length / 24));
  const labels = [];
  for (let first = 0; first < rows.length; first += side)
    labels.push(side === 1 ? rows[first].label : `from ${rows[first].label}`);
  const place = (row, gpu) => [(row % side) * (perNode + 0.4) + gpu.index, Math.floor(row / side)];
  const stages = [...new Set(gpus.map((gpu) => gpu.stage))].sort((a, b) => a - b);
  const layersOf = new Map(section.rows.map((row) => [row[0], row[3]]));
  const drawn = rows.flatMap((row, index) =>
    row.gpus.map((gpu) => ({ value: [...place(index, gpu), gpu.rank], gpu, row })),
  );
  const foldedOf = new Map(drawn.map(({ gpu, row }) => [gpu.rank, row.folded]));
  const cell = (width * 0.75) / (side * (perNode + 0.4));
  const label = (gpu) => {
    const text = `${foldedOf.get(gpu.rank) ? "" : `dp${gpu.dp} `}cp${gpu.cp} tp${gpu.tp}`;
    return textWidth(text) + 4 < cell ? text : "";
  };
  const colour = (stage) => c.series[stage % c.series.length];
  return {
    height: 90 + CELL * 1.25 * labels.length,
    items: drawn.length,
    stands: rows.reduce((sum, row) => sum + row.times * row.gpus.length, 0),
    renderer: drawn.length > 256 ? "canvas" : "svg",
    option: {
      grid: { left: 10, right: 10, top: 40, bottom: 10, containLabel: true },
      legend: { data: stages.slice(0, 24).map((stage) => `stage ${stage}`), selectedMode: false },
      tooltip: {
        trigger: "item",
        formatter: ({ data }) => {
          const { gpu, row } = data;
          const times = row.folded ? `${row.label}, the first of them\n` : "";
          return `${times}node ${gpu.node}, GPU ${gpu.index}: rank ${gpu.rank}\nstage ${gpu.stage}, layers ${layersOf.get(gpu.stage)}\ntp ${gpu.tp}, cp ${gpu.cp}, dp ${gpu.dp}`;
        },
      },
      xAxis: { type: "value", min: 0, max: side * (perNode + 0.4), show: false },
      yAxis: { type: "category", inverse: true, data: labels, axisTick: { show: false } },
      series: stages.map((stage) => ({
        name: `stage ${stage}`,
        type: "custom",
        progressive: 0,
        itemStyle: { color: colour(stage) },
        data: drawn.filter(({ gpu }) => gpu.stage === stage),
        renderItem: (_, api) => {
          const [left, middle] = api.coord([api.value(0), api.value(1)]);
          const [wide, high] = api.size([1, 1]);
          const gpu = gpuOf.get(api.value(2));
          const gap = wide > 8 ? 1 : 0.25;
          return {
            type: "rect",
            shape: { x: left + gap, y: middle - high * 0.42, width: wide - 2 * gap, height: high * 0.84, r: wide > 8 ? 3 : 0 },
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
