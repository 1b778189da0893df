// The common state of the parts of a decoder's step. The parts are both kinds of attention, and
// everything between attention and the next layer.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "planner/shape.h"
#include "step/builder.h"
#include "step/decoder_task.h"

namespace unisono::step {

struct DecoderParts {
  DecoderParts(const planner::ModelShape& model, const parallel::MeshShape& mesh,
               const DecoderTask& wanted)
      : shape(model),
        task(wanted),
        is_prompt(wanted.tokens > 1),
        build((model.name.empty() ? "model" : model.name) +
                  (is_prompt ? ", a prompt of " : ", one token after ") +
                  std::to_string(is_prompt ? wanted.tokens : wanted.context),
              mesh) {}

  // The keys of a prompt travel around a ring; for one token, the attention results are merged.
  bool has_ring() const { return is_prompt && build.is_wide("cp"); }
  bool is_merged() const { return !is_prompt && build.is_wide("cp"); }
  // Layers with a window keep a cache of the window's length. Along cp, which cuts the cache by
  // position, they keep and send the whole cache.
  bool has_windows() const { return shape.window_layers() > 0 && !build.is_wide("cp"); }
  bool has_window(planner::LayerKind kind) const { return has_windows() && kind.has_window; }
  double keys() const { return static_cast<double>(task.context + task.tokens); }

  const planner::ModelShape& shape;
  const DecoderTask& task;
  bool is_prompt;
  StepBuilder build;
};

// Adds attention of plain heads: each rank of tp has some heads and their part of the cache.
void add_plain_attention(DecoderParts& parts);
void plain_attention(DecoderParts& parts, planner::LayerKind kind);
// Adds attention whose keys and values of all heads are expanded from one short row per token. The
// cache holds these rows, on all ranks of tp (DeepSeek-V2, 2024). A prompt expands them. A single
// token instead applies the key expansion to its query, and the value expansion to the result of
// attention.
void add_latent_attention(DecoderParts& parts);
void latent_attention(DecoderParts& parts);
// Stores rows in the cache: all rows of a prompt, or a token's row on the rank of its position.
void keep(DecoderParts& parts, const std::string& cache, const std::string& made);
// Adds the result of all heads to x.
void attention_output(DecoderParts& parts);

void add_inner(DecoderParts& parts);
void dense_inner(DecoderParts& parts, const std::string& prefix, const std::string& inner,
                 const std::string& out);
void expert_inner(DecoderParts& parts);

}  // namespace unisono::step
