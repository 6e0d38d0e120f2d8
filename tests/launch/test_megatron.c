// Plans as commands of Megatron-LM: what is written, what is refused, and that only documented
// flags are ever written.
#include "launch/launch.h"
#include "launch/megatron.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

// A job in parts of a scenario; NULL takes the default.
typedef struct {
    const char *model, *cluster, *training, *parallel;
} Job;

typedef struct {
    Arena arena;
    Scenario scenario;
    Plan plan;
    MegatronCommand command;
    Status status;
} Written;

static Written job_write(Job job) {
    Written w = {0};
    const char *training = job.training
                               ? job.training
                               : "{\"seq_len\": 4096, \"global_batch\": 256, \"precision\": "
                                 "\"bf16\"}";
    const char *text =
        scenario_text(&w.arena, job.model ? job.model : "\"llama-3.1-8b\"",
                      job.cluster ? job.cluster : "\"dgx-h100:2\"", training, job.parallel);
    w.status = scenario_of(text, &w.arena, &w.scenario);
    if (w.status.code == STATUS_OK) w.status = plan_resolve(&w.scenario, &w.arena, &w.plan);
    if (w.status.code == STATUS_OK)
        w.status = megatron_command(&w.scenario, &w.plan, &w.arena, &w.command);
    return w;
}

// "--a 1 --b" of the whole command.
static const char *command_text(Written *w) {
    const char *text = "";
    for (int i = 0; i < w->command.flags.num_flags; i++) {
        const Flag *flag = &w->command.flags.flags[i];
        text = arena_printf(&w->arena, "%s %s%s%s", text, flag->row->flag, flag->value ? " " : "",
                            flag->value ? flag->value : "");
    }
    return arena_printf(&w->arena, "%s ", text);
}

// Claims that the command holds each of the words (separated by '&'), or that it does not ("!...").
static void expect(Job job, const char *words) {
    Written w = job_write(job);
    CU_ASSERT_EQUAL_FATAL(w.status.code, STATUS_OK);
    const char *text = command_text(&w);
    char *list = arena_strdup(&w.arena, words);
    for (char *word = strtok(list, "&"); word; word = strtok(NULL, "&")) {
        bool wanted = word[0] != '!';
        const char *needle = arena_printf(&w.arena, " %s ", wanted ? word : word + 1);
        if ((strstr(text, needle) != NULL) != wanted) {
            printf("\n%s: %s in%s\n", wanted ? "missing" : "unwanted", word, text);
            CU_FAIL("flags differ");
        }
    }
    arena_free(&w.arena);
}

static void expect_refused(Job job, const char *sentence) {
    Written w = job_write(job);
    ASSERT_REFUSED(without_rule(w.status), sentence);
    arena_free(&w.arena);
}

static void dense_models_are_described(void) {
    expect((Job){.parallel = "{\"tp\": 8}"},
           "--num-layers 32&--hidden-size 4096&--ffn-hidden-size 14336&--num-attention-heads 32&"
           "--group-query-attention&--num-query-groups 8&--kv-channels 128&--seq-length 4096&"
           "--position-embedding-type rope&--normalization RMSNorm&--swiglu&--disable-bias-linear&"
           "--untie-embeddings-and-output-weights&!--num-experts&!--add-qkv-bias");
    expect((Job){.model = "\"gpt3-175b\"",
                 .cluster = "\"dgx-a100-80g:8\"",
                 .parallel = "{\"tp\": 8, \"pp\": 8}"},
           "--position-embedding-type learned_absolute&--normalization LayerNorm&!--swiglu&"
           "!--disable-bias-linear&!--group-query-attention&"
           "!--untie-embeddings-and-output-weights");
    expect((Job){.model = "\"qwen2.5-7b\"", .parallel = "{\"tp\": 4}"},
           "--disable-bias-linear&--add-qkv-bias");
    expect((Job){.model = "\"qwen3-8b\"", .parallel = "{\"tp\": 8}"}, "--qk-layernorm");
}

