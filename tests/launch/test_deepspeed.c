// Plans for Megatron-DeepSpeed: what is written, what is refused, and that the documentation is
// the tables.
#include "launch/deepspeed.h"
#include "launch/launch.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

typedef struct {
    Arena arena;
    Status status;
    LaunchFiles files;
} Written;

static Written job_write(const char *model, const char *more, const char *parallel) {
    Written w = {0};
    Scenario scenario;
    Plan plan;
    const char *training = arena_printf(&w.arena,
                                        "{\"seq_len\": 2048, \"global_batch\": 64, \"stack\": "
                                        "\"megatron-2021\"%s}",
                                        more ? more : "");
    const char *text = scenario_text(&w.arena, model ? model : "\"llama-2-7b\"",
                                     "\"dgx-a100-80g:2\"", training, parallel);
    w.status = scenario_of(text, &w.arena, &scenario);
    if (w.status.code == STATUS_OK) w.status = plan_resolve(&scenario, &w.arena, &plan);
    if (w.status.code == STATUS_OK)
        w.status =
            launch_make(&scenario, &plan, LAUNCH_DEEPSPEED, LAUNCH_TORCHRUN, &w.arena, &w.files);
    return w;
}

// Claims that the file holds each of the lines (separated by '&'), or that it does not ("!...").
static void expect(Written w, int file, const char *lines) {
    if (w.status.code != STATUS_OK) printf("\n%s\n", w.status.text);
    CU_ASSERT_EQUAL_FATAL(w.status.code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(w.files.num_files, 2);
    char *list = arena_strdup(&w.arena, lines);
    for (char *line = strtok(list, "&"); line; line = strtok(NULL, "&")) {
        bool wanted = line[0] != '!';
        const char *needle = arena_printf(&w.arena, " %s", line + !wanted);
        if ((strstr(w.files.files[file].text, needle) != NULL) != wanted) {
            printf("\n%s: %s in\n%s", wanted ? "missing" : "unwanted", line,
                   w.files.files[file].text);
            CU_FAIL("flags or keys differ");
        }
    }
    arena_free(&w.arena);
}

static void expect_refused(Written w, const char *sentence) {
    ASSERT_REFUSED(without_rule(w.status), arena_printf(&w.arena, "job.json: %s", sentence));
    arena_free(&w.arena);
}

static void plans_are_written(void) {
    expect(job_write(NULL, ", \"attention\": \"flash\"",
                     "{\"tp\": 2, \"pp\": 2, \"sequence_parallel\": true}"),
           0,
           "--num-layers 32\n&--ffn-hidden-size 11008\n&--use-rotary-position-embeddings\n&"
           "--normalization rmsnorm\n&--swiglu\n&--tensor-model-parallel-size 2\n&"
           "--sequence-parallel\n&--pipeline-model-parallel-size 2\n&--zero-stage 1\n&"
           "--use-flash-attn-v2\n&!--no-pipeline-parallel&!--checkpoint-activations");
    expect(job_write("\"gpt2-1.5b\"", ", \"precision\": \"fp16\"",
                     "{\"zero_stage\": 3, \"recompute\": \"full\"}"),
           0,
           "--normalization layernorm\n&--zero-stage 3\n&--no-pipeline-parallel\n&--fp16\n&"
           "--checkpoint-activations\n&--deepspeed-activation-checkpointing\n&!--swiglu&"
           "!--disable-bias-linear&!--use-rotary-position-embeddings");
    expect(job_write(NULL, NULL, "{\"cp\": 2, \"cp_method\": \"ulysses\", \"zero_stage\": 2}"), 0,
           "--ds-sequence-parallel-size 2\n&--zero-stage 2\n&!--sequence-parallel");
    expect(job_write(NULL, NULL, "{\"pp\": 2, \"schedule\": \"zb-h1\"}"), 0,
           "--enable-zbh1-pipeline\n");
}

// 64 sequences over dp 4 in micro-batches of 2: 8 steps of accumulation.
static void configurations_agree_with_the_flags(void) {
    expect(job_write(NULL, ", \"grad_reduce_dtype\": \"fp32\"",
                     "{\"tp\": 2, \"pp\": 2, \"micro_batch\": 2}"),
           1,
           "\"train_batch_size\": 64,&\"train_micro_batch_size_per_gpu\": 2,&"
           "\"gradient_accumulation_steps\": 8,&\"communication_data_type\": \"fp32\",&"
           "\"stage\": 1,&\"enabled\": true&\"grad_accum_dtype\": \"fp32\"&!\"fp16\"");
    expect(job_write(NULL, ", \"precision\": \"fp16\", \"overlap_grad_reduce\": true",
                     "{\"zero_stage\": 2}"),
           1, "\"stage\": 2,&\"overlap_comm\": true,&\"fp16\": {&!\"bf16\": {");
}

#define CANNOT ": Megatron-DeepSpeed cannot run this plan as priced; nearest: "

static void what_cannot_run_is_refused(void) {
    expect_refused(job_write(NULL, NULL, "{\"pp\": 2, \"zero_stage\": 2}"),
                   "parallel.zero_stage: stage 2 with pp 2 is not possible" CANNOT "1, or pp 1");
    expect_refused(job_write(NULL, NULL, "{\"cp\": 2}"),
                   "parallel.cp_method: ring has no flag" CANNOT "ulysses");
    expect_refused(job_write(NULL, NULL, "{\"pp\": 2, \"vpp\": 2}"),
                   "parallel.schedule: interleaved has no flag" CANNOT "1f1b, or with pp zb-h1");
    expect_refused(job_write(NULL, NULL, "{\"recompute\": \"selective\"}"),
                   "parallel.recompute: selective has no flag" CANNOT "full or none");
    expect_refused(job_write(NULL, NULL, "{\"zero_group\": 8}"),
                   "parallel.zero_group: shards over 8 of 16 ranks have no flag" CANNOT
                   "all of dp x cp");
    expect_refused(job_write("\"mixtral-8x7b\"", NULL, "{\"ep\": 8}"),
                   "model: Megatron-DeepSpeed's GPT lacks experts as they are priced (it has "
                   "GShard's), which this model has");
    expect_refused(job_write(NULL, ", \"stack_version\": null, \"optimizer\": \"muon\"", "{}"),
                   "training.optimizer: muon has no flag" CANNOT "adam");
}

static const char *escaped(const char *text, Arena *arena) {
    char *out = arena_alloc(arena, 2 * strlen(text) + 1), *at = out;
    for (; *text; text++) {
        if (*text == '|') *at++ = '\\';
        *at++ = *text;
    }
    *at = '\0';
    return out;
}

static const char *key_line(const KeyRow *row, Arena *arena) {
    static const char *const kinds[] = {"true|false", "whole number", "number", "text", "list"};
    bool number = row->kind == KEY_INT || row->kind == KEY_FLOAT;
    const char *legal = row->legal ? row->legal : kinds[row->kind];
    if (row->legal && number) legal = arena_printf(arena, "from %s", legal);
    return arena_printf(arena, "| `%s%s%s` | %s | %s |\n", row->section, row->section[0] ? "." : "",
                        row->key, escaped(legal, arena), row->meaning);
}

static void documentation_is_the_tables(void) {
    FILE *stream = fopen("docs/launch/deepspeed.md", "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    char line[400];
    const FlagRow *flag = DEEPSPEED_FLAGS;
    const KeyRow *key = DEEPSPEED_KEYS;
    Arena arena = {0};
    while (fgets(line, sizeof line, stream)) {
        const char *expected = NULL;
        if (strncmp(line, "| `--", 5) == 0) {
            CU_ASSERT_PTR_NOT_NULL_FATAL(flag->flag);
            expected =
                arena_printf(&arena, "| `%s%s%s` | %s |\n", flag->flag, flag->value ? " " : "",
                             flag->value ? escaped(flag->value, &arena) : "", flag->meaning);
            flag++;
        } else if (strncmp(line, "| `", 3) == 0) {
            CU_ASSERT_PTR_NOT_NULL_FATAL(key->key);
            expected = key_line(key++, &arena);
        }
        if (expected) CU_ASSERT_STRING_EQUAL(line, expected);
    }
    CU_ASSERT_PTR_NULL(flag->flag);
    CU_ASSERT_PTR_NULL(key->key);
    fclose(stream);
    arena_free(&arena);
}

CU_TestInfo deepspeed_tests[] = {
    {"plans_are_written", plans_are_written},
    {"configurations_agree_with_the_flags", configurations_agree_with_the_flags},
    {"what_cannot_run_is_refused", what_cannot_run_is_refused},
    {"documentation_is_the_tables", documentation_is_the_tables},
    CU_TEST_INFO_NULL,
};
