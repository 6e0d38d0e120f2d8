// Plans near the limit of memory: those whose cached blocks all have room come first.
#include "planner/planner.h"
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#define TRAINING "{\"seq_len\": 2048, \"global_batch\": 64}"

static PlannerResult search(const Scenario *scenario, Arena *arena) {
    const PlannerOptions options = {.top = 1, .brief = true};
    PlannerResult result = {0};
    Status status = planner_search(scenario, &options, arena, &result);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    return result;
}

// The made-up stack caches half more than it needs. Where the fastest plan's peak fits but not
// that, another is the answer; where no plan has such room, the one that fits at all.
static void plans_with_room_for_the_cache_come_first(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, "{}")) {
        double *available = &c.scenario.cluster.gpu.memory_available_bytes;
        stack_bare(&c.scenario.training.stack);
        c.scenario.training.stack.allocator_slack_frac = 0.5;
        *available = 80e9;
        const PlannedEntry fastest = search(&c.scenario, &c.arena).entries[0];
        const double peak_bytes = fastest.estimate.memory.peak_bytes;
        CU_ASSERT_DOUBLE_EQUAL(fastest.estimate.memory.device_bytes, 1.5 * peak_bytes, 1);

        *available = 1.25 * peak_bytes;
        PlannerResult roomy = search(&c.scenario, &c.arena);
        CU_ASSERT_EQUAL_FATAL(roomy.num_entries, 1);
        CU_ASSERT(roomy.entries[0].estimate.memory.peak_bytes * 1.5 <= *available * (1 + 1e-9));
        CU_ASSERT(roomy.entries[0].estimate.step_time_s > fastest.estimate.step_time_s);

        c.scenario.training.stack.allocator_slack_frac = 1;
        PlannerOptions least = {.top = 1, .brief = true, .objective = OBJECTIVE_MEMORY};
        PlannerResult smallest;
        CU_ASSERT_EQUAL(planner_search(&c.scenario, &least, &c.arena, &smallest).code, STATUS_OK);
        const double needed_bytes = smallest.entries[0].estimate.memory.peak_bytes;
        *available = 1.5 * needed_bytes; // of 2 that are cached
        PlannerResult tight = search(&c.scenario, &c.arena);
        CU_ASSERT_EQUAL_FATAL(tight.num_entries, 1);
        CU_ASSERT(tight.entries[0].estimate.memory.peak_bytes <= *available);
        CU_ASSERT_DOUBLE_EQUAL(tight.entries[0].estimate.memory.device_bytes, *available, 1);
        *available = 0.99 * needed_bytes;
        CU_ASSERT_EQUAL(search(&c.scenario, &c.arena).num_entries, 0);
    }
    case_free(&c);
}

CU_TestInfo search_memory_tests[] = {
    {"plans_with_room_for_the_cache_come_first", plans_with_room_for_the_cache_come_first},
    CU_TEST_INFO_NULL,
};
