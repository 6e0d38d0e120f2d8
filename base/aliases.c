// One table: where a value is known by other names, they stand here and nowhere else.
#include "base/aliases.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { MAX_NAME = 64 };

typedef struct {
    const char *name;             // as our documents have it
    const char *const *spellings; // in small letters with "-"; ends with NULL
} Alias;

#define SPELLINGS(...)                                                                             \
    (const char *const[]) {                                                                        \
        __VA_ARGS__, NULL                                                                          \
    }

// Several rows may have the same spelling: the one whose name is legal at a place counts there.
static const Alias ALIASES[] = {
    // precisions: PyTorch's and NumPy's types, Megatron-LM's --fp8-format
    {"fp64", SPELLINGS("float64", "double")},
    {"fp32", SPELLINGS("float32", "float", "single")},
    {"fp16", SPELLINGS("float16", "half")},
    {"bf16", SPELLINGS("bfloat16", "brain-float16", "bf16-mixed")},
    {"fp8", SPELLINGS("float8", "fp8-e4m3", "e4m3", "fp8-hybrid", "float8-e4m3fn")},
    // optimizers: torch.optim, Apex and Transformer Engine's fused ones
    {"adam", SPELLINGS("adamw", "adam-w", "fused-adam", "fusedadam", "adamw-torch",
                       "adamw-torch-fused", "torch.optim.adamw")},
    // FP8 recipes: Transformer Engine's and torchao's names
    {"block", SPELLINGS("blockwise", "float8blockscaling", "block-scaling")},
    {"delayed", SPELLINGS("delayed-scaling", "delayedscaling")},
    {"current", SPELLINGS("current-scaling", "float8currentscaling")},
    {"mxfp8", SPELLINGS("mxfp8blockscaling")},
    // attention: the Hugging Face library's attn_implementation, Megatron-LM's backends
    {"flash", SPELLINGS("flash-attention", "flash-attention-2", "flash-attention-3", "flash-attn",
                        "flashattention", "flashattention-2", "flashattention-3", "fa2", "fa3",
                        "sdpa", "fused", "cudnn")},
    {"unfused", SPELLINGS("eager", "naive", "math", "core")},
    // stacks
    {"megatron-core", SPELLINGS("megatron", "megatron-lm", "mcore", "nemo")},
    {"pytorch-fsdp", SPELLINGS("fsdp", "fsdp1", "fsdp2", "pytorch", "torch-fsdp")},
    {"torchtitan", SPELLINGS("torch-titan", "titan")},
    {"llm.c", SPELLINGS("llmc", "llm-c")},
    // dispatchers of experts
    {"alltoall", SPELLINGS("all-to-all", "a2a")},
    {"allgather", SPELLINGS("all-gather")},
    {"deepep", SPELLINGS("deep-ep")},
    {"hybridep", SPELLINGS("hybrid-ep")},
    // context parallelism: Transformer Engine's cp_comm_type and papers' names
    {"ring", SPELLINGS("p2p", "ring-attention")},
    {"ulysses", SPELLINGS("a2a", "all-to-all", "alltoall", "deepspeed-ulysses")},
    {"all-gather", SPELLINGS("allgather")},
    // recomputation and schedules: torchtitan's and papers' names
    {"selective", SPELLINGS("op", "selective-op")},
    {"gpipe", SPELLINGS("schedulegpipe")},
    {"1f1b", SPELLINGS("schedule1f1b", "one-f-one-b")},
    {"interleaved", SPELLINGS("interleaved1f1b", "interleaved-1f1b", "scheduleinterleaved1f1b")},
    {"zb-v", SPELLINGS("zbv", "zbvzerobubble", "schedulezbvzerobubble")},
    {"zb-h1", SPELLINGS("zbh1")},
    {"zb-h2", SPELLINGS("zbh2")},
    {"dualpipe", SPELLINGS("dual-pipe")},
    {"breadth-first", SPELLINGS("bfs", "breadthfirst")},
};

// Small letters, "-" for "_", without "torch." in front.
static void name_normalize(const char *text, char *out) {
    static const char TORCH[] = "torch.";
    size_t n = strlen(TORCH), i = 0;
    if (strncmp(text, TORCH, n) == 0 && strncmp(text + n, "optim.", 6) != 0) text += n;
    for (; text[i] && i < MAX_NAME - 1; i++)
        out[i] = text[i] == '_' ? '-' : (char)tolower((unsigned char)text[i]);
    out[i] = '\0';
}

static bool spelled_so(const Alias *alias, const char *normal) {
    for (const char *const *s = alias->spellings; *s; s++)
        if (strcmp(*s, normal) == 0) return true;
    return false;
}

static int index_of(const char *name, const char *const *names) {
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

int name_find(const char *text, const char *const *names) {
    int index = index_of(text, names);
    if (index >= 0 || strlen(text) >= MAX_NAME) return index;
    char normal[MAX_NAME], other[MAX_NAME];
    name_normalize(text, normal);
    for (int i = 0; names[i]; i++) {
        name_normalize(names[i], other);
        if (strcmp(normal, other) == 0) return i;
    }
    for (size_t a = 0; a < sizeof ALIASES / sizeof *ALIASES; a++) {
        if (!spelled_so(&ALIASES[a], normal)) continue;
        index = index_of(ALIASES[a].name, names);
        if (index >= 0) return index;
    }
    return -1;
}
