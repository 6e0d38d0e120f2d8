// report/answer_sections.h - the sections of a report about answers of other commands, as the
// documents that `--json` prints: read from a file, or just made.
#pragma once

#include "base/json.h"
#include "report/document.h"

typedef enum {
    ANSWER_SCENARIO,    // a scenario or plan.json: one plan, to be priced
    ANSWER_PLANS,       // of plan --json
    ANSWER_ESTIMATE,    // of estimate --json
    ANSWER_SIMULATION,  // of simulate --json
    ANSWER_GRID,        // of whatif --json
    ANSWER_SENSITIVITY, // of whatif --sensitivity --json
    ANSWER_GOODPUT,     // of whatif --goodput --json
    ANSWER_COMPARISON,  // of compare --json
    NUM_ANSWER_KINDS
} AnswerKind;

// Tells what a document is from its keys. STATUS_INVALID: none of these.
Status answer_recognize(const JsonNode *root, AnswerKind *out);

typedef struct {
    AnswerKind kind;
    const char *name; // for headings: the file's; NULL where there is but this one
    JsonNode root;
} Answer;

// A part of the report. Fails (STATUS_INVALID) where the document lacks what the report shows, at
// its place; not for ANSWER_SCENARIO, which is priced first (report/plan_sections.h).
Status answer_sections(Document *document, const Answer *answer, Arena *arena);

// What a terminal says of an answer, made of the same sections; ends with its summary. Deletes the
// tree.
void answer_print(AnswerKind kind, cJSON *tree, const Paper *paper);

// One for each kind; the rest are alike.
Status plans_sections(Document *document, const Answer *answer, Arena *arena);
Status simulation_sections(Document *document, const Answer *answer, Arena *arena);
Status grid_sections(Document *document, const Answer *answer, Arena *arena);
Status sensitivity_sections(Document *document, const Answer *answer, Arena *arena);
Status goodput_sections(Document *document, const Answer *answer, Arena *arena);
Status compare_sections(Document *document, const Answer *answer, Arena *arena);

// What comes of a comparison, in a sentence; NULL where one of the two has no plan.
const char *compare_verdict(const JsonNode *root, Arena *arena);

// What limits most; NULL where nothing was looked at.
const char *sensitivity_limit_text(const JsonNode *root, Arena *arena);

// Rows of a section beyond this are left out, and the section says so.
enum { SECTION_MAX_ROWS = 1000 };

// "What" or, of several files, "What (NAME)".
const char *answer_title(const Answer *answer, const char *what, Arena *arena);

// A number of any size that stands there, or NAN where it is absent or null.
Status number_at(const JsonNode *parent, const char *key, bool required, double *out);
