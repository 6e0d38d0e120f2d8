// Every split of a plan trains as one process does: fp64, five steps; loss, gradient norm, each
// gradient before the optimizer and each weight behind it. And a mistake in each dimension is seen.
//
// Usage: runtime-equivalence TABLE RUN [FOLDER]
//   TABLE   alone, schedules, pairs, schedule_pairs, mutants, experts, expert_pairs
//   RUN     meshwright-run; of mutants the one that was built with them
//   FOLDER  for its files; by default one of its own, which is removed
#include "base/json.h"
#include "config/job/parallel.h"
#include "tests/runtime/equivalence_cases.h"
#include "tests/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUM_STEPS = 5 };

static const double MOST_ERROR = 1e-10;

// --- Runs

typedef struct {
    const char *run, *folder;
} Place;

static const Subject *subject_of(const Case *c) {
    int i = 0;
    while (strcmp(SUBJECTS[i].name, c->subject) != 0) i++;
    return &SUBJECTS[i];
}

static bool plan_write(const char *path, const Case *c) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    fprintf(file,
            "{\"schema\": 1, \"model\": %s, \"cluster\": {\"gpu\": \"h100-sxm-80g\", "
            "\"num_gpus\": %d, \"gpus_per_node\": 8, \"scale_up\": {\"link\": \"nvlink4\", "
            "\"domain_gpus\": 8}, \"scale_out\": {\"nics_per_node\": 8, \"nic_bytes_per_s\": "
            "50e9, \"topology\": \"fat-tree\", \"oversubscription\": 1.0}}, \"training\": "
            "{\"seq_len\": 16, \"global_batch\": 16, \"precision\": \"fp64\", \"stack\": "
            "\"runtime\"%s}, \"parallel\": {%s%s}}\n",
            subject_of(c)->model, c->num_ranks, subject_of(c)->training, c->parallel,
            strstr(c->parallel, "micro_batch") ? "" : ", \"micro_batch\": 1");
    return fclose(file) == 0;
}

// Runs a case; its files are FOLDER/NAME.
static bool case_run(const Place *place, const Case *c, const char *name) {
    char path[512], command[2048], start[128] = "";
    snprintf(path, sizeof path, "%s/%s", place->folder, name);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/plan.json", place->folder, name);
    if (!plan_write(path, c)) return false;
    if (c->num_ranks > 1)
        snprintf(start, sizeof start, "mpirun --allow-run-as-root --oversubscribe -n %d ",
                 c->num_ranks);
    snprintf(
        command, sizeof command,
        "cd %s/%s && rm -f *.f64 && %s timeout 60 %s%s plan.json --steps %d --dump . --log log%s "
        ">out 2>&1",
        place->folder, name, "OPENBLAS_NUM_THREADS=1", start, place->run, NUM_STEPS,
        subject_of(c)->options);
    if (system(command) == 0) return true;
    snprintf(command, sizeof command, "tail -n 5 %s/%s/out >&2", place->folder, name);
    if (system(command) != 0) fprintf(stderr, "and its output is lost\n");
    return false;
}

// --- Comparison

static double *numbers_read(const char *path, size_t *num) {
    struct stat is;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &is) != 0) return NULL;
    *num = (size_t)is.st_size / sizeof(double);
    double *values = malloc((size_t)is.st_size);
    if (values && fread(values, sizeof *values, *num, file) != *num) *num = 0;
    fclose(file);
    return values;
}

static double largest(const double *values, size_t num) {
    double most = 0;
    for (size_t i = 0; i < num; i++) most = fmax(most, fabs(values[i]));
    return most;
}

// The worst parameter of two dumps: difference over its largest value, or over 1e-4 of the largest
// of all where that is more (the gradient of a key's bias is nothing but rounding).
static double dump_error(const char *expected, const char *found, const char *list) {
    size_t num = 0, num_found = 0;
    double *a = numbers_read(expected, &num), *b = numbers_read(found, &num_found), worst = 0;
    FILE *file = fopen(list, "r");
    if (!a || !b || !file || num == 0 || num != num_found) worst = INFINITY;
    const double floor = 1e-4 * (worst == 0 ? largest(a, num) : 0);
    char name[128];
    long long rows, columns, offset;
    while (worst < INFINITY &&
           fscanf(file, "%127s %lld %lld %lld", name, &rows, &columns, &offset) == 4) {
        const size_t count = (size_t)(rows * columns), first = (size_t)offset;
        const double scale = fmax(floor, largest(a + first, count));
        for (size_t i = first; i < first + count; i++) {
            const double error = fabs(a[i] - b[i]) / scale;
            worst = isfinite(b[i]) ? fmax(worst, error) : INFINITY;
        }
    }
    if (file) fclose(file);
    free(a);
    free(b);
    return worst;
}

