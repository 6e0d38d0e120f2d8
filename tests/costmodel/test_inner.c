#include "costmodel/pass/inner.h"

#include "costmodel/network/exchange.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected) + 1e-15)

#define WITH(switch) "{\"seq_len\": 2048, \"global_batch\": 64" switch "}"

// Plans of which one kind of collectives crosses the domains of 8 GPUs.
typedef struct {
    const char *model, *training, *parallel;
} InnerCase;

enum { NUM_CASES = 8, FIRST_SHARDED = 6 };

static bool inner_case(Case *c, int i) {
    const char *rings = "{\"tp\": 4, \"cp\": 4}", *experts = "{\"tp\": 2, \"etp\": 2, \"ep\": 8}";
    const InnerCase cases[NUM_CASES] = {
        {MADE_UP_GPT, WITH(), rings},
        {MADE_UP_GPT, WITH(), "{\"tp\": 4, \"cp\": 4, \"cp_method\": \"all-gather\"}"},
        {MADE_UP_GPT, WITH(), "{\"tp\": 16}"},
        {MADE_UP_GPT, WITH(", \"tp_comm_overlap\": true"), "{\"tp\": 16}"},
        {MADE_UP_MOE, WITH(), experts},
        {MADE_UP_MOE, WITH(", \"ep_overlap\": true"), experts},
        {MADE_UP_GPT, WITH(", \"stack\": \"torchtitan\""), NULL},
        {MADE_UP_GPT,
         WITH(", \"stack\": \"torchtitan\", \"overlap_param_gather\": false,"
              " \"overlap_grad_reduce\": false"),
         NULL},
    };
    if (!case_make(c, cases[i].model, 16, cases[i].training, cases[i].parallel)) return false;
    stack_bare(&c->scenario.execution.stack);
    return true;
}

static double exposed_s(const InnerPass *pass) {
    double sum = 0;
    for (int i = 0; i < pass->num; i++) sum += pass->list[i].exposed_s;
    return sum;
}

static double waited_s(const Price *price) {
    return price->term_s[TERM_TP] + price->term_s[TERM_CP] + price->term_s[TERM_EP] +
           price->term_s[TERM_DP];
}

// All that a price waits for is charged to some collective of it.
static void exposed_is_what_the_price_waits_for(void) {
    for (int i = 0; i < NUM_CASES; i++) {
        Case c;
        if (inner_case(&c, i)) {
            c.plan.schedule = SCHEDULE_ZB_H1; // so that backwards are priced in parts as well
            const Prices prices = chunks_price(&c.scenario, &c.plan, &c.workload, &c.arena);
            const InnerPasses inner =
                inner_passes(&c.scenario, &c.plan, &c.workload, true, &c.arena);
            ASSERT_CLOSE(exposed_s(&inner.forward[0]), waited_s(&prices.forward[0]));
            ASSERT_CLOSE(exposed_s(&inner.backward[0]), waited_s(&prices.backward[0]));
            ASSERT_CLOSE(exposed_s(&inner.backward_input[0]), waited_s(&prices.backward_input[0]));
            ASSERT_CLOSE(exposed_s(&inner.backward_weight[0]),
                         waited_s(&prices.backward_weight[0]));
        }
        case_free(&c);
    }
}

// What the header says of a pass whose collectives across domains take `factor` times as long.
static double longer_s(double price_s, const InnerPass *pass, double factor) {
    double hidden_s[NUM_INNER_QUEUES] = {0}, sum = price_s + (factor - 1) * exposed_s(pass);
    for (int i = 0; i < pass->num; i++)
        hidden_s[pass->list[i].queue] += pass->list[i].time_s - pass->list[i].exposed_s;
    for (int queue = 0; queue < NUM_INNER_QUEUES; queue++)
        sum += fmax(0, factor * hidden_s[queue] - pass->window_s[queue]);
    return sum;
}

