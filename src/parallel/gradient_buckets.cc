#include "unisono/parallel/gradient_buckets.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "parallel/floats.h"
#include "parallel/gradient_watch.h"
#include "parallel/refuse.h"
#include "parallel/stopwatch.h"

namespace unisono::parallel {
namespace {

struct Gradient {
  std::string name = {};
  std::size_t count = 0;
  std::size_t bucket = 0;
  std::size_t first = 0;  // offset in its bucket
  bool is_ready = false;
};

struct Bucket {
  std::vector<float> data = {};
  std::size_t gradients = 0;
  std::size_t missing = 0;
  Request request = {};
  std::optional<TreeSum> tree = {};  // sum of the leaves so far
  TreeSum::Scattering scattering = {};
};

}  // namespace

struct GradientBuckets::State {
  Communicator& axis;
  BucketOptions options;
  std::vector<Gradient> gradients = {};
  std::vector<Bucket> buckets = {};
  std::vector<std::size_t> seen = {};  // gradients in the order in which they became ready
  std::size_t started = 0;             // number of buckets whose all_reduce has begun
  bool is_begun = false;
  bool is_reducing = true;
  bool is_learned = false;
  bool keeps = false;  // add to the values of the last step
  Stopwatch waits = {};
  GradientWatch watch = {std::chrono::milliseconds(options.timeout_ms), [this] { tell_late(); }};

