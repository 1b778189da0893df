// Reads the arguments of `unisono reshard`, and plans.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/bytes_text.h"
#include "base/words.h"
#include "cli/failure.h"
#include "cli/text_file.h"
#include "cli/wrap.h"
#include "models/models.h"
#include "network_model/hosts_on.h"
#include "reshards/reshards.h"
#include "topo/topo.h"
#include "unisono/error.hpp"
#include "weights/weights.h"

namespace unisono::cli {
namespace {

using parallel::MeshLayout;
using parallel::ReshardTensor;

constexpr std::string_view kHelp = "unisono help reshard";
constexpr int kMostRanks = 4096;

Dtype read_dtype(const Arguments& arguments) {
  const std::string name = arguments.text("dtype");
  const std::optional<Dtype> dtype = parse_dtype(name);
  if (!dtype) {
    throw UsageError(fmt::format("--dtype {} is not a data type", in_quotes(name)),
                     "such as f32, bf16 or f8e4m3", std::string(kHelp));
  }
  return *dtype;
}

std::vector<std::size_t> read_shape(const std::string& text) {
  std::vector<std::size_t> shape;
  for (std::string_view left = text;;) {
    const std::string_view item = left.substr(0, left.find_first_of(",x"));
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), length);
    if (error != std::errc() || end != item.data() + item.size()) {
      throw UsageError(fmt::format("--shape {} is not a shape such as 4096,1024", in_quotes(text)),
                       {}, std::string(kHelp));
    }
    shape.push_back(length);
    if (item.size() == left.size()) {
      return shape;
    }
    left.remove_prefix(item.size() + 1);
  }
}

struct Layouts {
  std::string from;
  std::string to;
};

Layouts split_layouts(const std::string& text) {
  constexpr std::string_view kArrow = "->";
  const std::size_t arrow = text.find(kArrow);
  if (arrow == std::string::npos || text.find(kArrow, arrow + 1) != std::string::npos) {
    throw UsageError(fmt::format("{} is not two layouts: write FROM -> TO", in_quotes(text)),
                     "\"tp=8,pp=4,dp=2 -> tp=4,dp=4\", in quotes", std::string(kHelp));
  }
  return {.from = std::string(trimmed(std::string_view(text).substr(0, arrow))),
          .to = std::string(trimmed(std::string_view(text).substr(arrow + kArrow.size())))};
}

int last_rank(const MeshLayout& layout) {
  return layout.ranks.empty() ? layout.mesh.ranks() - 1
                              : *std::max_element(layout.ranks.begin(), layout.ranks.end());
}

// An error of a layout or of the planner as one of the command line.
[[noreturn]] void refuse(const Error& error) {
  const std::string message(error.message());
  const std::size_t end = message.find('\n');
  throw UsageError(message.substr(0, end),
                   end == std::string::npos ? std::string() : message.substr(end + 1),
                   std::string(kHelp));
}

// Reads the tensors into the question, and returns the last rank.
int read_tensors(const Arguments& arguments, const Layouts& layouts, ReshardQuestion& question) {
  const bool has_model = arguments.operands().size() == 3;
  if (has_model == arguments.has("shape")) {
    throw UsageError(has_model ? "give a model or --shape, not both"
                               : "what is moved? give a model, or --shape of one tensor",
                     "unisono reshard show llama3-8b \"tp=4 -> tp=2,dp=2\"", std::string(kHelp));
  }
  const Dtype dtype = read_dtype(arguments);
  if (!has_model) {
    if (arguments.has("tensor")) {
      throw UsageError(
          "--tensor chooses a tensor of a model, but --shape describes a single tensor", {},
          std::string(kHelp));
    }
    const ReshardTensor tensor{.name = "tensor",
                               .dtype = dtype,
                               .shape = read_shape(arguments.text("shape")),
                               .from = MeshLayout::parse(layouts.from),
                               .to = MeshLayout::parse(layouts.to)};
    question.what = "tensor " + parallel::Tensor::packed(nullptr, dtype, tensor.shape).text();
    question.from = tensor.from.text();
    question.to = tensor.to.text();
    question.plan.tensors = {tensor};
    return std::max(last_rank(tensor.from), last_rank(tensor.to));
  }
  const planner::ModelConfig model = read_model(arguments.operands()[1], kHelp);
  const auto from = weights::ModelLayout::parse(layouts.from);
  const auto to = weights::ModelLayout::parse(layouts.to);
  const weights::Weights weights = weights::weights_of(model.shape);
  question.what = model.shape.name.empty() ? arguments.operands()[1] : model.shape.name;
  question.from = from.text();
  question.to = to.text();
  question.notes = model.account.lines();
  if (weights.left_out > 0) {
    question.notes.push_back(fmt::format(
        "left out: {:.0f} weights that are not named, such as biases, {:.3g} % of all",
        weights.left_out, 100 * weights.left_out / planner::total_weights(model.shape)));
  }
  question.plan.tensors = reshard_tensors(model.shape, weights, dtype, from, to);
  return std::max(from.last_rank(), to.last_rank());
}

