// The checks that both worlds pass: every algorithm of the catalogue, and every kernel.
#pragma once

#include <cstdio>
#include <functional>
#include <random>
#include <string>

#include "gpu_check/world.h"
#include "kernels/kernels.h"
#include "kernels/reference.h"

namespace unisono::device {

using Runner = std::function<void(Dtype, ReduceOp, const Prepared&)>;

inline std::size_t input_count(const Schedule& s, std::size_t count) {
  const auto& traits = traits_of(s.collective);
  const auto n = static_cast<std::size_t>(s.ranks);
  return cut_of(s.collective) == VectorCut::none ? count
         : traits.input == Holding::part         ? count
                                                 : n * count;
}
inline std::size_t output_count(const Schedule& s, std::size_t count) {
  const auto& traits = traits_of(s.collective);
  const auto n = static_cast<std::size_t>(s.ranks);
  return cut_of(s.collective) == VectorCut::none ? count
         : traits.output == Holding::part        ? count
                                                 : n * count;
}

// Expected output of `rank`, element `i`, in terms of (source rank, its element): for collectives
// without sums.
inline std::pair<std::size_t, std::size_t> source_of(const Schedule& s, std::size_t count,
                                                     std::size_t rank, std::size_t i) {
  const auto root = static_cast<std::size_t>(s.root);
  switch (s.collective) {
    case Collective::broadcast:
      return {root, i};
    case Collective::scatter:
      return {root, rank * count + i};
    case Collective::gather:
    case Collective::all_gather:
      return {i / count, i % count};
    default:
      return {i / count, rank * count + i % count};  // all_to_all
  }
}

class Checks {
 public:
  Checks(Memory& memory, World& world, int ranks, Runner run, std::uint64_t seed)
      : memory_(memory), world_(world), ranks_(static_cast<std::size_t>(ranks)), run_(run), random_(seed) {}

  long wrong = 0;
  long checked = 0;

  // One collective of one data type against the reference, in the order of the ranks where
  // `in_rank_order`.
  void one(const Algorithm& algorithm, int root, std::size_t count, Dtype dtype, ReduceOp op,
           const GraphOptions& options, bool small_integers, std::size_t in_shift = 0,
           std::size_t out_shift = 0, std::uint64_t part_limit = ~std::uint64_t{0}) {
    const Shape shape = complete(algorithm, {.ranks = static_cast<int>(ranks_), .root = root});
    const Schedule schedule = build_schedule(algorithm, shape);
    const std::size_t size = size_of(dtype);
    const std::vector<engine::Sizes> sizes(ranks_, {.element = size, .count = count});
    Prepared prepared = world_.prepare(schedule, sizes, options, in_shift * size, out_shift * size, part_limit);
    const std::size_t in_count = input_count(schedule, count);
    const std::size_t out_count = output_count(schedule, count);
    std::vector<std::vector<unsigned char>> inputs;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      std::vector<unsigned char> bytes(in_count * size);
      for (std::size_t i = 0; i < in_count; ++i) {
        const std::uint64_t value =
            small_integers ? random_() % 100 : kernels::hard_value(dtype, random_());
        std::memcpy(&bytes[i * size], &value, size);
      }
      memory_.put(reinterpret_cast<void*>(prepared.launches[rank].input), bytes.data(), bytes.size());
      if (!options.in_place) {
        const std::vector<unsigned char> poison(out_count * size, 0xA5);
        memory_.put(reinterpret_cast<void*>(prepared.launches[rank].output), poison.data(), poison.size());
      }
      inputs.push_back(std::move(bytes));
    }
    run_(dtype, op, prepared);
    ++checked;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if (traits_of(schedule.collective).output == Holding::whole_at_root && static_cast<int>(rank) != root) {
        continue;
      }
      std::vector<unsigned char> got(out_count * size);
      memory_.get(got.data(), reinterpret_cast<void*>(prepared.launches[rank].output), got.size());
      if (!compare(schedule, count, dtype, op, inputs, rank, got, options)) {
        ++wrong;
        return;
      }
    }
  }

 private:
  bool compare(const Schedule& schedule, std::size_t count, Dtype dtype, ReduceOp op,
               const std::vector<std::vector<unsigned char>>& inputs, std::size_t rank,
               const std::vector<unsigned char>& got, const GraphOptions& options) {
    const std::size_t size = size_of(dtype);
    std::vector<unsigned char> want = got;
    if (reduces(schedule.collective)) {
      const std::size_t out_count = got.size() / size;
      const std::size_t at = schedule.collective == Collective::reduce_scatter ? rank * count : 0;
      const Dtype moved = moved_dtype(schedule.collective, dtype, op);
      const std::size_t wide = size_of(moved);
      std::vector<std::vector<unsigned char>> operands;
      std::vector<const void*> sources;
      for (const auto& input : inputs) {
        std::vector<unsigned char> part(out_count * wide);
        if (moved != dtype) {
          kernels::find_widen(dtype)(part.data(), input.data() + at * size, out_count, 1);
        } else {
          std::memcpy(part.data(), input.data() + at * size, out_count * size);
        }
        if (op == ReduceOp::premul_sum) {
          kernels::find_multiply(dtype)(part.data(), part.data(), out_count, 0.75);
        }
        operands.push_back(std::move(part));
        sources.push_back(operands.back().data());
      }
      std::vector<unsigned char> sum(out_count * wide);
      void* target = sum.data();
      kernels::find_reduce(moved, op == ReduceOp::premul_sum || op == ReduceOp::avg ? ReduceOp::sum : op)(
          &target, 1, sources.data(), static_cast<int>(sources.size()), out_count, kernels::Store::cached);
      if (op == ReduceOp::avg) {
        if (moved != dtype) {
          kernels::find_average(dtype)(want.data(), sum.data(), out_count, static_cast<double>(ranks_));
        } else {
          kernels::find_divide(dtype)(want.data(), sum.data(), out_count, static_cast<double>(ranks_));
        }
      } else {
        want = sum;
      }
    } else {
      for (std::size_t i = 0; i < got.size() / size; ++i) {
        const auto [from, element] = source_of(schedule, count, rank, i);
        std::memcpy(&want[i * size], &inputs[from][element * size], size);
      }
    }
    for (std::size_t i = 0; i < got.size() / size; ++i) {
      std::uint64_t a = 0;
      std::uint64_t b = 0;
      std::memcpy(&a, &got[i * size], size);
      std::memcpy(&b, &want[i * size], size);
      if (a != b && !(kernels::is_nan(dtype, a) && kernels::is_nan(dtype, b))) {
        if (wrong < 20) {
          std::printf("WRONG %s %s n=%zu count=%zu %s %s in_place=%d direct=%d rank %zu element %zu: %llx, not %llx\n",
                      std::string(to_string(schedule.collective)).c_str(), schedule.algorithm.c_str(), ranks_, count,
                      std::string(to_string(dtype)).c_str(), std::string(to_string(op)).c_str(), options.in_place,
                      options.direct, rank, i, static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
        }
        return false;
      }
    }
    return true;
  }

  Memory& memory_;
  World& world_;
  std::size_t ranks_;
  Runner run_;
  std::mt19937_64 random_;
};