static void expert_models_are_described(void) {
    expect((Job){.model = "\"mixtral-8x7b\"", .parallel = "{\"tp\": 2, \"ep\": 8}"},
           "--num-experts 8&--moe-router-topk 2&--moe-ffn-hidden-size 14336&--moe-grouped-gemm&"
           "--moe-token-dispatcher-type alltoall&--expert-model-parallel-size 8&"
           "--expert-tensor-parallel-size 1&!--moe-layer-freq&!--moe-shared-expert-gate");
    expect((Job){.model = "\"deepseek-v3\"",
                 .cluster = "\"dgx-h100:32\"",
                 .parallel = "{\"pp\": 16, \"ep\": 16}"},
           "--multi-latent-attention&--q-lora-rank 1536&--kv-lora-rank 512&--qk-head-dim 128&"
           "--qk-pos-emb-head-dim 64&--v-head-dim 128&--moe-layer-freq '([0]*3+[1]*58)'&"
           "--moe-shared-expert-intermediate-size 2048&--mtp-num-layers 1&"
           "--attention-backend auto");
    expect((Job){.model = "\"gpt-oss-20b\"", .parallel = "{\"ep\": 8}"},
           "--window-size '127,0'&--softmax-type learnable&--quick-geglu&!--swiglu&"
           "--activation-func-clamp-value 7&--glu-linear-offset 1");
}

static void grouped_products_with_biases_add_them_alone(void) {
    expect((Job){.model = "\"gpt-oss-20b\"", .parallel = "{\"ep\": 8}"},
           "--moe-grouped-gemm&--no-bias-dropout-fusion");
    expect((Job){.model = "\"qwen3-30b-a3b\"", .parallel = "{\"ep\": 8}"},
           "--moe-grouped-gemm&!--no-bias-dropout-fusion");
}

static void routers_are_described(void) {
    expect((Job){.model = "\"deepseek-v3\"",
                 .cluster = "\"dgx-h100:32\"",
                 .parallel = "{\"pp\": 16, \"ep\": 16}"},
           "--moe-router-score-function sigmoid&--moe-router-enable-expert-bias&"
           "--moe-router-num-groups 8&--moe-router-group-topk 4&"
           "--moe-router-topk-scaling-factor 2.5&--moe-router-pre-softmax");
    expect((Job){.model = "\"deepseek-v2-lite\""},
           "--moe-router-pre-softmax&!--moe-router-score-function sigmoid&"
           "!--moe-router-enable-expert-bias&!--moe-router-num-groups 1");
    expect((Job){.model = "\"qwen3-30b-a3b\"", .parallel = "{\"ep\": 8}"},
           "!--moe-router-pre-softmax&!--moe-router-enable-expert-bias");
    expect((Job){.model = "\"kimi-k2\"",
                 .cluster = "\"dgx-h100:32\"",
                 .parallel = "{\"pp\": 16, \"ep\": 16}"},
           "--moe-router-topk-scaling-factor 2.827&--moe-router-enable-expert-bias");
}