// Applies the map of --names to the model's tensors.
std::vector<parallel::NamedTarget> read_names(const Arguments& arguments,
                                              const std::vector<ReshardTensor>& tensors) {
  if (arguments.has("shape")) {
    throw UsageError("--names is for the tensors of a model, but --shape describes a single tensor",
                     {}, std::string(kHelp));
  }
  const std::string path = arguments.text("names");
  std::vector<parallel::NamedTensor> sources;
  for (const ReshardTensor& tensor : tensors) {
    sources.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape});
  }
  try {
    return parallel::NameMap::parse(read_text_file(path)).apply(sources);
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + std::string(error.message()));
  }
}

std::vector<int> read_hosts(const Arguments& arguments, int ranks, ReshardQuestion& question) {
  if (!arguments.has("on")) {
    const auto per_host = static_cast<int>(arguments.number("ranks-per-host", 1, kMostRanks));
    std::vector<int> hosts;
    for (int rank = 0; rank < ranks; ++rank) {
      hosts.push_back(rank / per_host);
    }
    return hosts;
  }
  if (arguments.has("ranks-per-host")) {
    throw UsageError("--ranks-per-host cannot be used with --on, which defines the hosts", {},
                     std::string(kHelp));
  }
  question.topology = load_topology(arguments.text("on"));
  if (ranks > question.topology->rank_count()) {
    throw UsageError(
        fmt::format("{} has {}, and the layouts name rank {}", question.topology->name,
                    times(static_cast<std::size_t>(question.topology->rank_count()), "rank"),
                    ranks - 1),
        "use a larger topology, or let both layouts share ranks", std::string(kHelp));
  }
  return network_model::hosts_on(*question.topology, ranks);
}

}  // namespace

ReshardQuestion read_reshard_question(const Arguments& arguments) {
  const auto& operands = arguments.operands();
  if (operands.size() < 2) {
    throw UsageError(
        fmt::format("reshard {} what?", operands.front()),
        "a model and two layouts: unisono reshard show llama3-8b \"tp=4 -> tp=2,dp=2\"",
        std::string(kHelp));
  }
  const Layouts layouts = split_layouts(operands.back());
  ReshardQuestion question;
  try {
    const int ranks = read_tensors(arguments, layouts, question) + 1;
    if (ranks > kMostRanks) {
      throw UsageError(fmt::format("more than {} ranks", kMostRanks), {}, std::string(kHelp));
    }
    std::vector<int> hosts = read_hosts(arguments, ranks, question);
    if (arguments.has("names")) {
      question.targets = read_names(arguments, question.plan.tensors);
    }
    const auto start = std::chrono::steady_clock::now();
    question.plan = parallel::plan_reshard(std::move(question.plan.tensors), std::move(hosts));
    question.planned_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } catch (const Error& error) {
    refuse(error);
  }
  return question;
}

std::string reshard_heading(const ReshardQuestion& question, const Console& console) {
  double bytes = 0;
  for (const ReshardTensor& tensor : question.plan.tensors) {
    double count = 1;
    for (const std::size_t length : tensor.shape) {
      count *= static_cast<double>(length);
    }
    bytes += count * static_cast<double>(size_of(tensor.dtype));
  }
  return fmt::format("{}: {}, {}\n  from {}\n  to   {}\n",
                     console.paint(Paint::strong, question.what),
                     times(question.plan.tensors.size(), "tensor"), format_bytes(bytes),
                     question.from, question.to);
}

}  // namespace unisono::cli
