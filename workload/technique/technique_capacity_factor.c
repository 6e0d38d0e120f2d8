// Every expert takes as many tokens, whatever it is sent: more are dropped, fewer padded. The host
// knows the number.
#include "workload/technique/technique_rows.h"

static bool applies(const Builder *b) {
    return b->pass.capacity_factor > 0;
}

static void rewrite(const Builder *b, ExpertLoad *load) {
    load->routed *= b->pass.capacity_factor;
    load->host_awaits_counts = false;
}

const Technique TECHNIQUE_ROW_CAPACITY_FACTOR = {
    .source = "Lepikhin et al., \"GShard\", 2020, arXiv:2006.16668, section 2.2",
    .applies = applies,
    .load = rewrite,
};
