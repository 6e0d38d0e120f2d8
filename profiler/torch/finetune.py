"""Fine-tuning under Hugging Face's Trainer on one GPU: python3 finetune.py OUT.jsonl [--seconds S] [--smoke] [NAME..]

Models are built from configurations with random weights and trained on random tokens of one length; each
case is a process of its own (forked, so that libraries are imported once). A row says how it was trained and
  steps_s              seconds of each step, after two that warm up; the GPU is waited for at each end
  loaded_bytes         allocated when the model is on the GPU
  rest_bytes           after a step: weights, optimizer, no gradients
  peak_bytes, reserved_bytes, device_bytes   of the allocator; of the GPU in all
  kernels_s, num_kernels, kernels            of one step under PyTorch's profiler, the longest by name
or `error`; out of memory says what was allocated then.
"""

import argparse
import gc
import os
import statistics
import sys
import time
import traceback

os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # the parent forks: it must not start CUDA
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from transformers import Trainer, TrainerCallback, TrainingArguments

from measure import device_row, emit

# hidden, layers, heads, KV heads, head size, MLP, words, tied
SHAPES = {
    "qwen3-0.6b": (1024, 28, 16, 8, 128, 3072, 151936, True),
    "qwen3-1.7b": (2048, 28, 16, 8, 128, 6144, 151936, True),
    "qwen3-4b": (2560, 36, 32, 8, 128, 9728, 151936, True),
    "qwen3-8b": (4096, 36, 32, 8, 128, 12288, 151936, False),
    "llama-3.2-1b": (2048, 16, 32, 8, 64, 8192, 128256, True),
    "llama-3.2-3b": (3072, 28, 24, 8, 128, 8192, 128256, True),
    "llama-3.1-8b": (4096, 32, 32, 8, 128, 14336, 128256, False),
    "qwen3-30b-a3b:6": (2048, 6, 32, 4, 128, 768, 151936, False),  # 6 of 48 layers
}
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ATTENTION = ["q_proj", "v_proj"]


def case(model, seq, batch, method="full", weights="fp32", checkpoint=False, accumulate=1, optim="adamw_torch_fused",
         attention="sdpa", rank=16, targets="linear", frozen=(), objective="sft"):
    return {"model": model, "seq": seq, "batch": batch, "method": method, "weights": weights, "checkpoint": checkpoint,
            "accumulate": accumulate, "optim": optim, "attention": attention, "rank": rank, "targets": targets,
            "frozen": list(frozen), "objective": objective}


def lora(model, seq, batch, **more):
    return case(model, seq, batch, method="lora", weights="bf16", **more)


# The most valuable first.
CASES = [
    lora("llama-3.1-8b", 2048, 1), case("llama-3.2-1b", 2048, 2), case("qwen3-1.7b", 2048, 2, checkpoint=True),
    case("qwen3-30b-a3b:6", 2048, 2, weights="bf16", checkpoint=True), lora("llama-3.1-8b", 2048, 4, checkpoint=True),
    case("llama-3.2-3b", 2048, 1, weights="bf16"), lora("qwen3-8b", 4096, 1, checkpoint=True),
    case("qwen3-0.6b", 2048, 4), case("llama-3.1-8b", 2048, 1, weights="bf16", checkpoint=True, optim="adafactor"),
    case("llama-3.1-8b", 1024, 1, weights="bf16", checkpoint=True), lora("qwen3-4b", 2048, 2),
    case("llama-3.2-1b", 2048, 2, accumulate=4), lora("llama-3.1-8b", 8192, 1, checkpoint=True),
    lora("llama-3.1-8b", 2048, 1, targets="attention", rank=8),
    case("llama-3.1-8b", 2048, 1, method="dora", weights="bf16", checkpoint=True),
    case("llama-3.2-1b", 2048, 2, weights="bf16"), case("llama-3.2-1b", 8192, 1, checkpoint=True),
    case("qwen3-4b", 2048, 1, weights="bf16", checkpoint=True), lora("llama-3.2-1b", 512, 8), lora("qwen3-8b", 1024, 4),
    case("llama-3.2-1b", 2048, 2, objective="dpo", weights="bf16"), lora("llama-3.1-8b", 1024, 2, objective="dpo", checkpoint=True),
    case("qwen3-30b-a3b:6", 2048, 2, weights="bf16"), lora("qwen3-30b-a3b:6", 2048, 2, targets="attention"),
    case("llama-3.2-1b", 2048, 2, frozen=["embed_tokens"]), case("llama-3.2-1b", 2048, 1, attention="eager"),
    case("llama-3.2-1b", 2048, 2, optim="adamw_torch"), case("llama-3.2-1b", 2048, 2, optim="sgd"),
    case("qwen3-4b", 2048, 1, checkpoint=True), lora("llama-3.1-8b", 2048, 1, rank=64), lora("qwen3-1.7b", 4096, 2),
    case("qwen3-0.6b", 512, 16), case("qwen3-0.6b", 4096, 2, checkpoint=True), lora("llama-3.2-3b", 4096, 2, checkpoint=True),
    case("llama-3.2-3b", 4096, 1, weights="bf16", checkpoint=True), lora("qwen3-8b", 2048, 2, accumulate=4, checkpoint=True),
]
SMOKE = [case("qwen3-0.6b", 512, 2), lora("llama-3.2-1b", 512, 1, checkpoint=True),
         case("qwen3-30b-a3b:6", 512, 1, weights="bf16"), case("llama-3.2-1b", 512, 1, objective="dpo", weights="bf16")]
