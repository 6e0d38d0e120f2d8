// Groups of different machines: every stage is priced as on a cluster of its own machines.
#include "costmodel/network/message.h"
#include "costmodel/step/estimate.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected))

#define H100(num_gpus)                                                                             \
    "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": " num_gpus ", \"gpus_per_node\": 8, \"scale_up\": " \
    "{\"link\": \"nvlink4\"}, \"scale_out\": {\"nics_per_node\": 8, \"nic_bytes_per_s\": 5e10}, "  \
    "\"price_usd_per_gpu_hour\": 3}"
#define A100(gpu, num_gpus)                                                                        \
    "{\"gpu\": \"" gpu "\", \"num_gpus\": " num_gpus ", \"gpus_per_node\": 8, \"scale_up\": "      \
    "{\"link\": \"nvlink3\"}, \"scale_out\": {\"nics_per_node\": 4, \"nic_bytes_per_s\": 2.5e10, " \
    "\"topology\": \"fat-tree\"}, \"price_usd_per_gpu_hour\": 1}"
#define JOINED(first, second)                                                                      \
    "{\"groups\": [" first ", " second                                                             \
    "], \"between\": {\"bytes_per_s\": 5e10, \"latency_s\": 1e-3}}"
#define TRAINING "{\"seq_len\": 4096, \"global_batch\": 64, \"precision\": \"bf16\"}"

typedef struct {
    Arena arena;
    Scenario scenario;
    Plan plan;
    Estimate estimate;
    EstimateParts parts;
} GroupCase;

static bool case_of(GroupCase *c, const char *cluster, const char *parallel) {
    *c = (GroupCase){0};
    const char *text = scenario_text(&c->arena, "\"llama-3.1-8b\"", cluster, TRAINING, parallel);
    Status status = scenario_of(text, &c->arena, &c->scenario);
    if (status.code == STATUS_OK) status = plan_resolve(&c->scenario, &c->arena, &c->plan);
    if (status.code == STATUS_OK)
        status = estimate_plan(&c->scenario, &c->plan, &c->arena, &c->estimate, &c->parts);
    CU_ASSERT_STRING_EQUAL(status.text, "");
    return status.code == STATUS_OK;
}

// Ranks 0 and 1 lie on H100, 2 and 3 on A100.
static void a_stage_costs_what_it_does_among_its_like(void) {
    static const char PARALLEL[] = "{\"tp\": 4, \"dp\": 2, \"pp\": 4}";
    GroupCase joined, like[2];
    bool made = case_of(&joined, JOINED(H100("16"), A100("a100-sxm-80g", "16")), PARALLEL);
    made = case_of(&like[0], H100("32"), PARALLEL) && made;
    made = case_of(&like[1], A100("a100-sxm-80g", "32"), PARALLEL) && made;
    if (made) {
        const Prices *prices = &joined.parts.prices;
        for (int r = 0; r < 4; r++) {
            const Prices *own = &like[r / 2].parts.prices;
            CU_ASSERT_EQUAL(prices->forward[r].time_s, own->forward[r].time_s);
            CU_ASSERT_EQUAL(prices->backward[r].time_s, own->backward[r].time_s);
            CU_ASSERT_EQUAL(prices->optimizer_s[r], own->optimizer_s[r]);
            if (r != 1 && r != 3) CU_ASSERT_EQUAL(prices->message_s[r], own->message_s[r]);
        }
        CU_ASSERT(prices->forward[1].time_s < prices->forward[2].time_s);
    }
    for (int i = 0; i < 2; i++) arena_free(&like[i].arena);
    arena_free(&joined.arena);
}

// The gradients of a rank are reduced over NVLink 4 or over NVLink 3, and are a collective each.
static void collectives_are_of_their_machines(void) {
    static const char PARALLEL[] = "{\"tp\": 1, \"dp\": 8, \"pp\": 4}";
    GroupCase joined, like[2];
    bool made = case_of(&joined, JOINED(H100("16"), A100("a100-sxm-80g", "16")), PARALLEL);
    made = case_of(&like[0], H100("32"), PARALLEL) && made;
    made = case_of(&like[1], A100("a100-sxm-80g", "32"), PARALLEL) && made;
    if (made) {
        int num_found[2] = {0};
        const Program *program = &joined.parts.program;
        for (int i = 0; i < program->num_collectives; i++) {
            const ProgramCollective *c = &program->collectives[i];
            const GroupCase *own = &like[c->pool];
            for (int k = 0; k < own->parts.program.num_collectives; k++) {
                const ProgramCollective *other = &own->parts.program.collectives[k];
                if (other->name != c->name || other->message_bytes != c->message_bytes) continue;
                CU_ASSERT_EQUAL(joined.parts.prices.collective_s[i],
                                own->parts.prices.collective_s[k]);
                num_found[c->pool]++;
            }
        }
        CU_ASSERT(num_found[0] >= 2 && num_found[1] >= 2);
    }
    for (int i = 0; i < 2; i++) arena_free(&like[i].arena);
    arena_free(&joined.arena);
}

