#include "costmodel/kernel/moe_load.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

const double MOE_TILE_ROWS[MOE_NUM_TILES] = {8, 16, 32, 64, 128, 256};

enum { NUM_GROUPS = 8, NUM_GROUPS_KEPT = 4, NUM_SHUFFLES = 8, NUM_SHUFFLES_GROUPED = 3 };

static void load_add(MoeLoad *load, const double *rows, int num_experts, double weight) {
    for (int e = 0; e < num_experts; e++) {
        if (rows[e] <= 0) continue;
        load->num_active += weight;
        load->num_rows += weight * rows[e];
        for (int i = 0; i < MOE_NUM_TILES; i++)
            load->num_tiles[i] += weight * ceil(rows[e] / MOE_TILE_ROWS[i]);
    }
}

// The expert of choice i of token t under balanced routing.
static int balanced_expert(const MoeRouting *r, double t, int i) {
    int stride = (r->num_experts + r->topk - 1) / r->topk;
    double first = r->num_tokens >= stride ? t : floor(t * stride / r->num_tokens);
    return (int)fmod(first + (double)i * stride, r->num_experts);
}

// Tokens of one kind choose alike: balanced routing repeats after num_experts tokens.
static int balanced_num_kinds(const MoeRouting *r) {
    return r->num_tokens < r->num_experts ? (int)r->num_tokens : r->num_experts;
}

static double balanced_kind_tokens(const MoeRouting *r, int kind) {
    int kinds = balanced_num_kinds(r);
    return floor((r->num_tokens - 1 - kind) / kinds) + 1;
}

// Adds the choices of num_tokens equal tokens to rows, limited to the best groups of experts.
static void grouped_add(const MoeRouting *r, const int *choices, double num_tokens, double *rows) {
    bool chosen[MOE_MAX_EXPERTS] = {false}, kept[NUM_GROUPS] = {false};
    int size = r->num_experts / NUM_GROUPS, score[NUM_GROUPS] = {0}, left = r->topk;
    for (int i = 0; i < r->topk; i++) {
        int *at = &score[choices[i] / size];
        if (!chosen[choices[i]] && *at < 2) ++*at;
        chosen[choices[i]] = true;
    }
    for (int n = 0; n < NUM_GROUPS_KEPT; n++) {
        int best = -1;
        for (int g = 0; g < NUM_GROUPS; g++)
            if (!kept[g] && (best < 0 || score[g] > score[best])) best = g;
        kept[best] = true;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int e = 0; e < r->num_experts && left > 0; e++)
            if (kept[e / size] && chosen[e] == (pass == 0)) {
                rows[e] += num_tokens;
                left--;
            }
}

static bool group_limited(const MoeRouting *r) {
    return r->group_limited && r->num_experts % NUM_GROUPS == 0;
}

// Groups of one expert have no second score: all pairs fall to the first expert.
static bool groups_degenerate(const MoeRouting *r) {
    return r->num_experts < 2 * NUM_GROUPS;
}

static void balanced_rows(const MoeRouting *r, double *rows) {
    for (int kind = 0; kind < balanced_num_kinds(r); kind++) {
        int choices[MOE_MAX_TOPK];
        double tokens = balanced_kind_tokens(r, kind);
        for (int i = 0; i < r->topk; i++) choices[i] = balanced_expert(r, kind, i);
        if (group_limited(r)) {
            grouped_add(r, choices, tokens, rows);
            continue;
        }
        for (int i = 0; i < r->topk; i++) rows[choices[i]] += tokens;
    }
}

// Mid-quantiles of the density x^-a, scaled to the pairs of token and expert; rising.
static void quantile_shares(const MoeRouting *r, double *shares) {
    double pairs = r->num_tokens * r->topk, sum = 0, power = 1 - r->skew;
    bool many = pairs > r->num_experts;
    double low = many ? 1 : 0.01, high = many ? fmax(r->num_tokens * 0.8, 1.0001) : 2;
    for (int e = 0; e < r->num_experts; e++) {
        double u = (e + 0.5) / r->num_experts;
        shares[e] =
            fabs(power) < 1e-9
                ? low * pow(high / low, u)
                : pow(pow(low, power) + u * (pow(high, power) - pow(low, power)), 1 / power);
        sum += shares[e];
    }
    for (int e = 0; e < r->num_experts; e++) shares[e] *= pairs / sum;
}

static void shuffle(double *values, int count, uint32_t *state) {
    for (int i = count - 1; i > 0; i--) {
        *state = *state * 1664525u + 1013904223u;
        int j = (int)((double)(*state >> 8) / 16777216.0 * (i + 1));
        double value = values[i];
        values[i] = values[j];
        values[j] = value;
    }
}

