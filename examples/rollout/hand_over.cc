#include "rollout/hand_over.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <unisono/error.hpp>
#include <unisono/parallel/tensor_parallel.hpp>
#include <utility>

namespace rollout {
namespace {

namespace up = unisono::parallel;

constexpr int kReportTag = 1;
constexpr const char* kNews = "rollout.news";
constexpr int kNoLimit = 0;  // answers and steps may take any time

std::vector<int> ranks_from(int first, int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

up::MeshLayout trainer_layout(const transformer::HeldWeight& held) {
  using Cut = transformer::Weight::Cut;
  up::MeshLayout layout{.mesh = up::MeshShape::parse("group=" + std::to_string(held.groups) +
                                                     ",tp=" + std::to_string(held.tp)),
                        .ranks = ranks_from(held.first_rank, held.groups * held.tp)};
  if (held.weight.cut != Cut::none) {
    layout.placements = {
        {.axis = "tp", .placement = up::Shard(held.weight.cut == Cut::rows ? 0 : 1)}};
  }
  return layout;
}

// Returns the layout in which the engine's model reads its weights.
up::MeshLayout engine_layout(const std::string& name, const llm::Shape& shape,
                             const std::vector<int>& ranks) {
  const auto tp = static_cast<int>(ranks.size());
  up::MeshLayout layout{.mesh = up::MeshShape::parse("tp=" + std::to_string(tp)), .ranks = ranks};
  const auto is = [&](const char* kind) { return name.ends_with(std::string(kind) + ".weight"); };
  const bool is_key = is("attn_k") || is("attn_v");
  if (is_key || is("attn_q") || is("attn_output")) {
    std::vector<std::size_t> parts;
    std::size_t heads = 0;
    for (int rank = 0; rank < tp; ++rank) {
      const auto share = up::head_share(shape.heads, shape.key_value_heads, tp, rank);
      const std::size_t count = is_key ? share.key_value.count : share.query.count;
      parts.push_back(count * shape.dim);
      heads += count;
    }
    if (is_key && heads != shape.key_value_heads) {
      return layout;  // several ranks use a key head, so each rank gets all key heads
    }
    layout.placements = {{.axis = "tp",
                          .placement = up::Shard(is("attn_output") ? 1 : 0),
                          .sections = {},
                          .parts = parts}};
  } else if (!is("norm")) {
    layout.placements = {{.axis = "tp", .placement = up::Shard(is("ffn_down") ? 1 : 0)}};
  }
  return layout;
}

}  // namespace

const char* const kNames = R"({
  "format": "unisono.names/1",
  "rules": [
    {"from": ["embedding.weight"], "to": "token_embd.weight"},
    {"from": ["norm.weight"], "to": "output_norm.weight"},
    {"from": ["head.weight"], "to": "output.weight"},
    {"from": ["layers.{layer}.attention.norm.weight"], "to": "blk.{layer}.attn_norm.weight"},
    {"from": ["layers.{layer}.attention.q.weight"], "to": "blk.{layer}.attn_q.weight"},
    {"from": ["layers.{layer}.attention.k.weight"], "to": "blk.{layer}.attn_k.weight"},
    {"from": ["layers.{layer}.attention.v.weight"], "to": "blk.{layer}.attn_v.weight"},
    {"from": ["layers.{layer}.attention.o.weight"], "to": "blk.{layer}.attn_output.weight"},
    {"from": ["layers.{layer}.mlp.norm.weight"], "to": "blk.{layer}.ffn_norm.weight"},
    {"from": ["layers.{layer}.mlp.gate.weight"], "to": "blk.{layer}.ffn_gate.weight"},
    {"from": ["layers.{layer}.mlp.up.weight"], "to": "blk.{layer}.ffn_up.weight"},
    {"from": ["layers.{layer}.mlp.down.weight"], "to": "blk.{layer}.ffn_down.weight"}
  ]
})";

llm::Shape engine_shape(const transformer::Config& config) {
  return {.layers = config.layers,
          .width = config.width,
          .heads = config.heads,
          .key_value_heads = config.key_value_heads,
          .dim = config.head_dim(),
          .hidden = config.hidden,
          .vocabulary = config.vocabulary,
          .rope_halves = true};
}

std::vector<std::size_t> shape_of(const transformer::Weight& weight) {
  return weight.is_vector() ? std::vector{weight.rows} : std::vector{weight.rows, weight.columns};
}

up::Tensor HandedWeights::add(const std::string& name, const std::vector<up::Range>& part) {
  Part& own = parts_[name];
  own.rows = part.size() == 1 ? up::Range{.count = 1} : part.front();
  own.columns = part.back();
  own.values.resize(own.rows.count * own.columns.count);
  std::vector<std::size_t> shape;
  for (const up::Range& range : part) {
    shape.push_back(range.count);
  }
  return up::Tensor::of(own.values, std::move(shape));
}

