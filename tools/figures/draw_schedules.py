#!/usr/bin/env python3
"""Pictures of all pipeline schedules, drawn from the traces of simulations.

usage: tools/figures/draw_schedules.py PROGRAM [FOLDER]
Writes FOLDER/SCHEDULE.svg (docs/schedules) for each schedule that PROGRAM, a meshwright, supports, all on one time scale,
and, without FOLDER, the section between the two marks in docs/simulation.md that shows them.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
MARKS = ("<!-- written by tools/figures/draw_schedules.py -->", "<!-- end of what it writes -->")
# Layers alike, and so few words that embedding and loss do not show.
SCENARIO = {
    "schema": 1,
    "model": {"model_type": "generic", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
              "intermediate_size": 16384, "vocab_size": 1024, "tie_word_embeddings": False},
    "cluster": "dgx-h100:1",
    "training": {"seq_len": 4096, "global_batch": 8, "precision": "bf16"},
}
PARALLEL = {"tp": 2, "pp": 4, "dp": 1}
CHUNKS_A_RANK = {"interleaved": 2, "breadth-first": 2}  # others: as the schedule has it

LEFT, TOP, WIDTH, ROW, GAP = 54, 30, 1000, 26, 4
KINDS = {"forward": "f", "backward": "b", "backward-input": "i", "backward-weight": "w", "optimizer": "o"}
LEGEND = {"f": "forward", "b": "backward", "i": "backward, input", "w": "backward, weights", "o": "optimizer"}
STYLE = """text{font:11px sans-serif;fill:#57606a}
.t{font-weight:bold}
.n{font-size:10px;fill:#10151b;text-anchor:middle}
.f{fill:#7db3ff}.b{fill:#8fd19e}.i{fill:#ffc266}.w{fill:#c9a6f2}.o{fill:#aab4bf}
.f.c1{fill:#c4dcff}.b.c1{fill:#cbeed3}.i.c1{fill:#ffe3ba}.w.c1{fill:#e6d7fa}
.r{fill:#8b949e;fill-opacity:.16}
@media(prefers-color-scheme:dark){text{fill:#c9d1d9}.n{fill:#10151b}}"""


def run(program, command, scenario, *options):
    return subprocess.run([program, command, "-", "--json", *options], input=json.dumps(scenario),
                          capture_output=True, text=True)


def scenario_of(schedule):
    parallel = dict(PARALLEL, schedule=schedule)
    if schedule in CHUNKS_A_RANK:
        parallel["vpp"] = CHUNKS_A_RANK[schedule]
    return dict(SCENARIO, parallel=parallel)


def schedules(program):
    """All that the program names when it refuses one, less those that it does not support yet."""
    refusal = run(program, "estimate", scenario_of("?")).stderr
    names = re.search(r"expected one of (.*)", refusal).group(1).split(", ")
    return [name for name in names if run(program, "estimate", scenario_of(name)).returncode == 0]


def simulated(program, schedule):
    """Boxes of computation by stage: lists of (start, end, kind, chunk on the rank, micro-batch), in ms."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        done = run(program, "simulate", scenario_of(schedule), "--trace", path)
        if done.returncode != 0:
            sys.exit(f"{schedule}: {done.stderr.strip()}")
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    process = next(e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] == "simulation")
    stages = {}  # of tracks
    for event in events:
        if event["ph"] == "M" and event["pid"] == process and event["name"] == "thread_name":
            found = re.match(r"rank \d+ stage (\d+) compute$", event["args"]["name"])
            if found:
                stages[event["tid"]] = int(found.group(1))
    boxes = [[] for _ in stages]
    for event in events:
        if event["ph"] != "X" or event["pid"] != process or event["cat"] not in KINDS or event["tid"] not in stages:
            continue
        row = boxes[stages[event["tid"]]]
        kind, chunk, batch = KINDS[event["cat"]], event["args"].get("chunk", 0), event["args"].get("micro_batch", -1)
        start, end = round(event["ts"] * 1000) / 1e6, round((event["ts"] + event["dur"]) * 1000) / 1e6  # whole ns
        if row and row[-1][2:] == (kind, chunk, batch) and start - row[-1][1] < 1e-3:
            start = row.pop()[0]  # pieces of one computation
        row.append((start, end, kind, chunk, batch))
    for row in boxes:
        chunks = sorted({box[3] for box in row if box[2] != "o"})
        row[:] = [(s, e, k, chunks.index(c) if k != "o" else 0, b) for s, e, k, c, b in row]
    return boxes


def bubble_frac(boxes):
    """Of the time until the last backward ends, what the stages' GPUs do not compute."""
    work = [(start, end) for row in boxes for start, end, kind, _, _ in row if kind != "o"]
    until = max(end for _, end in work)
    return 1 - sum(end - start for start, end in work) / (until * len(boxes))


def in_flight(row, chunks):
    """The most micro-batches whose activations a stage of so many chunks holds: begun and not yet through all of their
    backward."""
    ends = {}
    for start, end, kind, chunk, batch in row:
        if kind in "biw":
            ends[chunk, batch] = max(end, ends.get((chunk, batch), end))
    changes = [(start, 1) for start, _, kind, _, _ in row if kind == "f"] + [(end, -1) for end in ends.values()]
    held = most = 0
    for _, change in sorted(changes):
        held += change
        most = max(most, held)
    return most / chunks


def caption(schedule, boxes):
    # A rank of DualPipe has two stages, each of which every second micro-batch runs through.
    chunks = 1 if schedule == "dualpipe" else 1 + max(box[3] for row in boxes for box in row)
    most = [in_flight(row, chunks) for row in boxes]
    return (f"{schedule}: bubble {100 * bubble_frac(boxes):.1f} %, activations of "
            f"{', '.join(f'{held:g}' for held in most)} micro-batches on stages 0 to {len(most) - 1}")


def drawn(title, boxes, ms_width):
    """The SVG text; ms_width is the time that the picture spans."""
    scale = (WIDTH - LEFT - 8) / ms_width
    bottom = TOP + len(boxes) * (ROW + GAP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 44}" role="img">',
           f"<title>{title}</title>", f"<style>{STYLE}</style>", f'<text class="t" x="{LEFT}" y="18">{title}</text>']
    for stage, row in enumerate(boxes):
        y = TOP + stage * (ROW + GAP)
        out.append(f'<text x="4" y="{y + 17}">stage {stage}</text>')
        out.append(f'<rect class="r" x="{LEFT}" y="{y}" width="{max(b[1] for b in row) * scale:.1f}" height="{ROW}"/>')
        for start, end, kind, chunk, batch in row:
            x, width = LEFT + start * scale, (end - start) * scale
            shade = " c1" if chunk else ""
            out.append(f'<rect class="{kind}{shade}" x="{x + .3:.1f}" y="{y}" width="{max(width - .6, .4):.1f}" '
                       f'height="{ROW}"/>')
            if batch >= 0 and width >= 7:
                out.append(f'<text class="n" x="{x + width / 2:.1f}" y="{y + 17}">{batch + 1}</text>')
    out += axis(scale, ms_width, bottom)
    out += legend(boxes, bottom + 34)
    return "\n".join(out + ["</svg>", ""])


def axis(scale, ms_width, bottom):
    step = next(s for s in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000) if ms_width / s <= 12)
    return [f'<text x="{LEFT + at * scale:.1f}" y="{bottom + 10}">{at}{" ms" if at == 0 else ""}</text>'
            for at in range(0, int(0.98 * ms_width), step)]


def legend(boxes, y):
    out, x = [], LEFT
    kinds = {box[2] for row in boxes for box in row}
    chunks = max(box[3] for row in boxes for box in row)
    for kind in (kind for kind in LEGEND if kind in kinds):
        out.append(f'<rect class="{kind}" x="{x}" y="{y - 10}" width="14" height="12"/>')
        out.append(f'<text x="{x + 19}" y="{y}">{LEGEND[kind]}</text>')
        x += 40 + 6.2 * len(LEGEND[kind])
    notes = "numbers: micro-batches" + ("; light: second chunk of the stage" if chunks else "")
    return out + [f'<text x="{x:.0f}" y="{y}">{notes}</text>']


def section_write(captions):
    path = os.path.join(DOCS, "simulation.md")
    with open(path) as file:
        text = file.read()
    begin, end = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
    lines = [f"![{title}](schedules/{name}.svg)\n" for name, title in captions.items()]
    with open(path, "w") as file:
        file.write(text[:begin] + "\n\n" + "\n".join(lines) + "\n" + text[end:])


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    program = sys.argv[1]
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(DOCS, "schedules")
    os.makedirs(folder, exist_ok=True)
    all_boxes = {schedule: simulated(program, schedule) for schedule in schedules(program)}
    ms_width = max(box[1] for boxes in all_boxes.values() for row in boxes for box in row)
    captions = {schedule: caption(schedule, boxes) for schedule, boxes in all_boxes.items()}
    for schedule, boxes in all_boxes.items():
        with open(os.path.join(folder, schedule + ".svg"), "w") as file:
            file.write(drawn(captions[schedule], boxes, ms_width))
        print(captions[schedule])
    if len(sys.argv) == 2:
        section_write(captions)


main()
