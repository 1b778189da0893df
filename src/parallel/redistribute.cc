// redistribute(): reads peers' memory if possible; otherwise uses a collective, and packs its data
// if necessary.
#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <vector>

#include "base/as_size.h"
#include "base/collectives.h"
#include "base/dtypes.h"
#include "kernels/kernels.h"
#include "parallel/floats.h"
#include "parallel/refuse.h"
#include "parallel/strided.h"
#include "parallel/tensor_descriptors.h"
#include "unisono/parallel/placement.hpp"

namespace unisono::parallel {
namespace {

using Kind = Placement::Kind;

// A call of redistribute() with valid tensors.
struct Job {
  Communicator& comm;
  const Tensor& in;
  const Tensor& out;
  Placement from;
  Placement to;
  std::vector<std::size_t> whole;
  int timeout_ms = -1;

  int ranks() const { return comm.size(); }
  int rank() const { return comm.rank(); }
  Range part(std::size_t dim, int of) const { return shard_range(whole[dim], ranks(), of); }
  // Returns the part of a rank's `in` that rank `to_rank` needs.
  Tensor for_rank(const Tensor& source, int to_rank) const {
    if (to.kind != Kind::shard) {
      return source;
    }
    const Range range = part(to.dim, to_rank);
    return source.slice(to.dim, range.first, range.count);
  }
  // Returns the destination in `out` of the data from a rank.
  Tensor place_of(int from_rank) const {
    if (from.kind != Kind::shard) {
      return out;
    }
    const Range range = part(from.dim, from_rank);
    return out.slice(from.dim, range.first, range.count);
  }
  void run(Call call) const {
    call.dtype = in.dtype;
    call.timeout_ms = timeout_ms;
    SumOnce sum(comm, call);
    comm.run(sum.call());
    sum.finish();
  }
};

void reduce_in_place(const Job& job, std::vector<Tensor>& sources) {
  const Dtype dtype = job.in.dtype;
  const auto n = static_cast<int>(sources.size());
  const bool average = job.from.op == ReduceOp::avg;
  const kernels::ReduceFunction reduce = kernels::find_reduce(dtype, job.from.op);
  const kernels::ScaledSumFunction scaled_sum = average ? kernels::find_scaled_sum(dtype) : nullptr;
  const kernels::AverageScale scale =
      scaled_sum != nullptr ? kernels::average_scale(n) : kernels::AverageScale{.divisor = 1.0 * n};
  const kernels::Store store = store_for(job.out.count() * size_of(dtype));
  const auto combine = [&](void* target, const void* const* from, std::size_t count) {
    if (scaled_sum != nullptr) {
      scaled_sum(&target, 1, from, n, count, store,
                 {.factor = scale.factor, .sources = ~std::uint64_t{0}});
    } else {
      reduce(&target, 1, from, n, count, store);
    }
  };
  reduce_elements(sources, job.out, combine, store);
  if (average && scale.divisor != 1) {
    scale_elements(job.out, kernels::find_divide(dtype), scale.divisor);
  }
}

// Returns true if the collective sums such elements in a wider type, and rounds the mean once.
bool is_summed_wider(const Job& job) {
  return job.from.kind == Kind::partial && job.from.op == ReduceOp::avg &&
         (is_narrow(job.in.dtype) ||
          moved_dtype(Collective::reduce_scatter, job.in.dtype, job.from.op) != job.in.dtype);
}

// Every rank reads directly from its peers. Returns false if not all of them can be read.
bool run_direct(const Job& job, const std::vector<TensorDescriptor>& descriptors) {
  if (job.comm.hosts() != 1 || (job.from.kind == Kind::partial && job.to.kind != Kind::shard) ||
      job.ranks() > kernels::kMaxSources || is_summed_wider(job)) {
    return false;
  }
  for (const TensorDescriptor& descriptor : descriptors) {
    const bool empty =
        std::find(descriptor.shape.begin(), descriptor.shape.begin() + descriptor.dims, 0U) !=
        descriptor.shape.begin() + descriptor.dims;
    if (descriptor.place.region == 0 && !empty) {
      return false;  // all ranks see it and return
    }
  }
  std::vector<Tensor> sources;
  for (int rank = 0; rank < job.ranks(); ++rank) {
    sources.push_back(rank == job.rank() ? job.in
                                         : tensor_of(job.comm, rank, descriptors[as_size(rank)]));
    if (sources.back().data == nullptr && sources.back().count() != 0) {
      throw Error(ErrorCode::resource,
                  "redistribute: the registered memory of rank " + std::to_string(rank) +
                      " cannot be read here\nkeep its Region until all ranks have returned",
                  {.rank = job.rank(), .peer = rank});
    }
    sources.back() = job.for_rank(sources.back(), job.rank());
  }
  if (job.from.kind == Kind::partial) {
    reduce_in_place(job, sources);
  } else {
    const kernels::Store store = store_for(job.out.count() * size_of(job.out.dtype));
    for (int turn = 0; turn < job.ranks(); ++turn) {
      const int peer = (job.rank() + turn) % job.ranks();  // each rank starts with another peer
      copy_elements(sources[as_size(peer)], job.place_of(peer), store);
    }
  }
  job.comm.barrier(job.timeout_ms);  // wait until all ranks have read `in`
  return true;
}

// Memory for packed elements.
struct Packed {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> counts;
};

// Returns true if the parts of `tensor` along `dim` are consecutive in memory.
bool in_order(const Tensor& tensor, std::size_t dim) {
  return tensor.is_packed() &&
         std::all_of(tensor.shape.begin(), tensor.shape.begin() + static_cast<std::ptrdiff_t>(dim),
                     [](std::size_t size) { return size == 1; });
}

template <typename PartOf>
std::vector<std::size_t> counts_of(const Job& job, const PartOf& part_of) {
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < job.ranks(); ++rank) {
    counts.push_back(part_of(rank).count());
  }
  return counts;
}

// Copies between strided parts and consecutive memory.
template <typename PartOf>
void pack(const Job& job, std::vector<std::byte>& bytes, const PartOf& part_of, bool unpack) {
  std::size_t at = 0;
  for (int rank = 0; rank < job.ranks(); ++rank) {
    const Tensor part = part_of(rank);
    const Tensor line = Tensor::packed(bytes.data() + at, part.dtype, part.shape);
    copy_elements(unpack ? line : part, unpack ? part : line, kernels::Store::cached);
    at += part.count() * size_of(part.dtype);
  }
}

std::size_t bytes_of(const Tensor& tensor) {
  return tensor.count() * size_of(tensor.dtype);
}

void run_all_gather(const Job& job) {
  const bool out_in_order = in_order(job.out, job.from.dim);
  std::vector<std::byte> packed_in(job.in.is_packed() ? 0 : bytes_of(job.in));
  std::vector<std::byte> packed_out(out_in_order ? 0 : bytes_of(job.out));
  const void* in = job.in.data;
  if (!job.in.is_packed()) {
    copy_elements(job.in, Tensor::packed(packed_in.data(), job.in.dtype, job.in.shape),
                  kernels::Store::cached);
    in = packed_in.data();
  }
  const auto place = [&](int rank) { return job.place_of(rank); };
  const auto counts = counts_of(job, place);
  job.run({.collective = Collective::all_gather_v,
           .in = in,
           .out = out_in_order ? job.out.data : packed_out.data(),
           .counts = counts});
  if (!out_in_order) {
    pack(job, packed_out, place, true);
  }
}

void run_reduce_scatter(const Job& job) {
  const bool in_is_in_order = in_order(job.in, job.to.dim);
  std::vector<std::byte> packed_in(in_is_in_order ? 0 : bytes_of(job.in));
  std::vector<std::byte> packed_out(job.out.is_packed() ? 0 : bytes_of(job.out));
  const auto part = [&](int rank) { return job.for_rank(job.in, rank); };
  if (!in_is_in_order) {
    pack(job, packed_in, part, false);
  }
  const auto counts = counts_of(job, part);
  job.run({.collective = Collective::reduce_scatter_v,
           .in = in_is_in_order ? job.in.data : packed_in.data(),
           .out = job.out.is_packed() ? job.out.data : packed_out.data(),
           .reduction = job.from.op,
           .counts = counts});
  if (!job.out.is_packed()) {
    copy_elements(Tensor::packed(packed_out.data(), job.out.dtype, job.out.shape), job.out,
                  kernels::Store::cached);
  }
}

void run_all_to_all(const Job& job) {
  const auto part = [&](int rank) { return job.for_rank(job.in, rank); };
  const auto place = [&](int rank) { return job.place_of(rank); };
  const auto counts = counts_of(job, part);
  const auto recv_counts = counts_of(job, place);
  const bool in_is_in_order = in_order(job.in, job.to.dim);
  const bool out_in_order = in_order(job.out, job.from.dim);
  std::vector<std::byte> packed_in(in_is_in_order ? 0 : bytes_of(job.in));
  std::vector<std::byte> packed_out(out_in_order ? 0 : bytes_of(job.out));
  if (!in_is_in_order) {
    pack(job, packed_in, part, false);
  }
  job.run({.collective = Collective::all_to_all_v,
           .in = in_is_in_order ? job.in.data : packed_in.data(),
           .out = out_in_order ? job.out.data : packed_out.data(),
           .counts = counts,
           .recv_counts = recv_counts});
  if (!out_in_order) {
    pack(job, packed_out, place, true);
  }
}

void run_all_reduce(const Job& job) {
  const Tensor* out = &job.out;
  std::vector<std::byte> memory;
  Tensor packed;
  if (!job.out.is_packed() || !job.in.is_packed()) {
    memory.resize(bytes_of(job.in));
    packed = Tensor::packed(memory.data(), job.in.dtype, job.in.shape);
    copy_elements(job.in, packed, kernels::Store::cached);
    out = &packed;
  }
  job.run({.collective = Collective::all_reduce,
           .in = out == &packed ? packed.data : job.in.data,
           .out = out->data,
           .count = out->count(),
           .reduction = job.from.op});
  if (out == &packed) {
    copy_elements(packed, job.out, kernels::Store::cached);
  }
}

// Returns true if data of other ranks is needed.
bool moves(const Placement& from, const Placement& to) {
  return from != to &&
         (from.kind == Kind::partial || (from.kind == Kind::shard && to.kind != Kind::partial));
}

// Handles conversions that need no other rank.
void run_alone(const Job& job) {
  if (job.from.kind == Kind::replicate && job.to.kind == Kind::partial) {
    if (job.rank() == 0) {
      copy_elements(job.in, job.out, kernels::Store::cached);
    } else {
      fill_with_zeros(job.out);
    }
  } else if (job.from.kind == Kind::shard && job.to.kind == Kind::partial) {
    fill_with_zeros(job.out);
    copy_elements(job.in, job.place_of(job.rank()), kernels::Store::cached);
  } else if (job.from.kind == Kind::replicate) {
    copy_elements(job.for_rank(job.in, job.rank()), job.out, kernels::Store::cached);
  } else {
    copy_elements(job.in, job.out, kernels::Store::cached);
  }
}

void check_conversion(const Placement& from, const Placement& to, Dtype dtype,
                      const RedistributeOptions& options) {
  if (to.kind == Kind::partial && from.kind != Kind::partial && to.op != ReduceOp::sum) {
    refuse("redistribute", "to " + to_string(to), "only a sum can treat missing data as zero");
  }
  if (from.kind == Kind::replicate && to.kind == Kind::partial && !options.replicate_to_partial) {
    refuse("redistribute",
           "a conversion from replicate to partial keeps the data on rank 0 only, which is rarely "
           "intended",
           "set RedistributeOptions::replicate_to_partial if it is intended");
  }
  if (from.kind == Kind::partial && to.kind == Kind::partial && from.op != to.op) {
    refuse("redistribute", "from " + to_string(from) + " to " + to_string(to),
           "a partial cannot change its op");
  }
  if (from.kind == Kind::partial) {
    const bool known = from.op == ReduceOp::sum || from.op == ReduceOp::avg ||
                       from.op == ReduceOp::prod || from.op == ReduceOp::min ||
                       from.op == ReduceOp::max;
    if (!known || kernels::find_reduce(dtype, from.op == ReduceOp::avg ? ReduceOp::sum : from.op) ==
                      nullptr) {
      refuse("redistribute", to_string(from) + " of " + std::string(to_string(dtype)),
             "use sum, avg, prod, min or max, on numbers");
    }
  }
}

void check_overlap(const Job& job) {
  if (job.in.data != job.out.data || job.in.count() == 0 || job.ranks() == 1) {
    return;
  }
  const bool reduces = job.from.kind == Kind::partial && job.to.kind == Kind::replicate;
  const bool gathers = job.from.kind == Kind::shard && job.to.kind == Kind::replicate;
  if (!(reduces && job.in.strides == job.out.strides) &&
      !(gathers && job.in.strides == job.out.strides && job.rank() == 0)) {
    refuse("redistribute",
           "`in` and `out` are the same memory, from " + to_string(job.from) + " to " +
               to_string(job.to),
           "pass other memory for `out`");
  }
}

}  // namespace