// Half of a 25 GB/s NIC is less than a 50 GB/s one, and 8 such flows want 1e11 of the 5e10 B/s
// between the groups: of 0.72 x 12.5 GB/s one half. 17 us of a message and 1 ms between.
static void the_slower_end_and_the_link_between_set_the_pace(void) {
    GroupCase c;
    if (case_of(&c, JOINED(H100("16"), A100("a100-sxm-80g", "16")),
                "{\"tp\": 8, \"dp\": 1, \"pp\": 4}")) {
        const Cluster *cluster = &c.scenario.cluster;
        double alpha_s;
        double time_s = ranks_message_s(cluster, &c.plan, 1, 2, 9e6, &alpha_s);
        ASSERT_CLOSE(alpha_s, 17e-6 + 1e-3);
        ASSERT_CLOSE(time_s, alpha_s + 9e6 / (0.72 * 12.5e9) * 2);
        CU_ASSERT_EQUAL(ranks_message_s(cluster, &c.plan, 2, 1, 9e6, &alpha_s), time_s);
        time_s = ranks_message_s(cluster, &c.plan, 2, 3, 9e6, &alpha_s);
        ASSERT_CLOSE(time_s, 17e-6 + 9e6 / (0.72 * 12.5e9));
        CU_ASSERT(!ranks_share_domain(cluster, &c.plan, 1, 2));
    }
    arena_free(&c.arena);
}

// 16 GPUs for 3 dollars and 8 for 1, with peaks of 989 and 312 TFLOP/s.
static void rates_are_those_of_the_mean_gpu(void) {
    GroupCase c;
    if (case_of(&c, JOINED(H100("16"), A100("a100-sxm-80g", "8")), "{\"tp\": 8, \"pp\": 3}")) {
        const Estimate *e = &c.estimate;
        const Pool *pools = c.scenario.cluster.pools;
        double peaks = 16 * pools[0].gpu.peak_flops_per_s[PRECISION_BF16] +
                       8 * pools[1].gpu.peak_flops_per_s[PRECISION_BF16];
        ASSERT_CLOSE(e->usd_per_1e9_tokens, (16 * 3 + 8 * 1) / 3600. / e->tokens_per_s * 1e9);
        ASSERT_CLOSE(e->mfu_frac, e->model_flops_per_s_per_gpu * 24 / peaks);
    }
    arena_free(&c.arena);
}

// 20 GPUs in nodes of 8 are 2 whole nodes, and 4 that stay idle: 20 are paid with 3 dollars, 16
// with 1.
static void idle_gpus_of_each_group_are_paid(void) {
    GroupCase c;
    if (case_of(&c, JOINED(H100("20"), A100("a100-sxm-80g", "16")), "{\"tp\": 8, \"pp\": 4}")) {
        const Estimate *e = &c.estimate;
        CU_ASSERT_EQUAL(e->idle_gpus, 4);
        ASSERT_CLOSE(e->price_usd_per_gpu_hour, (20 * 3 + 16 * 1) / 36.);
        ASSERT_CLOSE(e->usd_per_1e9_tokens, (20 * 3 + 16 * 1) / 3600. / e->tokens_per_s * 1e9);
    }
    arena_free(&c.arena);
    if (case_of(&c, JOINED(H100("16"), A100("a100-sxm-80g", "20")), "{\"tp\": 8, \"pp\": 4}")) {
        const Estimate *e = &c.estimate;
        CU_ASSERT_EQUAL(e->idle_gpus, 4);
        ASSERT_CLOSE(e->usd_per_1e9_tokens, (16 * 3 + 20 * 1) / 3600. / e->tokens_per_s * 1e9);
    }
    arena_free(&c.arena);
}

