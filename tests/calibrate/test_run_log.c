#include "calibrate/run_log.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOB                                                                                        \
    "{\"schema\": 1, \"model\": \"llama-3.1-8b\", \"cluster\": \"dgx-h100:2\", \"training\": "     \
    "{\"seq_len\": 4096, \"global_batch\": 64}, \"parallel\": {\"tp\": 4}}"

// A log with this text; its name is taken off the front of a refusal.
static Status log_of(const char *text, Arena *arena, RunLog *out) {
    char path[] = "/tmp/meshwright_log_XXXXXX";
    Scenario scenario;
    Plan plan;
    CU_ASSERT_EQUAL_FATAL(scenario_of(JOB, arena, &scenario).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, arena, &plan).code, STATUS_OK);
    int descriptor = mkstemp(path);
    CU_ASSERT_FATAL(descriptor >= 0);
    CU_ASSERT_EQUAL(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
    Status status = run_log_load(path, &scenario, &plan, arena, out);
    unlink(path);
    size_t n = strlen(path);
    if (strncmp(status.text, path, n) == 0)
        memmove(status.text, status.text + n, strlen(status.text + n) + 1);
    return status;
}

#define MEGATRON(step, ms)                                                                         \
    " [2025-06-01 12:00:00] iteration " step "/     100 | consumed samples:          640 | "       \
    "elapsed time per iteration (ms): " ms                                                         \
    " | learning rate: 1.000E-04 | global batch size:    64 | lm loss: 1.0E+01 |\n"
#define FOUR                                                                                       \
    MEGATRON("       10", "9000.0")                                                                \
    MEGATRON("       20", "3000.0") MEGATRON("30", "1000.0") MEGATRON("40", "1010.0")

#define SIZES                                                                                      \
    "using world size: 16, data-parallel size: 4, context-parallel size: 1, hierarchical "         \
    "context-parallel sizes: None, tensor-model-parallel size: 4, encoder-tensor-model-parallel "  \
    "size: 0, pipeline-model-parallel size: 1\n"                                                   \
    "  tensor_model_parallel_size ...................... 4\n"                                      \
    "  virtual_pipeline_model_parallel_size ............ None\n"                                   \
    "  seq_length ...................................... 4096\n"

