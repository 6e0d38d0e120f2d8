// The Python program: it builds Megatron Bridge's configuration, sets what the YAML file says, key
// by key, and trains.
#include "launch/bridge.h"
#include "launch/megatron_script.h"

static void add_imports(Script *script, bool latent, bool block) {
    script_add(script, "import argparse\n");
    if (block) script_add(script, "from functools import partial\n");
    script_add(script, "\nimport torch\nimport yaml\n");
    if (block)
        script_add(script, "from megatron.core.models.gpt.gpt_layer_specs import "
                           "get_gpt_decoder_block_spec\n");
    script_add(script, "from megatron.core.transformer.enums import AttnBackend\n\n");
    script_add(script, latent ? "from megatron.bridge.models.mla_provider import "
                                "MLAModelProvider\n"
                              : "from megatron.bridge.models.gpt_provider import "
                                "GPTModelProvider\n");
    script_add(script, "from megatron.bridge.training.config import (\n"
                       "    CheckpointConfig,\n"
                       "    ConfigContainer,\n"
                       "    DistributedDataParallelConfig,\n"
                       "    DistributedInitConfig,\n"
                       "    GPTDatasetConfig,\n"
                       "    LoggerConfig,\n"
                       "    OptimizerConfig,\n"
                       "    RNGConfig,\n"
                       "    SchedulerConfig,\n"
                       "    TokenizerConfig,\n"
                       "    TrainingConfig,\n"
                       "    ValidationConfig,\n"
                       ")\n"
                       "from megatron.bridge.training.gpt_step import forward_step\n"
                       "from megatron.bridge.training.mixed_precision import "
                       "MixedPrecisionConfig\n"
                       "from megatron.bridge.training.pretrain import pretrain\n");
}

static void add_arguments(Script *script, const MegatronCommand *command) {
    script_add(script, "\n\ndef parse_arguments():\n"
                       "    parser = argparse.ArgumentParser()\n"
                       "    parser.add_argument(\"--config\", required=True)\n"
                       "    parser.add_argument(\"--train-iters\", type=int, required=True)\n"
                       "    parser.add_argument(\"--lr\", type=float, required=True)\n"
                       "    parser.add_argument(\"--eval-interval\", type=int, required=True)\n"
                       "    parser.add_argument(\"--eval-iters\", type=int, required=True)\n"
                       "    parser.add_argument(\"--data-path\")\n"
                       "    parser.add_argument(\"--split\")\n"
                       "    parser.add_argument(\"--tokenizer-type\")\n"
                       "    parser.add_argument(\"--tokenizer-model\")\n"
                       "    parser.add_argument(\"--checkpoint-path\")\n"
                       "    parser.add_argument(\"--save-interval\", type=int)\n");
    if (megatron_uses_variable(command, "ROTARY_BASE"))
        script_add(script, "    parser.add_argument(\"--rotary-base\", type=int, required=True)\n");
    if (megatron_uses_variable(command, "MOE_AUX_LOSS_COEFF"))
        script_add(script, "    parser.add_argument(\"--moe-aux-loss-coeff\", type=float, "
                           "required=True)\n");
    script_add(script, "    return parser.parse_args()\n");
}

// Values that YAML has no type for; a key that this version lacks ends the program, not the plan.
static void add_settings(Script *script) {
    script_add(script,
               "\n\ndef value_of(key, value):\n"
               "    if key.endswith(\"_dtype\"):\n"
               "        return getattr(torch, value)\n"
               "    if key == \"attention_backend\":\n"
               "        return AttnBackend[value]\n"
               "    if key == \"window_size\":\n"
               "        return tuple(value)\n"
               "    return value\n"
               "\n\n"
               "def set_keys(config, sections):\n"
               "    for section, keys in sections.items():\n"
               "        for key, value in keys.items():\n"
               "            part = getattr(config, section)\n"
               "            if not hasattr(part, key):\n"
               "                raise SystemExit(f\"{section}.{key}: this Megatron Bridge has no "
               "such key\")\n"
               "            setattr(part, key, value_of(key, value))\n");
}

