// tests/laws/law.h - runs a law over random sound scenarios, and shows a small one that breaks it.
//
// MESHWRIGHT_LAW_SEED and MESHWRIGHT_LAW_NUMBER repeat one case of a failure; with
// MESHWRIGHT_TEST_FULL many more are drawn.
#pragma once

#include "config/software/kernel_shelf.h"
#include "tests/laws/scenarios.h"

// What one law says of one case.
typedef struct {
    bool asked;       // the law speaks of this case
    const char *says; // how it is broken; NULL: it holds. Lives as long as the arena
} LawVerdict;

// A check gives one verdict for one case and its choices, however often it is asked.
typedef LawVerdict (*LawCheck)(const DrawnScenario *drawn, KernelShelf *shelf, Draw *draw,
                               Arena *arena);

typedef struct {
    const char *name;
    ScenarioSpace space;
    LawCheck check;
    int num_cases, num_cases_full; // of which the law has to speak
    int max_tries;                 // to make a failure smaller; 0: 300
} Law;

// Draws cases until the law spoke of as many as it has to; a CUnit failure for each that breaks it.
void law_run(const Law *law);

// Numbers of cases that a law without scenarios draws: from the first up to, not with, the end.
typedef struct {
    uint64_t seed;
    uint32_t first, end;
} LawNumbers;

LawNumbers law_numbers(int num_cases, int num_cases_full);

// {asked, says} as printf has it.
__attribute__((format(printf, 2, 3))) LawVerdict law_broken(Arena *arena, const char *format, ...);

static const LawVerdict LAW_HOLDS = {.asked = true}, LAW_SILENT = {.asked = false};
