// The law of launch/ and import/: what is launched is what was priced.
//
// MESHWRIGHT_LAW_SEED and MESHWRIGHT_LAW_NUMBER repeat one case of a failure, MESHWRIGHT_LAW_SHOW
// prints each document.
#include "base/data_dir.h"
#include "base/json.h"
#include "planner/planner.h"
#include "tests/laws/round_trip.h"
#include "tests/laws/shrink.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Under the sanitizers, five times as slow, a third of them.
#ifdef MESHWRIGHT_SANITIZE
enum { TRIPS = 72 };
#else
enum { TRIPS = 200 };
#endif
enum { SEED = 28, TRIPS_FULL = 2400, MAX_DRAWS = 200000, MAX_SHOWN = 8 };

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

// Of a case that states some keys the plan that a search finds best.
static bool best_plan_take(TripPlace *place, Arena *arena, DrawnScenario *drawn) {
    const PlannerOptions options = {.top = 1, .budget_s = 2, .brief = true};
    PlannerResult found;
    if (planner_search(&drawn->scenario, &options, arena, &found).code != STATUS_OK) return false;
    if (found.num_entries == 0) return false;
    cJSON *document = plan_document(&drawn->scenario, &found.entries[0].plan, NULL);
    json_own(arena, document);
    return scenario_take(document, place->shelf, arena, drawn).code == STATUS_OK;
}

// One in eight is a best plan, the others are any that is legal. Of Megatron-DeepSpeed, which lacks
// most of what is drawn, one in 64: a search of what is refused then takes long.
static bool case_draw(TripPlace *place, ScenarioSpace space, uint64_t seed, uint32_t number,
                      Arena *arena, DrawnScenario *drawn) {
    const bool rare = TRIP_WAYS[number % NUM_TRIP_WAYS].target == LAUNCH_DEEPSPEED;
    const bool searched = number / NUM_TRIP_WAYS % (rare ? 64 : 8) == 0;
    if (searched) {
        space.split = SPLIT_SOME;
        space.max_gpus = 16;
    }
    if (!scenario_draw(&space, seed, number, place->shelf, arena, drawn)) return false;
    return !searched || best_plan_take(place, arena, drawn);
}

