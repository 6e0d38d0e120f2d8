// The pipeline over a step: for each stage a row of what the estimate has it do, and one of what the
// simulator did. Computations fill a row; a thin strip below shows messages and collectives.
import { cellText } from "../format.js";
import { colours } from "../theme.js";

const IDLE = "waiting (bubble)";
const LEFT_OUT = "not drawn";
const FIELDS = 5; // of a slice: start, duration, kind, chunk, micro-batch
const ROW = 34; // pixels

// Slices of a track as objects, with what lies between its computations as waiting.
function slicesOf(track, run, kinds, row) {
  const slices = [];
  const isTraffic = (kind) => kind === "message" || kind === "collective";
  const gap = run.left_out;
  let end = 0;
  const idle = (from, to) => {
    if (to > from) slices.push({ row, start: from, end: to, kind: IDLE });
  };
  const computing = [];
  for (let i = 0; i < track.slices.length; i += FIELDS) {
    const [start, duration, kind, chunk, microbatch] = track.slices.slice(i, i + FIELDS);
    const slice = { row, start, end: start + duration, kind: kinds[kind], chunk, microbatch };
    (isTraffic(slice.kind) ? slices : computing).push(slice);
  }
  for (const slice of computing) {
    // What is left out is no waiting.
    if (gap && slice.start >= gap[1] && end <= gap[1]) {
      if (end < gap[0]) idle(end, gap[0]);
      end = Math.max(end, Math.min(slice.start, gap[1]));
    }
    idle(end, slice.start);
    slices.push(slice);
    end = Math.max(end, slice.end);
  }
  idle(end, run.end);
  if (gap) slices.push({ row, start: gap[0], end: gap[1], kind: LEFT_OUT });
  return slices;
}

function colourOf(kind, c) {
  return {
    forward: c.series[0],
    backward: c.series[2],
    "backward input": c.series[2],
    "backward weight": c.series[6],
    optimizer: c.series[3],
    message: c.series[1],
    collective: c.series[5],
    [IDLE]: c.idle,
    [LEFT_OUT]: c.back,
  }[kind];
}

function renderSlice(slice, params, api, c) {
  const traffic = slice.kind === "message" || slice.kind === "collective";
  const [left, middle] = api.coord([slice.start, slice.row]);
  const [right] = api.coord([slice.end, slice.row]);
  const height = api.size([0, 1])[1];
  const clip = params.coordSys;
  const from = Math.max(left, clip.x);
  const to = Math.min(right, clip.x + clip.width);
  if (to < from) return undefined;
  const width = Math.max(to - from, 0.6);
  return {
    type: "rect",
    shape: {
      x: from,
      y: middle + height * (traffic ? 0.28 : -0.45),
      width,
      height: height * (traffic ? 0.17 : 0.68),
    },
    style: {
      fill: colourOf(slice.kind, c),
      stroke: slice.kind === LEFT_OUT ? c.dim : width > 4 ? c.back : undefined,
      lineDash: slice.kind === LEFT_OUT ? [3, 3] : undefined,
      lineWidth: width > 4 ? 0.7 : 0,
    },
    textContent:
      width > 26 && !traffic && slice.microbatch >= 0
        ? { style: { text: String(slice.microbatch), fill: "#ffffff", stroke: "#000000", lineWidth: 1.5, fontSize: 10 } }
        : undefined,
    textConfig: { position: "inside" },
  };
}

export function timeline(section) {
  const c = colours();
  const { runs, kinds, tick_s: tick } = section.data;
  const rows = [];
  const slices = [];
  runs[0].tracks.forEach((track, index) => {
    for (const run of runs) {
      slices.push(...slicesOf(run.tracks[index], run, kinds, rows.length));
      rows.push(`stage ${track.stage} ${run.name}`);
    }
  });
  const present = [...kinds, IDLE, LEFT_OUT].filter((kind) => slices.some((slice) => slice.kind === kind));
  const longest = Math.max(...runs.map((run) => run.end));
  const time = (value) => cellText("_s", value * tick);
  return {
    height: 130 + ROW * rows.length,
    items: slices.length,
    renderer: "canvas",
    zoom: true,
    option: {
      grid: { left: 10, right: 20, top: 40, bottom: 70, containLabel: true },
      legend: { data: present },
      dataZoom: [
        { type: "slider", filterMode: "none", bottom: 8, height: 22, labelFormatter: time, showDataShadow: false },
        { type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl" },
      ],
      tooltip: {
        trigger: "item",
        formatter: ({ data }) => {
          const slice = data.slice;
          const work = slice.microbatch >= 0 ? `, micro-batch ${slice.microbatch}, chunk ${slice.chunk}` : "";
          return `${rows[slice.row]}\n${slice.kind}${work}\n${time(slice.start)} to ${time(slice.end)} (${time(slice.end - slice.start)})`;
        },
      },
      xAxis: { type: "value", min: 0, max: longest, axisLabel: { formatter: time }, splitLine: { show: false } },
      yAxis: { type: "category", inverse: true, data: rows, axisTick: { show: false } },
      series: present.map((kind) => {
        const own = slices.filter((slice) => slice.kind === kind);
        return {
          name: kind,
          type: "custom",
          progressive: 0, // all at once: a half-drawn timeline would look like waiting
          itemStyle: { color: colourOf(kind, c), borderColor: c.line, borderWidth: kind === LEFT_OUT ? 1 : 0 },
          encode: { x: [0, 1], y: 2 },
          data: own.map((slice) => ({ value: [slice.start, slice.end, slice.row], slice })),
          renderItem: (params, api) => renderSlice(own[params.dataIndex], params, api, c),
        };
      }),
    },
  };
}
