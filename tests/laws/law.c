#include "tests/laws/law.h"

#include "tests/laws/shrink.h"

#include <CUnit/CUnit.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEED = 4, DRAWS_PER_CASE = 40, MAX_SHOWN = 8, MAX_TRIES = 300, MAX_SAYS = 1000 };

// Under the sanitizers, several times as slow, a sixth.
#ifdef MESHWRIGHT_SANITIZE
enum { FEWER = 6 };
#else
enum { FEWER = 1 };
#endif

typedef struct {
    const Law *law;
    KernelShelf *shelf;
    uint64_t seed;
    uint32_t number;
} Case;

LawVerdict law_broken(Arena *arena, const char *format, ...) {
    char text[MAX_SAYS];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return (LawVerdict){.asked = true, .says = arena_strdup(arena, text)};
}

static LawVerdict case_ask(const Case *c, const DrawnScenario *drawn, Arena *arena) {
    Draw draw = draw_start(c->seed, c->number, UINT32_MAX);
    return c->law->check(drawn, c->shelf, &draw, arena);
}

static bool case_breaks(const cJSON *document, void *context) {
    Arena arena = {0};
    DrawnScenario drawn;
    const Case *c = context;
    const bool breaks = scenario_take(document, c->shelf, &arena, &drawn).code == STATUS_OK &&
                        case_ask(c, &drawn, &arena).says != NULL;
    arena_free(&arena);
    return breaks;
}

static void failure_print(Case *c, const DrawnScenario *drawn, const char *says) {
    cJSON *small = document_shrink(drawn->document, case_breaks, c,
                                   c->law->max_tries ? c->law->max_tries : MAX_TRIES);
    Arena arena = {0};
    DrawnScenario again;
    char *text = cJSON_PrintUnformatted(small);
    printf("\n%s: MESHWRIGHT_LAW_SEED=%llu MESHWRIGHT_LAW_NUMBER=%u\n%s\n", c->law->name,
           (unsigned long long)c->seed, c->number, says);
    if (scenario_take(small, c->shelf, &arena, &again).code == STATUS_OK)
        printf("shrunk: %s\n%s\n", case_ask(c, &again, &arena).says, text);
    fflush(stdout);
    cJSON_free(text);
    cJSON_Delete(small);
    arena_free(&arena);
}

typedef struct {
    int asked, broken;
} Tally;

static void case_run(Case *c, Tally *tally) {
    Arena arena = {0};
    DrawnScenario drawn;
    if (scenario_draw(&c->law->space, c->seed, c->number, c->shelf, &arena, &drawn)) {
        const LawVerdict verdict = case_ask(c, &drawn, &arena);
        tally->asked += verdict.asked;
        if (verdict.says && tally->broken++ < MAX_SHOWN) failure_print(c, &drawn, verdict.says);
    }
    arena_free(&arena);
}

static uint64_t number_of(const char *name, uint64_t absent) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : absent;
}

LawNumbers law_numbers(int num_cases, int num_cases_full) {
    const bool only = getenv("MESHWRIGHT_LAW_NUMBER") != NULL;
    const int all = getenv("MESHWRIGHT_TEST_FULL") ? num_cases_full : num_cases;
    const uint32_t first = (uint32_t)number_of("MESHWRIGHT_LAW_NUMBER", 0);
    return (LawNumbers){number_of("MESHWRIGHT_LAW_SEED", SEED), first,
                        only ? first + 1 : (uint32_t)(all / FEWER)};
}

void law_run(const Law *law) {
    const char *only = getenv("MESHWRIGHT_LAW_NUMBER");
    const int all = getenv("MESHWRIGHT_TEST_FULL") ? law->num_cases_full : law->num_cases;
    const int wanted = only ? 0 : all / FEWER;
    Tally tally = {0};
    Case c = {.law = law,
              .shelf = kernel_shelf_new(),
              .seed = number_of("MESHWRIGHT_LAW_SEED", SEED),
              .number = (uint32_t)number_of("MESHWRIGHT_LAW_NUMBER", 0)};
    if (only) case_run(&c, &tally);
    for (; tally.asked < wanted && c.number < (uint32_t)(wanted * DRAWS_PER_CASE); c.number++)
        case_run(&c, &tally);
    printf("\n%s: seed %llu, %d cases, %d broken\n", law->name, (unsigned long long)c.seed,
           tally.asked, tally.broken);
    CU_ASSERT_EQUAL(tally.broken, 0);
    CU_ASSERT(tally.asked >= wanted);
    kernel_shelf_free(c.shelf);
}