// Priced anew with collectives so much longer: never less than the model says, and the same once
// nothing hides them. Of shards the price waits for one block more, as the first and the last then
// count twice.
static void slower_collectives_outlast_what_hides_them(void) {
    for (int i = 0; i < NUM_CASES; i++) {
        Case c;
        if (inner_case(&c, i)) {
            const InnerPasses inner =
                inner_passes(&c.scenario, &c.plan, &c.workload, false, &c.arena);
            const InnerPass *passes[2] = {&inner.forward[0], &inner.backward[0]};
            const Prices before = chunks_price(&c.scenario, &c.plan, &c.workload, &c.arena);
            Calibration calibration = *c.scenario.calibration;
            c.scenario.calibration = &calibration;
            const double factors[] = {1, 1.25, 2, 5, 1e5};
            for (int k = 0; k < 5; k++) {
                calibration.factor[PART_ACROSS] = factors[k];
                const Prices after = chunks_price(&c.scenario, &c.plan, &c.workload, &c.arena);
                for (int back = 0; back < 2; back++) {
                    const Price *p = back ? &before.backward[0] : &before.forward[0];
                    const double after_s =
                        back ? after.backward[0].time_s : after.forward[0].time_s;
                    const double model_s = longer_s(p->time_s, passes[back], factors[k]);
                    CU_ASSERT(passes[back]->num > 0);
                    CU_ASSERT(model_s <= after_s * (1 + 1e-9));
                    if (k == 0) ASSERT_CLOSE(model_s, after_s);
                    if (k < 4) continue;
                    double most_s = i < FIRST_SHARDED ? 1e-6 * after_s : 0.4 * after_s;
                    CU_ASSERT_DOUBLE_EQUAL(model_s, after_s, most_s);
                }
            }
        }
        case_free(&c);
    }
}

// 8 ranks, 4 in each of 2 domains. Of 1.6e9 bytes half leave over a NIC of 1e10 B/s: 0.08 s, after
// 1e-4 s and a step of 1e-5 s; 3/8 stay inside, at 1e11 B/s.
static void an_all_to_all_takes_both_networks(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 16, WITH(), "{\"tp\": 2, \"etp\": 2, \"ep\": 8}")) {
        const Op op = {.kind = OP_COLLECTIVE,
                       .collective.kind = COLLECTIVE_ALL_TO_ALL,
                       .collective.group = GROUP_EP,
                       .collective.message_bytes = 1.6e9};
        const PricingContext context = pricing_context(&c.scenario, &c.plan, 0, NULL);
        const WireTime wire = op_wire_time(&context, &op);
        ASSERT_CLOSE(wire.time_s, 0.08011);
        CU_ASSERT_DOUBLE_EQUAL(wire.latency_s, 1.1e-4, 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(wire.wire_s, 0.08, 1e-9);
        ASSERT_CLOSE(wire.inside_s, 6e-3);
    }
    case_free(&c);
}

// Groups inside domains are asked for, or left out.
static void domains_are_crossed_or_all_is_asked_for(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 16, WITH(), "{\"tp\": 2, \"etp\": 2, \"ep\": 8}")) {
        const InnerPasses across = inner_passes(&c.scenario, &c.plan, &c.workload, false, &c.arena);
        const InnerPasses all = inner_passes(&c.scenario, &c.plan, &c.workload, true, &c.arena);
        CU_ASSERT_EQUAL(across.forward[0].num, 1);
        CU_ASSERT_EQUAL(across.forward[0].list[0].group, GROUP_EP);
        CU_ASSERT(across.forward[0].list[0].all_to_all);
        CU_ASSERT_EQUAL(all.forward[0].num, 3); // and tp, etp
        Instruction forward = {.kind = INSTRUCTION_FORWARD}, send = {.kind = INSTRUCTION_SEND};
        CU_ASSERT_PTR_EQUAL(instruction_inner(&across, &forward), &across.forward[0]);
        CU_ASSERT_PTR_NULL(instruction_inner(&across, &send));
        forward.kind = INSTRUCTION_BACKWARD_WEIGHT; // experts' weights have no exchanges
        CU_ASSERT_PTR_NULL(instruction_inner(&across, &forward));
    }
    case_free(&c);
}

CU_TestInfo inner_tests[] = {
    {"exposed_is_what_the_price_waits_for", exposed_is_what_the_price_waits_for},
    {"slower_collectives_outlast_what_hides_them", slower_collectives_outlast_what_hides_them},
    {"an_all_to_all_takes_both_networks", an_all_to_all_takes_both_networks},
    {"domains_are_crossed_or_all_is_asked_for", domains_are_crossed_or_all_is_asked_for},
    CU_TEST_INFO_NULL,
};
