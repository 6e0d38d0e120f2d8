// Plans whose layers differ in more than recomputation: what is read, refused and written, and what
// their chunks, collectives, memory and prices are made of.
#include "costmodel/network/collective.h"
#include "costmodel/step/estimate.h"
#include "plan/layer_plans.h"
#include "tests/costmodel/made_up.h"
#include "tests/support.h"
#include "workload/pass/layout.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

#define TRAINING "{\"seq_len\": 1024, \"global_batch\": 32}"
#define LLAMA "\"llama-3.2-1b\"" // 16 layers

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected) + 1e-12)

// --- What is read and written

static bool estimates_are_same(const Estimate *a, const Estimate *b) {
    return a->step_time_s == b->step_time_s && a->step_time_high_s == b->step_time_high_s &&
           memcmp(a->term_s, b->term_s, sizeof a->term_s) == 0 &&
           memcmp(a->part_s, b->part_s, sizeof a->part_s) == 0 &&
           memcmp(&a->memory, &b->memory, sizeof a->memory) == 0;
}

static Estimate priced(const char *model, const char *training, const char *parallel) {
    Case c;
    Estimate estimate = {0};
    if (case_make(&c, model, 16, training, parallel)) estimate = case_estimate(&c, NULL);
    case_free(&c);
    return estimate;
}