// Moves step rows to (step > 0) the emptiest or from the fullest expert of a rank.
static double rank_adjust(double *rows, int num_local, double step, double most) {
    int at = 0;
    for (int e = 1; e < num_local; e++)
        if (step > 0 ? rows[e] < rows[at] : rows[e] > rows[at]) at = e;
    double to = fmin(most, fmax(0, rows[at] + step)), moved = to - rows[at];
    rows[at] = to;
    return moved;
}

// Whole rows, at most one a token, that add up to the pairs.
static void shares_round(const MoeRouting *r, double *rows) {
    int num_local = r->num_experts / r->num_ranks;
    double rest = r->num_tokens * r->topk;
    for (int e = 0; e < r->num_experts; e++) {
        rows[e] = fmin(floor(rows[e] + 0.5), r->num_tokens);
        rest -= rows[e];
    }
    for (double moved = 1; fabs(rest) > 0.5 && moved != 0;) {
        double size = fmax(1, floor(fabs(rest) / (8 * r->num_experts)));
        moved = 0;
        for (int rank = 0; rank < r->num_ranks && fabs(rest) > 0.5; rank++) {
            double step = copysign(fmin(size, fabs(rest)), rest);
            double did = rank_adjust(rows + rank * num_local, num_local, step, r->num_tokens);
            rest -= did;
            moved += fabs(did);
        }
    }
}

static void busiest_first(const MoeRouting *r, double *rows) {
    int num_local = r->num_experts / r->num_ranks, best = 0;
    double most = -1;
    for (int rank = 0; rank < r->num_ranks; rank++) {
        double sum = 0;
        for (int e = 0; e < num_local; e++) sum += rows[rank * num_local + e];
        if (sum > most) most = sum, best = rank;
    }
    for (int e = 0; best > 0 && e < num_local; e++) {
        double value = rows[e];
        rows[e] = rows[best * num_local + e];
        rows[best * num_local + e] = value;
    }
}

// Experts by rows, most first; equal ones in their order.
static void experts_sort(const double *rows, int num_experts, int *order) {
    for (int i = 0; i < num_experts; i++) {
        int at = i;
        for (; at > 0 && rows[order[at - 1]] < rows[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

// Skewed choices under the group limit: the experts, most rows first, fill choice 0 of all tokens,
// then choice 1, ...; between two boundaries (modulo num_tokens) tokens choose alike.
static void skewed_group_rows(const MoeRouting *r, double *rows) {
    double begin[MOE_MAX_EXPERTS + 1] = {0}, routed[MOE_MAX_EXPERTS] = {0};
    int order[MOE_MAX_EXPERTS], choices[MOE_MAX_TOPK], at[MOE_MAX_TOPK];
    experts_sort(rows, r->num_experts, order);
    for (int i = 0; i < r->num_experts; i++) begin[i + 1] = begin[i] + rows[order[i]];
    for (int i = 0; i < r->topk; i++) {
        at[i] = 0;
        while (at[i] < r->num_experts - 1 && begin[at[i] + 1] <= i * r->num_tokens) at[i]++;
    }
    for (double t = 0, next; t < r->num_tokens; t = next) {
        next = r->num_tokens;
        for (int i = 0; i < r->topk; i++) {
            double place = i * r->num_tokens + t;
            while (at[i] < r->num_experts - 1 && begin[at[i] + 1] <= place) at[i]++;
            choices[i] = order[at[i]];
            double end = begin[at[i] + 1] - i * r->num_tokens;
            if (end > t) next = fmin(next, end);
        }
        grouped_add(r, choices, next - t, routed);
    }
    memcpy(rows, routed, (size_t)r->num_experts * sizeof *rows);
}

MoeLoad moe_load(const MoeRouting *r) {
    MoeLoad load = {0};
    int num_local = r->num_experts / r->num_ranks;
    double rows[MOE_MAX_EXPERTS] = {0}, shares[MOE_MAX_EXPERTS];
    if (group_limited(r) && groups_degenerate(r)) {
        rows[0] = r->num_tokens * r->topk;
        load_add(&load, rows, num_local, 1);
        return load;
    }
    if (r->skew == 0) {
        balanced_rows(r, rows);
        load_add(&load, rows, num_local, 1);
        return load;
    }
    bool one = r->num_ranks == 1 && !group_limited(r); // the order of experts does not matter
    int num_shuffles = one ? 1 : group_limited(r) ? NUM_SHUFFLES_GROUPED : NUM_SHUFFLES;
    uint32_t state = 12345;
    quantile_shares(r, shares);
    for (int i = 0; i < num_shuffles; i++) {
        memcpy(rows, shares, (size_t)r->num_experts * sizeof *rows);
        if (!one) shuffle(rows, r->num_experts, &state);
        shares_round(r, rows);
        busiest_first(r, rows);
        if (group_limited(r)) skewed_group_rows(r, rows);
        load_add(&load, rows, num_local, 1.0 / num_shuffles);
    }
    return load;
}
