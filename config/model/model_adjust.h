// config/model/model_adjust.h - what some families say in keys of their own (see model_family.h).
// Each reads those keys of a config.json into a model whose common keys were read before.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "config/model/model_draft.h"

Status gpt_neox_adjust(const JsonNode *config, ModelDraft *draft);
Status mpt_adjust(const JsonNode *config, ModelDraft *draft);
Status opt_adjust(const JsonNode *config, ModelDraft *draft);
Status falcon_adjust(const JsonNode *config, ModelDraft *draft);
