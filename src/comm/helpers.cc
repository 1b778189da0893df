#include "comm/helpers.h"

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "algorithms/catalog.h"
#include "base/dtypes.h"
#include "select/planner.h"

namespace unisono::comm {
namespace {

bool is_cut(const Call& call) {
  switch (call.collective) {
    case Collective::all_reduce:  // a user's function need not be thread-safe
      return call.reduction.op != ReduceOp::user;
    case Collective::reduce_scatter:  // each slice would repeat the conversion
      return call.reduction.op != ReduceOp::user && call.reduction.op != ReduceOp::premul_sum &&
             moved_dtype(call.collective, call.dtype, call.reduction.op) == call.dtype;
    case Collective::broadcast:
    case Collective::all_gather:
    case Collective::all_to_all:
      return true;
    default:
      return false;
  }
}

bool sums(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter;
}

}  // namespace

Helpers::Helpers(WaitEnvironment& world, HelperThreads& threads, std::vector<Make> helpers,
                 int rank, int ranks)
    : world_(world), threads_(threads), helpers_(std::move(helpers)), rank_(rank) {
  parts_.assign(helpers_.size() + 1, Part(ranks));
}

int Helpers::slices_of(const Call& call) const noexcept {
  return is_cut(call) ? movers_of(call.count, call.dtype, static_cast<int>(parts_.size())) : 1;
}

bool Helpers::may_cut(const Call& call, const Prepared& whole) noexcept {
  if (whole.encoded) {  // the blocks of a slice begin elsewhere
    return false;
  }
  if (!sums(call.collective)) {
    return true;
  }
  const Algorithm* const algorithm = find_algorithm(call.collective, whole.algorithm);
  return algorithm != nullptr && algorithm->rank_order &&
         (call.collective == Collective::all_reduce || algorithm->allows_v);
}

Call Helpers::set_aside(const Call& call) {
  const auto* const in = static_cast<const std::byte*>(call.in);
  const std::size_t part = call.count * size_of(call.dtype);
  const bool is_in_place = (call.collective == Collective::all_to_all && call.in == call.out) ||
                           (call.collective == Collective::reduce_scatter &&
                            call.out == in + static_cast<std::size_t>(rank_) * part);
  if (!is_in_place) {
    return call;
  }
  aside_.assign(in, in + part * parts_.front().lists.counts.size());
  Call copied = call;
  copied.in = aside_.data();
  return copied;
}

bool Helpers::run(const Call& call, const Prepared& whole, int slices, const Make& first) {
  if (used_.exchange(true, std::memory_order_acquire)) {
    return false;
  }
  const auto cut_and_make = [&](int number) {
    Part& part = parts_[static_cast<std::size_t>(number)];
    part.error = nullptr;
    try {
      (number == 0 ? first : helpers_[static_cast<std::size_t>(number - 1)])(part.call);
    } catch (const std::exception& error) {
      part.error = std::current_exception();
      world_.raise(error);  // the other slices wait for this slice's peers, here and on other ranks
    }
  };
  std::exception_ptr error;
  try {
    Call given = set_aside(call);
    given.algorithm = sums(call.collective) ? std::string_view(whole.algorithm) : call.algorithm;
    given.max_error = 0;  // only exact calls are cut, and an inherited value would be applied again
    for (int number = 0; number < slices; ++number) {
      Part& part = parts_[static_cast<std::size_t>(number)];
      part.call = sliced(given, slice_of(call.count, call.dtype, slices, number), part.lists);
    }
    threads_.run(slices, cut_and_make);
    for (int number = slices; number-- > 0;) {
      const std::exception_ptr& failed = parts_[static_cast<std::size_t>(number)].error;
      error = failed != nullptr ? failed : error;
    }
  } catch (const std::exception&) {  // no memory for a copy: nothing has begun
    error = std::current_exception();
  }
  used_.store(false, std::memory_order_release);
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
  return true;
}

}  // namespace unisono::comm
