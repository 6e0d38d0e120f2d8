#!/bin/bash
GPUS=8
TP=$((GPUS / 4))
ARGS=(
    --tensor-model-parallel-size $TP
    --num-layers 32 --hidden-size 4096 --num-attention-heads 32
    --seq-length 4096 --max-position-embeddings 4096
    --micro-batch-size 1 --global-batch-size 128 --bf16
)
torchrun --nproc_per_node $GPUS pretrain_gpt.py "${ARGS[@]}" \
    --vocab-size 50304 --swiglu
