// Orders from files: those of the built-in schedules written and read again are the same Programs,
// and what is not an order is refused where it stands.
#include "plan/schedule_file.h"

#include "costmodel/step/estimate.h"
#include "tests/support.h"
#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAYERS_14                                                                                  \
    "{\"model_type\": \"generic\", \"name\": \"fourteen\", \"hidden_size\": 64,"                   \
    " \"intermediate_size\": 256, \"num_hidden_layers\": 14, \"num_attention_heads\": 4,"          \
    " \"vocab_size\": 1000}"

typedef struct {
    Arena arena;
    char path[64]; // of the file; "" where none was written
    Scenario scenario;
    Plan plan;
} Case;

static void order_write(Case *c, const char *text) {
    strcpy(c->path, "/tmp/meshwright-order-XXXXXX");
    const int descriptor = mkstemp(c->path);
    CU_ASSERT_FATAL(descriptor >= 0);
    CU_ASSERT_EQUAL(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
}

static void case_free(Case *c) {
    if (c->path[0]) unlink(c->path);
    arena_free(&c->arena);
}

// A job on pp GPUs; `schedule` is a name, or NULL for the file.
static Status case_resolve(Case *c, const char *stack, const char *schedule, int pp, int vpp,
                           int num_microbatches) {
    char cluster[600];
    snprintf(cluster, sizeof cluster,
             "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": %d, \"gpus_per_node\": 1, \"scale_up\": "
             "{\"link\": \"nvlink4\"}, \"scale_out\": {\"nics_per_node\": 1, "
             "\"nic_bytes_per_s\": 5e10}}",
             pp);
    const char *training =
        arena_printf(&c->arena, "{\"seq_len\": 64, \"global_batch\": %d, \"stack\": \"%s\"}",
                     num_microbatches, stack);
    if (!schedule) schedule = arena_printf(&c->arena, "file:%s", c->path);
    const char *parallel = arena_printf(
        &c->arena, "{\"pp\": %d, \"vpp\": %d, \"schedule\": \"%s\"}", pp, vpp, schedule);
    TRY(scenario_of(scenario_text(&c->arena, LAYERS_14, cluster, training, parallel), &c->arena,
                    &c->scenario));
    return plan_resolve(&c->scenario, &c->arena, &c->plan);
}

// The whole Program and the whole estimate, but for the name of the schedule.
static const char *answer_text(Case *c) {
    Estimate estimate;
    EstimateParts parts;
    const Status status = estimate_plan(&c->scenario, &c->plan, &c->arena, &estimate, &parts);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const char *text = "";
    for (int rank = 0; rank < c->plan.pp; rank++)
        text =
            arena_printf(&c->arena, "%s%s\n", text, program_text(&parts.program, rank, &c->arena));
    cJSON *json = estimate_to_json(&estimate, &c->plan);
    cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItem(json, "parallel"), "schedule");
    char *printed = cJSON_Print(json);
    text = arena_printf(&c->arena, "%s%s", text, printed);
    cJSON_free(printed);
    cJSON_Delete(json);
    return text;
}

static void assert_round_trip(const char *stack, ScheduleKind kind, int pp, int vpp, int m) {
    Case named = {0}, filed = {0};
    const Status resolved = case_resolve(&named, stack, SCHEDULE_NAMES[kind], pp, vpp, m);
    CU_ASSERT_EQUAL_FATAL(resolved.code, STATUS_OK);
    const ScheduleShape shape =
        schedule_shape(named.plan.pp, named.plan.vpp, (int)named.plan.num_microbatches);
    const RankOrder *orders = plan_orders(&named.plan, &shape, &named.arena);
    const bool receives_ahead = schedule_find(named.plan.schedule)->receives_ahead;
    order_write(&filed, schedule_file_text(&named.plan, orders, receives_ahead, &named.arena));
    const Status read = case_resolve(&filed, stack, NULL, pp, vpp, m);
    CU_ASSERT_STRING_EQUAL(read.code == STATUS_OK ? "" : read.text, "");
    if (read.code == STATUS_OK) {
        CU_ASSERT_STRING_EQUAL(answer_text(&filed), answer_text(&named));
    } else {
        fprintf(stderr, "\n%s\n", read.text);
    }
    case_free(&named);
    case_free(&filed);
}

