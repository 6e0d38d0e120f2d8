// The law of launch/ and import/: what is launched is what was priced.
//
// MESHWRIGHT_LAW_SEED and MESHWRIGHT_LAW_NUMBER repeat one case of a failure.
#include "tests/laws/round_trip.h"
#include "tests/laws/shrink.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 28, TRIPS = 200, TRIPS_FULL = 2400, MAX_DRAWS = 200000, MAX_SHOWN = 8 };

static const char *const TITAN_PRESETS[] = {
    "llama-3.1-8b",   "llama-3-8b",       "llama-3.1-70b", "llama-3-70b",
    "llama-3.1-405b", "deepseek-v2-lite", "deepseek-v2",   NULL};

// The scenarios that a way can start, as far as model and stack decide.
static ScenarioSpace space_of(const TripWay *way, const char *const *stacks) {
    const bool titan = way->target == LAUNCH_TORCHTITAN;
    return (ScenarioSpace){.models = titan ? TITAN_PRESETS : NULL,
                           .only_presets = titan,
                           .stacks = stacks,
                           .max_gpus = 64,
                           .split = SPLIT_WHOLE};
}

typedef struct {
    TripPlace *place;
    const TripWay *way;
    LaunchScheduler scheduler;
} Case;

static bool case_breaks(const cJSON *document, void *context) {
    const Case *c = context;
    Arena arena = {0};
    DrawnScenario drawn;
    const bool breaks =
        scenario_take(document, c->place->shelf, &arena, &drawn).code == STATUS_OK &&
        trip_make(c->place, c->way, c->scheduler, &drawn, &arena).outcome == TRIP_BROKEN;
    arena_free(&arena);
    return breaks;
}

static void failure_print(Case *c, uint64_t seed, uint32_t number, const DrawnScenario *drawn,
                          const char *says) {
    enum { MAX_TRIES = 600 };
    cJSON *small = document_shrink(drawn->document, case_breaks, c, MAX_TRIES);
    Arena arena = {0};
    DrawnScenario again;
    char *text = cJSON_PrintUnformatted(small);
    printf("\nMESHWRIGHT_LAW_SEED=%llu MESHWRIGHT_LAW_NUMBER=%u --for %s --scheduler %s\n%s\n",
           (unsigned long long)seed, number, LAUNCH_TARGET_NAMES[c->way->target],
           LAUNCH_SCHEDULER_NAMES[c->scheduler], says);
    if (scenario_take(small, c->place->shelf, &arena, &again).code == STATUS_OK)
        printf("shrunk: %s\n%s\n", trip_make(c->place, c->way, c->scheduler, &again, &arena).says,
               text);
    cJSON_free(text);
    cJSON_Delete(small);
    arena_free(&arena);
}

typedef struct {
    int made, refused, broken;
} Tally;

static void case_run(TripPlace *place, uint64_t seed, uint32_t number, Tally *tallies) {
    const int way = (int)(number % NUM_TRIP_WAYS);
    const char *const stacks[] = {TRIP_WAYS[way].stack, NULL};
    const ScenarioSpace space = space_of(&TRIP_WAYS[way], stacks);
    Draw draw = draw_start(seed, number, UINT32_MAX);
    Case c = {place, &TRIP_WAYS[way],
              (LaunchScheduler)draw_int(&draw, LAUNCH_TORCHRUN, LAUNCH_MPIRUN)};
    Arena arena = {0};
    DrawnScenario drawn;
    if (scenario_draw(&space, seed, number, place->shelf, &arena, &drawn)) {
        if (getenv("MESHWRIGHT_LAW_SHOW")) {
            char *text = cJSON_PrintUnformatted(drawn.document);
            printf("%s\n", text);
            cJSON_free(text);
        }
        const Trip trip = trip_make(place, c.way, c.scheduler, &drawn, &arena);
        tallies[way].made += trip.outcome != TRIP_REFUSED;
        tallies[way].refused += trip.outcome == TRIP_REFUSED;
        if (trip.outcome == TRIP_REFUSED && getenv("MESHWRIGHT_LAW_REFUSED"))
            printf("%s\n", trip.says);
        if (trip.outcome == TRIP_BROKEN && tallies[way].broken++ < MAX_SHOWN)
            failure_print(&c, seed, number, &drawn, trip.says);
    }
    arena_free(&arena);
}

static uint64_t number_of(const char *name, uint64_t absent) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : absent;
}

static void what_is_launched_is_what_was_priced(void) {
    const uint64_t seed = number_of("MESHWRIGHT_LAW_SEED", SEED);
    const int wanted = (getenv("MESHWRIGHT_TEST_FULL") ? TRIPS_FULL : TRIPS) / NUM_TRIP_WAYS;
    TripPlace place;
    Tally tallies[NUM_TRIP_WAYS] = {0};
    const Status status = trip_place_init(&place);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    if (status.code != STATUS_OK) printf("\n%s\n", status.text);
    if (getenv("MESHWRIGHT_LAW_NUMBER"))
        case_run(&place, seed, (uint32_t)number_of("MESHWRIGHT_LAW_NUMBER", 0), tallies);
    else
        for (uint32_t n = 0; status.code == STATUS_OK && n < MAX_DRAWS; n++)
            if (tallies[n % NUM_TRIP_WAYS].made < wanted) case_run(&place, seed, n, tallies);
    printf("\n");
    for (int w = 0; w < NUM_TRIP_WAYS; w++) {
        printf("%-10s %d round trips, %d broken, %d refused by launch\n",
               LAUNCH_TARGET_NAMES[TRIP_WAYS[w].target], tallies[w].made, tallies[w].broken,
               tallies[w].refused);
        CU_ASSERT_EQUAL(tallies[w].broken, 0);
        CU_ASSERT(tallies[w].made >= wanted || getenv("MESHWRIGHT_LAW_NUMBER"));
    }
    trip_place_free(&place);
}

CU_TestInfo round_trip_tests[] = {
    {"what is launched is what was priced", what_is_launched_is_what_was_priced},
    CU_TEST_INFO_NULL,
};
