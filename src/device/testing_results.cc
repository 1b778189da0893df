#include "device/testing_results.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/collectives.h"
#include "base/dtypes.h"
#include "device/kernels.h"
#include "kernels/kernels.h"
#include "kernels/reference.h"

namespace unisono::device {
namespace {

using Counts = std::vector<std::size_t>;

std::size_t sum(const Counts& counts, std::size_t until) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(until),
                         std::size_t{0});
}

std::size_t ranks_of(const Trial& trial) {
  return trial.inputs.size();
}

// Returns the number of elements from one rank to another. REQUIRES: the vector is divided by
// ranks.
std::size_t block(const Trial& trial, std::size_t from, std::size_t to) {
  return is_v_form(trial.collective) ? trial.blocks[from][to] : trial.count;
}

Counts sent(const Trial& trial, std::size_t from) {
  Counts counts;
  for (std::size_t to = 0; to < ranks_of(trial); ++to) {
    counts.push_back(block(trial, from, to));
  }
  return counts;
}

Counts received(const Trial& trial, std::size_t to) {
  Counts counts;
  for (std::size_t from = 0; from < ranks_of(trial); ++from) {
    counts.push_back(block(trial, from, to));
  }
  return counts;
}

// Returns the reduction of `count` elements of each input, starting at element `at`.
Bytes reduce(const Trial& trial, std::size_t at, std::size_t count) {
  const Dtype dtype = trial.dtype;
  const Reduction& reduction = trial.reduction;
  const std::size_t size = size_of(dtype);
  const Dtype moved =
      is_integer(dtype) ? moved_dtype(trial.collective, dtype, reduction.op) : dtype;
  const bool scaled = reduction.op == ReduceOp::avg || reduction.op == ReduceOp::premul_sum;
  std::vector<Bytes> operands;
  std::vector<const void*> sources;
  for (const Bytes& input : trial.inputs) {
    Bytes part(count * size_of(moved) + 1);
    if (moved != dtype) {
      kernels::find_widen(dtype)(part.data(), input.data() + at * size, count, 1);
    } else {
      std::memcpy(part.data(), input.data() + at * size, count * size);
    }
    if (reduction.op == ReduceOp::premul_sum) {
      kernels::find_multiply(dtype)(part.data(), part.data(), count, reduction.factor);
    }
    operands.push_back(std::move(part));
  }
  for (const Bytes& operand : operands) {
    sources.push_back(operand.data());
  }
  Bytes total(count * size_of(moved) + 1);
  void* target = total.data();
  kernels::find_reduce(moved, scaled ? ReduceOp::sum : reduction.op)(
      &target, 1, sources.data(), static_cast<int>(sources.size()), count, kernels::Store::cached);
  Bytes result(count * size);
  if (reduction.op == ReduceOp::avg) {
    const auto divide = moved != dtype ? kernels::find_average(dtype) : kernels::find_divide(dtype);
    divide(result.data(), total.data(), count, static_cast<double>(trial.inputs.size()));
  } else {
    std::copy_n(total.begin(), result.size(), result.begin());
  }
  return result;
}

void draw_blocks(Trial& trial, std::size_t n, std::mt19937_64& random) {
  const std::size_t most = random() % 4 == 0 ? 3000 : 40;
  const auto one = [&] { return random() % 5 == 0 ? 0 : random() % most; };
  trial.blocks.assign(n, Counts(n));
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t same = one();
    for (std::size_t k = 0; k < n; ++k) {
      switch (trial.collective) {
        case Collective::all_to_all_v:
          trial.blocks[i][k] = one();
          break;
        case Collective::scatter_v:
        case Collective::reduce_scatter_v:
          trial.blocks[k][i] = same;  // to rank i
          break;
        default:
          trial.blocks[i][k] = same;
      }
    }
  }
}

std::size_t input_count(const Trial& trial, std::size_t rank) {
  const CollectiveTraits& traits = traits_of(trial.collective);
  const bool is_root = static_cast<int>(rank) == trial.root;
  switch (traits.input) {
    case Holding::nothing:
      return 0;
    case Holding::part:
      return block(trial, rank, rank);
    case Holding::pairs:
      return sum(sent(trial, rank), ranks_of(trial));
    case Holding::whole_at_root:
      if (!is_root) {
        return 0;
      }
      break;
    case Holding::whole:
      break;
  }
  return cut_of(trial.collective) == VectorCut::none ? trial.count
                                                     : sum(sent(trial, rank), ranks_of(trial));
}

std::size_t output_count(const Trial& trial, std::size_t rank) {
  const CollectiveTraits& traits = traits_of(trial.collective);
  switch (traits.output) {
    case Holding::nothing:
      return 0;
    case Holding::part:
      return block(trial, rank, rank);
    case Holding::pairs:
      return sum(received(trial, rank), ranks_of(trial));
    case Holding::whole_at_root:
      if (static_cast<int>(rank) != trial.root) {
        return 0;
      }
      break;
    case Holding::whole:
      break;
  }
  return cut_of(trial.collective) == VectorCut::none ? trial.count
                                                     : sum(received(trial, rank), ranks_of(trial));
}

}  // namespace