// To the bit.
static void what_the_plan_says_already_changes_nothing(void) {
    static const struct {
        const char *model, *plain, *restated;
    } CASES[] = {
        {LLAMA, "{\"tp\": 2, \"pp\": 2, \"recompute\": \"full\"}",
         "{\"tp\": 2, \"pp\": 2, \"recompute\": \"full\", \"layers\": [{\"from\": 0, \"to\": 9, "
         "\"tp\": 2, \"recompute\": \"full\"}, {\"from\": 12, \"to\": 12, \"zero_stage\": 1}]}"},
        {LLAMA, "{\"cp\": 2, \"zero_stage\": 3}",
         "{\"cp\": 2, \"zero_stage\": 3, \"layers\": [{\"from\": 3, \"to\": 15, \"cp\": 2, "
         "\"cp_method\": \"ring\", \"zero_stage\": 3, \"sequence_parallel\": true}]}"},
        {"\"deepseek-v2-lite\"", "{\"ep\": 2, \"tp\": 2}",
         "{\"ep\": 2, \"tp\": 2, \"layers\": [{\"from\": 0, \"to\": 26, \"ep\": 2, \"etp\": 1, "
         "\"tp\": 2}]}"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const Estimate a = priced(CASES[i].model, TRAINING, CASES[i].plain);
        const Estimate b = priced(CASES[i].model, TRAINING, CASES[i].restated);
        CU_ASSERT(a.step_time_s > 0);
        CU_ASSERT(estimates_are_same(&a, &b));
    }
}

// 16 GPUs, tp 2 cp 1 dp 4 pp 2 with 2 sequences: layers of tp 4 have 2 replicas with 4 sequences
// each, layers of tp 1 have 8 with one.
static void degrees_follow_from_the_stage(void) {
    Case c;
    if (case_make(&c, LLAMA, 16, TRAINING,
                  "{\"tp\": 2, \"pp\": 2, \"micro_batch\": 2, \"layers\": [{\"from\": 1, \"to\": "
                  "2, \"tp\": 4}, {\"from\": 5, \"to\": 9, \"tp\": 1, \"zero_stage\": 3}]}")) {
        CU_ASSERT_EQUAL(plan_num_strategies(&c.plan), 3);
        CU_ASSERT_EQUAL(plan_layer_strategy(&c.plan, 0, 0), PLAN_OWN);
        const Plan *four = plan_sharding(&c.plan, plan_layer_sharding(&c.plan, 0, 2));
        const Plan *one = plan_sharding(&c.plan, plan_layer_sharding(&c.plan, 1, 1)); // layer 9
        CU_ASSERT(four->tp == 4 && four->dp == 2 && four->micro_batch == 4 &&
                  four->zero_group == 2);
        CU_ASSERT(four->sequence_parallel && four->zero_stage == 1);
        CU_ASSERT(one->tp == 1 && one->dp == 8 && one->micro_batch == 1 && one->zero_group == 8);
        CU_ASSERT(!one->sequence_parallel && one->zero_stage == 3);
        CU_ASSERT_EQUAL(four->num_microbatches, c.plan.num_microbatches);
        // Layouts change among 4 ranks (tp 2 and 4, 4 and 1) and among 2 (2 and 1).
        CU_ASSERT(c.plan.layers->num_spans == 2 && c.plan.layers->spans[1] == 4);
        CU_ASSERT_EQUAL(c.plan.layers->num_layouts, 3);
    }
    case_free(&c);
}

static void the_answer_reads_back(void) {
    static const char *const PARALLEL =
        "{\"tp\": 2, \"pp\": 2, \"micro_batch\": 2, \"layers\": [{\"from\": 1, \"to\": 2, \"tp\": "
        "4, \"sequence_parallel\": false}, {\"from\": 5, \"to\": 9, \"tp\": 1, \"zero_stage\": 3, "
        "\"recompute\": \"full\"}, {\"from\": 10, \"to\": 10, \"cp\": 2, \"cp_method\": "
        "\"ulysses\"}, {\"from\": 11, \"to\": 15, \"recompute\": \"selective\", "
        "\"recompute_modules\": [\"mlp\"]}]}";
    Case c;
    if (case_make(&c, LLAMA, 16, TRAINING, PARALLEL)) {
        cJSON *json = plan_to_json(&c.plan);
        char *text = cJSON_PrintUnformatted(json);
        const Estimate a = priced(LLAMA, TRAINING, PARALLEL), b = priced(LLAMA, TRAINING, text);
        CU_ASSERT(a.step_time_s > 0 && estimates_are_same(&a, &b));
        const Plan copy = plan_copy(&c.plan, &c.arena);
        cJSON *again = plan_to_json(&copy);
        CU_ASSERT(cJSON_Compare(json, again, true));
        CU_ASSERT_PTR_NOT_NULL(
            strstr(plan_describe(&copy, &c.arena), " [5 layers tp 1 dp 8 zero3 full] "));
        cJSON_free(text);
        cJSON_Delete(again);
        cJSON_Delete(json);
    }
    case_free(&c);
}

static void what_cannot_be_is_refused(void) {
    static const struct {
        const char *parallel, *sentence;
    } CASES[] = {
        {"{\"tp\": 2, \"layers\": [{\"from\": 0, \"to\": 1, \"recompute\": \"full\"}, {\"from\": "
         "2, \"to\": 3, \"tp\": 3}]}",
         "job.json: parallel.layers[1].tp: tp 3 x cp 1 does not divide the 8 GPUs of a stage (tp 2 "
         "x cp 1 x dp 4)"},
        {"{\"tp\": 2, \"layers\": [{\"from\": 0, \"to\": 0, \"tp\": 1}]}",
         "job.json: parallel.layers[0].tp: tp 1 x cp 1 makes dp 8, which does not divide the 4 "
         "sequences of a micro-batch (micro_batch 1 x dp 4)"},
        {"{\"tp\": 2, \"layers\": [{\"from\": 0, \"to\": 0, \"ep\": 2}]}",
         "job.json: parallel.layers[0].ep: 2, but the plan has ep 1: other experts than those of "
         "the plan are legal, but not supported yet"},
        {"{\"tp\": 2, \"layers\": [{\"from\": 0, \"to\": 0, \"etp\": 2}]}",
         "job.json: parallel.layers[0].etp: 2, but the plan has etp 1: other experts than those of "
         "the plan are legal, but not supported yet"},
        {"{\"tp\": 2, \"layers\": [{\"from\": 0, \"to\": 0, \"recompute_modules\": [\"mlp\"]}]}",
         "job.json: parallel.layers[0].recompute_modules: goes with recompute selective only; here "
         "it is none"},
        {"{\"tp\": 2, \"zero_group\": 2, \"layers\": [{\"from\": 0, \"to\": 0, \"tp\": 8}]}",
         "job.json: parallel.layers[0]: as a plan throughout: parallel.zero_group: 2 does not "
         "divide dp 1 x cp 1"},
        {"{\"tp\": 2, \"pp\": 2, \"order\": \"tp-cp-ep-pp-dp\", \"layers\": [{\"from\": 0, \"to\": "
         "0, \"tp\": "
         "4}]}",
         "job.json: parallel.layers[0].tp: other degrees than the plan's with order tp-cp-ep-pp-dp "
         "are legal, but not supported yet; expected tp-cp-ep-dp-pp"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Scenario scenario;
        Plan plan;
        const char *text =
            scenario_text(&arena, LLAMA, "\"dgx-h100:1\"", TRAINING, CASES[i].parallel);
        CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
        const Status status = plan_resolve(&scenario, &arena, &plan);
        ASSERT_REFUSED(status, CASES[i].sentence);
        arena_free(&arena);
    }
}

// --- What the chunks are

// A chunk of a pipeline's second stage: layers alone.
static const Chunk *inner_chunk(const Case *c) {
    return &c->workload.chunks[1];
}

static Prices prices_of(Case *c) {
    stack_bare(&c->scenario.execution.stack);
    return chunks_price(&c->scenario, &c->plan, &c->workload, &c->arena);
}

// Where all layers do otherwise, a stage of layers alone is that of the plan that does so
// throughout: to the bit where activations lie as they did, else and the change at either end.
static void all_layers_otherwise_are_that_plan(void) {
    static const struct {
        const char *layers, *throughout;
        bool changes;
    } CASES[] = {
        {"\"zero_stage\": 3", "{\"pp\": 4, \"tp\": 2, \"zero_stage\": 3}", false},
        {"\"zero_stage\": 0, \"recompute\": \"full\"",
         "{\"pp\": 4, \"tp\": 2, \"zero_stage\": 0, \"recompute\": \"full\"}", false},
        {"\"tp\": 4", "{\"pp\": 4, \"tp\": 4, \"micro_batch\": 2}", true},
        {"\"cp\": 2", "{\"pp\": 4, \"tp\": 2, \"cp\": 2, \"micro_batch\": 2}", true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Case a, b;
        Arena arena = {0};
        const char *layers = arena_printf(
            &arena, "{\"pp\": 4, \"tp\": 2, \"layers\": [{\"from\": 0, \"to\": 15, %s}]}",
            CASES[i].layers);
        const bool read = case_make(&a, LLAMA, 16, TRAINING, layers) &&
                          case_make(&b, LLAMA, 16, TRAINING, CASES[i].throughout);
        CU_ASSERT_FATAL(read);
        const Prices x = prices_of(&a), y = prices_of(&b);
        double there_s = 0, back_s = 0;
        if (CASES[i].changes) {
            const Op *in = workload_change_block(&a.workload, &a.plan, 0, 1)->forward;
            const Op *out = workload_change_block(&a.workload, &a.plan, 1, 0)->forward;
            there_s = collective_s(machines_of(&a.scenario.cluster), in->collective.kind,
                                   plan_group(&a.plan, in->collective.group),
                                   in->collective.message_bytes);
            back_s = collective_s(machines_of(&a.scenario.cluster), out->collective.kind,
                                  plan_group(&a.plan, out->collective.group),
                                  out->collective.message_bytes);
            CU_ASSERT(there_s > 0 && back_s > 0);
        }
        ASSERT_CLOSE(x.forward[1].time_s, y.forward[1].time_s + there_s + back_s);
        ASSERT_CLOSE(x.backward[1].time_s, y.backward[1].time_s + there_s + back_s);
        CU_ASSERT(CASES[i].changes || x.forward[1].time_s == y.forward[1].time_s);
        ASSERT_CLOSE(x.optimizer_s[1], y.optimizer_s[1]);
        CU_ASSERT_EQUAL(inner_chunk(&a)->saved_bytes, inner_chunk(&b)->saved_bytes);
        CU_ASSERT_EQUAL(inner_chunk(&a)->dense_parameters, inner_chunk(&b)->dense_parameters);
        const RankMemory m = memory_closed_form(&a.scenario, &a.plan, &a.workload, 1);
        const RankMemory n = memory_closed_form(&b.scenario, &b.plan, &b.workload, 1);
        CU_ASSERT_EQUAL(m.weights_bytes, n.weights_bytes);
        CU_ASSERT_EQUAL(m.gradients_bytes, n.gradients_bytes);
        CU_ASSERT_EQUAL(m.optimizer_bytes, n.optimizer_bytes);
        case_free(&a);
        case_free(&b);
        arena_free(&arena);
    }
}

// A stage of 4 layers, the first with tp 4: a quarter of that stage under tp 4, three quarters of
// it under tp 2, and one change there and back.
static void each_layer_adds_its_own(void) {
    Case mixed, two, four;
    const bool read =
        case_make(&mixed, LLAMA, 16, TRAINING,
                  "{\"pp\": 4, \"tp\": 2, \"layers\": [{\"from\": 4, \"to\": 4, \"tp\": 4, "
                  "\"recompute\": \"full\"}]}") &&
        case_make(&two, LLAMA, 16, TRAINING, "{\"pp\": 4, \"tp\": 2}") &&
        case_make(&four, LLAMA, 16, TRAINING,
                  "{\"pp\": 4, \"tp\": 4, \"micro_batch\": 2, \"recompute\": \"full\"}");
    CU_ASSERT_FATAL(read);
    const Prices m = prices_of(&mixed), x = prices_of(&two), y = prices_of(&four);
    const Op *change = workload_change_block(&mixed.workload, &mixed.plan, 0, 1)->forward;
    const double change_s =
        2 * collective_s(machines_of(&mixed.scenario.cluster), change->collective.kind,
                         plan_group(&mixed.plan, change->collective.group),
                         change->collective.message_bytes);
    ASSERT_CLOSE(m.forward[1].time_s,
                 0.75 * x.forward[1].time_s + 0.25 * y.forward[1].time_s + change_s);
    ASSERT_CLOSE(m.backward[1].time_s,
                 0.75 * x.backward[1].time_s + 0.25 * y.backward[1].time_s + change_s);
    ASSERT_CLOSE(m.backward[1].term_s[TERM_TP], 0.75 * x.backward[1].term_s[TERM_TP] +
                                                    0.25 * y.backward[1].term_s[TERM_TP] +
                                                    change_s);
    ASSERT_CLOSE(m.optimizer_s[1], 0.75 * x.optimizer_s[1] + 0.25 * y.optimizer_s[1]);
    ASSERT_CLOSE(inner_chunk(&mixed)->saved_bytes,
                 0.75 * inner_chunk(&two)->saved_bytes + 0.25 * inner_chunk(&four)->saved_bytes);
    // The other stages are as they were.
    CU_ASSERT_EQUAL(m.forward[2].time_s, x.forward[2].time_s);
    CU_ASSERT_EQUAL(m.backward[0].time_s, x.backward[0].time_s);
    case_free(&mixed);
    case_free(&two);
    case_free(&four);
}

// --- Changes of layout

// A micro-batch of 2 sequences of 1,024 tokens of 1,024 numbers in 16 bits on 4 ranks: 4 MiB.
//   tp 2 and 1, sequences split   2 replicas of one sequence, 1 MiB a rank: an all-to-all of it
//   tp 2 whole, tp 4 split        what a replica of tp 2 has, 2 MiB, is gathered from both: 4 MiB;
//                                 back: each 1 MiB, of all four
//   tp 4 whole, tp 2 split        a rank has all that it needs: 1 MiB is read and written
static void layouts_change_by_hand(void) {
    static const struct {
        const char *layers;
        int from_base;
        CollectiveKind collective; // NUM_COLLECTIVES: a copy
        double bytes;
    } CASES[] = {
        {"\"tp\": 4", true, COLLECTIVE_ALL_TO_ALL, 1 << 20},
        {"\"tp\": 4, \"sequence_parallel\": false", true, COLLECTIVE_ALL_GATHER, 4 << 20},
        {"\"tp\": 4, \"sequence_parallel\": false", false, NUM_COLLECTIVES, 2 << 20},
        {"\"sequence_parallel\": false", true, COLLECTIVE_ALL_GATHER, 2 << 20},
        {"\"sequence_parallel\": false", false, NUM_COLLECTIVES, 2 << 20},
        {"\"cp\": 2", true, COLLECTIVE_ALL_TO_ALL, 1 << 20},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Case c;
        Arena arena = {0};
        const char *parallel = arena_printf(
            &arena, "{\"tp\": 2, \"layers\": [{\"from\": 0, \"to\": 0, %s}]}", CASES[i].layers);
        CU_ASSERT_FATAL(case_make(&c, MADE_UP_GPT, 4, TRAINING, parallel));
        const int other = plan_layer_sharding(&c.plan, 0, 0);
        const Block *b = CASES[i].from_base
                             ? workload_change_block(&c.workload, &c.plan, PLAN_OWN, other)
                             : workload_change_block(&c.workload, &c.plan, other, PLAN_OWN);
        const Block *reverse = CASES[i].from_base
                                   ? workload_change_block(&c.workload, &c.plan, other, PLAN_OWN)
                                   : workload_change_block(&c.workload, &c.plan, PLAN_OWN, other);
        const Op *op = &b->forward[0];
        const bool copies = CASES[i].collective == NUM_COLLECTIVES;
        CU_ASSERT_EQUAL(op->kind, copies ? OP_MEMORY : OP_COLLECTIVE);
        CU_ASSERT_EQUAL(copies ? op->bytes : op->collective.message_bytes, CASES[i].bytes);
        if (!copies) CU_ASSERT_EQUAL(op->collective.kind, CASES[i].collective);
        const Op *moves =
            copies ? &b->backward[0] : op; // what is copied comes back by a collective
        CU_ASSERT_EQUAL(moves->kind, OP_COLLECTIVE);
        CU_ASSERT_EQUAL(plan_group(&c.plan, moves->collective.group).size,
                        c.plan.layers->spans[c.plan.layers->num_spans - 1]);
        // The gradient goes the other way.
        CU_ASSERT_EQUAL(b->backward[0].collective.message_bytes,
                        reverse->forward[0].collective.message_bytes);
        CU_ASSERT_EQUAL(b->backward[0].bytes, reverse->forward[0].bytes);
        CU_ASSERT_EQUAL(b->backward[0].phase, PHASE_BACKWARD_INPUT);
        case_free(&c);
        arena_free(&arena);
    }
}

// --- Memory and collectives by hand

static double buffers_without_zero_3(const Case *from) {
    Case c;
    double bytes = 0;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING,
                  "{\"tp\": 2, \"layers\": [{\"from\": 1, \"to\": 1, \"tp\": 4}]}")) {
        c.scenario.execution.stack = from->scenario.execution.stack;
        if (case_resolve(&c))
            bytes = memory_closed_form(&c.scenario, &c.plan, &c.workload, 0).buffers_bytes;
    }
    case_free(&c);
    return bytes;
}

// Of h = 1,024 a layer has 12 h^2 weights that tp divides and 4 h of norms, the tied table h^2, the
// last norm 2 h. Layer 0 and the rest: tp 2 on 8 GPUs, shards of the optimizer on 4 replicas; layer
// 1: tp 4, shards of all on 2. A parameter is 2 bytes, its gradient 4, its optimizer 12.
static void memory_by_hand(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING,
                  "{\"tp\": 2, \"layers\": [{\"from\": 1, \"to\": 1, \"tp\": 4, \"zero_stage\": "
                  "3}]}")) {
        const double h = 1024, own = 6 * h * h + 4 * h + h * h / 2 + 2 * h;
        const double other = 3 * h * h + 4 * h;
        c.scenario.execution.stack.training.weight_gradient = WEIGHT_GRADIENT_IN_PLACE;
        CU_ASSERT_FATAL(case_resolve(&c));
        const RankMemory m = memory_closed_form(&c.scenario, &c.plan, &c.workload, 0);
        ASSERT_CLOSE(m.weights_bytes, 2 * own + 2 * other / 2);
        ASSERT_CLOSE(m.gradients_bytes, 4 * own + 4 * other / 2);
        ASSERT_CLOSE(m.optimizer_bytes, 12 * own / 4 + 12 * other / 2);
        // Layer 1 gathered twice in 2 bytes, and its gradients whole in 4: beside the buffers that
        // do not depend on ZeRO.
        ASSERT_CLOSE(m.buffers_bytes - buffers_without_zero_3(&c), other * (2 * 2 + 4));
        // The running sum over the Program's instructions says the same.
        const Program program = program_build(&c.scenario, &c.plan, &c.workload, &c.arena);
        const RankMemory sum = memory_running_sum(&c.scenario, &c.plan, &c.workload, &program, 0);
        CU_ASSERT_EQUAL(sum.peak_bytes, m.peak_bytes);
    }
    case_free(&c);
}