// The last stage holds fewer micro-batches than the first, but of 40 GB they are more.
static void the_worst_rank_is_the_fullest(void) {
    GroupCase c;
    if (case_of(&c, JOINED(H100("8"), A100("a100-sxm-40g", "8")), "{\"tp\": 8, \"pp\": 2}")) {
        double own = c.scenario.cluster.pools[1].gpu.memory_available_bytes;
        CU_ASSERT_EQUAL(c.estimate.memory_rank, 1);
        CU_ASSERT_EQUAL(c.estimate.memory_available_bytes, own);
        CU_ASSERT_EQUAL(rank_memory_available_bytes(&c.scenario, &c.plan, 1), own);
        CU_ASSERT(rank_memory_available_bytes(&c.scenario, &c.plan, 0) > own);
    }
    arena_free(&c.arena);
}

static void refuses(const char *cluster, const char *training, const char *parallel,
                    const char *sentence) {
    Arena arena = {0};
    Scenario scenario;
    Plan plan;
    const char *text = scenario_text(&arena, "\"llama-3.1-8b\"", cluster, training, parallel);
    Status status = scenario_of(text, &arena, &scenario);
    if (status.code == STATUS_OK) status = scenario_refuse_unsupported(&scenario);
    if (status.code == STATUS_OK) status = plan_resolve(&scenario, &arena, &plan);
    ASSERT_REFUSED(status, sentence);
    arena_free(&arena);
}

static void what_has_no_place_is_refused(void) {
    static const char TWO[] = JOINED(H100("16"), A100("a100-sxm-80g", "16"));
    refuses(JOINED(H100("16"), A100("a100-sxm-80g", "8")), TRAINING, "{\"tp\": 4, \"pp\": 2}",
            "job.json: cluster.groups[0].num_gpus: 16 is not a multiple of tp 4 x cp 1 x dp 3: "
            "replicas on several groups of different machines are legal, but not supported yet; "
            "expected whole pipeline stages in each of the groups");
    refuses(TWO, TRAINING, "{\"tp\": 8, \"pp\": 1}",
            "job.json: cluster.groups[0].num_gpus: 16 is not a multiple of tp 8 x cp 1 x dp 4: "
            "replicas on several groups of different machines are legal, but not supported yet; "
            "expected whole pipeline stages in each of the groups");
    refuses(TWO, TRAINING, "{\"tp\": 8, \"pp\": 2, \"vocab_parallel\": true}",
            "job.json: parallel.vocab_parallel: true on groups of different machines is legal, "
            "but not supported yet");
    refuses(TWO, "{\"seq_len\": 4096, \"global_batch\": 64, \"precision\": \"fp8\"}",
            "{\"tp\": 8, \"pp\": 2}",
            "job.json: training.precision: fp8 is not supported by a100-sxm-80g; expected one of "
            "fp64, fp32, tf32, fp16, bf16");
    refuses("{\"groups\": [" H100(
                "16") ", {\"gpu\": \"b200-sxm-180g\", \"num_gpus\": 16, "
                      "\"gpus_per_node\": 8, \"scale_up\": {\"link\": \"nvlink5\"}, \"scale_out\": "
                      "{\"nics_per_node\": 8, \"nic_bytes_per_s\": 5e10}}], \"between\": "
                      "{\"bytes_per_s\": "
                      "5e10, \"latency_s\": 0}}",
            "{\"seq_len\": 4096, \"global_batch\": 64, \"precision\": \"fp8\"}",
            "{\"tp\": 8, \"pp\": 4}",
            "job.json: training.precision: fp8 on groups of different architectures (hopper and "
            "blackwell) is legal, but not supported yet");
}

CU_TestInfo unlike_groups_tests[] = {
    {"a_stage_costs_what_it_does_among_its_like", a_stage_costs_what_it_does_among_its_like},
    {"collectives_are_of_their_machines", collectives_are_of_their_machines},
    {"the_slower_end_and_the_link_between_set_the_pace",
     the_slower_end_and_the_link_between_set_the_pace},
    {"rates_are_those_of_the_mean_gpu", rates_are_those_of_the_mean_gpu},
    {"idle_gpus_of_each_group_are_paid", idle_gpus_of_each_group_are_paid},
    {"the_worst_rank_is_the_fullest", the_worst_rank_is_the_fullest},
    {"what_has_no_place_is_refused", what_has_no_place_is_refused},
    CU_TEST_INFO_NULL,
};
