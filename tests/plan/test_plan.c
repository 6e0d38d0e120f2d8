#include "plan/plan.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

// 32 layers, 32 heads, 8 key-value heads, hidden 4096, MLP 14336.
#define LLAMA "\"llama-3.1-8b\""
// 32 layers, 32 heads, 8 key-value heads, 8 experts of 14336.
#define MIXTRAL "\"mixtral-8x7b\""
#define TRAINING "{\"seq_len\": 8192, \"global_batch\": 128}"

static Status resolve(const char *model, int num_nodes, const char *training, const char *parallel,
                      Arena *arena, Plan *out) {
    Scenario *scenario = ARENA_NEW(arena, Scenario);
    const char *cluster = arena_printf(arena, "\"dgx-h100:%d\"", num_nodes);
    TRY(scenario_of(scenario_text(arena, model, cluster, training, parallel), arena, scenario));
    return plan_resolve(scenario, arena, out);
}

static Plan resolved(const char *model, int num_nodes, const char *training, const char *parallel,
                     Arena *arena) {
    Plan plan = {0};
    Status status = resolve(model, num_nodes, training, parallel, arena, &plan);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return plan;
}

static void absent_means_the_contracts_defaults(void) {
    Arena arena = {0};
    Plan plan = resolved(LLAMA, 2, TRAINING, NULL, &arena);
    CU_ASSERT(plan.tp == 1 && plan.pp == 1 && plan.cp == 1 && plan.ep == 1 && plan.etp == 1);
    CU_ASSERT(plan.vpp == 1 && plan.micro_batch == 1);
    CU_ASSERT_EQUAL(plan.dp, 16);
    CU_ASSERT_FALSE(plan.sequence_parallel);
    CU_ASSERT_EQUAL(plan.zero_stage, 1);
    CU_ASSERT_EQUAL(plan.zero_group, 16);
    CU_ASSERT_TRUE(plan.reshard_after_forward);
    CU_ASSERT_EQUAL(plan.recompute, RECOMPUTE_NONE);
    CU_ASSERT_EQUAL(plan.recompute_modules, 0);
    CU_ASSERT_EQUAL(plan.recompute_layers, ABSENT);
    CU_ASSERT_EQUAL(plan.schedule, SCHEDULE_1F1B);
    CU_ASSERT_EQUAL(plan.cp_method, CP_RING);
    CU_ASSERT_EQUAL(plan.order, ORDER_DP_PP);
    CU_ASSERT_EQUAL(plan.num_chunks, 1);
    CU_ASSERT(plan.chunks[0].num_layers == 32 && plan.chunks[0].embedding && plan.chunks[0].loss);
    CU_ASSERT_EQUAL(plan.expert_dp, 16);
    CU_ASSERT_EQUAL(plan.num_microbatches, 8); // 128 / (1 x 16)
    arena_free(&arena);
}

static void defaults_follow_what_is_given(void) {
    Arena arena = {0};
    // dp = 16 / (2 x 2 x 2) = 2; zero_group = dp x cp = 4; 128 / (4 x 2) = 16 micro-batches.
    Plan plan = resolved(LLAMA, 2, TRAINING,
                         "{\"tp\": 2, \"pp\": 2, \"cp\": 2, \"vpp\": 4, \"micro_batch\": 4, "
                         "\"recompute\": \"selective\"}",
                         &arena);
    CU_ASSERT_EQUAL(plan.dp, 2);
    CU_ASSERT_TRUE(plan.sequence_parallel);
    CU_ASSERT_EQUAL(plan.zero_group, 4);
    CU_ASSERT_EQUAL(plan.schedule, SCHEDULE_INTERLEAVED);
    CU_ASSERT_EQUAL(plan.recompute_modules, MODULE_CORE_ATTN);
    CU_ASSERT_EQUAL(plan.num_microbatches, 16);
    CU_ASSERT_EQUAL(plan.num_chunks, 8);
    arena_free(&arena);
}