static void add_config(Script *script, const Scenario *scenario, bool latent, bool block) {
    script_add(script,
               "\n\ndef pretrain_config(sections):\n"
               "    config = ConfigContainer(\n"
               "        model=%sModelProvider(),\n"
               "        train=TrainingConfig(train_iters=1),\n"
               "        validation=ValidationConfig(),\n"
               "        optimizer=OptimizerConfig(),\n"
               "        scheduler=SchedulerConfig(),\n"
               "        ddp=DistributedDataParallelConfig(),\n"
               "        dataset=GPTDatasetConfig(\n"
               "            seq_length=%d,\n"
               "            random_seed=1234,\n"
               "            reset_position_ids=False,\n"
               "            reset_attention_mask=False,\n"
               "            eod_mask_loss=False,\n"
               "            dataloader_type=\"single\",\n"
               "        ),\n"
               "        logger=LoggerConfig(),\n"
               "        tokenizer=TokenizerConfig(tokenizer_type=\"NullTokenizer\"),\n"
               "        checkpoint=CheckpointConfig(),\n"
               "        dist=DistributedInitConfig(),\n"
               "        rng=RNGConfig(),\n"
               "        mixed_precision=MixedPrecisionConfig(),\n"
               "    )\n",
               latent ? "MLA" : "GPT", (int)scenario->training.seq_len);
    if (block)
        script_add(script,
                   "    # The default takes every layer for the same and latents for none.\n"
                   "    config.model.transformer_layer_spec = partial(\n"
                   "        get_gpt_decoder_block_spec, use_transformer_engine=True\n"
                   "    )\n");
    script_add(script, "    set_keys(config, sections)\n"
                       "    return config\n");
}

static void add_main(Script *script, const MegatronCommand *command) {
    script_add(script, "\n\ndef main():\n"
                       "    arguments = parse_arguments()\n"
                       "    with open(arguments.config, encoding=\"utf-8\") as file:\n"
                       "        config = pretrain_config(yaml.safe_load(file))\n"
                       "    config.train.train_iters = arguments.train_iters\n"
                       "    config.optimizer.lr = arguments.lr\n"
                       "    config.validation.eval_interval = arguments.eval_interval\n"
                       "    config.validation.eval_iters = arguments.eval_iters\n");
    if (megatron_uses_variable(command, "ROTARY_BASE"))
        script_add(script, "    config.model.rotary_base = arguments.rotary_base\n");
    if (megatron_uses_variable(command, "MOE_AUX_LOSS_COEFF"))
        script_add(script, "    config.model.moe_aux_loss_coeff = arguments.moe_aux_loss_coeff\n");
    script_add(script, "    if arguments.data_path:\n"
                       "        config.dataset.data_path = [arguments.data_path]\n"
                       "        config.dataset.split = arguments.split\n"
                       "        config.tokenizer.tokenizer_type = arguments.tokenizer_type\n"
                       "        config.tokenizer.tokenizer_model = arguments.tokenizer_model\n"
                       "        config.tokenizer.vocab_size = None\n"
                       "    if arguments.checkpoint_path:\n"
                       "        config.checkpoint.save = config.checkpoint.load = "
                       "arguments.checkpoint_path\n"
                       "        config.checkpoint.save_interval = arguments.save_interval\n"
                       "    pretrain(config=config, forward_step_func=forward_step)\n"
                       "\n\nif __name__ == \"__main__\":\n"
                       "    main()\n");
}

const char *bridge_program(const Scenario *scenario, const MegatronCommand *command, Arena *arena) {
    Script script = {.arena = arena};
    bool latent = mixer_is_latent(model_mixer(&scenario->model));
    bool block = latent || model_is_moe(&scenario->model);
    script_comment(&script,
                   "For NVIDIA-NeMo/Megatron-Bridge " BRIDGE_VERSION ": trains with the "
                   "configuration beside it. Written by meshwright " MESHWRIGHT_VERSION ".");
    add_imports(&script, latent, block);
    add_arguments(&script, command);
    add_settings(&script);
    add_config(&script, scenario, latent, block);
    add_main(&script, command);
    return script.text;
}
