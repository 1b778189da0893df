#!/usr/bin/env python3
"""Breaks one formula of the estimates of whole models at a time: a test on the published tables must fail.

  formula_mutants_test.py SOURCE [NAME...]      those whose name contains one of the words; by default all
"""

import pathlib
import sys

from mutants_test import run

TRAINING, WORK, DEVICE = "src/planner/training.cc", "src/planner/layer_work.cc", "src/planner/device.cc"
MEMORY, SERVING, MATRIX = "src/planner/memory.cc", "src/planner/serving.cc", "src/planner/matrix_time.cc"
MUTANTS = [
    ("halves_the_products", MATRIX, "tile.columns * 2 * product.k;", "tile.columns * product.k;"),
    ("forgets_the_waves", MATRIX, "const double waves = std::ceil(tiles / device.multiprocessors);", "const double waves = tiles / device.multiprocessors;"),
    ("forgets_a_gradient", MATRIX, "return matrix_s(device, precision, of_input) + matrix_s(device, precision, of_weights);",
     "return matrix_s(device, precision, of_input) + 0 * of_weights.m;"),
    ("halves_the_bubble", TRAINING, "(layout_.pp - 1.0) / layout_.vp *", "(layout_.pp - 1.0) / 2 / layout_.vp *"),
    ("bubble_of_tp", TRAINING, "(layout_.pp - 1.0) / layout_.vp *", "(layout_.tp - 1.0) / layout_.vp *"),
    ("bubble_ignores_parts", TRAINING, "(layout_.pp - 1.0) / layout_.vp *", "(layout_.pp - 1.0) *"),
    ("forgets_the_all_reduce", TRAINING, "parts.tensor = count * ways * stage.tensor;", "parts.tensor = 0 * ways;"),
    ("forgets_what_is_done_again", TRAINING, "parts.recompute = count * again;", "parts.recompute = 0;"),
    ("forgets_the_head", TRAINING, "times{.head = passes_of(head_work(shape_, layout_, task_), 1)};", "times;"),
    ("forgets_device_memory", TRAINING, "  parts.memory = count * (", "  parts.memory = 0 * ("),
    ("forgets_the_experts_exchange", TRAINING, "parts.experts = count * ways * stage.experts;", "parts.experts = 0;"),
    ("doubles_the_scores", WORK, "double seen = mean_seen_in_sequence(", "double seen = 4 * mean_seen_in_sequence("),
    ("heads_of_pp", WORK, "static_cast<double>(shape.heads) / (layout.tp * layout.uly);", "static_cast<double>(shape.heads) / layout.pp;"),
    ("inner_part_is_not_cut", WORK, "inner(tokens, shape.ffn / layout.tp, 1);", "inner(tokens, shape.ffn, 1);"),
    ("one_gate", WORK, "const double parts = shape.gated ? 2 : 1;", "const double parts = 1;"),
    ("one_expert", WORK, "const double sent = tokens / layout.tp * shape.experts_per_token;", "const double sent = tokens / layout.tp;"),
    ("compresses_all_rows", WORK, "const double rows = tokens / (layout.sequence_parallel ? layout.tp : 1);", "const double rows = tokens;"),
    ("forgets_the_router", WORK, "static_cast<double>(shape.experts), shape.hidden});", "0, shape.hidden});"),
    ("latents_enter_as_rows", WORK, "(3 * shape.hidden + entering(shape)) / 2", "(3 * shape.hidden + std::max(shape.hidden, entering(shape))) / 2"),
    ("gradients_stay_away", WORK, "around * (2 * layout.cp - 1) : 0;", "around * (layout.cp - 1) : 0;"),
    ("forgets_what_goes_in_again", WORK, "sent * (2 * given + heads * (value + 2));", "sent * (given + heads * (value + 2));"),
    ("latents_are_cut", MEMORY, "return down + (attention_weights(shape) - down) / tp;", "return (down + (attention_weights(shape) - down)) / tp;"),
    ("ways_out_are_not_shared", DEVICE, "std::max(1.0, 0.5 * cluster.domain / apart);", "1;"),
    ("optimiser_is_not_shared", MEMORY, "2 * weight_bytes_of(task.moments), 1);", "2 * weight_bytes_of(task.moments), 9);"),
    ("inputs_are_kept_once", MEMORY, "const double norms = 2 * kPlain + (is_selective ? 0 : 2 * input);", "const double norms = 2 * kPlain;"),
    ("cache_of_half", SERVING, "const double context = task.input + task.output / 2;", "const double context = task.output / 2;"),
    ("weights_are_not_cut", SERVING, "read_weights(shape, batch), task) / layout.tp / per_second;",
     "read_weights(shape, batch), task) / per_second;"),
    ("prompts_are_free", SERVING, "parts.prompts = prompt * batch / task.output;", "parts.prompts = 0 * prompt;"),
]  # fmt: skip

if __name__ == "__main__":
    count, missed = run(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:], MUTANTS, ["planner_test", "step_test"],
                        [("src/planner/planner_test", []), ("src/step/step_test", ["--gtest_filter=Sums*"])])  # fmt: skip
    sys.exit(1 if missed else 0)
