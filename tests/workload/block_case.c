#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <string.h>

const Block *layer_block_of(const Case *c, int layer) {
    const int strategy = plan_recomputes_first(&c->plan) ? PLAN_KEPT : PLAN_OWN;
    return workload_layer_block(&c->workload, c->scenario.model.layer_kind[layer], strategy);
}

const Op *op_named(const Op *ops, int num_ops, const char *name) {
    static const Op NONE = {.name = "missing"};
    for (int i = 0; i < num_ops; i++)
        if (strcmp(ops[i].name, name) == 0) return &ops[i];
    fprintf(stderr, "\nno operator %s\n", name);
    CU_FAIL("no operator of this name");
    return &NONE;
}

double gemm_flops(const Op *ops, int num_ops) {
    double sum = 0;
    for (int i = 0; i < num_ops; i++)
        if (ops[i].kind == OP_GEMM) sum += ops[i].flops;
    return sum;
}

double collective_bytes(const Op *ops, int num_ops, CollectiveKind kind, GroupKind group) {
    double sum = 0;
    for (int i = 0; i < num_ops; i++)
        if (ops[i].kind == OP_COLLECTIVE && ops[i].collective.kind == kind &&
            ops[i].collective.group == group)
            sum += ops[i].collective.message_bytes;
    return sum;
}
