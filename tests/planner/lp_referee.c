#include "tests/planner/lp_referee.h"

#include <glpk.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REFEREE_SECONDS = 30 };

typedef struct {
    double best;
    char names[LP_REFEREE_NAMES_SIZE];
} Answer;

static void names_take(glp_prob *problem, char *names) {
    size_t used = 0;
    for (int i = 1; i <= glp_get_num_cols(problem); i++) {
        const char *name = glp_get_col_name(problem, i);
        const size_t length = name ? strlen(name) : 0;
        if (glp_mip_col_val(problem, i) < 0.5 || used + length + 2 > LP_REFEREE_NAMES_SIZE)
            continue;
        used += (size_t)sprintf(names + used, "%s ", name ? name : "");
    }
}

static double solve(const char *path, char *names) {
    glp_term_out(GLP_OFF);
    glp_prob *problem = glp_create_prob();
    if (glp_read_lp(problem, NULL, path) != 0) return -1;
    glp_iocp options;
    glp_init_iocp(&options);
    options.presolve = GLP_ON;
    options.tol_obj = 1e-9;
    const int failed = glp_intopt(problem, &options);
    double best = -1;
    if (failed == GLP_ENOPFS || (!failed && glp_mip_status(problem) == GLP_NOFEAS))
        best = INFINITY;
    else if (!failed && glp_mip_status(problem) == GLP_OPT)
        best = glp_mip_obj_val(problem);
    if (best >= 0 && best < INFINITY) names_take(problem, names);
    glp_delete_prob(problem);
    glp_free_env();
    return best;
}

// All of it, or nothing.
static bool answer_read(int end, Answer *answer) {
    size_t done = 0;
    for (ssize_t n; done < sizeof *answer; done += (size_t)n) {
        n = read(end, (char *)answer + done, sizeof *answer - done);
        if (n <= 0) return false;
    }
    return true;
}

// GLPK's own time limit is not reliable, so the child has an alarm.
double lp_referee_ones(const char *path, char *names) {
    Answer answer = {.best = -1};
    int ends[2];
    names[0] = '\0';
    if (pipe(ends) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
        alarm(REFEREE_SECONDS);
        answer.best = solve(path, answer.names);
        const bool written = write(ends[1], &answer, sizeof answer) == (ssize_t)sizeof answer;
        _exit(written ? 0 : 1);
    }
    close(ends[1]);
    const bool answered = answer_read(ends[0], &answer);
    close(ends[0]);
    if (child > 0) waitpid(child, NULL, 0);
    if (!answered) return -1;
    memcpy(names, answer.names, sizeof answer.names);
    return answer.best;
}

double lp_referee(const char *path) {
    char names[LP_REFEREE_NAMES_SIZE];
    return lp_referee_ones(path, names);
}