// Blocking messages with megatron-2021, those of several chunks a rank hidden with megatron-core.
static void built_in_orders_come_back_as_they_were(void) {
    static const int RANKS[] = {1, 2, 4}, MICROBATCHES[] = {1, 6, 8};
    int num_trips = 0;
    for (int kind = 0; kind < NUM_SCHEDULES; kind++)
        for (int shape = 0; shape < 27; shape++) {
            const ScheduleKind k = (ScheduleKind)kind;
            const int pp = RANKS[shape % 3], vpp = 1 + shape / 3 % 3, m = MICROBATCHES[shape / 9];
            const bool holds_one = k == SCHEDULE_GPIPE || k == SCHEDULE_1F1B ||
                                   k == SCHEDULE_ZB_H1 || k == SCHEDULE_ZB_H2;
            if (!schedule_takes(k, pp, vpp, m) || (holds_one && vpp > 1)) continue;
            assert_round_trip("megatron-2021", k, pp, vpp, m);
            if (pp > 1 && vpp > 1) assert_round_trip("megatron-core", k, pp, vpp, m);
            num_trips++;
        }
    CU_ASSERT(num_trips > 100);
}

// Comments, blank lines, and chunks that go without saying.
static void a_file_by_hand_is_read(void) {
    Case c = {0};
    order_write(&c, "# two ranks\n\nmessages asynchronous # whatever the stack\n"
                    "F0 F1\tB0 W0 B1  # the second backward is whole\n F0 B0 F1 +B1 W0\r\n");
    const Status status = case_resolve(&c, "megatron-core", NULL, 2, 1, 2);
    CU_ASSERT_STRING_EQUAL(status.code == STATUS_OK ? "" : status.text, "");
    if (status.code == STATUS_OK) {
        const ScheduleFile *file = c.plan.schedule_file;
        CU_ASSERT(file->receives_ahead && file->mixes_backwards && !file->splits_backward);
        CU_ASSERT_EQUAL(file->orders[0].num_items, 5);
        CU_ASSERT_EQUAL(file->orders[0].items[2].kind, WORK_BACKWARD_INPUT);
        CU_ASSERT_EQUAL(file->orders[0].items[4].kind, WORK_BACKWARD);
        CU_ASSERT_EQUAL(file->orders[1].items[3].joined, JOINED_MESSAGES);
        CU_ASSERT_EQUAL(file->orders[1].items[3].chunk, 1);
        CU_ASSERT_EQUAL(file->lines[1], 5);
        CU_ASSERT_STRING_EQUAL(plan_schedule_name(&c.plan) + strlen("file:"), c.path);
        cJSON *json = plan_to_json(&c.plan);
        CU_ASSERT_STRING_EQUAL(cJSON_GetObjectItem(json, "schedule")->valuestring,
                               plan_schedule_name(&c.plan));
        cJSON_Delete(json);
    }
    case_free(&c);
}

typedef struct {
    const char *order;
    int pp, vpp;
    const char *refusal; // after "FILE: "
} Refused;

