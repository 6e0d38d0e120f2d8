// Prices from a shelf change no answer, and are worked out once.
#include "planner/harvest/price_shelf.h"

#include "tests/planner/planner_case.h"

#include <CUnit/CUnit.h>
#include <string.h>

static Scenario job(int num_nodes, int batch, Arena *arena) {
    Scenario scenario = {0};
    const char *cluster = arena_printf(arena, "dgx-h100:%d", num_nodes);
    const Status status = case_preset("llama-3.1-8b", cluster, 4096, batch, NULL, arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return scenario;
}

static void jobs_that_share_prices_have_their_own_answers(void) {
    static const int BATCHES[] = {32, 64, 96};
    PriceShelf *shelf = price_shelf_new();
    PriceShelfStats last = {0, 0};
    for (int i = 0; i < 3; i++) {
        Arena arena = {0};
        const Scenario scenario = job(1, BATCHES[i], &arena);
        const PriceSource source = {shelf, "8b", scenario.cluster.num_gpus};
        const PlannerOptions alone = {.top = 3}, sharing = {.top = 3, .prices = &source};
        const PlannerResult one = case_search(&scenario, &alone, &arena);
        const PlannerResult other = case_search(&scenario, &sharing, &arena);
        CU_ASSERT_EQUAL_FATAL(one.num_entries, other.num_entries);
        for (int k = 0; k < one.num_entries; k++) {
            CU_ASSERT_EQUAL(one.entries[k].estimate.step_time_s,
                            other.entries[k].estimate.step_time_s);
            CU_ASSERT_STRING_EQUAL(case_key(&one.entries[k].plan, &arena),
                                   case_key(&other.entries[k].plan, &arena));
        }
        CU_ASSERT_EQUAL(one.stats.considered, other.stats.considered);
        CU_ASSERT_EQUAL(one.stats.priced, other.stats.priced);
        const PriceShelfStats now = price_shelf_stats(shelf);
        const int64_t taken = now.num_taken - last.num_taken, made = now.num_made - last.num_made;
        if (i == 0) CU_ASSERT(taken == 0 && made > 50);
        if (i > 0) CU_ASSERT(taken > 50); // the sizes of micro-batches that both have
        last = now;
        arena_free(&arena);
    }
    price_shelf_free(shelf);
}

static void other_keys_and_sizes_find_nothing(void) {
    PriceShelf *shelf = price_shelf_new();
    Arena arena = {0};
    const Scenario scenario = job(1, 32, &arena), larger = job(2, 32, &arena);
    const PriceSource source = {shelf, "8b", 8}, renamed = {shelf, "other", 8};
    case_search(&scenario, &(PlannerOptions){.prices = &source}, &arena);
    const PriceShelfStats first = price_shelf_stats(shelf);
    case_search(&larger, &(PlannerOptions){.prices = &source}, &arena);
    CU_ASSERT_EQUAL(price_shelf_stats(shelf).num_made, first.num_made);
    case_search(&scenario, &(PlannerOptions){.prices = &renamed}, &arena);
    CU_ASSERT_EQUAL(price_shelf_stats(shelf).num_made, 2 * first.num_made);
    CU_ASSERT_EQUAL(price_shelf_stats(shelf).num_taken, 0);
    case_search(&scenario, &(PlannerOptions){.prices = &source}, &arena);
    CU_ASSERT_EQUAL(price_shelf_stats(shelf).num_made, 2 * first.num_made);
    CU_ASSERT(price_shelf_stats(shelf).num_taken > 0);
    arena_free(&arena);
    price_shelf_free(shelf);
}

CU_TestInfo price_shelf_tests[] = {
    {"jobs_that_share_prices_have_their_own_answers",
     jobs_that_share_prices_have_their_own_answers},
    {"other_keys_and_sizes_find_nothing", other_keys_and_sizes_find_nothing},
    CU_TEST_INFO_NULL,
};
