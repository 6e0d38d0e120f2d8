#include "planner/placement/placement_price.h"

#include "base/random.h"
#include "costmodel/step/timeline.h"
#include "workload/technique/technique.h"

#include <math.h>
#include <string.h>

// How far from a point its plane is looked for, where several paths are the longest: at the point
// itself all of them would count. And the step in which a slope is measured.
static const double ASIDE_FRAC = 1e-4, SLOPE_FRAC = 1e-6;

double placement_step_s(const PlacementPricer *pricer, const double *slowdown) {
    arena_reset(pricer->scratch);
    const int num = pricer->links->num_traffics;
    KnownSlowdown *known = ARENA_ARRAY(pricer->scratch, num, KnownSlowdown);
    for (int i = 0; i < num; i++)
        known[i] = (KnownSlowdown){pricer->links->traffics[i].traffic, slowdown[i]};
    Scenario scenario = *pricer->scenario;
    ClusterNetwork *network = &scenario.cluster.network;
    network->known = known;
    network->num_known = num;
    ClusterSites sites;
    if (network->sites) {
        sites = *network->sites;
        sites.latency_s = 0; // it depends on the placement too, and is no less
        network->sites = &sites;
    }
    Prices prices = chunks_price(&scenario, pricer->plan, pricer->workload, pricer->scratch);
    program_price(&scenario, pricer->plan, pricer->program, pricer->scratch, &prices);
    Timeline timeline;
    const Status ran =
        (step_traits(&scenario.execution).begins_together ? timeline_run : timeline_run_steady)(
            pricer->program, &prices, false, pricer->scratch, &timeline);
    return ran.code == STATUS_OK ? timeline.step_time_s : INFINITY;
}

void placement_add_plane(const PlacementPricer *pricer, const double *at, Arena *arena,
                         PlacementModel *model) {
    const int num = model->num_traffics;
    double *point = ARENA_ARRAY(arena, num, double), *slope_s = ARENA_ARRAY(arena, num, double);
    for (int i = 0; i < num; i++) {
        const uint32_t counter[RANDOM_WORDS] = {(uint32_t)i, (uint32_t)model->num_planes, 0, 0};
        point[i] = at[i] * (1 + ASIDE_FRAC * random_uniform(0, counter));
    }
    const double aside_s = placement_step_s(pricer, point);
    double base_s = placement_step_s(pricer, at);
    for (int i = 0; i < num; i++) {
        const double here = point[i];
        point[i] = here * (1 + SLOPE_FRAC);
        const double rise_s = placement_step_s(pricer, point) - aside_s;
        slope_s[i] = rise_s > 1e-13 * aside_s ? rise_s / (here * SLOPE_FRAC) : 0;
        point[i] = here;
        base_s -= slope_s[i] * at[i];
    }
    if (model->num_planes == PLACEMENT_MAX_PLANES) {
        model->num_planes--;
        memmove(model->base_s, model->base_s + 1,
                (size_t)model->num_planes * sizeof *model->base_s);
        memmove(model->slope_s, model->slope_s + 1,
                (size_t)model->num_planes * sizeof *model->slope_s);
    }
    model->base_s[model->num_planes] = base_s;
    model->slope_s[model->num_planes++] = slope_s;
}

double placement_model_s(const PlacementModel *model, const double *slowdown) {
    double most_s = 0;
    for (int k = 0; k < model->num_planes; k++) {
        double plane_s = model->base_s[k];
        for (int i = 0; i < model->num_traffics; i++) plane_s += model->slope_s[k][i] * slowdown[i];
        most_s = fmax(most_s, plane_s);
    }
    return most_s;
}