// torchtitan shards over dp_shard x cp ranks: 4 of 4 x 2 are all 8, 2 of them stay 2; on Megatron a
// group is what is stated.
static void context_ranks_may_share_the_shards(void) {
    static const struct {
        const char *stack;
        int stated, zero_group;
    } ROWS[] = {
        {"torchtitan", 4, 8}, {"torchtitan", 8, 8}, {"torchtitan", 2, 2}, {"megatron-core", 4, 4}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Arena arena = {0};
        const Plan plan = resolved(
            LLAMA, 1,
            arena_printf(&arena, "{\"seq_len\": 8192, \"global_batch\": 128, \"stack\": \"%s\"}",
                         ROWS[i].stack),
            arena_printf(&arena, "{\"cp\": 2, \"zero_group\": %d}", ROWS[i].stated), &arena);
        CU_ASSERT_EQUAL(plan.zero_group, ROWS[i].zero_group);
        arena_free(&arena);
    }
}

static void stack_decides_zero_and_selective(void) {
    Arena arena = {0};
    Plan plan =
        resolved(LLAMA, 1, "{\"seq_len\": 8, \"global_batch\": 8, \"stack\": \"torchtitan\"}",
                 "{\"recompute\": \"selective\"}", &arena);
    CU_ASSERT_EQUAL(plan.zero_stage, 3);
    CU_ASSERT_EQUAL(plan.recompute_modules, 0); // per operator
    plan = resolved(LLAMA, 1, "{\"seq_len\": 8, \"global_batch\": 8, \"stack\": \"torchtitan\"}",
                    "{\"zero_stage\": 0}", &arena);
    CU_ASSERT_EQUAL(plan.zero_stage, 0);
    arena_free(&arena);
}

static void interleaved_with_one_chunk_runs_as_1f1b(void) {
    Arena arena = {0};
    Plan plan = resolved(LLAMA, 1, TRAINING, "{\"pp\": 2, \"schedule\": \"interleaved\"}", &arena);
    CU_ASSERT_EQUAL(plan.schedule, SCHEDULE_1F1B);
    plan = resolved(LLAMA, 1, TRAINING, "{\"schedule\": \"gpipe\"}", &arena);
    CU_ASSERT_EQUAL(plan.schedule, SCHEDULE_GPIPE);
    arena_free(&arena);
}

static void experts_split_the_ranks_anew(void) {
    Arena arena = {0};
    // tp x cp x dp = 2 x 1 x 8 = 16 ranks of a stage; ep 8 x etp 1 leaves expert dp 2.
    Plan plan = resolved(MIXTRAL, 4, TRAINING, "{\"tp\": 2, \"pp\": 2, \"ep\": 8}", &arena);
    CU_ASSERT_EQUAL(plan.dp, 8);
    CU_ASSERT_EQUAL(plan.expert_dp, 2);
    // ep may exceed dp: 4 x 1 x 2 = 8 ranks, ep 4 x etp 2.
    plan = resolved(MIXTRAL, 1, TRAINING, "{\"tp\": 4, \"ep\": 4, \"etp\": 2}", &arena);
    CU_ASSERT_EQUAL(plan.expert_dp, 1);
    arena_free(&arena);
}

static void legal_oddities_are_accepted(void) {
    static const char *const PARALLELS[] = {
        "{\"pp\": 8, \"tp\": 1, \"micro_batch\": 64}", // 2 micro-batches, 8 stages
        "{\"pp\": 2, \"zero_stage\": 3}",              // ZeRO 3 with a pipeline
        "{\"pp\": 2, \"zero_stage\": 2}",              //
        "{\"tp\": 1, \"sequence_parallel\": true}",    // without effect
        "{\"tp\": 8, \"sequence_parallel\": false}",   //
        "{\"recompute_layers\": 3}",                   // without effect
        "{\"zero_stage\": 0, \"zero_group\": 2}",      // without effect
        "{\"pp\": 2, \"vpp\": 17}",                    // 34 chunks = 32 layers + 2
        "{\"cp\": 8, \"cp_method\": \"ulysses\"}",     // 8 key-value heads over 8
    };
    Arena arena = {0};
    for (size_t i = 0; i < sizeof PARALLELS / sizeof *PARALLELS; i++) {
        Plan plan;
        Status status = resolve(LLAMA, 1, TRAINING, PARALLELS[i], &arena, &plan);
        CU_ASSERT_EQUAL(status.code, STATUS_OK);
        if (status.code) fprintf(stderr, "%s: %s\n", PARALLELS[i], status.text);
    }
    arena_free(&arena);
}

