// Laws of one step: what it holds does not fall as micro-batches come, and where nothing contends
// the simulator agrees with the estimate.
#include "tests/laws/law.h"

#include "costmodel/network/message.h"
#include "costmodel/step/estimate.h"
#include "plan/plan_orders.h"
#include "sim/sim.h"
#include "workload/pass/layout.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

// --- Memory

// What a rank holds while it runs an item: of each chunk the inputs whose backward is to come, and
// with them those of which only the weight part is.
typedef struct {
    WorkItem item;
    const int *whole, *any; // [pp x vpp]
    // Beside the compute: what the item before made and sends, and what the next one receives.
    int num_messages;
} Held;

// Whether another rank makes what an item needs, or needs what it makes.
//   makes  the latter
static bool is_message(const Plan *plan, WorkItem item, bool makes) {
    const bool up = (item.kind == WORK_FORWARD) == makes; // towards the loss
    const int num_stages = plan_num_stages(plan), stage = item.chunk % num_stages;
    if (item.kind == WORK_BACKWARD_WEIGHT || (up ? stage == num_stages - 1 : stage == 0))
        return false;
    return plan_chunk_rank(plan, item.chunk) != plan_chunk_rank(plan, item.chunk + (up ? 1 : -1));
}

static int messages_around(const Plan *plan, const RankOrder *order, int i) {
    const bool sends = i > 0 && is_message(plan, order->items[i - 1], true);
    return sends + (i + 1 < order->num_items && is_message(plan, order->items[i + 1], false));
}

// Before each item of a rank: [num_items].
static const Held *held_states(const Plan *plan, const RankOrder *order, Arena *arena) {
    const int num_chunks = plan->num_chunks;
    Held *states = ARENA_ARRAY(arena, order->num_items, Held);
    int *whole = ARENA_ARRAY(arena, num_chunks, int), *any = ARENA_ARRAY(arena, num_chunks, int);
    const size_t bytes = (size_t)num_chunks * sizeof *whole;
    for (int i = 0; i < order->num_items; i++) {
        const WorkItem item = order->items[i];
        if (item.kind == WORK_FORWARD) whole[item.chunk]++, any[item.chunk]++;
        int *whole_now = ARENA_ARRAY(arena, num_chunks, int);
        int *any_now = ARENA_ARRAY(arena, num_chunks, int);
        memcpy(whole_now, whole, bytes);
        memcpy(any_now, any, bytes);
        states[i] = (Held){item, whole_now, any_now, messages_around(plan, order, i)};
        if (item.kind == WORK_BACKWARD || item.kind == WORK_BACKWARD_INPUT) whole[item.chunk]--;
        if (item.kind == WORK_BACKWARD || item.kind == WORK_BACKWARD_WEIGHT) any[item.chunk]--;
    }
    return states;
}

static bool holds_as_much(const Held *more, const Held *less, int num_chunks, bool messages) {
    if (more->item.kind != less->item.kind || more->item.chunk != less->item.chunk) return false;
    if (messages && more->num_messages < less->num_messages) return false;
    for (int c = 0; c < num_chunks; c++)
        if (more->whole[c] < less->whole[c] || more->any[c] < less->any[c]) return false;
    return true;
}

// Whether the schedule is why the peak of rank r falls: it holds inputs together, or while it runs
// something, that with one micro-batch more it never does.
//   messages  or it has more on their way then
static bool schedule_says_why(const DrawnScenario *fewer, const DrawnScenario *more, int r,
                              bool messages, Arena *arena) {
    const Plan *plan = &fewer->plan;
    const int num_chunks = plan->num_chunks;
    const ScheduleShape a = schedule_shape(plan->pp, plan->vpp, (int)plan->num_microbatches);
    const ScheduleShape b = schedule_shape(plan->pp, plan->vpp, (int)more->plan.num_microbatches);
    const RankOrder *before = plan_chunk_orders(plan, &a, arena);
    const RankOrder *after = plan_chunk_orders(&more->plan, &b, arena);
    const Held *x = held_states(plan, &before[r], arena);
    const Held *y = held_states(&more->plan, &after[r], arena);
    for (int i = 0; i < before[r].num_items; i++) {
        bool found = false;
        for (int j = 0; j < after[r].num_items && !found; j++)
            found = holds_as_much(&y[j], &x[i], num_chunks, messages);
        if (!found) return true;
    }
    return false;
}