void redistribute(Communicator& communicator, const Tensor& in, Placement from, const Tensor& out,
                  Placement to, const RedistributeOptions& options) {
  Job job{.comm = communicator,
          .in = in,
          .out = out,
          .from = from,
          .to = to,
          .whole = {},
          .timeout_ms = options.timeout_ms};
  const bool alone = communicator.size() == 1 || !moves(from, to);
  std::string wrong;
  try {
    check_conversion(from, to, in.dtype, options);
    job.whole = whole_shape(communicator, in, from, out, to);
    check_overlap(job);
  } catch (const Error& error) {
    if (alone) {
      throw;
    }
    wrong = error.message();  // do not throw yet: the other ranks wait for this one
  }
  if (alone) {
    run_alone(job);
    return;
  }
  const std::vector<TensorDescriptor> descriptors = exchange_descriptors(
      communicator, in, {.from = from, .to = to}, job.whole, wrong, options.timeout_ms);
  if (run_direct(job, descriptors)) {
    return;
  }
  if (from.kind == Kind::partial) {
    to.kind == Kind::shard ? run_reduce_scatter(job) : run_all_reduce(job);
  } else {
    to.kind == Kind::shard ? run_all_to_all(job) : run_all_gather(job);
  }
}

}  // namespace unisono::parallel
