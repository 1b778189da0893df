#include "bench/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "schedule/schedule.h"

namespace unisono::cli {
namespace {

// Results up to this size are checked again after timing.
constexpr std::uint64_t kCheckedTwice = 1 << 20;
constexpr std::size_t kAlignment = 4096;

std::byte* aligned(std::vector<std::byte>& memory) {
  void* start = memory.data();
  std::size_t space = memory.size();
  return static_cast<std::byte*>(std::align(kAlignment, 1, start, space));
}

}  // namespace

std::uint64_t read_all(const void* data, std::size_t bytes) {
  std::uint64_t sum = 0;
  const auto* words = static_cast<const std::byte*>(data);
  for (std::size_t i = 0; i + sizeof(sum) <= bytes; i += sizeof(sum)) {
    std::uint64_t word = 0;
    std::memcpy(&word, words + i, sizeof(word));
    sum += word;
  }
  return sum;
}

Runner::Runner(Communicator& comm, const RunnerOptions& options)
    : comm_(comm), options_(options), limit_(comm) {
  // A part has at least one element, so that small cases grow to one element for each rank.
  const std::size_t bytes =
      static_cast<std::size_t>(options.most_bytes) + 16 * static_cast<std::size_t>(comm.size());
  if (options.registered) {
    for (Region& region : regions_) {
      region = comm.allocate(bytes);
    }
    first_ = regions_[0].bytes().data();
    second_ = regions_[1].bytes().data();
  } else {
    for (std::vector<std::byte>& memory : memory_) {
      memory.resize(bytes + kAlignment);
    }
    first_ = aligned(memory_[0]);
    second_ = aligned(memory_[1]);
  }
}

Runner::Buffers Runner::place(const Case& row, const CaseCounts& layout) {
  const std::size_t element = size_of(row.dtype);
  if (!row.in_place) {
    return {.in = layout.in_count == 0 ? nullptr : first_,
            .out = layout.out_count == 0 ? nullptr : second_};
  }
  return {.in = first_ + layout.in_offset * element, .out = first_ + layout.out_offset * element};
}

Call Runner::call_of(const Case& row, const CaseCounts& layout, Buffers buffers) const {
  Call call{.collective = row.workload.collective,
            .in = buffers.in,
            .out = buffers.out,
            .count = layout.counts.empty() ? layout.count : 0,
            .dtype = row.dtype,
            .reduction = row.op == ReduceOp::premul_sum ? Reduction::premul_sum(kPremulFactor)
                                                        : Reduction(row.op),
            .root = is_rooted(row.workload.collective) ? row.root : 0};
  call.counts = layout.counts;
  call.recv_counts = layout.recv_counts;
  call.algorithm = row.algorithm;
  // Results are compared with exact ones, even if the communicator allows an error.
  call.max_error = 0;
  return call;
}

std::function<void()> Runner::operation(const Case& row, const CaseCounts& layout, Buffers buffers,
                                        const Call& call) {
  if (row.workload.send_recv) {
    const int next = (comm_.rank() + 1) % comm_.size();
    const int before = (comm_.rank() + comm_.size() - 1) % comm_.size();
    const std::size_t bytes = layout.in_count * size_of(row.dtype);
    return [this, buffers, bytes, next, before] {
      Request receiving = comm_.recv_async(buffers.out, bytes, before);
      comm_.send(buffers.in, bytes, next);
      receiving.wait();
    };
  }
  if (options_.persistent) {
    return [plan = plan_] { plan->start(); };
  }
  return [this, call] { comm_.run(call); };
}

void Runner::check(const Case& row, const CaseCounts& layout, const DataRule& rule, const void* out,
                   Checked& checked) const {
  const std::uint64_t wrong = check_case(row, layout, rule, comm_.rank(), out);
  checked.checks += layout.out_count > 0 ? 1 : 0;
  checked.failed += wrong > 0 ? 1 : 0;
  checked.wrong += wrong;
}

Runner::Checked Runner::on_all_ranks(const Checked& mine) {
  // The seed proves that the gathered results belong to this case.
  Checked total;
  const auto seed = static_cast<double>(seed_);
  const auto all =
      gather_numbers(comm_, {seed + comm_.rank(), static_cast<double>(mine.checks),
                             static_cast<double>(mine.failed), static_cast<double>(mine.wrong)});
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank][0] != seed + static_cast<double>(rank)) {
      throw Error(ErrorCode::corrupt,
                  fmt::format("the gathered results of rank {} are not its own\nall_gather returns "
                              "wrong data: try another --algorithm",
                              rank));
    }
    total.checks += static_cast<std::uint64_t>(all[rank][1]);
    total.failed += static_cast<std::uint64_t>(all[rank][2]);
    total.wrong += static_cast<std::uint64_t>(all[rank][3]);
  }
  return total;
}

Row Runner::run(const Case& row) {
  ++seed_;
  const int rank = comm_.rank();
  const CaseCounts layout = layout_of(row, rank, comm_.size());
  const DataRule rule = data_rule(row, comm_.size(), seed_, options_.random);
  const Buffers buffers = place(row, layout);
  const Call call = call_of(row, layout, buffers);
  Row result{.what = row,
             .algorithm = "-",
             .ranks = comm_.size(),
             .count = layout.count,
             .bytes = layout.size_bytes,
             .timing = {},
             .limit_us = 0,
             .wrong = 0,
             .bound = bound_text(rule)};
  plan_.reset();
  if (!row.workload.send_recv) {
    plan_ = std::make_shared<Plan>(comm_.plan(call));
    result.algorithm = plan_->algorithm();
  }
  const std::function<void()> operate = operation(row, layout, buffers, call);
  fill_case(row, layout, rule, rank, buffers.in, buffers.out);
  operate();
  Checked checked;
  check(row, layout, rule, buffers.out, checked);
  const std::size_t element = size_of(row.dtype);
  volatile std::uint64_t sink = 0;
  result.timing = measure(comm_, options_.timing, operate, [&] {
    sink = sink + read_all(buffers.out, layout.out_count * element);
    if (buffers.in != nullptr) {
      fill(rule, rank, 0, layout.in_count, buffers.in);
    }
  });
  // The inputs are unchanged, so the last result must be right as well.
  if (!row.in_place && layout.size_bytes <= kCheckedTwice) {
    check(row, layout, rule, buffers.out, checked);
  }
  checked = on_all_ranks(checked);
  result.wrong = checked.wrong;
  result.checks = checked.checks;
  result.failed = checked.failed;
  // The time of a call is always possible, even if it is below the limit because the copy was
  // disturbed.
  result.limit_us = std::min(limit_.time_us(row, layout), result.timing.time_us);
  return result;
}

}  // namespace unisono::cli