// The same with so many micro-batches; false where that is refused.
static bool with_microbatches(const DrawnScenario *drawn, int num, KernelShelf *shelf, Arena *arena,
                              DrawnScenario *out) {
    cJSON *document = cJSON_Duplicate(drawn->document, true);
    json_own(arena, document);
    cJSON *training = cJSON_GetObjectItemCaseSensitive(document, "training");
    cJSON_ReplaceItemInObjectCaseSensitive(
        training, "global_batch",
        cJSON_CreateNumber((double)num * drawn->plan.dp * drawn->plan.micro_batch));
    return scenario_take(document, shelf, arena, out).code == STATUS_OK &&
           out->plan.num_microbatches == num && out->plan.schedule == drawn->plan.schedule;
}

static LawVerdict memory_check(const DrawnScenario *drawn, KernelShelf *shelf, Draw *draw,
                               Arena *arena) {
    enum { MOST = 6 };
    const int num = draw_int(draw, 1, MOST);
    DrawnScenario fewer, more;
    Estimate x, y;
    if (drawn->plan.pp == 1 || drawn->plan.vocab_barriers > 0) return LAW_SILENT;
    if (!with_microbatches(drawn, num, shelf, arena, &fewer) ||
        !with_microbatches(drawn, num + 1, shelf, arena, &more) ||
        estimate_plan(&fewer.scenario, &fewer.plan, arena, &x, NULL).code != STATUS_OK ||
        estimate_plan(&more.scenario, &more.plan, arena, &y, NULL).code != STATUS_OK)
        return LAW_SILENT;
    if (y.memory.peak_bytes >= x.memory.peak_bytes * (1 - 1e-12)) return LAW_HOLDS;
    if (schedule_says_why(&fewer, &more, x.memory_rank, false, arena)) return LAW_HOLDS;
    // Messages explain no more than one of them.
    if (x.memory.peak_bytes - y.memory.peak_bytes <=
            layout_boundary_bytes(&fewer.scenario, &fewer.plan) * (1 + 1e-9) &&
        schedule_says_why(&fewer, &more, x.memory_rank, true, arena))
        return LAW_HOLDS;
    return law_broken(arena, "%s: %d micro-batches hold %.9g bytes, %d hold %.9g",
                      plan_describe(&drawn->plan, arena), num, x.memory.peak_bytes, num + 1,
                      y.memory.peak_bytes);
}

static void peaks_do_not_fall_with_more_micro_batches(void) {
    law_run(&(Law){.name = "one micro-batch more",
                   .space = {.max_gpus = 64, .split = SPLIT_WHOLE},
                   .check = memory_check,
                   .num_cases = 100,
                   .num_cases_full = 3000});
}

static DrawnScenario known_take(const cJSON *document, Arena *arena) {
    DrawnScenario drawn = {0};
    const Status status = scenario_take(document, NULL, arena, &drawn);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return drawn;
}

// ZB-V holds at most 2 pp = 4 inputs of chunks. Two micro-batches alone are two of each chunk on
// the rank of the loss, whose second forward comes before the first's weight part, as nothing else
// is there to do: two micro-batches of logits. Of three and more the place is taken by a forward of
// the first chunk, and that weight part has to come first: one.
static void a_schedule_says_why_two_micro_batches_hold_more(void) {
    DrawnScenario cases[3];
    Estimate estimates[3];
    Arena arena = {0};
    for (int i = 0; i < 3; i++) {
        cJSON *document =
            cJSON_Parse("{\"schema\": 1, \"model\": \"gpt2-124m\", \"cluster\": \"l40s-node:2\","
                        "\"training\": {\"seq_len\": 8192}, \"parallel\": {\"tp\": 4, \"pp\": 2,"
                        "\"micro_batch\": 4, \"vpp\": 2, \"schedule\": \"zb-v\"}}");
        json_own(&arena, document);
        cJSON_AddNumberToObject(cJSON_GetObjectItemCaseSensitive(document, "training"),
                                "global_batch", (2 + i) * 4 * 2);
        cases[i] = known_take(document, &arena);
        CU_ASSERT_EQUAL(
            estimate_plan(&cases[i].scenario, &cases[i].plan, &arena, &estimates[i], NULL).code,
            STATUS_OK);
    }
    CU_ASSERT(estimates[1].memory.peak_bytes < estimates[0].memory.peak_bytes);
    CU_ASSERT(schedule_says_why(&cases[0], &cases[1], estimates[0].memory_rank, false, &arena));
    CU_ASSERT_FALSE(
        schedule_says_why(&cases[1], &cases[2], estimates[1].memory_rank, false, &arena));
    CU_ASSERT_DOUBLE_EQUAL(estimates[2].memory.peak_bytes / estimates[1].memory.peak_bytes, 1,
                           1e-9);
    arena_free(&arena);
}