static void illegal_plans_are_refused(void) {
    static const struct {
        const char *model, *training, *parallel, *sentence;
    } CASES[] = {
        {LLAMA, "{\"seq_len\": 8192, \"global_batch\": 100}", "{\"micro_batch\": 8}",
         "training.global_batch: 100 is not a multiple of micro_batch 8 x data-parallel 16"},
        {LLAMA, TRAINING, "{\"tp\": 3}",
         "parallel: tp 3 x cp 1 x pp 1 = 3 does not divide num_gpus 16; num_gpus 15 would be "
         "filled"},
        {LLAMA, TRAINING, "{\"tp\": 3, \"pp\": 2}",
         "parallel: tp 3 x cp 1 x pp 2 = 6 does not divide num_gpus 16; num_gpus 12 would be "
         "filled, or idle_gpus 4"},
        {LLAMA, TRAINING, "{\"tp\": 32}",
         "parallel: tp 32 x cp 1 x pp 1 = 32 does not divide num_gpus 16; num_gpus 32 would be "
         "filled"},
        {LLAMA, TRAINING, "{\"tp\": 2, \"dp\": 4}",
         "parallel.dp: tp 2 x cp 1 x dp 4 x pp 1 = 8, but num_gpus is 16; expected dp 8, "
         "or idle_gpus 8"},
        {LLAMA, TRAINING, "{\"tp\": 1048576, \"cp\": 1048576, \"pp\": 1048576}",
         "parallel: tp 1048576 x cp 1048576 x pp 1048576 = 1152921504606846976 does not divide "
         "num_gpus 16; num_gpus 1152921504606846976 would be filled"},
        {LLAMA, TRAINING, "{\"pp\": 2, \"vpp\": 18}",
         "parallel.pp: pp 2 x vpp 18 = 36 is more than num_hidden_layers 32 + 2"},
        {LLAMA, TRAINING, "{\"pp\": 16, \"vpp\": 1048576}",
         "parallel.pp: pp 16 x vpp 1048576 = 16777216 is more than num_hidden_layers 32 + 2"},
        {LLAMA, TRAINING, "{\"pp\": 2, \"vpp\": 2, \"schedule\": \"1f1b\"}",
         "parallel.vpp: 2, but schedule 1f1b holds 1 chunk a rank; expected 1 or schedule "
         "interleaved"},
        {LLAMA, TRAINING, "{\"pp\": 2, \"vpp\": 4, \"schedule\": \"zb-v\"}",
         "parallel.vpp: 4, but schedule zb-v holds 2 chunks a rank; expected 2 or absent"},
        {LLAMA, TRAINING, "{\"pp\": 2, \"vpp\": 1, \"schedule\": \"dualpipe\"}",
         "parallel.vpp: 1, but schedule dualpipe holds 2 chunks a rank; expected 2 or absent"},
        {LLAMA, TRAINING, "{\"pp\": 16, \"micro_batch\": 8, \"schedule\": \"dualpipe\"}",
         "training.global_batch: 16 micro-batches a replica; schedule dualpipe takes an even "
         "number "
         "from 32 on"},
        {LLAMA, TRAINING,
         "{\"pp\": 2, \"schedule\": \"dualpipe\", \"stages\": [{\"layers\": 8}, {\"layers\": 8}, "
         "{\"layers\": 8}, {\"layers\": 8}]}",
         "parallel.stages: 4 entries; expected pp 2, of which schedule dualpipe holds two copies"},
        {LLAMA, TRAINING, "{\"order\": \"dp-tp-cp-ep-pp\"}",
         "parallel.order: dp-tp-cp-ep-pp is an order that neither Megatron-LM nor TorchTitan nor "
         "DeepSpeed can number ranks in; expected tp-cp-ep-dp-pp, or tp-cp-ep-pp-dp (Megatron-LM's "
         "--use-tp-pp-dp-mapping)"},
        {LLAMA, "{\"seq_len\": 100, \"global_batch\": 128}", "{\"cp\": 8}",
         "training.seq_len: 100 is not a multiple of 2 x cp 8"},
        {LLAMA, "{\"seq_len\": 100, \"global_batch\": 128, \"causal\": false}", "{\"cp\": 8}",
         "training.seq_len: 100 is not a multiple of cp 8"},
        {LLAMA, "{\"seq_len\": 100, \"global_batch\": 128}", "{\"tp\": 8}",
         "training.seq_len: 100 / cp 1 is not a multiple of tp 8; expected that, or "
         "sequence_parallel false"},
        {LLAMA, TRAINING, "{\"tp\": 4, \"cp\": 4, \"cp_method\": \"ulysses\", \"ep\": 2}",
         "parallel.ep: 2, but llama-3.1-8b has no experts; expected 1"},
        {LLAMA, TRAINING, "{\"etp\": 2}",
         "parallel.etp: 2, but llama-3.1-8b has no experts; expected 1"},
        {MIXTRAL, TRAINING, "{\"ep\": 16}", "parallel.ep: 16 does not divide num_experts 8"},
        {MIXTRAL, TRAINING, "{\"ep\": 8, \"etp\": 4}",
         "parallel.ep: ep 8 x etp 4 does not divide tp 1 x cp 1 x dp 16 = 16"},
        {LLAMA, TRAINING, "{\"tp\": 2, \"zero_group\": 3}",
         "parallel.zero_group: 3 does not divide dp 8 x cp 1"},
        {LLAMA, TRAINING, "{\"recompute_layers\": 33}",
         "parallel.recompute_layers: 33 is more than num_hidden_layers 32"},
        {LLAMA, TRAINING, "{\"pp\": 2, \"stages\": [{\"layers\": 32}]}",
         "parallel.stages: 1 entries; expected pp 2 x vpp 1 = 2"},
        {LLAMA, TRAINING, "{\"pp\": 2, \"stages\": [{\"layers\": 15}, {\"layers\": 16}]}",
         "parallel.stages: the layers add up to 31; expected num_hidden_layers 32"},
        {"\"deepseek-v3\"", TRAINING, "{\"stages\": [{\"layers\": 61, \"mtp\": 2}]}",
         "parallel.stages: the MTP layers add up to 2; expected num_nextn_predict_layers 1"},
        {LLAMA, "{\"seq_len\": 8, \"global_batch\": 1000000000}", "{\"tp\": 8}",
         "training.global_batch: 500000000 micro-batches a replica are legal, but not supported "
         "yet; expected at most 2097152 with 1 chunks"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Plan plan;
        ASSERT_REFUSED(
            resolve(CASES[i].model, 2, CASES[i].training, CASES[i].parallel, &arena, &plan),
            arena_printf(&arena, "job.json: %s", CASES[i].sentence));
        arena_free(&arena);
    }
}

static void tp_divides_what_it_splits(void) {
    static const struct {
        int heads, kv_heads, hidden, intermediate, tp;
        const char *sentence; // NULL where legal
    } CASES[] = {
        {6, 6, 768, 3072, 6, NULL},
        {32, 4, 4096, 14336, 4, NULL},
        {32, 4, 4096, 14336, 8, NULL}, // each kv head on two ranks
        {10, 10, 640, 2560, 4,
         "parallel.tp: 4 does not divide num_attention_heads 10; expected one of 1, 2, 5, 10"},
        {12, 6, 768, 3072, 4,
         "parallel.tp: 4 does not divide num_key_value_heads 6; expected one of 1, 2, 3, 6, 12"},
        {24, 3, 768, 3072, 4,
         "parallel.tp: 4 is not a multiple of num_key_value_heads 3; expected one of 1, 3, 6, 12, "
         "24"},
        {12, 12, 768, 3070, 4,
         "parallel.tp: 4 does not divide intermediate_size 3070; expected one of 1, 2"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Plan plan;
        const char *model = arena_printf(
            &arena,
            "{\"model_type\": \"generic\", \"hidden_size\": %d, \"num_hidden_layers\": 4, "
            "\"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"head_dim\": 64, "
            "\"intermediate_size\": %d, \"vocab_size\": 1000}",
            CASES[i].hidden, CASES[i].heads, CASES[i].kv_heads, CASES[i].intermediate);
        const char *parallel = arena_printf(&arena, "{\"tp\": %d}", CASES[i].tp);
        Status status =
            resolve(model, 3, "{\"seq_len\": 960, \"global_batch\": 96}", parallel, &arena, &plan);
        if (!CASES[i].sentence)
            CU_ASSERT_EQUAL(status.code, STATUS_OK)
        else
            ASSERT_REFUSED(status, arena_printf(&arena, "job.json: %s", CASES[i].sentence));
        arena_free(&arena);
    }
}

// Worked out by the rule in plan/plan.h.
static void default_chunks_follow_the_contract(void) {
    static const struct {
        int num_layers, num_chunks;
        int expected[6];
    } CASES[] = {
        {8, 4, {2, 2, 2, 2}},       // 8 / 4
        {30, 4, {7, 8, 8, 7}},      // 30 % 4 = 2, (30 + 2) / 4 = 8, ends one less
        {10, 3, {3, 4, 3}},         // 12 / 3 = 4, ends one less
        {11, 4, {2, 3, 3, 3}},      // 11 % 4 = 3, 13 % 4 = 1: 2 each, chunks 1 to 3 one more
        {5, 3, {1, 2, 2}},          // 5 % 3 = 2, 7 % 3 = 1
        {4, 6, {0, 1, 1, 1, 1, 0}}, // 6 / 6 = 1, the ends hold no layer
        {4, 5, {0, 1, 1, 1, 1}},    // 6 % 5 = 1: 0 each, chunks 1 to 4 one more
        {4, 1, {4}},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Model model = {.num_layers = CASES[i].num_layers, .num_mtp_layers = 1};
        const PlanChunk *chunks;
        int n = CASES[i].num_chunks;
        CU_ASSERT_EQUAL_FATAL(plan_default_chunks(&model, n, &arena, &chunks).code, STATUS_OK);
        for (int c = 0; c < n; c++) {
            CU_ASSERT_EQUAL(chunks[c].num_layers, CASES[i].expected[c]);
            CU_ASSERT_EQUAL(chunks[c].embedding, c == 0);
            CU_ASSERT_EQUAL(chunks[c].loss, c == n - 1);
            CU_ASSERT_EQUAL(chunks[c].num_mtp, c == n - 1);
        }
        ASSERT_REFUSED(plan_default_chunks(&model, model.num_layers + 3, &arena, &chunks),
                       arena_printf(&arena, "%d chunks are more than num_hidden_layers %d + 2",
                                    model.num_layers + 3, model.num_layers));
        arena_free(&arena);
    }
}

static void default_chunks_hold_every_layer_once(void) {
    Arena arena = {0};
    for (int layers = 1; layers <= 40; layers++)
        for (int n = 1; n <= layers + 2; n++) {
            Model model = {.num_layers = layers};
            const PlanChunk *chunks;
            CU_ASSERT_EQUAL(plan_default_chunks(&model, n, &arena, &chunks).code, STATUS_OK);
            int next = 0;
            for (int c = 0; c < n; c++) {
                CU_ASSERT(chunks[c].first_layer == next && chunks[c].num_layers >= 0);
                next += chunks[c].num_layers;
            }
            CU_ASSERT_EQUAL(next, layers);
            arena_reset(&arena);
        }
    arena_free(&arena);
}

static void stages_decide_the_chunks(void) {
    Arena arena = {0};
    Plan plan = resolved("\"deepseek-v3\"", 1, TRAINING,
                         "{\"pp\": 2, \"stages\": [{\"layers\": 30, \"embedding\": true}, "
                         "{\"layers\": 31, \"mtp\": 1, \"loss\": true}]}",
                         &arena);
    CU_ASSERT(plan.chunks[0].num_layers == 30 && plan.chunks[0].embedding);
    CU_ASSERT(plan.chunks[1].first_layer == 30 && plan.chunks[1].num_mtp == 1);
    CU_ASSERT_TRUE(plan.chunks[1].loss);
    // Embedding, loss and MTP layers have their default place where no entry names them.
    plan = resolved("\"deepseek-v3\"", 1, TRAINING,
                    "{\"pp\": 2, \"stages\": [{\"layers\": 30}, {\"layers\": 31}]}", &arena);
    CU_ASSERT(plan.chunks[0].embedding && plan.chunks[1].loss && plan.chunks[1].num_mtp == 1);
    // A place for MTP layers in a model that has none stays empty.
    plan = resolved(LLAMA, 1, TRAINING, "{\"stages\": [{\"layers\": 32, \"mtp\": 1}]}", &arena);
    CU_ASSERT_EQUAL(plan.chunks[0].num_mtp, 0);
    arena_free(&arena);
}

static void description_is_short(void) {
    Arena arena = {0};
    Plan plan =
        resolved("\"llama-3.1-70b\"", 16, "{\"seq_len\": 8192, \"global_batch\": 1024}",
                 "{\"tp\": 8, \"pp\": 4, \"vpp\": 5, \"recompute\": \"selective\"}", &arena);
    CU_ASSERT_STRING_EQUAL(plan_describe(&plan, &arena),
                           "tp 8 pp 4 vpp 5 dp 4 mb 1 zero1 selective interleaved");
    plan = resolved(MIXTRAL, 2, TRAINING,
                    "{\"tp\": 2, \"cp\": 2, \"ep\": 4, \"recompute\": \"full\", "
                    "\"recompute_layers\": 5, \"zero_stage\": 3}",
                    &arena);
    CU_ASSERT_STRING_EQUAL(plan_describe(&plan, &arena),
                           "tp 2 cp 2 pp 1 dp 4 ep 4 mb 1 zero3 full:5 1f1b");
    arena_free(&arena);
}

static void answer_has_the_keys_of_the_contract(void) {
    Arena arena = {0};
    Plan plan = resolved(LLAMA, 1, TRAINING,
                         "{\"tp\": 2, \"pp\": 2, \"recompute\": \"selective\", "
                         "\"recompute_modules\": [\"mlp\", \"core_attn\"]}",
                         &arena);
    cJSON *parallel = plan_to_json(&plan);
    char *text = cJSON_PrintUnformatted(parallel);
    CU_ASSERT_STRING_EQUAL(
        text, "{\"tp\":2,\"pp\":2,\"dp\":2,\"cp\":1,\"ep\":1,\"etp\":1,\"vpp\":1,\"micro_batch\":1,"
              "\"sequence_parallel\":true,\"zero_stage\":1,\"zero_group\":2,"
              "\"reshard_after_forward\":true,\"recompute\":\"selective\","
              "\"recompute_modules\":[\"core_attn\",\"mlp\"],\"schedule\":\"1f1b\","
              "\"cp_method\":\"ring\",\"order\":\"tp-cp-ep-dp-pp\",\"stages\":[{\"layers\":16,"
              "\"embedding\":true},{\"layers\":16,\"loss\":true}],\"vocab_parallel\":false}");
    cJSON_free(text);
    cJSON_Delete(parallel);
    arena_free(&arena);
}

// Written and read again, a plan is the same plan, to the byte.
static void documents_read_back_as_the_same_plan(void) {
    static const struct {
        const char *model, *training, *parallel;
    } CASES[] = {
        {LLAMA, TRAINING, NULL},
        {LLAMA, TRAINING,
         "{\"tp\": 8, \"pp\": 2, \"vpp\": 3, \"recompute\": \"full\", "
         "\"recompute_layers\": 2}"},
        {MIXTRAL, "{\"seq_len\": 64, \"global_batch\": 64, \"stack\": \"torchtitan\"}",
         "{\"ep\": 8, \"recompute\": \"selective\", \"zero_group\": 8}"},
        {"\"deepseek-v3\"", TRAINING, "{\"pp\": 4, \"cp\": 2, \"schedule\": \"gpipe\"}"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Scenario first, second;
        Plan plan;
        const char *text = scenario_text(&arena, CASES[i].model, "\"dgx-h100:2\"",
                                         CASES[i].training, CASES[i].parallel);
        CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &first).code, STATUS_OK);
        CU_ASSERT_EQUAL_FATAL(plan_resolve(&first, &arena, &plan).code, STATUS_OK);
        cJSON *provenance = cJSON_CreateObject();
        cJSON_AddStringToObject(provenance, "version", "0");
        cJSON *document = plan_document(&first, &plan, provenance);
        char *once = cJSON_Print(document);
        CU_ASSERT_EQUAL_FATAL(scenario_of(once, &arena, &second).code, STATUS_OK);
        CU_ASSERT_EQUAL_FATAL(plan_resolve(&second, &arena, &plan).code, STATUS_OK);
        cJSON *again = plan_document(&second, &plan, provenance);
        char *twice = cJSON_Print(again);
        CU_ASSERT_STRING_EQUAL(once, twice);
        cJSON *bare = plan_document(&second, &plan, NULL);
        CU_ASSERT_PTR_NULL(cJSON_GetObjectItemCaseSensitive(bare, "provenance"));
        cJSON_free(once);
        cJSON_free(twice);
        cJSON_Delete(document);
        cJSON_Delete(again);
        cJSON_Delete(bare);
        cJSON_Delete(provenance);
        arena_free(&arena);
    }
}

// plan_check over a grid: whatever it lets pass fills the cluster and divides everything.
static void accepted_plans_divide_everything(void) {
    Arena arena = {0};
    Scenario scenario;
    Plan base = {0};
    const char *text = scenario_text(&arena, MIXTRAL, "\"dgx-h100:3\"",
                                     "{\"seq_len\": 960, \"global_batch\": 96}", NULL);
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, &arena, &base).code, STATUS_OK);
    int num_accepted = 0;
    for (int tp = 1; tp <= 8; tp++)
        for (int cp = 1; cp <= 6; cp++)
            for (int dp = 1; dp <= 24; dp++)
                for (int ep = 1; ep <= 8; ep++) {
                    Plan plan = base;
                    plan.tp = tp, plan.cp = cp, plan.dp = dp, plan.ep = ep;
                    plan.sequence_parallel = tp > 1;
                    plan.zero_group = dp * cp;
                    if (plan_check(&scenario, &plan).code != STATUS_OK) continue;
                    num_accepted++;
                    CU_ASSERT_EQUAL(tp * cp * dp, 24);
                    CU_ASSERT(96 % dp == 0 && 8 % tp == 0 && 960 % (2 * cp) == 0);
                    CU_ASSERT(8 % ep == 0 && 24 % ep == 0 && 960 / cp % tp == 0);
                }
    // tp 1 and 2 with cp 1, 2, 3, 4, 6; tp 4 with cp 1, 2, 3, 6; tp 8 with cp 1, 3: tp x cp divides
    // 24. Each with ep 1, 2, 4, 8.
    CU_ASSERT_EQUAL(num_accepted, (5 + 5 + 4 + 2) * 4);
    arena_free(&arena);
}

