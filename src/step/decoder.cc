#include "step/decoder.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/as_size.h"
#include "step/decoder_parts.h"
#include "unisono/error.hpp"
#include "unisono/parallel/placement.hpp"
#include "unisono/parallel/tensor_parallel.hpp"

namespace unisono::step {
namespace {

class DecoderMaker {
 public:
  DecoderMaker(const planner::ModelShape& shape, const parallel::MeshShape& mesh,
               const DecoderTask& task)
      : p_(shape, mesh, task), build_(p_.build), stages_(build_.size("pp")) {}

  Step make() {
    build_.step().stage_axis = build_.is_wide("pp") ? "pp" : "";
    build_.step().context_axes = {"cp"};
    build_.element_bytes(p_.task.element_bytes);
    add_dims();
    add_ends();
    p_.shape.latent.is_used() ? add_latent_attention(p_) : add_plain_attention(p_);
    add_inner(p_);
    embed();
    for (int stage = 0; stage < stages_; ++stage) {
      layers(stage);
      if (stage + 1 < stages_) {
        build_.section("pass on", stage);
        build_.add({.kind = Node::Kind::send, .name = "x", .reads = {"x"}, .writes = {"x"}});
      }
    }
    head();
    return build_.take();
  }

 private:
  // The tokens of a prompt are sharded over cp; a single token is on all ranks.
  Placements rows() const {
    return p_.is_prompt ? Placements{{"cp", shard("rows")}} : Placements{};
  }

  void add_dims() {
    build_.dim({.name = "rows", .size = p_.task.tokens, .cut = Cut::rows});
    build_.dim({.name = "keys", .size = p_.task.context + p_.task.tokens, .cut = Cut::rows});
    if (p_.has_windows()) {
      build_.dim({.name = "window",
                  .size = as_size(kept_tokens(p_.shape, {.has_window = true}, p_.keys()))});
    }
    build_.dim({.name = "width", .size = as_size(p_.shape.hidden)});
    build_.dim(
        {.name = "heads", .size = static_cast<std::size_t>(p_.shape.heads), .cut = Cut::heads});
    if (!p_.shape.latent.is_used()) {
      build_.dim({.name = "kv_heads",
                  .size = static_cast<std::size_t>(p_.shape.kv_heads),
                  .cut = Cut::key_value_heads,
                  .like = "heads"});
      build_.dim({.name = "dim", .size = as_size(p_.shape.head_dim)});
    }
    build_.dim({.name = "vocabulary", .size = as_size(p_.shape.vocabulary)});
    build_.dim({.name = "candidates",
                .size = p_.task.candidates * static_cast<std::size_t>(build_.size("tp"))});
    build_.dim({.name = "chosen", .size = p_.task.candidates});
    build_.dim({.name = "hidden", .size = as_size(std::max(p_.shape.ffn, 1.0))});
    if (p_.shape.has_experts()) {
      const auto experts = static_cast<std::size_t>(p_.shape.experts);
      build_.dim({.name = "experts", .size = experts});
      build_.dim(
          {.name = "slots",
           .size = std::max<std::size_t>(
               1, p_.task.tokens * static_cast<std::size_t>(p_.shape.experts_per_token) / experts),
           .cut = Cut::rows,
           .like = "rows"});
      build_.dim({.name = "expert_hidden", .size = as_size(p_.shape.expert_ffn)});
      if (p_.shape.shared_ffn > 0) {
        build_.dim({.name = "shared_hidden", .size = as_size(p_.shape.shared_ffn)});
      }
    }
  }

  void add_ends() {
    build_.weight("embedding", {"vocabulary", "width"}, {{"tp", shard("vocabulary")}}, false);
    if (!p_.shape.tied) {
      build_.weight("output", {"vocabulary", "width"}, {{"tp", shard("vocabulary")}}, false);
    }
    build_.weight("norm", {"width"}, {}, false);
    build_.activation("x", {"rows", "width"});
    build_.activation("last", {"width"});
    build_.activation("logits", {"vocabulary"});
    build_.element_bytes(4);
    build_.tensor(Tensor::Kind::input, "tokens", {"rows"}, rows());
    build_.element_bytes(8);  // a logit and its token
    build_.activation("likely", {"candidates"});
    build_.activation("best", {"chosen"});
    build_.element_bytes(p_.task.element_bytes);
  }

  void embed() {
    build_.section("embed", 0);
    build_.compute({.name = "embedding",
                    .reads = {"tokens", "embedding"},
                    .writes = {"x"},
                    .pointwise = {"rows", "width"},
                    .summed = {"vocabulary"}});
    build_.redistribute("embedding summed", "x", "tp", partial(), replicate());
  }

