#include "step/decoder.h"

#include <algorithm>
#include <array>

#include "step/builder.h"
#include "unisono/error.hpp"
#include "unisono/parallel/placement.hpp"
#include "unisono/parallel/tensor_parallel.hpp"

namespace unisono::step {
namespace {

using Linear = Node::Linear;

std::size_t count(double number) {
  return static_cast<std::size_t>(number);
}

class DecoderMaker {
 public:
  DecoderMaker(const estimate::ModelShape& shape, const parallel::MeshShape& mesh,
               const DecoderTask& task)
      : shape_(shape),
        task_(task),
        is_prompt_(task.tokens > 1),
        build_(shape.name + (is_prompt_ ? ", a prompt of " : ", one token behind ") +
                   std::to_string(is_prompt_ ? task.tokens : task.context),
               mesh),
        stages_(build_.size("pp")) {}

  Step make() {
    build_.step().stage_axis = build_.is_wide("pp") ? "pp" : "";
    build_.step().context_axes = {"cp"};
    build_.element_bytes(task_.element_bytes);
    add_dims();
    add_ends();
    add_attention_tensors();
    add_inner_tensors();
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
  // Tokens of a prompt are cut over cp, a single one is everywhere.
  Placements rows() const { return is_prompt_ ? Placements{{"cp", shard("rows")}} : Placements{}; }
  bool has_routes(bool is_expert_layer) const { return is_expert_layer && build_.is_wide("ep"); }

  void add_dims() {
    build_.dim({.name = "rows", .size = task_.tokens, .cut = Cut::rows});
    build_.dim({.name = "keys", .size = task_.context + task_.tokens, .cut = Cut::rows});
    build_.dim({.name = "width", .size = count(shape_.hidden)});
    build_.dim(
        {.name = "heads", .size = static_cast<std::size_t>(shape_.heads), .cut = Cut::heads});
    build_.dim({.name = "kv_heads",
                .size = static_cast<std::size_t>(shape_.kv_heads),
                .cut = Cut::key_value_heads,
                .like = "heads"});
    build_.dim({.name = "dim", .size = count(shape_.head_dim)});
    build_.dim({.name = "vocabulary", .size = count(shape_.vocabulary)});
    build_.dim({.name = "candidates",
                .size = task_.candidates * static_cast<std::size_t>(build_.size("tp"))});
    build_.dim({.name = "chosen", .size = task_.candidates});
    build_.dim({.name = "hidden", .size = count(std::max(shape_.ffn, 1.0))});
    if (shape_.has_experts()) {
      const auto experts = static_cast<std::size_t>(shape_.experts);
      build_.dim({.name = "experts", .size = experts});
      build_.dim(
          {.name = "slots",
           .size = std::max<std::size_t>(
               1, task_.tokens * static_cast<std::size_t>(shape_.experts_per_token) / experts),
           .cut = Cut::rows,
           .like = "rows"});
      build_.dim({.name = "expert_hidden", .size = count(shape_.expert_ffn)});
      if (shape_.shared_ffn > 0) {
        build_.dim({.name = "shared_hidden", .size = count(shape_.shared_ffn)});
      }
    }
  }

  void add_ends() {
    build_.weight("embedding", {"vocabulary", "width"}, {{"tp", shard("vocabulary")}}, false);
    if (!shape_.tied) {
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
    build_.element_bytes(task_.element_bytes);
  }

  void add_attention_tensors() {
    const Placements heads = {{"tp", shard("heads")}};
    const Placements kv_heads = {{"tp", shard("kv_heads")}};
    const Placements cached = {{"tp", shard("kv_heads")}, {"cp", shard("keys")}};
    build_.weight("attention_norm", {"width"}, {}, true);
    build_.weight("query", {"heads", "dim", "width"}, heads, true);
    build_.weight("key", {"kv_heads", "dim", "width"}, kv_heads, true);
    build_.weight("value", {"kv_heads", "dim", "width"}, kv_heads, true);
    build_.weight("attention_output", {"width", "heads", "dim"}, heads, true);
    build_.activation("normal", {"rows", "width"});
    build_.activation("q", {"rows", "heads", "dim"});
    build_.activation("k", {"rows", "kv_heads", "dim"});
    build_.activation("v", {"rows", "kv_heads", "dim"});
    for (const char* name : {"keys", "values"}) {
      build_.tensor(Tensor::Kind::cache, name, {"keys", "kv_heads", "dim"}, cached, true);
      build_.activation(std::string("all_") + name, {"keys", "kv_heads", "dim"});
    }
    build_.activation("attended", {"rows", "heads", "dim"});
    build_.activation("log_sum", {"rows", "heads"});
    build_.activation("y", {"rows", "width"});
  }

  void add_inner_tensors() {
    const auto matrices = [&](const std::string& prefix, const std::string& hidden,
                              bool is_expert) {
      std::vector<std::string> in = {hidden, "width"};
      std::vector<std::string> out = {"width", hidden};
      Placements cut = {{"tp", shard(hidden)}};
      if (is_expert && !task_.is_upcycled) {
        in.insert(in.begin(), "experts");
        out.insert(out.begin(), "experts");
        cut["ep"] = shard("experts");
      }
      if (shape_.gated) {
        build_.weight(prefix + "gate", in, cut, true);
      }
      build_.weight(prefix + "up", in, cut, true);
      build_.weight(prefix + "down", out, cut, true);
    };
    build_.weight("inner_norm", {"width"}, {}, true);
    build_.activation("inner", {"rows", "hidden"});
    if (!shape_.has_experts() || shape_.dense_layers > 0) {
      matrices("", "hidden", false);
    }
    if (!shape_.has_experts()) {
      return;
    }
    build_.weight("router", {"experts", "width"}, {}, true);
    matrices("expert_", "expert_hidden", true);
    build_.activation("mine", {"rows", "width"});
    build_.activation("scores", {"rows", "experts"});
    build_.activation("routed", {"experts", "slots", "width"});
    build_.activation("expert_inner", {"experts", "slots", "expert_hidden"});
    build_.activation("given", {"experts", "slots", "width"});
    if (shape_.shared_ffn > 0) {
      matrices("shared_", "shared_hidden", false);
      build_.activation("shared_inner", {"rows", "shared_hidden"});
      build_.activation("shared", {"rows", "width"});
    }
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
        parallel::shard_range(static_cast<std::size_t>(shape_.layers), stages_, stage);
    const std::size_t dense = shape_.has_experts() ? static_cast<std::size_t>(shape_.dense_layers)
                                                   : range.first + range.count;
    const std::size_t middle = std::clamp(dense, range.first, range.first + range.count);
    const std::array<std::size_t, 3> ends = {range.first, middle, range.first + range.count};
    for (std::size_t part = 0; part < 2; ++part) {
      if (ends[part] == ends[part + 1]) {
        continue;
      }
      build_.section(part == 0 ? "layers" : "layers of experts", stage,
                     static_cast<int>(ends[part]), static_cast<int>(ends[part + 1] - ends[part]));
      attention();
      build_.pointwise("inner norm", {"x", "inner_norm"}, "normal", {"rows"});
      part == 0 ? dense_inner("", "inner", "y") : expert_inner();
      build_.redistribute("inner summed", "y", "tp", partial(), replicate());
      build_.pointwise("inner added", {"x", "y"}, "x", {"rows", "width"}, Linear::together);
    }
  }

  void attention() {
    build_.pointwise("attention norm", {"x", "attention_norm"}, "normal", {"rows"});
    build_.product("query", "normal", "query", "q");
    build_.product("key", "normal", "key", "k");
    build_.product("value", "normal", "value", "v");
    const bool is_ring = is_prompt_ && build_.is_wide("cp");
    keep("keys", "k");
    keep("values", "v");
    if (is_ring) {
      build_.redistribute("ring", {"keys", "values"}, {"all_keys", "all_values"}, "cp",
                          shard("keys"), replicate(), "ring");
    }
    const std::string prefix = is_ring ? "all_" : "";
    const std::vector<std::string> seen = {"q", prefix + "keys", prefix + "values"};
    // Two products, of which the causal mask of a prompt leaves half.
    const bool is_merged = !is_prompt_ && build_.is_wide("cp");
    build_.compute({.name = "attention",
                    .reads = seen,
                    .writes = is_merged ? std::vector<std::string>{"attended", "log_sum"}
                                        : std::vector<std::string>{"attended"},
                    .pointwise = {"rows", "heads"},
                    .summed = {"keys"},
                    .flops = is_prompt_ ? 2.0 : 4.0});
    if (is_merged) {
      build_.redistribute("attention merged", {"attended", "log_sum"}, {"attended"}, "cp",
                          partial(), replicate(), "merge");
    }
    build_.product("attention output", "attended", "attention_output", "y");
    build_.redistribute("attention summed", "y", "tp", partial(), replicate());
    build_.pointwise("attention added", {"x", "y"}, "x", {"rows", "width"}, Linear::together);
  }

  // The keys of a prompt are the cache; those of a token go to the rank that has its place.
  void keep(const std::string& cache, const std::string& made) {
    if (is_prompt_) {
      build_.compute({.name = cache + " kept",
                      .reads = {made},
                      .writes = {cache},
                      .pointwise = {"rows", "kv_heads", "dim"},
                      .linear = Linear::together,
                      .renamed = {{"rows", "keys"}}});
    } else {
      build_.pointwise(cache + " kept", {cache, made}, cache, {"keys", "kv_heads", "dim"});
    }
  }

  void dense_inner(const std::string& prefix, const std::string& inner, const std::string& out) {
    const std::string hidden = build_.step().find_tensor(inner)->dims.back();
    gated(prefix, "normal", inner, {"rows", hidden});
    build_.product(prefix + "down", inner, prefix + "down", out);
  }

  // gate and up together, and what is between.
  void gated(const std::string& prefix, const std::string& x, const std::string& inner,
             const std::vector<std::string>& dims) {
    Node node{.kind = Node::Kind::compute,
              .name = prefix + (shape_.gated ? "gate and up" : "up"),
              .reads = {x, prefix + "up"},
              .writes = {inner},
              .pointwise = dims,
              .flops = shape_.gated ? 4.0 : 2.0};
    if (shape_.gated) {
      node.reads.push_back(prefix + "gate");
    }
    build_.compute(std::move(node));
  }

  void expert_inner() {
    const bool is_cut = build_.is_wide("ep");
    std::string in = "normal";
    if (is_cut) {
      build_.redistribute("tokens cut", {"normal"}, {"mine"}, "ep", replicate(), shard("rows"));
      in = "mine";
    }
    build_.product("router", in, "router", "scores");
    if (shape_.shared_ffn > 0) {
      dense_inner("shared_", "shared_inner", "shared");
    }
    const double sent = shape_.experts_per_token;
    move(Node::Kind::dispatch, "dispatch", {in, "scores"}, "routed", shard("rows"),
         shard("experts"), {{"rows", "slots"}}, sent);
    gated("expert_", "routed", "expert_inner", {"experts", "slots", "expert_hidden"});
    build_.product("expert_down", "expert_inner", "expert_down", "given");
    // Where there are fewer rows than experts, only some experts have one.
    const double rows = static_cast<double>(task_.tokens) * sent;
    for (Node& node : build_.step().sections.back().nodes) {
      if (node.name.starts_with("expert_")) {
        node.share = std::min(1.0, rows / shape_.experts);
      }
    }
    move(Node::Kind::combine, "combine", {"given", "scores"}, "y", shard("experts"), shard("rows"),
         {{"slots", "rows"}}, sent);
    build_.redistribute("tokens gathered", "y", "ep", shard("rows"), replicate());
    if (shape_.shared_ffn > 0) {
      build_.pointwise("shared added", {"y", "shared"}, "y", {"rows", "width"}, Linear::together);
    }
  }

  // Where one rank has all experts it brings rows into their order itself.
  void move(Node::Kind kind, const std::string& name, const std::vector<std::string>& reads,
            const std::string& write, Placement from, Placement to,
            std::map<std::string, std::string> renamed, double rows_sent) {
    if (!build_.is_wide("ep")) {
      const bool is_dispatch = kind == Node::Kind::dispatch;
      build_.compute({.name = name,
                      .reads = is_dispatch ? std::vector{reads.front()} : reads,
                      .writes = {write},
                      .pointwise = {"rows", "slots", "width"},
                      .linear = Linear::each,
                      .renamed = std::move(renamed)});
      return;
    }
    build_.add({.kind = kind,
                .name = name,
                .reads = reads,
                .writes = {write},
                .renamed = std::move(renamed),
                .axes = "ep",
                .from = std::move(from),
                .to = std::move(to),
                .rows_sent = rows_sent});
  }

  // The row of the last token is normal where it is, and zeros elsewhere.
  void head() {
    build_.section("head", stages_ - 1);
    build_.compute(
        {.name = "last row, norm", .reads = {"x", "norm"}, .writes = {"last"}, .summed = {"rows"}});
    if (is_prompt_) {
      build_.redistribute("last row told", "last", "cp", partial(), replicate());
    }
    build_.product("logits", "last", shape_.tied ? "embedding" : "output", "logits");
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

  const estimate::ModelShape& shape_;
  const DecoderTask& task_;
  bool is_prompt_;
  StepBuilder build_;
  int stages_;
};

void check(const estimate::ModelShape& shape, const parallel::MeshShape& mesh,
           const DecoderTask& task) {
  constexpr std::array<std::string_view, 4> kAxes = {"pp", "cp", "ep", "tp"};
  int tp = 1;
  for (const parallel::Axis& axis : mesh.axes()) {
    if (std::find(kAxes.begin(), kAxes.end(), axis.name) == kAxes.end()) {
      throw Error(ErrorCode::config, "a decoder that answers has no axis " + axis.name +
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
  if (shape.latent.is_used()) {
    throw Error(ErrorCode::usage, shape.name + " compresses keys and values\n" +
                                      "steps are made of models with plain heads");
  }
  if (task.tokens < 1 || (task.tokens > 1 && task.context > 0)) {
    throw Error(ErrorCode::usage, "a step is of a whole prompt, or of one token behind it");
  }
  parallel::head_share(static_cast<std::size_t>(shape.heads),
                       static_cast<std::size_t>(shape.kv_heads), tp, 0);
}

}  // namespace

Step make_decoder_step(const estimate::ModelShape& shape, std::string_view mesh,
                       const DecoderTask& task) {
  const auto axes = parallel::MeshShape::parse(mesh);
  check(shape, axes, task);
  return DecoderMaker(shape, axes, task).make();
}

}  // namespace unisono::step
