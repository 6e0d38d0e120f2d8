// import/torchtitan.h - a configuration of torchtitan as parts of a scenario.
//
// Version: as launch/titan.h, and what older and newer configurations call otherwise: batch_size,
//          [compile]. Source of keys and defaults: torchtitan/config/job_config.py; of stages:
//          generate_llm_fqn_per_model_part() in torchtitan/distributed/pipeline_parallel.py.
#pragma once

#include "import/import.h"

#include <stdbool.h>

typedef struct {
    Imported *out;
    const cJSON *config; // the whole document
    int num_gpus, num_layers;
    int tp, pp, cp, dp;
    bool has_experts;
    cJSON *training, *parallel; // of the scenario
} TitanRead;

// A key of a section; NULL where it is not there.
const cJSON *titan_key(const TitanRead *read, const char *section, const char *key);

// Its value; absent where it is not there. Another type, or a number below least, is refused.
Status titan_int(const TitanRead *read, const char *section, const char *key, int least, int absent,
                 int *value);
Status titan_text(const TitanRead *read, const char *section, const char *key, const char *absent,
                  const char **value);
bool titan_true(const TitanRead *read, const char *section, const char *key);

Status titan_read_model(TitanRead *read);
Status titan_read_degrees(TitanRead *read);
Status titan_read_pipeline(TitanRead *read);
Status titan_read_training(TitanRead *read);

// Notes the keys that nobody reads, and refuses degrees among them.
Status titan_refuse_unread(const TitanRead *read);