std::vector<float> HandedWeights::read(const std::string& name, up::Range rows,
                                       up::Range columns) const {
  const auto found = parts_.find(name);
  const auto lacks = [](const up::Range& part, const up::Range& wanted) {
    return wanted.first < part.first || wanted.first + wanted.count > part.first + part.count;
  };
  if (found == parts_.end() || lacks(found->second.rows, rows) ||
      lacks(found->second.columns, columns)) {
    throw std::runtime_error("'" + name + "' was not handed over, or not all that this rank reads");
  }
  const Part& part = found->second;
  std::vector<float> values;
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    const auto from = part.values.begin() +
                      static_cast<std::ptrdiff_t>((row - part.rows.first) * part.columns.count +
                                                  columns.first - part.columns.first);
    values.insert(values.end(), from, from + static_cast<std::ptrdiff_t>(columns.count));
  }
  return values;
}

HandOver::HandOver(unisono::Communicator& world, const transformer::Config& config,
                   const transformer::Layout& layout)
    : world_(world), trainers_(layout.ranks) {
  const auto held = transformer::held_weights(config, layout);
  for (const transformer::HeldWeight& one : held) {
    sources_.push_back({.name = one.weight.name, .shape = shape_of(one.weight)});
  }
  targets_ = up::NameMap::parse(kNames).apply(sources_);
  const std::vector<int> engine = ranks_from(trainers_, world.size() - trainers_);
  std::vector<up::ReshardTensor> tensors;
  for (const up::NamedTarget& target : targets_) {
    const std::size_t source = target.parts.front().source;
    tensors.push_back({.name = target.tensor.name,
                       .shape = target.tensor.shape,
                       .from = trainer_layout(held[source]),
                       .to = engine_layout(target.tensor.name, engine_shape(config), engine)});
  }
  tensors.push_back({.name = kNews,
                     .dtype = unisono::Dtype::i64,
                     .shape = {news_.size()},
                     .from = up::MeshLayout::parse("a=1"),
                     .to = engine_layout("norm.weight", {}, engine)});
  reshard_ = up::Reshard::create(world, std::move(tensors));
  expect_report();
}

void HandOver::expect_report() {
  if (world_.rank() == 0) {
    reported_ = world_.recv_async(&report_, 1, trainers_, kReportTag, kNoLimit);
  }
}

bool HandOver::is_wanted(unisono::Communicator& trainers, bool waits) {
  std::array<std::int32_t, 1> wanted = {0};
  if (reported_ && (waits || reported_->test())) {
    wanted[0] = 1;
    try {
      reported_->wait(kNoLimit);
    } catch (const unisono::Error&) {
      wanted[0] = 1;  // the transfer will fail on every rank for the same reason
    }
    reported_.reset();
  }
  trainers.run({.collective = unisono::Collective::broadcast,
                .in = wanted.data(),
                .out = wanted.data(),
                .count = 1,
                .dtype = unisono::Dtype::i32,
                .timeout_ms = kNoLimit});
  return wanted[0] != 0;
}

void HandOver::give(const transformer::Parts& parts, const News& news) {
  news_ = {news.step, news.is_last ? 1 : 0};
  std::vector<up::Tensor> in;
  for (std::size_t t = 0; t < targets_.size(); ++t) {
    const auto shape = reshard_->in_shape(t);
    const auto part = parts.find(sources_[targets_[t].parts.front().source].name);
    in.push_back(shape && part != parts.end() ? up::Tensor::of_const(part->second, *shape)
                                              : up::Tensor{});
  }
  in.push_back(world_.rank() == 0 ? up::Tensor::of(news_, {news_.size()}) : up::Tensor{});
  const std::vector<up::Tensor> out(in.size());
  reshard_->run(in, out, kNoLimit);
  if (!news.is_last) {
    expect_report();
  }
}

News HandOver::take(HandedWeights& weights) {
  if (world_.rank() == trainers_) {
    world_.send(&report_, 1, 0, kReportTag, kNoLimit);
  }
  std::vector<up::Tensor> out;
  for (std::size_t t = 0; t < targets_.size(); ++t) {
    const up::ReshardTensor& tensor = reshard_->plan().tensors[t];
    std::vector<up::Range> part;
    for (const auto& ranges : up::elements_at(tensor.to, tensor.shape, world_.rank() - trainers_)) {
      part.push_back(ranges.empty() ? up::Range{} : ranges.front());
    }
    out.push_back(weights.add(tensor.name, part));
  }
  out.push_back(up::Tensor::of(news_, {news_.size()}));
  const std::vector<up::Tensor> in(out.size());
  reshard_->run(in, out, kNoLimit);
  return {.step = news_[0], .is_last = news_[1] != 0};
}

}  // namespace rollout
