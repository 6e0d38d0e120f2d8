// report/plan_table.h - the plans of a search as rows, and what is said of them: of the answer's
// document, for reports and for the terminal.
#pragma once

#include "report/answer_sections.h"

// What the answer's document leaves out of a plan and its advice, where the text was just made: the
// plan's full name, and whether the advice is another job.
#define PLAN_TABLE_NAME "name"
#define PLAN_TABLE_OF_JOB "of_job"

// A section with a row for each of at most max_rows plans (`plans` of an answer).
//   frontier  the plans are trades, not a ranking
Status plans_table(Document *document, const JsonNode *plans, bool frontier, int max_rows,
                   Arena *arena, cJSON **section);

// The same of one estimate.
Status estimate_table(Document *document, const JsonNode *plan, Arena *arena);

// What was searched, and what is known of the rest; NULL where the answer does not say.
const char *search_text(const JsonNode *root, Arena *arena);

// Why the figures of plan `number` are extrapolated; NULL where they are not, or where *last, of
// the plan before it, said the same.
const char *plan_extrapolated(const JsonNode *plan, int number, const char **last, Arena *arena);
