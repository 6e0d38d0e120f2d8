#include "tests/planner/lp_referee.h"

#include <glpk.h>
#include <math.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REFEREE_SECONDS = 30 };

static double solve(const char *path) {
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
    glp_delete_prob(problem);
    glp_free_env();
    return best;
}

// GLPK's own time limit is not reliable, so the child has an alarm.
double lp_referee(const char *path) {
    int ends[2];
    if (pipe(ends) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
        alarm(REFEREE_SECONDS);
        const double best = solve(path);
        const bool written = write(ends[1], &best, sizeof best) == (ssize_t)sizeof best;
        _exit(written ? 0 : 1);
    }
    close(ends[1]);
    double best = -1;
    if (read(ends[0], &best, sizeof best) != (ssize_t)sizeof best) best = -1;
    close(ends[0]);
    if (child > 0) waitpid(child, NULL, 0);
    return best;
}