static double log_error(const char *expected, const char *found, Arena *arena) {
    JsonNode *a, *b;
    int num_a, num_b;
    if (json_load_lines(expected, arena, &a, &num_a).code != STATUS_OK ||
        json_load_lines(found, arena, &b, &num_b).code != STATUS_OK || num_a != NUM_STEPS ||
        num_b != NUM_STEPS)
        return INFINITY;
    double worst = 0;
    for (int i = 0; i < NUM_STEPS; i++)
        for (int k = 0; k < 2; k++) {
            const char *key = k ? "gradient_norm" : "loss";
            const JsonNode node_a = json_get(&a[i], key), node_b = json_get(&b[i], key);
            double x = NAN, y = NAN;
            if (json_read_double(&node_a, 0, 1e9, &x).code != STATUS_OK ||
                json_read_double(&node_b, 0, 1e9, &y).code != STATUS_OK)
                return INFINITY;
            worst = fmax(worst, fabs(x - y) / x);
        }
    return worst;
}

static double runs_error(const Place *place, const char *expected, const char *found) {
    Arena arena = {0};
    char a[512], b[512], list[512];
    snprintf(a, sizeof a, "%s/%s/log", place->folder, expected);
    snprintf(b, sizeof b, "%s/%s/log", place->folder, found);
    snprintf(list, sizeof list, "%s/%s/parameters.txt", place->folder, expected);
    double worst = log_error(a, b, &arena);
    for (int step = 1; step <= NUM_STEPS; step++)
        for (int k = 0; k < 2; k++) {
            const char *kind = k ? "weights" : "gradients";
            snprintf(a, sizeof a, "%s/%s/%s-%d.f64", place->folder, expected, kind, step);
            snprintf(b, sizeof b, "%s/%s/%s-%d.f64", place->folder, found, kind, step);
            worst = fmax(worst, dump_error(a, b, list));
        }
    arena_free(&arena);
    return worst;
}

// --- Tables

// What one process makes of the subject, once.
static bool reference_run(const Place *place, const Case *c) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", place->folder, c->subject);
    if (access(path, F_OK) == 0) return true;
    unsetenv("MESHWRIGHT_MUTANT");
    return case_run(place, &(Case){c->subject, "\"tp\": 1", 1, NULL}, c->subject);
}

static bool mutant_ask(const Case *c) {
    if (!c->mutant) return unsetenv("MESHWRIGHT_MUTANT") == 0;
    return setenv("MESHWRIGHT_MUTANT", c->mutant, 1) == 0;
}

// Prints a line; a mutant that is not seen is as bad as a plan that differs. One is seen where all
// its numbers are there, and differ: a run that ends early says nothing of what the others compare.
static bool case_check(const Place *place, const Case *c) {
    const bool ran = reference_run(place, c) && mutant_ask(c) && case_run(place, c, "split");
    const double error = ran ? runs_error(place, c->subject, "split") : INFINITY;
    const bool good = c->mutant ? isfinite(error) && error > MOST_ERROR : error <= MOST_ERROR;
    printf("%-8s %d ranks, %s%s%s: %s %.1e%s\n", c->subject, c->num_ranks, c->parallel,
           c->mutant ? ", mutant " : "", c->mutant ? c->mutant : "", ran ? "differs by" : "failed",
           error, good ? "" : "  WRONG");
    fflush(stdout);
    return good;
}

// One case in six is checked.
static bool case_sample(const Place *place, const Case *c) {
    static long num_offered;
    return !sample_has(num_offered++, 6) || case_check(place, c);
}