// Interleaved, pp 2: with 6 micro-batches the rank of the embedding runs a backward of its first
// chunk with a full store while the gradient of the next backward arrives, as no forwards are left.
// With 7 (an order that is not Megatron-LM's) the next is a forward of the first chunk, which needs
// no message: the peak is one message lower, and with 8 it is that of 6.
static void a_schedule_says_why_a_message_less_is_held(void) {
    DrawnScenario cases[3];
    double peaks[3];
    int ranks[3];
    Arena arena = {0};
    for (int i = 0; i < 3; i++) {
        cJSON *document =
            cJSON_Parse("{\"schema\": 1, \"model\": \"llama-3.2-3b\", \"cluster\": \"dgx-b200:4\","
                        "\"training\": {\"seq_len\": 1024}, \"parallel\": {\"pp\": 2, \"vpp\": 3,"
                        "\"recompute\": \"full\", \"recompute_layers\": 5, \"micro_batch\": 4}}");
        Estimate estimate;
        json_own(&arena, document);
        cJSON_AddNumberToObject(cJSON_GetObjectItemCaseSensitive(document, "training"),
                                "global_batch", (6 + i) * 4 * 16);
        cases[i] = known_take(document, &arena);
        CU_ASSERT_EQUAL(
            estimate_plan(&cases[i].scenario, &cases[i].plan, &arena, &estimate, NULL).code,
            STATUS_OK);
        peaks[i] = estimate.memory.peak_bytes;
        ranks[i] = estimate.memory_rank;
    }
    const double message_bytes = layout_boundary_bytes(&cases[0].scenario, &cases[0].plan);
    CU_ASSERT_DOUBLE_EQUAL(message_bytes, 4.0 * 1024 * 3072 * 2, 1);
    CU_ASSERT_DOUBLE_EQUAL(peaks[0] - peaks[1], message_bytes, 1);
    CU_ASSERT_DOUBLE_EQUAL(peaks[2], peaks[0], 1);
    CU_ASSERT_FALSE(schedule_says_why(&cases[0], &cases[1], ranks[0], false, &arena));
    CU_ASSERT(schedule_says_why(&cases[0], &cases[1], ranks[0], true, &arena));
    CU_ASSERT_FALSE(schedule_says_why(&cases[0], &cases[2], ranks[0], true, &arena));
    arena_free(&arena);
}

// --- Simulation

// As `simulate` has it where nothing is disturbed, with its tolerance.
static LawVerdict sim_check(const DrawnScenario *drawn, KernelShelf *shelf, Draw *draw,
                            Arena *arena) {
    static const double TOLERANCE_FRAC = 0.03, TIMEOUT_S = 20;
    SimResult result;
    (void)shelf;
    (void)draw;
    const Status status = sim_run(drawn->document, "drawn.json",
                                  &(SimOptions){.timeout_s = TIMEOUT_S}, arena, &result);
    if (status.code != STATUS_OK) return LAW_SILENT;
    const double estimate_s = result.estimate_step_time_s;
    const bool shared = stages_share_nics(&drawn->scenario.cluster, &drawn->plan);
    const double spare_s = shared ? result.difference.spare_bandwidth_s : 0;
    if (fabs(result.difference.model_s) > TOLERANCE_FRAC * estimate_s)
        return law_broken(arena, "every transfer as granted: %.9g s of %.9g s differ",
                          result.difference.model_s, estimate_s);
    if (result.contended) return LAW_SILENT;
    if (fabs(result.step_time_s - spare_s - estimate_s) <= TOLERANCE_FRAC * estimate_s)
        return LAW_HOLDS;
    return law_broken(arena, "%s: simulated %.9g s, estimated %.9g s, spare %.9g s",
                      plan_describe(&drawn->plan, arena), result.step_time_s, estimate_s,
                      result.difference.spare_bandwidth_s);
}

static void the_simulator_agrees_where_nothing_contends(void) {
    law_run(&(Law){.name = "simulated",
                   .space = {.max_gpus = 16, .split = SPLIT_WHOLE},
                   .check = sim_check,
                   .max_tries = 100,
                   .num_cases = 15,
                   .num_cases_full = 400});
}

CU_TestInfo laws_step_tests[] = {
    {"a schedule says why two micro-batches hold more",
     a_schedule_says_why_two_micro_batches_hold_more},
    {"a schedule says why a message less is held", a_schedule_says_why_a_message_less_is_held},
    {"peaks do not fall with more micro-batches", peaks_do_not_fall_with_more_micro_batches},
    {"the simulator agrees where nothing contends", the_simulator_agrees_where_nothing_contends},
    CU_TEST_INFO_NULL,
};