  // Called by the watch, which guards the ready flags and `seen`.
  void tell_late() {
    axis.abort("rank " + std::to_string(axis.rank()) + ": " + std::to_string(options.timeout_ms) +
               " ms after the gradient of " + gradients[seen.back()].name + ", " + missing_text() +
               " had not become ready");
  }
  // Returns the names of the gradients that are not ready.
  std::string missing_text() const {
    constexpr std::size_t kMost = 8;
    std::string names;
    std::size_t missing = 0;
    for (const Gradient& gradient : gradients) {
      if (!gradient.is_ready && ++missing <= kMost) {
        names += (missing == 1 ? "" : ", ") + gradient.name;
      }
    }
    return missing <= kMost ? names : names + " and " + std::to_string(missing - kMost) + " more";
  }
  // Aborts with the reason, because the other ranks would wait forever.
  [[noreturn]] void abort(const std::string& what, const std::string& next) const {
    axis.abort("rank " + std::to_string(axis.rank()) + ": " + what);
    refuse("gradient buckets", what, next);
  }
  Gradient& at(std::size_t index) {
    if (index >= gradients.size()) {
      refuse("gradient buckets",
             "there is no gradient " + std::to_string(index) + " of " +
                 std::to_string(gradients.size()),
             "use a number that add() returned");
    }
    return gradients[index];
  }
  // Assigns gradients to buckets in this order.
  void fill(const std::vector<std::size_t>& order) {
    buckets.clear();
    std::size_t left = 0;
    for (const Gradient& gradient : gradients) {
      left += gradient.count;
    }
    // No computation is left to hide the sum of the last bucket. So buckets become smaller towards
    // the end: each has a third of the rest, but is no smaller than the first bucket.
    std::size_t limit = options.first_bytes / sizeof(float);
    for (const std::size_t index : order) {
      if (buckets.empty() || buckets.back().data.size() >= limit) {
        limit = buckets.empty()
                    ? limit
                    : std::clamp(left / 3, options.first_bytes / sizeof(float),
                                 std::max(options.first_bytes, options.bytes) / sizeof(float));
        buckets.emplace_back();
      }
      Gradient& gradient = gradients[index];
      left -= gradient.count;
      gradient.bucket = buckets.size() - 1;
      gradient.first = buckets.back().data.size();
      buckets.back().data.resize(gradient.first + gradient.count);
      ++buckets.back().gradients;
    }
  }
  bool has_leaves() const { return !options.leaves.empty(); }
  // Adds a bucket to its sum of leaves.
  void add_leaf(Bucket& bucket) const {
    if (!bucket.tree) {
      std::size_t all = 0;
      for (const Leaves& leaves : options.leaves) {
        all += leaves.count;
      }
      bucket.tree.emplace(
          TreeSum::Shape{.count = bucket.data.size(),
                         .leaves = all,
                         .first = options.leaves[static_cast<std::size_t>(axis.rank())].first});
    }
    bucket.tree->add(bucket.data.data());
  }
  std::vector<std::size_t> parts_of(const Bucket& bucket) const {
    std::vector<std::size_t> parts;
    for (const Leaves& part : even_leaves(bucket.data.size(), axis.size())) {
      parts.push_back(part.count);
    }
    return parts;
  }
  void start(Bucket& bucket) {
    if (!has_leaves()) {
      bucket.request = axis.all_reduce_async(bucket.data, options.op);
      return;
    }
    add_leaf(bucket);
    const Leaves mine = options.leaves[static_cast<std::size_t>(axis.rank())];
    if (bucket.tree->next() != mine.first + mine.count) {
      abort("reduces after leaf " + std::to_string(bucket.tree->next() - 1) + " of leaves " +
                std::to_string(mine.first) + " to " + std::to_string(mine.first + mine.count - 1),
            "call begin(false) for each leaf but the last one");
    }
    bucket.scattering =
        std::move(*bucket.tree).scatter_async(axis, options.leaves, parts_of(bucket));
    bucket.tree.reset();
  }
  void wait(Bucket& bucket) const {
    if (!has_leaves()) {
      bucket.request.wait();
      return;
    }
    const TreeSum sum = bucket.scattering.finish();
    std::vector<float> part(sum.shape().count);
    sum.sum(part.data());
    if (options.op == ReduceOp::avg) {
      for (float& value : part) {
        value /= static_cast<float>(sum.shape().leaves);
      }
    }
    const std::vector<std::size_t> parts = parts_of(bucket);
    axis.run({.collective = Collective::all_gather_v,
              .in = part.data(),
              .out = bucket.data.data(),
              .dtype = Dtype::f32,
              .counts = parts});
  }
  void start_full() {
    while (started < buckets.size() && buckets[started].missing == 0) {
      start(buckets[started]);
      ++started;
    }
  }
  // All ranks use rank 0's order, because they must send the same buckets.
  void learn() {
    std::vector<std::uint64_t> order(seen.begin(), seen.end());
    order.resize(gradients.size());
    axis.broadcast(order, 0);
    const std::vector<std::size_t> agreed(order.begin(), order.end());
    fill(agreed);
    is_learned = true;
  }
  void check_begun(const char* call) const {
    if (!is_begun) {
      refuse("gradient buckets", std::string(call) + " outside of a step", "call begin() first");
    }
  }
};

GradientBuckets::GradientBuckets(Communicator& axis, const BucketOptions& options)
    : state_(new State{.axis = axis, .options = options}) {
  if (options.timeout_ms < 0) {
    refuse("gradient buckets", "a time limit of " + std::to_string(options.timeout_ms) + " ms",
           "give 0 for no limit, or more");
  }
  if (options.op != ReduceOp::avg && options.op != ReduceOp::sum) {
    refuse("gradient buckets",
           "gradients cannot be combined by " + std::string(to_string(options.op)),
           "use avg or sum");
  }
  if (!options.leaves.empty()) {
    if (options.leaves.size() != static_cast<std::size_t>(axis.size())) {
      refuse("gradient buckets",
             "got the leaves of " + std::to_string(options.leaves.size()) + " ranks, not of " +
                 std::to_string(axis.size()),
             "list the leaves of each rank of the axis");
    }
    if (std::ranges::any_of(options.leaves, [](const Leaves& one) { return one.count == 0; })) {
      refuse("gradient buckets", "a rank without leaves",
             "give each rank at least one leaf, because each rank makes a step");
    }
  }
}
GradientBuckets::GradientBuckets(GradientBuckets&&) noexcept = default;
GradientBuckets& GradientBuckets::operator=(GradientBuckets&&) noexcept = default;
GradientBuckets::~GradientBuckets() = default;

std::size_t GradientBuckets::add(std::string name, std::size_t count) {
  if (!state_->buckets.empty()) {
    refuse("gradient buckets", "\"" + name + "\" is added after the first step began",
           "add all gradients before the first step");
  }
  state_->gradients.push_back({.name = std::move(name), .count = count});
  return state_->gradients.size() - 1;
}

std::span<float> GradientBuckets::gradient(std::size_t index) {
  const Gradient& gradient = state_->at(index);
  if (state_->buckets.empty()) {
    state_->check_begun("gradient()");
  }
  return std::span(state_->buckets[gradient.bucket].data).subspan(gradient.first, gradient.count);
}

void GradientBuckets::add_to(std::size_t index, ConstAnySpan values) {
  const std::span<float> target = gradient(index);
  if (!state_->options.zeroed) {
    refuse("gradient buckets", "add_to() needs gradients that are zero when a step begins",
           "keep BucketOptions::zeroed true, or write to gradient()");
  }
  if (values.size() != target.size()) {
    refuse("gradient buckets",
           std::to_string(values.size()) + " values for \"" + state_->at(index).name + "\" of " +
               std::to_string(target.size()),
           "give the whole gradient");
  }
  expect_float("gradient buckets", "values", values.dtype(), values.dtype());
  const ReadFloats more(values);
  for (std::size_t i = 0; i < target.size(); ++i) {
    target[i] += more.span()[i];
  }
}

void GradientBuckets::begin(bool reduce) {
  State& state = *state_;
  if (state.is_begun) {
    refuse("gradient buckets", "begin() in a step", "call finish() first");
  }
  if (state.buckets.empty()) {
    std::vector<std::size_t> order(state.gradients.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    state.fill(order);
  } else if (!state.keeps && state.options.learn_order && !state.is_learned) {
    state.learn();
  }
  for (Bucket& bucket : state.buckets) {
    bucket.missing = bucket.gradients;
    if ((!state.keeps || state.has_leaves()) && state.options.zeroed) {
      std::fill(bucket.data.begin(), bucket.data.end(), 0.0F);
    }
  }
  state.watch.change(false, [&] {
    for (Gradient& gradient : state.gradients) {
      gradient.is_ready = false;
    }
    state.seen.clear();
  });
  state.started = 0;
  state.is_reducing = reduce;
  state.is_begun = true;
  state.waits.reset();
}

void GradientBuckets::ready(std::size_t index) {
  State& state = *state_;
  Gradient& gradient = state.at(index);
  state.check_begun("ready()");
  if (gradient.is_ready) {
    state.abort("\"" + gradient.name + "\" is ready twice", "call ready() once in each step");
  }
  const bool more = state.seen.size() + 1 < state.gradients.size();
  state.watch.change(more && state.is_reducing && state.axis.size() > 1, [&] {
    gradient.is_ready = true;
    state.seen.push_back(index);
  });
  --state.buckets[gradient.bucket].missing;
  if (state.is_reducing) {
    state.start_full();
  }
}

void GradientBuckets::finish() {
  State& state = *state_;
  state.check_begun("finish()");
  state.watch.change(false, [] {});
  const std::string missing = state.missing_text();
  const bool is_used = state.is_reducing || state.has_leaves();
  if (!missing.empty() && !state.options.allow_unused && is_used) {
    state.abort("the gradients of " + missing + " never became ready",
                "call ready() for each, or set BucketOptions::allow_unused");
  }
  state.is_begun = false;
  const bool has_kept = state.keeps && !state.has_leaves();
  state.keeps = !state.is_reducing;
  if (!is_used) {
    return;
  }
  for (std::size_t index = 0; index < state.gradients.size(); ++index) {
    if (!state.gradients[index].is_ready) {
      if (!state.options.zeroed && !has_kept) {  // memory that was not written counts as zero
        std::ranges::fill(gradient(index), 0.0F);
      }
      state.seen.push_back(index);
      --state.buckets[state.gradients[index].bucket].missing;
    }
  }
  if (!state.is_reducing) {
    for (Bucket& bucket : state.buckets) {
      state.add_leaf(bucket);
    }
    return;
  }
  state.start_full();
  state.waits.time([&] {
    for (Bucket& bucket : state.buckets) {
      state.wait(bucket);
    }
  });
}

std::size_t GradientBuckets::buckets() const {
  return state_->buckets.size();
}
double GradientBuckets::exposed_us() const {
  return state_->waits.us();
}

}  // namespace unisono::parallel