static void case_run(TripPlace *place, uint64_t seed, uint32_t number, Tally *tallies) {
    const int way = (int)(number % NUM_TRIP_WAYS);
    const char *const stacks[] = {TRIP_WAYS[way].stack, NULL};
    const ScenarioSpace space = space_of(&TRIP_WAYS[way], stacks);
    Draw draw = draw_start(seed, number, UINT32_MAX);
    Case c = {place, &TRIP_WAYS[way],
              (LaunchScheduler)draw_int(&draw, LAUNCH_TORCHRUN, LAUNCH_MPIRUN)};
    Arena arena = {0};
    DrawnScenario drawn;
    if (case_draw(place, space, seed, number, &arena, &drawn)) {
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

// Cases that once came back otherwise.
static void known_cases_come_back(void) {
    static const struct {
        int way;
        const char *document;
    } CASES[] = {
        {0, "{\"model\": \"gpt2-124m\", \"training\": {\"seq_len\": 8192, \"global_batch\": 16}}"},
        {0,
         "{\"model\": \"gpt-oss-20b\", \"training\": {\"seq_len\": 1024, \"global_batch\": 16}}"},
        {0, "{\"model\": \"kimi-k2\", \"training\": {\"seq_len\": 1024, \"global_batch\": 16}}"},
        {3, "{\"model\": \"llama-3.1-8b\", \"training\": {\"seq_len\": 1024, \"global_batch\": 16, "
            "\"stack\": \"torchtitan\"}, \"parallel\": {\"zero_stage\": 2}}"},
        {3, "{\"model\": \"llama-3.1-8b\", \"training\": {\"seq_len\": 1024, \"global_batch\": 16, "
            "\"stack\": \"torchtitan\"}, \"parallel\": {\"reshard_after_forward\": false}}"},
        {3, "{\"model\": \"llama-3.1-8b\", \"training\": {\"seq_len\": 1024, \"global_batch\": 4, "
            "\"stack\": \"torchtitan\"}, \"parallel\": {\"placement\": [1, 0], \"tp\": 4}}"},
        {0, "{\"model\": \"llama-3.1-8b\", \"training\": {\"seq_len\": 1024, \"global_batch\": 4}, "
            "\"parallel\": {\"placement\": [1, 0], \"tp\": 4}}"},
    };
    TripPlace place;
    CU_ASSERT_EQUAL_FATAL(trip_place_init(&place).code, STATUS_OK);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        DrawnScenario drawn;
        cJSON *document = cJSON_Parse(CASES[i].document);
        json_own(&arena, document);
        cJSON_AddNumberToObject(document, "schema", 1);
        cJSON_AddStringToObject(document, "cluster", "dgx-h100:2");
        const Status status = scenario_take(document, place.shelf, &arena, &drawn);
        CU_ASSERT_EQUAL(status.code, STATUS_OK);
        if (status.code == STATUS_OK) {
            const Trip trip =
                trip_make(&place, &TRIP_WAYS[CASES[i].way], LAUNCH_TORCHRUN, &drawn, &arena);
            CU_ASSERT_EQUAL(trip.outcome, TRIP_EQUAL);
            if (trip.outcome != TRIP_EQUAL) printf("\n%s: %s\n", CASES[i].document, trip.says);
        } else {
            printf("\n%s\n", status.text);
        }
        arena_free(&arena);
    }
    trip_place_free(&place);
}

static bool file_holds(const char *path, const char *text) {
    FILE *stream = fopen(path, "rb");
    char line[2000];
    bool found = false;
    while (stream && !found && fgets(line, sizeof line, stream)) found = strstr(line, text) != NULL;
    if (stream) fclose(stream);
    return found;
}

// Each names its file in sources and what stands there, and the target's page has a row for it.
static void keys_without_a_flag_have_sources(void) {
    for (int w = 0; w < NUM_TRIP_WAYS; w++) {
        Arena arena = {0};
        JsonNode root;
        const char *name = LAUNCH_TARGET_NAMES[TRIP_WAYS[w].target];
        CU_ASSERT_EQUAL_FATAL(
            json_load(data_path(&arena, "stacks/no_flag", name), &arena, &root).code, STATUS_OK);
        const JsonNode sources = json_get(&root, "sources"), keys = json_get(&root, "keys");
        const char *page =
            arena_printf(&arena, "%s/docs/launch/%s.md", MESHWRIGHT_SOURCE_DIR, name);
        CU_ASSERT(json_size(&keys) > 0);
        for (int i = 0; i < json_size(&keys); i++) {
            const JsonNode entry = json_at(&keys, i), key = json_get(&entry, "key");
            const JsonNode why = json_get(&entry, "why"), source = json_get(&entry, "source");
            const JsonNode id = json_at(&source, 0);
            CU_ASSERT(cJSON_IsString(key.item) && cJSON_IsString(why.item));
            CU_ASSERT_EQUAL(json_size(&source), 3);
            CU_ASSERT_PTR_NOT_NULL(json_get(&sources, cJSON_GetStringValue(id.item)).item);
            const char *row =
                arena_printf(&arena, "| %s | %s |", key.item->valuestring, why.item->valuestring);
            CU_ASSERT(file_holds(page, row));
            if (!file_holds(page, row)) printf("\n%s has no row %s\n", page, row);
        }
        arena_free(&arena);
    }
}

CU_TestInfo round_trip_tests[] = {
    {"known cases come back", known_cases_come_back},
    {"keys without a flag have sources", keys_without_a_flag_have_sources},
    {"what is launched is what was priced", what_is_launched_is_what_was_priced},
    CU_TEST_INFO_NULL,
};