// Jobs of two micro-batches.
static const Refused REFUSED[] = {
    {"", 2, 1, "rank 0 has no line of work; expected one for each rank, pp 2"},
    {"F0 F1 B0 B1\n", 2, 1, "rank 1 has no line of work; expected one for each rank, pp 2"},
    {"F0 B0\nF1 B1\n# a third\nF2 B2\n", 2, 1,
     "line 4: work of rank 2; expected one line for each rank, pp 2"},
    {"F0 F1 B0 X1\n", 1, 1,
     "line 1: rank 0, item 4: \"X1\" is no work; expected F, B or W, a micro-batch, and the chunk "
     "after a point, as in F3.1"},
    {"F0 F1 B0 B1.\n", 1, 1,
     "line 1: rank 0, item 4: \"B1.\" is no work; expected F, B or W, a micro-batch, and the chunk "
     "after a point, as in F3.1"},
    {"F0 F1 B0 B99999999\n", 1, 1,
     "line 1: rank 0, item 4: \"B99999999\" is no work; expected F, B or W, a micro-batch, and the "
     "chunk after a point, as in F3.1"},
    {"# first\nplacement w\n", 1, 1,
     "line 2: placement \"w\" is unknown; expected one of round, v, dual"},
    {"placement v\n# or\nplacement dual\n", 1, 1,
     "line 3: placement stands here twice, first in line 1"},
    {"messages blocking\nplacement v\nmessages blocking\n", 1, 1,
     "line 3: messages stands here twice, first in line 1"},
    {"messages\n", 1, 1,
     "line 1: messages \"\" is unknown; expected one of blocking, asynchronous"},
    {"messages blocking now\n", 1, 1, "line 1: \"now\" is too much after messages blocking"},
    {"f0 B0\n", 1, 1,
     "line 1: rank 0, item 1: \"f0\" is no work; expected F, B or W, a micro-batch, and the chunk "
     "after a point, as in F3.1"},
    {"order v\n", 1, 1, "line 1: \"order\" is unknown; expected work, placement or messages"},
    {"F0 B0 F1 B1\nplacement v\n", 1, 1, "line 2: placement stands after the first line of work"},
    {"F0 F1 B0 B1\nF0 B0 F1\n", 2, 1, "line 2: rank 1: B1 is missing; the line ends with item 3"},
    {"F0 F1 B0 B1\nF0 B0 F1 B1 F0\n", 2, 1,
     "line 2: rank 1, item 5: F0 stands here twice, first as item 1"},
    {"F0 F1 B0 B1\nF0 B0 F2 B2\n", 2, 1,
     "line 2: rank 1, item 3: micro-batch 2; the plan has 0 to 1 for this chunk"},
    {"F0.0 F1.1 B0 B1\nF0 B0 F1 B1\n", 2, 1,
     "line 1: rank 0, item 2: chunk 1; expected 0 to 0, as vpp is 1"},
    {"F0.0 F0\n", 1, 2,
     "line 1: rank 0, item 2: F0 names no chunk; expected .0 to .1 after it, as vpp is 2"},
    {"F0 F1 B0 W1 B1\n", 1, 1, "line 1: rank 0, item 4: W1 needs B1, which is item 5"},
    {"F0 B0 B1 F1\n", 1, 1, "line 1: rank 0, item 3: B1 needs F1, which is item 4"},
    // Rank 0 sends micro-batch 1 first, whose gradient rank 1 cannot make before that of 0.
    {"F1 B1 F0 B0\nF0 B0 F1 B1\n", 2, 1,
     "line 1: rank 0, item 2: B1 needs B1 of rank 1, item 4 there, which rank 1 never gets to: it "
     "is stopped at its item 1"},
    // Within a rank of two ranks: rank 1 stopped itself, rank 0 waits for it.
    {"F0 F1 B0 B1\nB0 F0 F1 B1\n", 2, 1, "line 2: rank 1, item 1: B0 needs F0, which is item 2"},
    {"+F0 F1 B0 B1\n", 1, 1, "line 1: rank 0, item 1: + joins a B to the F right before it"},
    {"F0 B0 &F1 B1\n", 1, 1, "line 1: rank 0, item 3: & joins a B to the F right before it"},
    {"F0 F1 &B1 B0\n", 1, 1,
     "line 1: rank 0, item 3: & runs both at the same time, but this B needs that F"},
    // A pair begins when the inputs of both are there: B0 of rank 0 needs rank 1's, which needs F0.
    {"F0 F1 &B0 B1\nF0 F1 B1 &B0\n", 2, 1,
     "line 2: rank 1, item 4: & joins a B to the F right before it"},
    {"F0 F1 &B0 B1\nF1 B1 F0 B0\n", 2, 1,
     "line 1: rank 0, item 2: F1 needs B0 of rank 1, item 4 there, which rank 1 never gets to: it "
     "is "
     "stopped at its item 1"},
    // Micro-batch 1 goes the other way: it is not the first chunk's.
    {"placement dual\nF1.0 F0.1 B1.0 B0.1\nF0.0 F1.1 B0.0 B1.1\n", 2, 2,
     "line 2: rank 0, item 1: micro-batch 1; the plan has 0 to 0 for this chunk"},
    // Legal, but the group between F1 and B0 of rank 0 sends F1 and waits for the gradient of
    // micro-batch 0, which rank 1 sends only in the group that receives nothing before it has F1.
    {"F0 F1 B0 B1\nF0 B0 F1 B1\n", 2, 1, NULL},
};

