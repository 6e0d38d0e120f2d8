#include "whatif/failures.h"

#include "base/arena.h"
#include "base/random.h"

#include <math.h>
#include <stdbool.h>

enum { DRAW_TIME, DRAW_KIND };

typedef struct {
    const FailureModel *model;
    uint64_t seed;
    uint32_t run, num_draws;
    double time_s, failure_s; // now, and when the next failure comes
    double most_s;            // then the run is given up
    double *back_s;           // [num_spares + 1] ring: when nodes under repair come back
    int first, num_away;
    FailureRun out;
} Player;

// --- Failures

static double draw(const Player *p, uint32_t kind) {
    const uint32_t counter[RANDOM_WORDS] = {p->run, p->num_draws, kind, 0};
    return random_uniform(p->seed, counter);
}

static void failure_next(Player *p) {
    p->num_draws++;
    p->failure_s =
        isinf(p->model->mtbf_s) ? INFINITY : p->time_s - p->model->mtbf_s * log(draw(p, DRAW_TIME));
}

// Nodes whose repair is over. Repairs take the same time, so that they end in their order.
static void nodes_return(Player *p) {
    const int room = p->model->num_spares + 1;
    while (p->num_away > 0 && p->back_s[p->first] <= p->time_s) {
        p->first = (p->first + 1) % room;
        p->num_away--;
    }
}

// A failure now: a node may go, and the job may have to wait for one.
static void failure_take(Player *p) {
    const FailureModel *m = p->model;
    const int room = m->num_spares + 1;
    p->out.num_failures++;
    if (m->num_spares >= 0 && draw(p, DRAW_KIND) < m->hardware_frac) {
        nodes_return(p);
        p->back_s[(p->first + p->num_away) % room] = p->time_s + m->repair_s;
        p->num_away++;
        if (p->num_away == room) {
            p->out.wait_s += p->back_s[p->first] - p->time_s;
            p->time_s = p->back_s[p->first];
            nodes_return(p);
        }
    }
    failure_next(p);
}

// --- What the job does

static bool goes_on(const Player *p) {
    return p->time_s < p->most_s && p->out.num_failures < FAILURES_MAX_OF_RUN;
}

static void restart(Player *p) {
    while (goes_on(p)) {
        const double end_s = p->time_s + p->model->restart_s;
        if (end_s <= p->failure_s) {
            p->out.restart_s += p->model->restart_s;
            p->time_s = end_s;
            return;
        }
        p->out.restart_s += p->failure_s - p->time_s;
        p->time_s = p->failure_s;
        failure_take(p);
    }
}

// Whole intervals until the next failure, or to the end of the run.
static void intervals_run(Player *p, int64_t steps, int64_t *left, double interval_s) {
    const double each_s = interval_s + p->model->write_s;
    const double whole = floor((p->failure_s - p->time_s) / each_s);
    const int64_t most = *left / steps;
    const int64_t n = whole < (double)most ? (int64_t)whole : most;
    p->time_s += (double)n * each_s;
    p->out.useful_s += (double)n * interval_s;
    p->out.write_s += (double)n * p->model->write_s;
    p->out.num_steps += n * steps;
    *left -= n * steps;
}

// The next interval, which may be a shorter last one: done, or lost to a failure.
static void interval_try(Player *p, int64_t steps, int64_t *left) {
    const int64_t n = steps < *left ? steps : *left;
    const double useful_s = (double)n * p->model->step_s;
    const double end_s = p->time_s + useful_s + p->model->write_s;
    if (end_s <= p->failure_s) {
        p->out.useful_s += useful_s;
        p->out.write_s += p->model->write_s;
        p->out.num_steps += n;
        *left -= n;
        p->time_s = end_s;
        return;
    }
    p->out.lost_s += p->failure_s - p->time_s;
    p->time_s = p->failure_s;
    failure_take(p);
    restart(p);
}

FailureRun failures_play(const FailureModel *model, int64_t num_steps, int64_t interval_steps,
                         uint64_t seed, uint32_t run) {
    Arena arena = {0};
    Player p = {.model = model, .seed = seed, .run = run};
    const double interval_s = (double)interval_steps * model->step_s;
    int64_t left = num_steps;
    p.most_s = FAILURES_MAX_WALL * (double)num_steps * model->step_s;
    p.back_s = ARENA_ARRAY(&arena, model->num_spares + 1, double);
    failure_next(&p);
    while (left > 0 && goes_on(&p)) {
        intervals_run(&p, interval_steps, &left, interval_s);
        if (left > 0) interval_try(&p, interval_steps, &left);
    }
    arena_free(&arena);
    p.out.wall_s = p.time_s;
    return p.out;
}

// --- Many runs

// Means of the runs that were played, where they are fewer than was asked for.
static void means_correct(FailureRun *mean, double factor) {
    mean->wall_s *= factor;
    mean->useful_s *= factor;
    mean->write_s *= factor;
    mean->lost_s *= factor;
    mean->restart_s *= factor;
    mean->wait_s *= factor;
}

FailureStatistics failures_repeat(const FailureModel *model, int64_t num_steps,
                                  int64_t interval_steps, uint64_t seed, int num_runs) {
    FailureStatistics out = {.num_runs = 0};
    double sum = 0, squares = 0;
    bool given_up = false;
    for (int i = 0; i < num_runs && (!given_up || i < 2); i++) {
        const FailureRun run = failures_play(model, num_steps, interval_steps, seed, (uint32_t)i);
        const double goodput = run.wall_s > 0 ? run.useful_s / run.wall_s : 0;
        sum += goodput;
        squares += goodput * goodput;
        out.mean.wall_s += run.wall_s / num_runs;
        out.mean.useful_s += run.useful_s / num_runs;
        out.mean.write_s += run.write_s / num_runs;
        out.mean.lost_s += run.lost_s / num_runs;
        out.mean.restart_s += run.restart_s / num_runs;
        out.mean.wait_s += run.wait_s / num_runs;
        out.mean.num_failures += run.num_failures;
        out.mean.num_steps += run.num_steps;
        out.num_runs++;
        given_up |= run.num_steps < num_steps;
    }
    const int n = out.num_runs;
    if (n < num_runs) means_correct(&out.mean, (double)num_runs / n);
    out.goodput_frac = sum / n;
    const double variance = squares / n - out.goodput_frac * out.goodput_frac;
    if (n > 1) out.goodput_error_frac = sqrt(fmax(0, variance) / (n - 1));
    return out;
}