static bool cases_sample(const Place *place, const Case *cases, size_t num) {
    bool good = true;
    for (size_t i = 0; i < num; i++) good &= case_sample(place, &cases[i]);
    return good;
}

// All are checked: mistakes, and the program without one beside them.
static bool cases_check(const Place *place, const Case *cases, size_t num) {
    bool good = true;
    for (size_t i = 0; i < num; i++) good &= case_check(place, &cases[i]);
    return good;
}

// One schedule alone: on two and on four stages, with more micro-batches than stages; and on four
// with as few as they are, or fewer: sequences in each.
static bool schedule_check(const Place *place, const char *name, int vpp, int sequences) {
    bool good = true;
    char parallel[128];
    for (int pp = 2; pp <= 4; pp += 2) {
        snprintf(parallel, sizeof parallel, "\"pp\": %d, \"vpp\": %d, \"schedule\": \"%s\"", pp,
                 vpp, name);
        good &= case_sample(place, &(Case){pp * vpp > 4 ? "deep" : "gpt", parallel, pp, NULL});
    }
    snprintf(parallel, sizeof parallel,
             "\"pp\": 4, \"vpp\": %d, \"schedule\": \"%s\", \"micro_batch\": %d", vpp, name,
             sequences);
    return good & case_sample(place, &(Case){"deep", parallel, 4, NULL});
}

// Each schedule of the table, with two chunks a rank where it holds so many; with experts, and
// ZeRO-2 or -3 by turns.
static bool schedules_check(const Place *place) {
    bool good = true;
    for (int kind = 0; kind < NUM_SCHEDULES; kind++) {
        const bool one = kind == SCHEDULE_GPIPE || kind == SCHEDULE_1F1B ||
                         kind == SCHEDULE_ZB_H1 || kind == SCHEDULE_ZB_H2;
        char parallel[128];
        const int sequences =
            kind == SCHEDULE_DUALPIPE ? 2 : 8; // of 16: it wants 2 pp micro-batches
        good &= schedule_check(place, SCHEDULE_NAMES[kind], one ? 1 : 2, sequences);
        snprintf(parallel, sizeof parallel,
                 "\"pp\": 2, \"vpp\": %d, \"schedule\": \"%s\", \"dp\": 2, \"ep\": 2, "
                 "\"zero_stage\": %d",
                 one ? 1 : 2, SCHEDULE_NAMES[kind], 2 + kind % 2);
        good &= case_sample(place, &(Case){"shared", parallel, 4, NULL});
    }
    return good;
}

static bool table_check(const Place *place, const char *table) {
    if (strcmp(table, "alone") == 0)
        return cases_sample(place, ALONE, sizeof ALONE / sizeof *ALONE);
    if (strcmp(table, "pairs") == 0)
        return cases_sample(place, PAIRS, sizeof PAIRS / sizeof *PAIRS);
    if (strcmp(table, "mutants") == 0)
        return cases_check(place, MUTANTS, sizeof MUTANTS / sizeof *MUTANTS);
    if (strcmp(table, "experts") == 0)
        return cases_sample(place, EXPERTS, sizeof EXPERTS / sizeof *EXPERTS);
    if (strcmp(table, "expert_pairs") == 0)
        return cases_sample(place, EXPERT_PAIRS, sizeof EXPERT_PAIRS / sizeof *EXPERT_PAIRS);
    if (strcmp(table, "schedules") == 0) return schedules_check(place);
    if (strcmp(table, "schedule_pairs") == 0)
        return cases_sample(place, SCHEDULE_PAIRS, sizeof SCHEDULE_PAIRS / sizeof *SCHEDULE_PAIRS);
    fprintf(stderr, "runtime-equivalence: no table %s\n", table);
    return false;
}

int main(int argc, char **argv) {
    char own[] = "/tmp/meshwright-equivalence-XXXXXX", command[512];
    if (argc < 3) return 2;
    const Place place = {argv[2], argc > 3 ? argv[3] : mkdtemp(own)};
    if (system("mpirun --version >/dev/null 2>&1") != 0) return 77;
    bool good = table_check(&place, argv[1]);
    snprintf(command, sizeof command, "rm -rf %s", own);
    if (argc <= 3 && system(command) != 0) good = false;
    return good ? 0 : 1;
}