// The same job, ZeRO 1 throughout: the gradients of layer 0 and the rest are scattered over 4 ranks
// 2 apart, those of layer 1 over 2 ranks 4 apart; weights are gathered there. Norms (two of h and
// their biases in a layer, one at the end) are added up over the tp ranks of their own layers.
static void gradients_are_reduced_in_their_own_groups(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING,
                  "{\"tp\": 2, \"layers\": [{\"from\": 1, \"to\": 1, \"tp\": 4}]}")) {
        const double h = 1024, own = 6 * h * h + 4 * h + h * h / 2 + 2 * h;
        const double other = 3 * h * h + 4 * h;
        const Program program = program_build(&c.scenario, &c.plan, &c.workload, &c.arena);
        double bytes[2][2] = {{0}}; // [own, other][gradients, weights]
        double sums[2] = {0};       // the same, over tp
        for (int i = 0; i < program.ranks[0].num_instructions; i++) {
            const Instruction *in = &program.ranks[0].instructions[i];
            if (in->kind != INSTRUCTION_COLLECTIVE) continue;
            const ProgramCollective *what = &program.collectives[in->collective];
            const Group group = plan_group(&c.plan, what->group);
            if (group.stride == 1) {
                CU_ASSERT_STRING_EQUAL(what->name, "tp_grad_all_reduce");
                sums[group.size == 4] += what->message_bytes;
                continue;
            }
            const bool of_other = group.size == 2 && group.stride == 4;
            CU_ASSERT(of_other || (group.size == 4 && group.stride == 2));
            bytes[of_other][what->kind == COLLECTIVE_ALL_GATHER] += what->message_bytes;
        }
        const double gradient = bytes[0][0] / own, weight = bytes[0][1] / own;
        CU_ASSERT(gradient == 4 && weight == 2);
        ASSERT_CLOSE(bytes[1][0], gradient * other);
        ASSERT_CLOSE(bytes[1][1], weight * other);
        ASSERT_CLOSE(sums[0], gradient * 6 * h);
        ASSERT_CLOSE(sums[1], gradient * 4 * h);
    }
    case_free(&c);
}

