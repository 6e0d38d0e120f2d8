// config/cluster/prices.h - a scenario's own price list: what a GPU hour costs its user.
//
//   "prices": {"h100-sxm-80g": 2.1, "source": "our contract of 2026-03"}
//   "prices": "prices.json"      the same object in a file, relative to the scenario
// It stands before the profiles' prices, and behind price_usd_per_gpu_hour of the cluster.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/cluster/cluster.h"

// Puts the list's prices into the pools of a cluster. Refuses names of no known GPU, and
// prices out of range.
//   value  of the key `prices`; absent: nothing is changed
Status prices_take(const JsonNode *value, Arena *arena, Cluster *cluster);