  void layers(int stage) {
    const parallel::Range range =
        parallel::shard_range(static_cast<std::size_t>(p_.shape.layers), stages_, stage);
    // Consecutive equal layers form one section.
    for (std::size_t first = range.first; first < range.first + range.count;) {
      const planner::LayerKind kind = kind_of(first);
      std::size_t end = first + 1;
      while (end < range.first + range.count && kind_of(end) == kind) {
        ++end;
      }
      layers(stage, kind, static_cast<int>(first), static_cast<int>(end - first));
      first = end;
    }
  }

  planner::LayerKind kind_of(std::size_t layer) const {
    planner::LayerKind kind = p_.shape.kind(static_cast<int>(layer));
    kind.has_window = p_.has_window(kind);
    return kind;
  }

  void layers(int stage, planner::LayerKind kind, int first, int count) {
    build_.section(std::string(kind.has_experts ? "layers of experts" : "layers") +
                       (kind.has_window ? " with a window" : ""),
                   stage, first, count);
    p_.shape.latent.is_used() ? latent_attention(p_) : plain_attention(p_, kind);
    build_.pointwise("inner norm", {"x", "inner_norm"}, "normal", {"rows"});
    kind.has_experts ? expert_inner(p_) : dense_inner(p_, "", "inner", "y");
    build_.redistribute("inner summed", "y", "tp", partial(), replicate());
    build_.pointwise("inner added", {"x", "y"}, "x", {"rows", "width"}, Node::Linear::together);
  }

  // Only the rank with the last token has its row; all others have zeros.
  void head() {
    build_.section("head", stages_ - 1);
    build_.compute(
        {.name = "last row, norm", .reads = {"x", "norm"}, .writes = {"last"}, .summed = {"rows"}});
    if (p_.is_prompt) {
      build_.redistribute("last row told", "last", "cp", partial(), replicate());
    }
    build_.product("logits", "last", p_.shape.tied ? "embedding" : "output", "logits");
    build_.compute({.name = "likeliest",
                    .reads = {"logits"},
                    .writes = {"likely"},
                    .pointwise = {"vocabulary"},
                    .renamed = {{"vocabulary", "candidates"}}});
    build_.redistribute("candidates gathered", "likely", "tp", shard("candidates"), replicate());
    build_.compute({.name = "chosen", .reads = {"likely"}, .writes = {"best"}});
    if (stages_ > 1) {
      build_.section("answer", stages_ - 1);
      build_.add(
          {.kind = Node::Kind::broadcast, .name = "best", .reads = {"best"}, .writes = {"best"}});
    }
    build_.step().results = {{.tensor = "best", .placement = {}, .is_everywhere = true}};
  }

  DecoderParts p_;
  StepBuilder& build_;
  int stages_;
};

void check(const planner::ModelShape& shape, const parallel::MeshShape& mesh,
           const DecoderTask& task) {
  constexpr std::array<std::string_view, 4> kAxes = {"pp", "cp", "ep", "tp"};
  int tp = 1;
  for (const parallel::Axis& axis : mesh.axes()) {
    if (std::find(kAxes.begin(), kAxes.end(), axis.name) == kAxes.end()) {
      throw Error(ErrorCode::config, "an inference step has no axis " + axis.name +
                                         "\nits axes are pp, cp, ep and tp");
    }
    tp = axis.name == "tp" ? axis.size : tp;
    if (axis.name == "pp" && axis.size > shape.layers) {
      throw Error(ErrorCode::usage, std::to_string(axis.size) + " stages are more than the " +
                                        std::to_string(shape.layers) + " layers\nuse fewer");
    }
    if (axis.name == "ep") {
      check_experts(shape.name, shape.experts, axis.size);
    }
  }
  if (task.tokens < 1 || (task.tokens > 1 && task.context > 0)) {
    throw Error(ErrorCode::usage,
                "an inference step processes a whole prompt, or one token after it");
  }
  parallel::head_share(static_cast<std::size_t>(shape.heads),
                       static_cast<std::size_t>(shape.kv_heads), tp, 0);
}

}  // namespace

Step make_decoder_step(const planner::ModelShape& shape, std::string_view mesh,
                       const DecoderTask& task) {
  const auto axes = parallel::MeshShape::parse(mesh);
  check(shape, axes, task);
  return DecoderMaker(shape, axes, task).make();
}

}  // namespace unisono::step