// On 16 GPUs, tp 2 dp 4 pp 2: the first stage's communicators are tp, dp, pp and expert-dp; layers
// of tp 4 on the second have tp 4, dp 2 and the 4 neighbours of the change more there, and nowhere
// else.
static void communicators_are_of_the_ranks_that_have_the_layers(void) {
    Case c;
    if (case_make(&c, LLAMA, 16, TRAINING,
                  "{\"tp\": 2, \"pp\": 2, \"layers\": [{\"from\": 8, \"to\": 9, \"tp\": 4}]}")) {
        Stack *stack = &c.scenario.execution.stack;
        stack_bare(stack);
        stack->residency.comm_bytes_per_group = 1e6;
        const int wanted[] = {4, 7};
        for (int rank = 0; rank < 2; rank++) {
            const RankMemory m = memory_closed_form(&c.scenario, &c.plan, &c.workload, rank);
            CU_ASSERT_EQUAL(m.device_bytes - m.reserved_bytes, wanted[rank] * 1e6);
        }
    }
    case_free(&c);
}

// Layers of equal groups and ZeRO stage share their collectives with the others, and those that
// ZeRO 3 scatters in every pass have none: there are a reduction, a gather and a sum over tp, of
// their shards too.
static void only_what_differs_is_apart(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING,
                  "{\"tp\": 2, \"layers\": [{\"from\": 1, \"to\": 1, \"tp\": 2, \"zero_stage\": 3, "
                  "\"recompute\": \"full\"}]}")) {
        CU_ASSERT_EQUAL(plan_num_group_kinds(&c.plan), 2 * NUM_GROUPS);
        const Block *b = workload_layer_block(&c.workload, 0, 1);
        for (int i = 0; i < b->num_backward; i++)
            if (b->backward[i].kind == OP_COLLECTIVE)
                CU_ASSERT(b->backward[i].collective.group < NUM_GROUPS);
        const Program program = program_build(&c.scenario, &c.plan, &c.workload, &c.arena);
        CU_ASSERT_EQUAL(program.num_collectives, 3);
        // Of layer 0 and the last norm; of a quarter of layer 1.
        ASSERT_CLOSE(program.collectives[2].message_bytes, 4 * (4 + 2 + 1) * 1024.0);
    }
    case_free(&c);
}