static void positions_are_described(void) {
    expect((Job){.parallel = "{\"tp\": 8}"},
           "--use-rope-scaling&--rope-scaling-factor 8&--rotary-base 500000&--norm-epsilon 1e-05");
    expect((Job){.model = "\"llama-3.2-1b\""}, "--rope-scaling-factor 32");
    expect((Job){.model = "\"llama-3-8b\""}, "!--use-rope-scaling");
    expect((Job){.model = "\"qwen3-8b\""}, "--norm-epsilon 1e-06&--rotary-base 1000000");
    expect((Job){.model = "\"qwen2.5-14b\""}, "--norm-epsilon 1e-05&--rotary-base 1000000");
    expect((Job){.model = "\"deepseek-v2-lite\""},
           "--rope-type yarn&--rotary-scaling-factor 40&--mscale 0.707&--mscale-all-dim 0.707");
    // Megatron-LM's default for latent attention is yarn.
    expect((Job){.model = "{\"model_type\": \"deepseek_v2\", \"hidden_size\": 2048, "
                          "\"intermediate_size\": 4096, \"num_hidden_layers\": 8, "
                          "\"num_attention_heads\": 16, \"num_key_value_heads\": 16, "
                          "\"kv_lora_rank\": 512, \"qk_nope_head_dim\": 128, "
                          "\"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"vocab_size\": 32000, "
                          "\"n_routed_experts\": 8, \"num_experts_per_tok\": 2, "
                          "\"moe_intermediate_size\": 512, \"first_k_dense_replace\": 1, "
                          "\"rope_scaling\": null, \"max_position_embeddings\": 4096}"},
           "--rope-type rope&!--rotary-scaling-factor 1");
}