static void what_is_no_order_is_refused_where_it_stands(void) {
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        const Refused *r = &REFUSED[i];
        Case c = {0};
        order_write(&c, r->order);
        const Status status = case_resolve(&c, "megatron-2021", NULL, r->pp, r->vpp, 2);
        if (r->refusal) {
            ASSERT_REFUSED(status, arena_printf(&c.arena, "%s: %s", c.path, r->refusal));
        } else {
            CU_ASSERT_STRING_EQUAL(status.code == STATUS_OK ? "" : status.text, "");
        }
        case_free(&c);
    }
}

// The interleaved order without its pairs: a group around every single item. Rank 0 takes the
// gradient of B0.1 only together with sending what F2.0 made, which rank 1 does not take before it
// has sent more than that. The same order runs where messages are asynchronous.
static void messages_in_a_circle_are_refused_where_they_stand(void) {
    static const char *const ORDER =
        "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0\n"
        "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0\n";
    Estimate estimate;
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        Case c = {0};
        order_write(&c, arena_printf(&c.arena, "%s%s",
                                     asynchronous ? "messages asynchronous\n" : "", ORDER));
        CU_ASSERT_EQUAL(case_resolve(&c, "megatron-2021", NULL, 2, 2, 4).code, STATUS_OK);
        const Status status = estimate_plan(&c.scenario, &c.plan, &c.arena, &estimate, NULL);
        if (asynchronous) {
            CU_ASSERT_EQUAL(status.code, STATUS_OK);
        } else {
            ASSERT_REFUSED(status, arena_printf(&c.arena,
                                                "%s: line 1: rank 0, item 6: the message of B0.1 "
                                                "waits in a circle: what lies between two items is "
                                                "exchanged in one group; expected another order, "
                                                "pairs joined by +, or messages asynchronous",
                                                c.path));
        }
        case_free(&c);
    }
}

static void a_file_that_is_not_there_is_named(void) {
    Case c = {0};
    strcpy(c.path, "/tmp/meshwright-no-such-order");
    ASSERT_REFUSED(case_resolve(&c, "megatron-core", NULL, 1, 1, 1),
                   "/tmp/meshwright-no-such-order: cannot be read: No such file or directory");
    c.path[0] = '\0';
    case_free(&c);
}

CU_TestInfo schedule_file_tests[] = {
    {"built_in_orders_come_back_as_they_were", built_in_orders_come_back_as_they_were},
    {"a_file_by_hand_is_read", a_file_by_hand_is_read},
    {"what_is_no_order_is_refused_where_it_stands", what_is_no_order_is_refused_where_it_stands},
    {"messages_in_a_circle_are_refused_where_they_stand",
     messages_in_a_circle_are_refused_where_they_stand},
    {"a_file_that_is_not_there_is_named", a_file_that_is_not_there_is_named},
    CU_TEST_INFO_NULL,
};