// --- Who cannot run them

static void what_no_stack_says_is_refused(void) {
    Case c;
    if (case_make(&c, LLAMA, 16, TRAINING,
                  "{\"tp\": 2, \"layers\": [{\"from\": 3, \"to\": 4, \"tp\": 4, \"zero_stage\": "
                  "3}]}"))
        ASSERT_REFUSED(plan_refuse_layers(&c.scenario, &c.plan, "a launch for megatron"),
                       "job.json: parallel.layers: layer 3 has tp 4 instead of 2, zero_stage 3 "
                       "instead of 1, which a launch for megatron cannot say; nearest: layers that "
                       "differ in recompute alone");
    case_free(&c);
    if (case_make(&c, LLAMA, 16, TRAINING,
                  "{\"layers\": [{\"from\": 3, \"to\": 4, \"recompute\": \"full\"}]}"))
        CU_ASSERT_EQUAL(plan_refuse_layers(&c.scenario, &c.plan, "a launch").code, STATUS_OK);
    case_free(&c);
}

CU_TestInfo layer_plans_tests[] = {
    {"what_the_plan_says_already_changes_nothing", what_the_plan_says_already_changes_nothing},
    {"degrees_follow_from_the_stage", degrees_follow_from_the_stage},
    {"the_answer_reads_back", the_answer_reads_back},
    {"what_cannot_be_is_refused", what_cannot_be_is_refused},
    {"all_layers_otherwise_are_that_plan", all_layers_otherwise_are_that_plan},
    {"each_layer_adds_its_own", each_layer_adds_its_own},
    {"layouts_change_by_hand", layouts_change_by_hand},
    {"memory_by_hand", memory_by_hand},
    {"gradients_are_reduced_in_their_own_groups", gradients_are_reduced_in_their_own_groups},
    {"communicators_are_of_the_ranks_that_have_the_layers",
     communicators_are_of_the_ranks_that_have_the_layers},
    {"only_what_differs_is_apart", only_what_differs_is_apart},
    {"what_no_stack_says_is_refused", what_no_stack_says_is_refused},
    CU_TEST_INFO_NULL,
};