// The first two are warm-up; of 1000, 1010, 990, 1000 ms the median is 1 s. |log| are 0, 0.00995,
// 0.01005, 0: their median is half the third's way, 0.004975.
static void megatron_times_are_read(void) {
    Arena arena = {0};
    RunLog run;
    static const char TEXT[] =
        SIZES FOUR "validation loss at iteration 40\n" MEGATRON("      50", "990.0")
            MEGATRON("     60", "1000.0");
    Status status = log_of(TEXT, &arena, &run);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(run.kind, RUN_LOG_MEGATRON);
    CU_ASSERT_EQUAL(run.num_lines, 6);
    CU_ASSERT_EQUAL(run.num_steps, 60);
    CU_ASSERT_EQUAL(run.line, 7); // 1 s
    CU_ASSERT_DOUBLE_EQUAL(run.step_s, 1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(run.spread, 0.00497517 / 0.6745, 1e-7);
    arena_free(&arena);
}

#define TITAN(step, rate)                                                                          \
    "[rank0]:[titan] 2025-03-01 - root - INFO - \033[31mstep: " step "  \033[32mloss:  8.1315  "   \
    "\033[33mmemory: 50.20GiB(63.41%)  \033[34m" rate "  \033[36mtflops: 300.12  \033[35mmfu: "    \
    "30.35%\033[39m\n"

// 4096 x 64 tokens at 8,192 a second on each of 16 GPUs: 2 s.
static void torchtitan_rates_are_of_one_gpu(void) {
    static const char *const RATES[] = {"tps: 8,192", "wps: 8,192"};
    for (int i = 0; i < 2; i++) {
        Arena arena = {0};
        RunLog run;
        const char *text =
            TITAN(" 1", "@") TITAN("10", "@") TITAN("20", "@") TITAN("30", "@") TITAN("40", "@");
        char *filled = arena_alloc(&arena, 4096), *to = filled;
        for (const char *from = text; *from; from++)
            if (*from == '@')
                to = stpcpy(to, RATES[i]);
            else
                *to++ = *from;
        Status status = log_of(filled, &arena, &run);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        CU_ASSERT_EQUAL(run.kind, RUN_LOG_TORCHTITAN);
        CU_ASSERT_DOUBLE_EQUAL(run.step_s, 2, 1e-12);
        CU_ASSERT_EQUAL(run.spread, 0);
        arena_free(&arena);
    }
}

static void bad_logs_are_refused(void) {
    static const char *const CASES[][2] = {
        {"epoch 1 loss 3\n",
         ": no lines of steps; expected those of Megatron-LM (\"iteration 20/ 100 | ... | elapsed "
         "time per iteration (ms): 1234.5 |\"), torchtitan (\"step: 10  loss: ...  tps: 5,762\") "
         "or "
         "meshwright-run (\"{\"step\": 10, ...}\")"},
        {"", ": no lines of steps; expected those of Megatron-LM (\"iteration 20/ 100 | ... | "
             "elapsed time per iteration (ms): 1234.5 |\"), torchtitan (\"step: 10  loss: ...  "
             "tps: 5,762\") or meshwright-run (\"{\"step\": 10, ...}\")"},
        {FOUR, ": 4 lines of steps are too few; expected at least 5, of which the first 2 are "
               "warm-up"},
        {FOUR MEGATRON("50", "nan"),
         ":5: elapsed time per iteration (ms): is not a positive number"},
        {FOUR MEGATRON("50", "-3"),
         ":5: elapsed time per iteration (ms): is not a positive number"},
        {FOUR MEGATRON("50", "1e3x"),
         ":5: elapsed time per iteration (ms): is not a positive number"},
        {FOUR " iteration 50/ 100 | consumed samples: 640 | elapsed time per iter\n",
         ":5: the line ends before its time; expected \"elapsed time per iteration (ms): 1234.5 "
         "|\""},
        {FOUR " iteration 50/ 100 | elapsed time per iteration (ms): 10",
         ":5: the line ends before its time; expected \"elapsed time per iteration (ms): 1234.5 "
         "|\""},
        {FOUR " iteration 50/ 100 | elapsed time per iteration (ms): 10.0 | global batch size: "
              "128 | lm\n",
         ":5: global batch size 128, but training.global_batch of job.json is 64"},
        {FOUR TITAN("50", "tps: 5,762"),
         ":5: a line of torchtitan in a log of Megatron-LM; expected the log of one run"},
        {" iteration 50/ 100 | elapsed time per iteration (s): 15.2 | lm\n",
         ":1: time unit is (s); expected (ms)"},
        {"\nusing world size: 8, data-parallel size: 2\n",
         ":2: world size 8, but cluster.num_gpus of job.json is 16"},
        {"using world size: 16, tensor-model-parallel size: 8, pipeline-model-parallel size: 1\n",
         ":1: tensor-model-parallel size 8, but parallel.tp of job.json is 4"},
        {"0:   pipeline_model_parallel_size .................... 2\n",
         ":1: pipeline-model-parallel size 2, but parallel.pp of job.json is 1"},
        {"  seq_length ...................................... 8192\n",
         ":1: sequence length 8192, but training.seq_len of job.json is 4096"},
        {TITAN("1", "tps: 0"), ":1: tps: is not a positive number"},
        {TITAN("1", "tps: inf"), ":1: tps: is not a positive number"},
        {"step: 10  loss: 8.1  memory: 50.20GiB(63.41%)  tps: 5,7\n",
         ":1: the line ends before its rate; expected \"tps: 5,762 ... mfu: 30.35%\""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        RunLog run;
        ASSERT_REFUSED(log_of(CASES[i][0], &arena, &run), CASES[i][1]);
        arena_free(&arena);
    }
}

#define RUNTIME(step, time, rate)                                                                  \
    "{\"step\": " step ", \"loss\": 8.1, \"step_time_s\": " time ", \"tokens_per_s\": " rate "}\n"

// A step has 64 x 4096 = 262,144 tokens.
static void runtime_times_are_read(void) {
    Arena arena = {0};
    RunLog run;
    static const char TEXT[] = "llama-3.1-8b on 16 GPUs\n" RUNTIME("1", "9", "29127")
        RUNTIME("2", "1", "262144") RUNTIME("3", "0.5", "524288") RUNTIME("4", "0.25", "1048576")
            RUNTIME("5", "0.5", "524288");
    CU_ASSERT_EQUAL_FATAL(log_of(TEXT, &arena, &run).code, STATUS_OK);
    CU_ASSERT_EQUAL(run.kind, RUN_LOG_RUNTIME);
    CU_ASSERT_EQUAL(run.num_lines, 5);
    CU_ASSERT_EQUAL(run.num_steps, 5);
    CU_ASSERT_DOUBLE_EQUAL(run.step_s, 0.5, 1e-12);
    ASSERT_REFUSED(log_of(RUNTIME("1", "1", "131072"), &arena, &run),
                   ":1: 131072 tokens a step, but those of job.json have 262144");
    ASSERT_REFUSED(log_of(RUNTIME("1", "-1", "131072"), &arena, &run),
                   ":1: step_time_s: -1 is out of range; expected 1e-09 to 1000000000");
    arena_free(&arena);
}

#define ROUTED(step, layers, rank)                                                                 \
    "{\"step\": " step                                                                             \
    ", \"step_time_s\": 1, \"tokens_per_s\": 262144, \"moe_imbalance\": " layers                   \
    ", \"moe_imbalance_of_rank\": " rank "}\n"

// Of layers the median without the warm-up, of ranks the largest of all.
static void counted_routing_is_read(void) {
    Arena arena = {0};
    RunLog run;
    static const char TEXT[] = ROUTED("1", "3", "1.5") ROUTED("2", "1", "1") ROUTED("3", "1.2", "1")
        ROUTED("4", "1.4", "1.1") ROUTED("5", "1.3", "1.2");
    CU_ASSERT_EQUAL_FATAL(log_of(TEXT, &arena, &run).code, STATUS_OK);
    CU_ASSERT_DOUBLE_EQUAL(run.moe_imbalance, 1.3, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(run.moe_imbalance_of_rank, 1.5, 1e-12);
    ASSERT_REFUSED(log_of(ROUTED("1", "0.5", "1"), &arena, &run),
                   ":1: moe_imbalance: 0.5 is out of range; expected 1 to 10000");
    arena_free(&arena);
}

CU_TestInfo run_log_tests[] = {
    {"megatron_times_are_read", megatron_times_are_read},
    {"torchtitan_rates_are_of_one_gpu", torchtitan_rates_are_of_one_gpu},
    {"runtime_times_are_read", runtime_times_are_read},
    {"counted_routing_is_read", counted_routing_is_read},
    {"bad_logs_are_refused", bad_logs_are_refused},
    CU_TEST_INFO_NULL,
};