// The head of a script says what of the model it leaves out.
static void what_is_left_out_is_said(void) {
    static const struct {
        const char *model, *note;
    } CASES[] = {
        {"\"gpt-oss-20b\"", "rope_scaling of type yarn is left out"},
        {"\"deepseek-v2-lite\"", "Experts are balanced by an auxiliary loss"},
        {"\"mixtral-8x7b\"", "does not state norm_topk_prob"},
        {"{\"model_type\": \"llama\", \"hidden_size\": 512, \"num_hidden_layers\": 2, "
         "\"num_attention_heads\": 8, \"intermediate_size\": 1024, \"vocab_size\": 1024}",
         "does not state rms_norm_eps"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Written w = job_write((Job){.model = CASES[i].model});
        CU_ASSERT_EQUAL_FATAL(w.status.code, STATUS_OK);
        bool found = false;
        for (int n = 0; n < w.command.num_notes; n++)
            found |= strstr(w.command.notes[n], CASES[i].note) != NULL;
        if (!found) printf("\n%s: no note: %s\n", CASES[i].model, CASES[i].note);
        CU_ASSERT(found);
        arena_free(&w.arena);
    }
}

static void degrees_are_written(void) {
    expect((Job){.parallel = "{\"tp\": 2, \"cp\": 4, \"cp_method\": \"ulysses\"}"},
           "--tensor-model-parallel-size 2&--context-parallel-size 4&--cp-comm-type a2a&"
           "--sequence-parallel&--use-distributed-optimizer&"
           "!--num-distributed-optimizer-instances&!--pipeline-model-parallel-size");
    expect((Job){.parallel = "{\"zero_group\": 8}"}, "--num-distributed-optimizer-instances 2");
    expect((Job){.parallel = "{\"zero_stage\": 0}"},
           "!--use-distributed-optimizer&!--overlap-param-gather");
    expect((Job){.parallel = "{\"zero_stage\": 3}"},
           "--use-megatron-fsdp&--data-parallel-sharding-strategy optim_grads_params&"
           "--ckpt-format fsdp_dtensor&--no-gradient-accumulation-fusion&"
           "--init-model-with-meta-device");
    expect((Job){.parallel = "{\"zero_stage\": 2}"},
           "--use-megatron-fsdp&--data-parallel-sharding-strategy optim_grads&"
           "--ckpt-format fsdp_dtensor&!--init-model-with-meta-device");
    expect((Job){.parallel = "{\"tp\": 2, \"sequence_parallel\": false}"}, "!--sequence-parallel");
}

// 32 layers of llama-3.1-8b.
static void layers_are_split_by_the_plainest_flag(void) {
    expect((Job){.parallel = "{\"pp\": 4}"},
           "--pipeline-model-parallel-size 4&!--pipeline-model-parallel-layout&"
           "!--num-virtual-stages-per-pipeline-rank");
    expect((Job){.parallel = "{\"pp\": 4, \"vpp\": 2}"},
           "--num-virtual-stages-per-pipeline-rank 2");
    // 34 = 2 x 17: embedding and loss count as a layer each.
    expect((Job){.parallel = "{\"pp\": 2, \"stages\": [{\"layers\": 16, \"embedding\": true}, "
                             "{\"layers\": 16, \"loss\": true}]}"},
           "!--account-for-embedding-in-pipeline-split");
    expect((Job){.parallel = "{\"pp\": 2, \"vpp\": 17}"},
           "--num-virtual-stages-per-pipeline-rank 17&--account-for-embedding-in-pipeline-split&"
           "--account-for-loss-in-pipeline-split");
    expect((Job){.parallel = "{\"pp\": 4, \"stages\": [{\"layers\": 7, \"embedding\": true}, "
                             "{\"layers\": 9}, {\"layers\": 9}, {\"layers\": 7, \"loss\": true}]}"},
           "--decoder-first-pipeline-num-layers 7&--decoder-last-pipeline-num-layers 7");
    expect((Job){.parallel = "{\"pp\": 4, \"stages\": [{\"layers\": 7, \"embedding\": true}, "
                             "{\"layers\": 8}, {\"layers\": 9}, {\"layers\": 8, \"loss\": true}]}"},
           "--pipeline-model-parallel-layout 'Ettttttt|tttttttt|ttttttttt|ttttttttL'");
}

static void recomputation_is_written(void) {
    expect((Job){.parallel = "{\"recompute\": \"none\"}"}, "!--recompute-granularity");
    expect((Job){.parallel = "{\"recompute\": \"full\"}"},
           "--recompute-granularity full&--recompute-method uniform&--recompute-num-layers 1");
    expect((Job){.parallel = "{\"pp\": 4, \"recompute\": \"full\", \"recompute_layers\": 3}"},
           "--recompute-method block&--recompute-num-layers 3");
    expect((Job){.parallel = "{\"recompute\": \"selective\", \"recompute_modules\": "
                             "[\"core_attn\", \"mlp\"]}"},
           "--recompute-granularity selective&--recompute-modules core_attn mlp");
    // 4 chunks of a rank with 2 layers each: the first 3 of the rank are 2 + 1 + 0 + 0.
    expect_refused(
        (Job){.parallel = "{\"pp\": 4, \"vpp\": 4, \"recompute\": \"full\", "
                          "\"recompute_layers\": 3}"},
        "job.json: parallel.recompute_layers: the first layers of a stage of vpp 4 chunks cannot "
        "be recomputed: they are counted in each chunk: Megatron-LM cannot run this plan as "
        "priced; nearest: vpp 1, or recompute full for all layers");
}

#define TRAINING(more) .training = "{\"seq_len\": 4096, \"global_batch\": 256, " more "}"

static void precision_is_written(void) {
    expect((Job){TRAINING("\"precision\": \"bf16\", \"grad_reduce_dtype\": \"bf16\"")},
           "--bf16&--grad-reduce-in-bf16&!--accumulate-allreduce-grads-in-fp32");
    expect((Job){TRAINING("\"precision\": \"fp16\"")}, "--fp16&!--bf16");
    expect((Job){TRAINING("\"precision\": \"fp8\"")},
           "--bf16&--fp8-format hybrid&--fp8-recipe delayed");
    expect((Job){TRAINING("\"precision\": \"fp8\", \"fp8_recipe\": \"current\"")},
           "--fp8-recipe tensorwise");
    expect((Job){TRAINING("\"precision\": \"fp8\", \"fp8_recipe\": \"block\"")},
           "--fp8-format e4m3&--fp8-recipe blockwise");
    expect((Job){.cluster = "\"dgx-b200:2\"", TRAINING("\"precision\": \"mxfp8\"")},
           "--fp8-recipe mxfp8");
    expect((Job){TRAINING("\"precision\": \"bf16\", \"optimizer_dtype\": \"bf16\"")},
           "--use-precision-aware-optimizer&--exp-avg-dtype bf16");
    expect((Job){TRAINING("\"precision\": \"bf16\", \"cuda_graphs\": \"full\"")},
           "--cuda-graph-impl local&--cuda-graph-scope full_iteration&--te-rng-tracker");
}

static void what_cannot_run_is_refused(void) {
    expect_refused((Job){.parallel = "{\"zero_stage\": 2, \"pp\": 2}"},
                   "job.json: parallel.zero_stage: sharded gradients or weights with pp 2 are not "
                   "possible: Megatron-LM cannot run this plan as priced; nearest: 1, or pp 1");
    expect_refused((Job){.parallel = "{\"zero_stage\": 3, \"pp\": 2}"},
                   "job.json: parallel.zero_stage: sharded gradients or weights with pp 2 are not "
                   "possible: Megatron-LM cannot run this plan as priced; nearest: 1, or pp 1");
    expect_refused((Job){.parallel = "{\"pp\": 2, \"schedule\": \"gpipe\"}"},
                   "job.json: parallel.schedule: gpipe is none of its schedules: Megatron-LM "
                   "cannot run this plan as priced; nearest: 1f1b, or interleaved with vpp");
    expect_refused((Job){.parallel = "{\"pp\": 2, \"vocab_parallel\": true}"},
                   "job.json: parallel.vocab_parallel: a vocabulary spread over stages is not "
                   "possible: Megatron-LM cannot run this plan as priced; nearest: false");
    expect_refused(
        (Job){.training = "{\"seq_len\": 4096, \"global_batch\": 256, "
                          "\"optimizer_post_validation\": true}",
              .parallel = "{\"pp\": 2}"},
        "job.json: training.optimizer_post_validation: looking at the gradient norm "
        "after the step has no flag: Megatron-LM cannot run this plan as priced; nearest: "
        "false");
    expect_refused((Job){.parallel = "{\"pp\": 2, \"schedule\": \"zb-h1\"}"},
                   "job.json: parallel.schedule: zb-h1 is none of its schedules: Megatron-LM "
                   "cannot run this plan as priced; nearest: 1f1b, or interleaved with vpp");
}

// Transformer Engine spells it all_gather, and cannot do every attention in every way.
static void sequences_are_split_as_the_attention_allows(void) {
    static const char *const window = "\"mistral-7b-v0.1\"", *const sinks = "\"gpt-oss-20b\"",
                             *const latent = "\"deepseek-v2-lite\"";
    expect((Job){.parallel = "{\"cp\": 2, \"cp_method\": \"all-gather\"}"},
           "--cp-comm-type all_gather");
    expect((Job){.model = window, .parallel = "{\"cp\": 2, \"cp_method\": \"ulysses\"}"},
           "--cp-comm-type a2a&--window-size '4095,0'");
    expect((Job){.model = latent, .parallel = "{\"cp\": 2}"}, "--cp-comm-type p2p");
    expect((Job){.model = sinks, .parallel = "{\"cp\": 2, \"cp_method\": \"ulysses\"}"},
           "--cp-comm-type a2a");
    expect_refused((Job){.model = window, .parallel = "{\"cp\": 2}"},
                   "job.json: parallel.cp_method: sliding windows with ring context parallelism "
                   "are not possible; expected all-gather or ulysses");
    expect_refused((Job){.model = latent, .parallel = "{\"cp\": 2, \"cp_method\": \"ulysses\"}"},
                   "job.json: parallel.cp_method: latent attention with ulysses context "
                   "parallelism is not possible; expected ring");
    expect_refused((Job){.model = sinks, .parallel = "{\"cp\": 2, \"cp_method\": \"all-gather\"}"},
                   "job.json: parallel.cp_method: attention sinks with all-gather context "
                   "parallelism are not possible; expected ulysses, or cp 1");
}

static void what_is_no_multiple_is_not_interleaved(void) {
    // 24 GPUs = tp 2 x pp 4 x dp 3; 54 / 3 = 18 micro-batches are no multiple of 4.
    expect_refused((Job){.cluster = "\"dgx-h100:3\"",
                         .training = "{\"seq_len\": 4096, \"global_batch\": 54, \"precision\": "
                                     "\"bf16\"}",
                         .parallel = "{\"tp\": 2, \"pp\": 4, \"vpp\": 2}"},
                   "job.json: parallel.schedule: interleaving 18 micro-batches over pp 4 is not "
                   "possible: Megatron-LM cannot run this plan as priced; nearest: a global batch "
                   "that gives a multiple of pp, or vpp 1");
}

static void models_without_flags_are_refused(void) {
    expect_refused((Job){.model = "\"bloom-7b1\""},
                   "job.json: model: Megatron-LM's GPT lacks a norm after the embedding, which "
                   "this model has");
    expect_refused((Job){.model = "\"gemma-2-9b\""},
                   "job.json: model: Megatron-LM's GPT lacks norms after the attention and after "
                   "the MLP, which this model has");
    expect_refused((Job){.training = "{\"seq_len\": 4096, \"global_batch\": 256, \"precision\": "
                                     "\"bf16\", \"stack\": \"pytorch-fsdp\"}"},
                   "job.json: training.stack: the plan is priced for pytorch-fsdp, and Megatron-LM "
                   "would run it otherwise: plan again with training.stack megatron-core; "
                   "nothing here starts pytorch-fsdp");
}

// Lines of the tables in docs/launch/megatron.md, as the flag table would print them.
static void documentation_is_the_flag_table(void) {
    FILE *stream = fopen("docs/launch/megatron.md", "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    char line[400];
    const FlagRow *row = MEGATRON_FLAGS;
    Arena arena = {0};
    while (fgets(line, sizeof line, stream)) {
        if (strncmp(line, "| `--", 5) != 0) continue;
        CU_ASSERT_PTR_NOT_NULL_FATAL(row->flag);
        char value[100] = "";
        size_t used = 0;
        for (const char *c = row->value; c && *c; c++) {
            if (*c == '|') value[used++] = '\\';
            value[used++] = *c;
        }
        const char *expected = arena_printf(&arena, "| `%s%s%s` | %s |\n", row->flag,
                                            row->value ? " " : "", value, row->meaning);
        CU_ASSERT_STRING_EQUAL(line, expected);
        if (strcmp(line, expected) != 0) printf("\nexpected: %s", expected);
        row++;
    }
    CU_ASSERT_PTR_NULL(row->flag);
    fclose(stream);
    arena_free(&arena);
}

static bool flag_is_documented(const char *flag, size_t length) {
    for (const FlagRow *row = MEGATRON_FLAGS; row->flag; row++)
        if (strlen(row->flag) == length && strncmp(row->flag, flag, length) == 0) return true;
    return false;
}

// Every "--flag" of the array of arguments of a script.
static void script_is_documented(const char *text) {
    const char *end = strstr(text, "# --- Start ---");
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    int num_flags = 0;
    for (const char *at = strstr(text, "ARGS=("); at < end; at++) {
        bool begins = strncmp(at, "--", 2) == 0 && (at[-1] == ' ' || at[-1] == '(');
        if (!begins || strncmp(at, "--- ", 4) == 0) continue;
        size_t length = strcspn(at, " \n)");
        if (!flag_is_documented(at, length)) {
            printf("\nnot in the table: %.*s\n", (int)length, at);
            CU_FAIL("undocumented flag");
        }
        num_flags++;
    }
    CU_ASSERT(num_flags > 30);
}

static void scripts_hold_only_documented_flags(void) {
    static const char *const models[] = {"\"llama-3.1-8b\"",     "\"mixtral-8x7b\"",
                                         "\"qwen3-30b-a3b\"",    "\"gpt2-1.5b\"",
                                         "\"deepseek-v2-lite\"", "\"gpt-oss-20b\""};
    static const char *const plans[] = {"{}", "{\"pp\": 4}", "{\"pp\": 2, \"recompute\": \"full\"}",
                                        "{\"zero_stage\": 3, \"recompute\": \"selective\"}",
                                        "{\"cp\": 2, \"zero_group\": 4}"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
            Written w = job_write((Job){.model = models[m],
                                        .training = "{\"seq_len\": 1024, \"global_batch\": 256, "
                                                    "\"precision\": \"bf16\"}",
                                        .parallel = plans[p]});
            if (strstr(plans[p], "cp") && strstr(models[m], "gpt-oss")) { // sinks: not by a ring
                CU_ASSERT_EQUAL(w.status.code, STATUS_INVALID);
                arena_free(&w.arena);
                continue;
            }
            if (w.status.code != STATUS_OK)
                printf("\n%s %s: %s\n", models[m], plans[p], w.status.text);
            CU_ASSERT_EQUAL_FATAL(w.status.code, STATUS_OK);
            for (int s = LAUNCH_TORCHRUN; s <= LAUNCH_MPIRUN; s++) {
                LaunchFiles files;
                Status status = launch_make(&w.scenario, &w.plan, LAUNCH_MEGATRON,
                                            (LaunchScheduler)s, &w.arena, &files);
                CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
                script_is_documented(files.files[0].text);
            }
            arena_free(&w.arena);
        }
}

// A node of gb200-nvl72 is a rack of 18 hosts.
static void hosts_are_counted_not_racks(void) {
    static const struct {
        const char *cluster, *nodes, *gpus;
    } CASES[] = {{"\"gb200-nvl72:2\"", "--nodes=36\n", "--gpus-per-node=4\n"},
                 {"\"dgx-h100:4\"", "--nodes=4\n", "--gpus-per-node=8\n"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Written w = job_write((Job){.cluster = CASES[i].cluster,
                                    .training = "{\"seq_len\": 4096, \"global_batch\": 288, "
                                                "\"precision\": \"bf16\"}"});
        LaunchFiles files;
        Status status = w.status;
        if (status.code == STATUS_OK)
            status =
                launch_make(&w.scenario, &w.plan, LAUNCH_MEGATRON, LAUNCH_SLURM, &w.arena, &files);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        CU_ASSERT_PTR_NOT_NULL(strstr(files.files[0].text, CASES[i].nodes));
        CU_ASSERT_PTR_NOT_NULL(strstr(files.files[0].text, CASES[i].gpus));
        arena_free(&w.arena);
    }
}

CU_TestInfo megatron_tests[] = {
    {"dense_models_are_described", dense_models_are_described},
    {"expert_models_are_described", expert_models_are_described},
    {"grouped_products_with_biases_add_them_alone", grouped_products_with_biases_add_them_alone},
    {"routers_are_described", routers_are_described},
    {"positions_are_described", positions_are_described},
    {"what_is_left_out_is_said", what_is_left_out_is_said},
    {"degrees_are_written", degrees_are_written},
    {"layers_are_split_by_the_plainest_flag", layers_are_split_by_the_plainest_flag},
    {"recomputation_is_written", recomputation_is_written},
    {"precision_is_written", precision_is_written},
    {"what_cannot_run_is_refused", what_cannot_run_is_refused},
    {"sequences_are_split_as_the_attention_allows", sequences_are_split_as_the_attention_allows},
    {"what_is_no_multiple_is_not_interleaved", what_is_no_multiple_is_not_interleaved},
    {"models_without_flags_are_refused", models_without_flags_are_refused},
    {"documentation_is_the_flag_table", documentation_is_the_flag_table},
    {"scripts_hold_only_documented_flags", scripts_hold_only_documented_flags},
    {"hosts_are_counted_not_racks", hosts_are_counted_not_racks},
    CU_TEST_INFO_NULL,
};