// Every algorithm in each mode, with sums of small integers, which are exact in any order.
inline void check_catalog(Checks& checks, int ranks, std::mt19937_64& random) {
  for (const Algorithm* algorithm : catalog()) {
    if (!can_serve(*algorithm, complete(*algorithm, {.ranks = ranks})) || algorithm->collective == Collective::barrier) {
      continue;
    }
    for (const bool in_place : {false, true}) {
      const bool may = algorithm->in_place && (algorithm->collective == Collective::all_reduce ||
                                               algorithm->collective == Collective::broadcast ||
                                               algorithm->collective == Collective::reduce);
      if (in_place && !may) {
        continue;
      }
      for (const bool direct : {true, false}) {
        const std::size_t counts[] = {0, 1, random() % 50, random() % 3000, 4096, random() % 40000};
        const int root = is_rooted(algorithm->collective) ? static_cast<int>(random() % static_cast<unsigned>(ranks)) : 0;
        for (const std::size_t count : counts) {
          checks.one(*algorithm, root, count, reduces(algorithm->collective) ? Dtype::i64 : Dtype::u8, ReduceOp::sum,
                     {.in_place = in_place, .direct = direct}, true, 0, 0, random() % 2 == 0 ? 1024 : ~std::uint64_t{0});
        }
      }
    }
  }
}

// Every data type and operation, of hard values, in the order of the ranks: the same bits.
inline void check_kernels(Checks& checks, std::mt19937_64& random) {
  for (int d = 0; d < kDtypeCount; ++d) {
    for (int o = 0; o < kReduceOpCount; ++o) {
      const auto dtype = static_cast<Dtype>(d);
      const auto op = static_cast<ReduceOp>(o);
      const bool scaled = op == ReduceOp::premul_sum || op == ReduceOp::avg;
      if (dtype == Dtype::boolean || kernels::find_reduce(dtype, scaled ? ReduceOp::sum : op) == nullptr) {
        continue;
      }
      if (op == ReduceOp::premul_sum && kernels::is_nan(dtype, 0) == false && d <= static_cast<int>(Dtype::u64)) {
        continue;
      }
      for (const auto& [collective, name] : {std::pair{Collective::all_reduce, "flat"},
                                             std::pair{Collective::all_reduce, "one_shot"},
                                             std::pair{Collective::reduce_scatter, "flat"}}) {
        const Algorithm& algorithm = *find_algorithm(collective, name);
        for (const std::size_t count : {random() % 40 + 1, random() % 3000 + 1, std::size_t{8192}}) {
          checks.one(algorithm, 0, count, dtype, op, {}, false, random() % 3, random() % 3);
        }
      }
    }
  }
}

}  // namespace unisono::device