NUM_WARMUP, NUM_STEPS = 2, 4


def config_of(run):
    hidden, layers, heads, kv_heads, head_dim, mlp, words, tied = SHAPES[run["model"]]
    fields = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
              "num_key_value_heads": kv_heads, "head_dim": head_dim, "intermediate_size": mlp, "vocab_size": words,
              "tie_word_embeddings": tied, "max_position_embeddings": 32768}
    if "a3b" in run["model"]:
        return transformers.Qwen3MoeConfig(**{**fields, "intermediate_size": 6144}, moe_intermediate_size=mlp,
                                           num_experts=128, num_experts_per_tok=8, norm_topk_prob=True,
                                           decoder_sparse_step=1)
    return (transformers.Qwen3Config if "qwen3" in run["model"] else transformers.LlamaConfig)(**fields)


def model_of(run):
    dtype = torch.float32 if run["weights"] == "fp32" else torch.bfloat16
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config_of(run), dtype=dtype,
                                                              attn_implementation=run["attention"])
    model.config.use_cache = False
    for name, parameter in model.named_parameters():
        if any(part in name for part in run["frozen"]):
            parameter.requires_grad_(False)
    if run["method"] == "full":
        return model
    from peft import LoraConfig, get_peft_model
    targets = ATTENTION if run["targets"] == "attention" else LINEAR
    if run["checkpoint"]:
        model.enable_input_require_grads()
    return get_peft_model(model, LoraConfig(r=run["rank"], lora_alpha=2 * run["rank"], target_modules=targets,
                                            use_dora=run["method"] == "dora", task_type="CAUSAL_LM"))


class Tokens(torch.utils.data.Dataset):
    def __init__(self, run, num):
        self.rows = torch.randint(1000, 100000, (num, run["seq"]))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return {"input_ids": row, "labels": row.clone(), "attention_mask": torch.ones_like(row)}


class Watch(TrainerCallback):
    """Takes the time and the memory of each step; the last runs under the profiler."""

    def __init__(self):
        self.ends, self.rest, self.profiler = [], [], None

    def on_step_begin(self, args, state, control, **_):
        if state.global_step == NUM_WARMUP + NUM_STEPS:
            torch.cuda.synchronize()
            self.peak = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
            self.profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
            self.profiler.__enter__()
        elif state.global_step == 0:
            torch.cuda.synchronize()
            self.ends.append(time.monotonic())

    def on_step_end(self, args, state, control, **_):
        torch.cuda.synchronize()
        if self.profiler:
            self.profiler.__exit__(None, None, None)
            return
        self.ends.append(time.monotonic())
        self.rest.append(torch.cuda.memory_allocated())


def log_probabilities(model, inputs):
    """Summed log probabilities of the answers, as DPO compares them."""
    logits = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits[:, :-1]
    labels = inputs["labels"][:, 1:]
    return torch.gather(logits.float().log_softmax(-1), 2, labels.unsqueeze(2)).squeeze(2).sum(-1)


class Preference(Trainer):
    """DPO: half of a batch are chosen answers, half rejected; a frozen reference gives its own."""

    reference = None

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        own = log_probabilities(model, inputs)
        with torch.no_grad():
            if self.reference is not None:
                other = log_probabilities(self.reference, inputs)
            else:
                with model.disable_adapter():
                    other = log_probabilities(model, inputs)
        half = own.shape[0] // 2
        margin = (own[:half] - own[half:]) - (other[:half] - other[half:])
        return -torch.nn.functional.logsigmoid(0.1 * margin).mean()


