#!/usr/bin/env python3
"""Published production configurations beside the plans that this program finds for the same jobs.

What a source states of its configuration is held fixed (`plan --compare`); what it leaves open (often
interleaving, micro-batch or recomputation) is chosen for it as for ours. Prints the table of
docs/production.md; with --renew writes it there.

usage: tools/figures/production.py PROGRAM [--renew]
"""

import json
import os
import re
import subprocess
import sys
import tempfile

# name, model, cluster, training (with what the software of the time had), what the source states of the
# plan, measured seconds of a step, source
A100, A100_40, H100 = "dgx-a100-80g", "aws-p4d", "dgx-h100"
BEFORE_FLASH = {"attention": "unfused"}
DEEPSEEK = {"fp8_recipe": "block", "ep_overlap": True, "moe_dispatcher": "deepep",
            "optimizer_dtype": "bf16"}
JOBS = [
    ("Megatron GPT 18B", "megatron-gpt-18b", A100 + ":32", (2048, 1024, "fp16", "megatron-2021", BEFORE_FLASH),
     "tp=8,pp=1,micro_batch=8,recompute=full", 9.399, "arXiv:2104.04473 table 1"),
    ("Megatron GPT 76B", "megatron-gpt-76b", A100 + ":128", (2048, 1792, "fp16", "megatron-2021", BEFORE_FLASH),
     "tp=8,pp=4,vpp=3,micro_batch=2,recompute=full", 16.058, "arXiv:2104.04473 table 1"),
    ("Megatron GPT 145B", "megatron-gpt-145b", A100 + ":192", (2048, 2304, "fp16", "megatron-2021", BEFORE_FLASH),
     "tp=8,pp=8,vpp=2,micro_batch=2,recompute=full", 24.817, "arXiv:2104.04473 table 1"),
    ("Megatron GPT 310B", "megatron-gpt-310b", A100 + ":240", (2048, 2160, "fp16", "megatron-2021", BEFORE_FLASH),
     "tp=8,pp=16,vpp=2,micro_batch=1,recompute=full", 37.614, "arXiv:2104.04473 table 1"),
    ("Megatron GPT 1T", "megatron-gpt-1t", A100 + ":384", (2048, 3072, "fp16", "megatron-2021", BEFORE_FLASH),
     "tp=8,pp=64,vpp=1,micro_batch=1,recompute=full", 102.63, "arXiv:2104.04473 table 1"),
    ("MT-NLG 530B", "mt-nlg-530b", A100 + ":280", (2048, 1920, "bf16", "megatron-2021", BEFORE_FLASH),
     "tp=8,pp=35,recompute=full", 60.1, "arXiv:2201.11990 section 2.3"),
    ("GPT-3 175B", "gpt3-175b", A100 + ":8", (2048, 64, "fp16", "megatron-2022", BEFORE_FLASH),
     "tp=8,pp=8,vpp=3,micro_batch=1,recompute=selective,sequence_parallel=true", 13.75,
     "arXiv:2205.05198 table 5"),
    ("BLOOM 176B", "bloom-176b", A100 + ":48", (2048, 2048, "bf16", "megatron-2021", BEFORE_FLASH),
     "tp=4,pp=12,micro_batch=2,zero_stage=1,recompute=full", 105, "arXiv:2211.05100 section 3.4"),
    ("OPT-175B", "opt-175b", A100 + ":124", (2048, 992, "fp16", "pytorch-fsdp", BEFORE_FLASH),
     "tp=8,pp=1,zero_stage=3,recompute=full", None, "arXiv:2205.01068 section 2.3"),
    ("GPT-NeoX-20B", "gpt-neox-20b", A100_40 + ":12", (2048, 1536, "fp16", "megatron-2021", BEFORE_FLASH),
     "tp=2,pp=4,micro_batch=4,zero_stage=1", None, "arXiv:2204.06745 section 2.2"),
    ("Falcon-40B", "falcon-40b", A100_40 + ":48", (2048, 1152, "bf16", "megatron-2022"),
     "tp=8,pp=4,zero_stage=1", None, "arXiv:2311.16867 section 5"),
    ("Falcon-180B", "falcon-180b", A100_40 + ":512", (2048, 2048, "bf16", "megatron-2022"),
     "tp=8,pp=8,zero_stage=1", None, "arXiv:2311.16867 section 5"),
    ("MegaScale 175B", "gpt3-175b", A100 + ":1536", (2048, 6144, "bf16", "megatron-core"),
     "tp=8,pp=8,vpp=6,micro_batch=1", 6.34, "arXiv:2402.15627 table 2"),
    ("Nemotron-4 15B", "nemotron-4-15b", H100 + ":288", (4096, 1152, "bf16", "megatron-core"),
     "tp=8,pp=1,cp=1", 0.6, "arXiv:2402.16819 table 2"),
    ("Nemotron-4 340B", "nemotron-4-340b", H100 + ":768", (4096, 2304, "bf16", "megatron-core"),
     "tp=8,pp=12,cp=1", 8.0, "arXiv:2406.11704 table 2"),
    ("Llama 3 405B, 8,192 GPUs", "llama-3.1-405b", "grand-teton-h100:1024",
     (8192, 2048, "bf16", "megatron-core"), "tp=8,pp=16,cp=1", None, "arXiv:2407.21783 table 4"),
    ("Llama 3 405B", "llama-3.1-405b", "grand-teton-h100:2048",
     (8192, 2048, "bf16", "megatron-core"), "tp=8,pp=16,cp=1", None, "arXiv:2407.21783 table 4"),
    ("Llama 3 405B, 131,072 tokens", "llama-3.1-405b", "grand-teton-h100:2048",
     (131072, 128, "bf16", "megatron-core"), "tp=8,pp=16,cp=16,cp_method=all-gather", None,
     "arXiv:2407.21783 table 4"),
    ("DeepSeek-V3", "deepseek-v3", "hgx-h800:256", (4096, 15360, "fp8", "megatron-core", DEEPSEEK),
     "tp=1,pp=16,cp=1,ep=64,zero_stage=1,schedule=dualpipe", 19.9,
     "arXiv:2412.19437 section 3.2; the step from 2.664 M GPU hours for 14.8 T tokens"),
    ("Nemotron-4 340B, recipe", "nemotron-4-340b", H100 + ":256",
     (4096, 512, "bf16", "megatron-core"), "tp=8,pp=8,vpp=12,micro_batch=1", None,
     "NVIDIA/dgxc-benchmarking, nemotron4-340b/README.md"),
]
BEGIN, END = "<!-- production begins -->\n", "<!-- production ends -->\n"


