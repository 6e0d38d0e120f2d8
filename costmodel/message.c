#include "costmodel/message.h"

#include "costmodel/collective.h"
#include "costmodel/site_links.h"

#include <math.h>

bool ranks_share_domain(const Cluster *cluster, const Plan *plan, int rank, int peer) {
    const int num_gpus = (int)plan_stage_gpus(plan);
    const int first = rank * num_gpus, other = peer * num_gpus, last = num_gpus - 1;
    return gpus_share_domain(cluster, first, other) &&
           gpus_share_domain(cluster, first + last, other + last);
}

double ranks_message_s(const Cluster *cluster, const Plan *plan, int rank, int peer,
                       double message_bytes, double *alpha_s) {
    const bool near = ranks_share_domain(cluster, plan, rank, peer);
    const Cluster *here = plan_rank_cluster(cluster, plan, rank);
    const Cluster *there = plan_rank_cluster(cluster, plan, peer);
    double time_s = p2p_s(here, near, message_bytes, alpha_s);
    if (near || !cluster->sites) return time_s;
    if (there != here) time_s = fmax(time_s, p2p_s(there, near, message_bytes, alpha_s));
    double transfer_s = (time_s - *alpha_s) * ranks_slowdown(cluster, plan, rank, peer);
    *alpha_s += ranks_latency_s(cluster, plan, rank, peer);
    return *alpha_s + transfer_s;
}