def train(run):
    model = model_of(run)
    dpo = run["objective"] == "dpo"
    rows = (2 if dpo else 1) * run["batch"]
    num_steps = NUM_WARMUP + NUM_STEPS + 1
    arguments = TrainingArguments(
        output_dir="/tmp/finetune", per_device_train_batch_size=rows, gradient_accumulation_steps=run["accumulate"],
        max_steps=num_steps, logging_strategy="no", save_strategy="no", report_to="none", bf16=True,
        gradient_checkpointing=run["checkpoint"], optim=run["optim"], learning_rate=1e-5, disable_tqdm=True,
        gradient_checkpointing_kwargs={"use_reentrant": False} if run["checkpoint"] else None,
        remove_unused_columns=False, dataloader_num_workers=0)
    watch = Watch()
    trainer = (Preference if dpo else Trainer)(
        model=model, args=arguments, train_dataset=Tokens(run, rows * run["accumulate"] * num_steps), callbacks=[watch])
    if dpo and run["method"] == "full":
        trainer.reference = model_of(run).eval().requires_grad_(False)
    gc.collect()
    torch.cuda.synchronize()
    loaded = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = trainer.train()
    steps = [b - a for a, b in zip(watch.ends, watch.ends[1:])][NUM_WARMUP:]
    kernels = sorted(((event.key[:110], event.count, event.self_device_time_total * 1e-6)
                      for event in watch.profiler.key_averages()), key=lambda kernel: -kernel[2])
    free, total = torch.cuda.mem_get_info()
    own = list(model.parameters())
    return {
        "steps_s": steps, "step_s": statistics.median(steps), "loss": result.training_loss,
        "tokens_per_s": rows * run["seq"] * run["accumulate"] / statistics.median(steps),
        "loaded_bytes": loaded, "rest_bytes": watch.rest[-1], "peak_bytes": watch.peak[0],
        "reserved_bytes": watch.peak[1], "device_bytes": total - free,
        "parameters": sum(p.numel() for p in own), "trainable": sum(p.numel() for p in own if p.requires_grad),
        "experts_by": getattr(model.config, "_experts_implementation", None),
        "kernels_s": sum(kernel[2] for kernel in kernels), "num_kernels": sum(kernel[1] for kernel in kernels),
        "kernels": kernels[:30],
    }


def child(out_path, run, smoke):
    """One case, in a process that ends with it."""
    begin = time.monotonic()
    try:
        row = train(run)
        said = (f"{row['step_s'] * 1e3:.1f} ms, kernels {row['kernels_s'] * 1e3:.1f} ms ({row['num_kernels']}), rest "
                f"{row['rest_bytes'] / 1e9:.2f}, peak {row['peak_bytes'] / 1e9:.2f} GB")
    except Exception as error:  # a case that does not fit or that a library refuses is a row that says so
        row = {"error": f"{type(error).__name__}: {error}"[:600]}
        if torch.cuda.is_initialized():
            row["peak_bytes"] = torch.cuda.max_memory_allocated()
        said = traceback.format_exc()[-900:] if smoke else row["error"][:200]
    with open(out_path, "a", encoding="ascii") as out:
        emit(out, kind="finetune", training=run, **row)
    print({key: value for key, value in run.items() if value not in (False, [], 1)}, said,
          f"[{time.monotonic() - begin:.1f} s]", flush=True)


def run_cases(out_path, runs, deadline, smoke):
    for run in runs:
        if time.monotonic() > deadline:
            print("no time left for", run["model"], run["method"], flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            child(out_path, run, smoke)
            sys.stdout.flush()
            os._exit(0)
        end = time.monotonic() + 40
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                os.kill(pid, 9)
                print("took too long:", run, flush=True)
                end = float("inf")
            time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    pid = os.fork()
    if pid == 0:
        with open(options.out, "a", encoding="ascii") as out:
            row = device_row()
            import accelerate
            import peft
            emit(out, **row, transformers=transformers.__version__, peft=peft.__version__,
                 accelerate=accelerate.__version__)
        os._exit(0)
    os.waitpid(pid, 0)
    import peft  # noqa: F401 - once, for all children
    runs = SMOKE if options.smoke else [run for run in CASES if not options.names or run["model"] in options.names]
    run_cases(options.out, runs, deadline, options.smoke)


main()
