// plan/schedule/schedule_vocab.h - puts passes over the vocabulary between the work of a schedule,
// where embedding and output layer are spread over all pipeline ranks.
//
// Source: Yeung et al., "Balancing Pipeline Parallelism with Vocabulary Parallelism", MLSys 2025,
//         arXiv:2411.05288: the output layer as passes S and T with one or two communication
//         barriers (algorithms 2 and 1), each of which costs one more micro-batch in flight. Passes
//         of the input layer beside them. Which work is in which pass, and T of the micro-batch
//         before beside S: sail-sg/VocabularyParallelism, megatron/core/pipeline_parallel/
//         schedules.py and megatron/core/tensor_parallel/vocab_parallel_output.py.
// Passes, of every rank and micro-batch (chunk and kind of the work item):
//   lookup         VOCAB_INPUT, forward; its sum over the ranks is the input of the first chunk
//   S              VOCAB_OUTPUT, forward: logits, and with one barrier backward-input: the gradient
//                  of their input, which is corrected by what the other ranks say
//   T              VOCAB_OUTPUT, with one barrier backward-weight, with two backward
//   rows' gradient VOCAB_INPUT, backward
// Included by makers of orders only.
#pragma once

#include "plan/schedule/schedule.h"

// The orders of all ranks with the passes put in.
//   base           [pp] work of the chunks alone
//   num_pipelines  2 where two run against each other (plan_is_dual), else 1: chunk c is stage
//                  c % (chunks of one), and each runs its part of the micro-batches
// All ranks have the passes in one order. A pass comes as soon as its input is there and the rank
// is done with what it runs; when that is, is found by playing with the units of shape->vocab.
const RankOrder *vocab_orders(const ScheduleShape *shape, const RankOrder *base, int num_pipelines,
                              Arena *arena);
