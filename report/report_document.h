// report/report_document.h - the whole report: what is recommended first, what it rests on last.
#pragma once

#include "report/answer_sections.h"
#include "report/plan_sections.h"

typedef struct {
    const char *title;     // NULL: of the first plan, else of the first answer
    const PlanView *plans; // [num_plans] priced here
    int num_plans;
    const Answer *answers; // [num_answers] in the order in which they were named
    int num_answers;
    const Scenario *scenario; // of the answers, where there is no plan; NULL: not known
} ReportContents;

// Fails (STATUS_INVALID) where an answer lacks what is to be shown. The caller frees out->root,
// which is NULL after a failure.
Status report_document(const ReportContents *contents, Arena *arena, Document *out);