std::vector<TrialKind> trial_kinds() {
  std::vector<TrialKind> kinds;
  for (int collective = 0; collective < kCollectiveCount; ++collective) {
    for (int dtype = 0; dtype < kDtypeCount; ++dtype) {
      for (int op = 0; op < kReduceOpCount; ++op) {
        const TrialKind kind{.collective = static_cast<Collective>(collective),
                             .dtype = static_cast<Dtype>(dtype),
                             .op = static_cast<ReduceOp>(op)};
        const bool counts = is_scan(kind.collective)   ? false  // device memory has none
                            : reduces(kind.collective) ? has_kernel(kind.dtype, kind.op)
                                                       : op == 0;
        const bool has_type = moves_data(kind.collective) || dtype == 0;
        if (counts && has_type) {
          kinds.push_back(kind);
        }
      }
    }
  }
  return kinds;
}

Trial draw(int ranks, std::mt19937_64& random) {
  TrialKind kind;
  do {
    kind.collective = static_cast<Collective>(random() % kCollectiveCount);
    kind.dtype = static_cast<Dtype>(random() % kDtypeCount);
    kind.op = static_cast<ReduceOp>(random() % kReduceOpCount);
  } while (is_scan(kind.collective) || !has_kernel(kind.dtype, kind.op));
  return draw(kind, ranks, random);
}

Trial draw(const TrialKind& kind, int ranks, std::mt19937_64& random) {
  const auto n = static_cast<std::size_t>(ranks);
  Trial trial{.collective = kind.collective, .dtype = kind.dtype, .reduction = kind.op};
  trial.reduction.factor = 0.75;
  trial.count = random() % 3 == 0 ? random() % 20000 : random() % 50;
  trial.root = is_rooted(trial.collective) ? static_cast<int>(random() % n) : 0;
  trial.in_place = trial.collective == Collective::broadcast ||
                   (cut_of(trial.collective) == VectorCut::none && moves_data(trial.collective) &&
                    random() % 2 == 0);
  trial.part_in_place = cut_of(trial.collective) == VectorCut::parts && random() % 3 == 0;
  trial.inputs.resize(n);
  if (is_v_form(trial.collective)) {
    draw_blocks(trial, n, random);
  }
  const std::size_t size = size_of(trial.dtype);
  for (std::size_t rank = 0; rank < n; ++rank) {
    trial.inputs[rank].resize(input_count(trial, rank) * size);
    for (std::size_t at = 0; at < trial.inputs[rank].size(); at += size) {
      const std::uint64_t value =
          trial.dtype == Dtype::boolean ? random() % 2 : kernels::hard_value(trial.dtype, random());
      std::memcpy(&trial.inputs[rank][at], &value, size);
    }
  }
  return trial;
}

Call call_of(const Trial& trial, int rank, Counts& counts, Counts& recv_counts) {
  const auto r = static_cast<std::size_t>(rank);
  Call call{.collective = trial.collective,
            .count = trial.count,
            .dtype = trial.dtype,
            .reduction = trial.reduction,
            .root = trial.root};
  if (!is_v_form(trial.collective)) {
    return call;
  }
  switch (trial.collective) {
    case Collective::all_to_all_v:
      counts = sent(trial, r);
      recv_counts = received(trial, r);
      call.recv_counts = recv_counts;
      break;
    case Collective::scatter_v:
    case Collective::reduce_scatter_v:
      counts = sent(trial, r);
      break;
    default:
      counts = received(trial, r);
  }
  call.counts = counts;
  call.count = 0;
  return call;
}

std::size_t bytes_before_part(const Trial& trial, int rank) {
  Counts counts;
  Counts recv_counts;
  const Call call = call_of(trial, rank, counts, recv_counts);
  const auto r = static_cast<std::size_t>(rank);
  return size_of(trial.dtype) * (call.counts.empty() ? trial.count * r : sum(counts, r));
}

std::size_t output_bytes(const Trial& trial, int rank) {
  return output_count(trial, static_cast<std::size_t>(rank)) * size_of(trial.dtype);
}

Bytes result_of(const Trial& trial, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  const auto root = static_cast<std::size_t>(trial.root);
  const std::size_t size = size_of(trial.dtype);
  if (output_count(trial, r) == 0) {
    return {};
  }
  switch (plain_form(trial.collective)) {
    case Collective::all_reduce:
    case Collective::reduce:
      return reduce(trial, 0, trial.count);
    case Collective::reduce_scatter:
      return reduce(trial, sum(sent(trial, r), r), block(trial, r, r));
    case Collective::broadcast:
      return trial.inputs[root];
    default:
      break;
  }
  Bytes result;
  const auto add = [&](std::size_t from, std::size_t at, std::size_t count) {
    const auto begin = trial.inputs[from].begin() + static_cast<std::ptrdiff_t>(at * size);
    result.insert(result.end(), begin, begin + static_cast<std::ptrdiff_t>(count * size));
  };
  if (plain_form(trial.collective) == Collective::scatter) {
    add(root, sum(sent(trial, root), r), block(trial, root, r));
    return result;
  }
  const bool pairs = cut_of(trial.collective) == VectorCut::pairs;
  for (std::size_t from = 0; from < ranks_of(trial); ++from) {
    add(from, pairs ? sum(sent(trial, from), r) : 0, block(trial, from, r));
  }
  return result;
}

bool same(Dtype dtype, const Bytes& one, const Bytes& other) {
  if (one == other || one.size() != other.size()) {
    return one == other;
  }
  const std::size_t size = size_of(dtype);
  for (std::size_t at = 0; at < one.size(); at += size) {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::memcpy(&a, &one[at], size);
    std::memcpy(&b, &other[at], size);
    if (a != b && !(kernels::is_nan(dtype, a) && kernels::is_nan(dtype, b))) {
      return false;
    }
  }
  return true;
}

}  // namespace unisono::device