CU_TestInfo plan_tests[] = {
    {"absent_means_the_contracts_defaults", absent_means_the_contracts_defaults},
    {"defaults_follow_what_is_given", defaults_follow_what_is_given},
    {"stack_decides_zero_and_selective", stack_decides_zero_and_selective},
    {"context_ranks_may_share_the_shards", context_ranks_may_share_the_shards},
    {"interleaved_with_one_chunk_runs_as_1f1b", interleaved_with_one_chunk_runs_as_1f1b},
    {"experts_split_the_ranks_anew", experts_split_the_ranks_anew},
    {"legal_oddities_are_accepted", legal_oddities_are_accepted},
    {"illegal_plans_are_refused", illegal_plans_are_refused},
    {"tp_divides_what_it_splits", tp_divides_what_it_splits},
    {"default_chunks_follow_the_contract", default_chunks_follow_the_contract},
    {"default_chunks_hold_every_layer_once", default_chunks_hold_every_layer_once},
    {"stages_decide_the_chunks", stages_decide_the_chunks},
    {"description_is_short", description_is_short},
    {"answer_has_the_keys_of_the_contract", answer_has_the_keys_of_the_contract},
    {"documents_read_back_as_the_same_plan", documents_read_back_as_the_same_plan},
    {"accepted_plans_divide_everything", accepted_plans_divide_everything},
    CU_TEST_INFO_NULL,
};