def scenario(model, cluster, training):
    seq_len, global_batch, precision, stack, *more = training
    return {"schema": 1, "model": model, "cluster": cluster,
            "training": {"seq_len": seq_len, "global_batch": global_batch, "precision": precision,
                         "stack": stack, **(more[0] if more else {})}}


def planned(program, job, stated):
    """The answer of plan --compare; its exit status is 1 where their plan is not legal or does not fit."""
    with tempfile.TemporaryDirectory() as temp:
        path = os.path.join(temp, "job.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump(job, out)
        command = [program, "plan", path, "--top", "1", "--compare", stated]
        text = subprocess.run(command, capture_output=True, text=True, check=False)
        document = subprocess.run(command + ["--json"], capture_output=True, text=True, check=False)
    if document.returncode not in (0, 1) or not document.stdout:
        sys.exit("%s: %s" % (stated, document.stderr))
    return json.loads(document.stdout), text.stdout, text.stderr


def described(parallel):
    words = ["tp %d" % parallel["tp"], "pp %d" % parallel["pp"]]
    for key in ("vpp", "cp", "ep"):
        if parallel[key] > 1:
            words.append("%s %d" % (key, parallel[key]))
    words.append("mb %d" % parallel["micro_batch"])
    if parallel["recompute"] != "none":
        layers = parallel.get("recompute_layers")
        words.append(parallel["recompute"] + (f":{layers}" if layers else ""))
    if parallel["zero_stage"] and parallel["zero_group"] != parallel["dp"] * parallel["cp"]:
        words.append(f"zero{parallel['zero_stage']}:{parallel['zero_group']}")
    if parallel["schedule"] not in ("1f1b", "interleaved"):
        words.append(parallel["schedule"])
    return " ".join(words)


def reason(text):
    """The terms that --compare names, of its sentence on the best such plan."""
    flat = " ".join(text.split())
    found = re.search(r"slower: (.*?)(?:; within the noise of the best)?\. term ", flat)
    if not found:
        sys.exit("no reason in: " + flat)
    return found.group(1)


def row(program, job):
    name, model, cluster, training, stated, measured_s, source = job
    document, text, said = planned(program, scenario(model, cluster, training), stated)
    best, theirs = document["plans"][0], document["compare"]
    num_gpus = best["parallel"]["tp"] * best["parallel"]["pp"] * best["parallel"]["cp"] * \
        best["parallel"]["dp"]
    cells = [name + " (" + source + ")", "{:,}".format(num_gpus)]
    measured = "%.4g s" % measured_s if measured_s else "-"
    if not theirs["legal"] or not theirs["fits"]:
        why = " ".join(said.split()).split(": ", 1)[-1]
        return cells + [stated.replace(",", " ").replace("=", " "), measured, "-",
                        described(best["parallel"]), "%.4g s" % best["step_time_s"], "-", why]
    plan = theirs["plan"]
    gain = plan["step_time_s"] / best["step_time_s"] - 1
    return cells + [described(plan["parallel"]), measured, "%.4g s" % plan["step_time_s"], described(best["parallel"]),
                    "%.4g s" % best["step_time_s"], "%.1f %%" % (100 * gain),
                    "the same plan" if plan["parallel"] == best["parallel"] else reason(text)]


def main():
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--renew"]):
        sys.exit(__doc__)
    lines = ["| job | GPUs | theirs | measured | predicted | ours | predicted | gain | theirs against ours |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for job in JOBS:
        lines.append("| " + " | ".join(row(sys.argv[1], job)) + " |")
        print(lines[-1], flush=True)
    if len(sys.argv) == 3:
        page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "production.md")
        text = open(page, encoding="utf-8").read()
        begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        with open(page, "w", encoding="utf-8") as out:
            out.write(text[:begin] + "\n".join(lines) + "\n" + text[end:])


if __name__ == "__main__":
    main()
