// Operations of c10d: checks their arguments, and divides them into pieces.
#include <ATen/DeviceAccelerator.h>

#include <algorithm>

#include "backend.h"

namespace unisono_torch {

using c10d::OpType;

namespace {

// Above this size, several all_reduces cost no more than one for all tensors, and need no copies.
constexpr std::size_t kFlattenBytes = 256 * 1024;

const Tensors& only_list(const char* op, const TensorLists& lists) {
  TORCH_CHECK_VALUE(lists.size() == 1, "unisono:", op, ": ", lists.size(),
                    " lists of tensors; exactly one is expected");
  return lists.front();
}

void check_pairs(const char* op, std::size_t outs, std::size_t ins) {
  TORCH_CHECK_VALUE(outs == ins, "unisono:", op, ": ", outs, " outputs for ", ins, " inputs");
}

}  // namespace

void Backend::check_rank(const char* op, const char* what, int64_t rank) const {
  TORCH_CHECK_VALUE(rank >= 0 && rank < getSize(), "unisono:", op, ": ", what, " ", rank,
                    " is not a rank of this group; ranks are 0 to ", getSize() - 1);
}

WorkPointer Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  check_root("broadcast", options.rootRank);
  TORCH_CHECK_VALUE(options.rootTensor == 0, "unisono:broadcast: root tensor ", options.rootTensor,
                    "; use 0: there is only one tensor");
  const at::Tensor& tensor = only("broadcast", "tensors", tensors);
  return launch({.type = OpType::BROADCAST,
                 .op = "broadcast",
                 .inputs = tensors,
                 .outputs = tensors,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                broadcast_piece(tensor, static_cast<int>(options.rootRank)));
}

WorkPointer Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  if (tensors.size() == 1 && tensors[0].is_sparse()) {
    return allreduce_sparse(tensors, options);
  }
  const at::Tensor& tensor = only("all_reduce", "tensors", tensors);
  return launch({.type = OpType::ALLREDUCE,
                 .op = "all_reduce",
                 .inputs = tensors,
                 .outputs = tensors,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                all_reduce_piece("all_reduce", tensor, options.reduceOp));
}

WorkPointer Backend::allreduce_coalesced(Tensors& tensors,
                                         const c10d::AllreduceCoalescedOptions& options) {
  const char* op = "all_reduce_coalesced";
  std::size_t bytes = 0;
  bool alike = tensors.size() > 1;
  for (const at::Tensor& tensor : tensors) {
    check_tensor(op, tensor);
    bytes += tensor.nbytes();
    alike = alike && tensor.scalar_type() == tensors[0].scalar_type() &&
            tensor.device() == tensors[0].device();
  }
  std::vector<Piece> pieces;
  if (alike && bytes <= kFlattenBytes) {
    Tensors flat;
    for (const at::Tensor& tensor : tensors) {
      flat.push_back(tensor.detach().reshape({-1}));
    }
    const at::Tensor whole = at::cat(flat);
    pieces.push_back(all_reduce_piece(op, whole, options.reduceOp));
    pieces[0].held.push_back(whole);
    pieces[0].after.push_back([whole, tensors] { copy_out(whole, tensors); });
  } else {
    for (const at::Tensor& tensor : tensors) {
      pieces.push_back(all_reduce_piece(op, tensor, options.reduceOp));
    }
  }
  return launch({.type = OpType::ALLREDUCE_COALESCED,
                 .op = "all_reduce_coalesced",
                 .inputs = tensors,
                 .outputs = tensors,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                pieces);
}

WorkPointer Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  check_root("reduce", options.rootRank);
  TORCH_CHECK_VALUE(options.rootTensor == 0, "unisono:reduce: root tensor ", options.rootTensor,
                    "; use 0: there is only one tensor");
  const at::Tensor& tensor = only("reduce", "tensors", tensors);
  return launch({.type = OpType::REDUCE,
                 .op = "reduce",
                 .inputs = tensors,
                 .outputs = tensors,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                reduce_piece(tensor, options.reduceOp, static_cast<int>(options.rootRank),
                             options.rootRank == getRank()));
}

WorkPointer Backend::allgather(TensorLists& outs, Tensors& ins,
                               const c10d::AllgatherOptions& options) {
  const at::Tensor& in = only("all_gather", "inputs", ins);
  const Tensors& list = only_list("all_gather", outs);
  return launch({.type = OpType::ALLGATHER,
                 .op = "all_gather",
                 .inputs = ins,
                 .outputs = list,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                all_gather_list_piece("all_gather", list, in, getRank(), getSize()));
}

WorkPointer Backend::_allgather_base(at::Tensor& out, at::Tensor& in,
                                     const c10d::AllgatherOptions& options) {
  return launch({.type = OpType::_ALLGATHER_BASE,
                 .op = "_all_gather_base",
                 .inputs = in,
                 .outputs = out,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                all_gather_piece("all_gather_into_tensor", out, in, getRank(), getSize()));
}

WorkPointer Backend::allgather_coalesced(TensorLists& outs, Tensors& ins,
                                         const c10d::AllgatherOptions& options) {
  const char* op = "all_gather_coalesced";
  TORCH_CHECK_VALUE(outs.size() == static_cast<std::size_t>(getSize()), "unisono:", op, ": ",
                    outs.size(), " output lists for ", getSize(), " ranks");
  std::vector<Piece> pieces;
  Tensors outputs;
  for (std::size_t i = 0; i < ins.size(); ++i) {
    Tensors list;
    for (const Tensors& of_rank : outs) {
      check_pairs(op, of_rank.size(), ins.size());
      list.push_back(of_rank[i]);
      outputs.push_back(of_rank[i]);
    }
    pieces.push_back(all_gather_list_piece(op, list, ins[i], getRank(), getSize()));
  }
  return launch({.type = OpType::ALLGATHER_COALESCED,
                 .op = "all_gather_coalesced",
                 .inputs = ins,
                 .outputs = outputs,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                pieces);
}

WorkPointer Backend::allgather_into_tensor_coalesced(Tensors& outs, Tensors& ins,
                                                     const c10d::AllgatherOptions& options) {
  const char* op = "all_gather_into_tensor_coalesced";
  check_pairs(op, outs.size(), ins.size());
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < ins.size(); ++i) {
    pieces.push_back(all_gather_piece(op, outs[i], ins[i], getRank(), getSize()));
  }
  return launch({.type = OpType::COALESCED,
                 .op = "all_gather_into_tensor_coalesced",
                 .inputs = ins,
                 .outputs = outs,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                pieces);
}

WorkPointer Backend::gather(TensorLists& outs, Tensors& ins, const c10d::GatherOptions& options) {
  check_root("gather", options.rootRank);
  const at::Tensor& in = only("gather", "inputs", ins);
  const int root = static_cast<int>(options.rootRank);
  TORCH_CHECK_VALUE(root == getRank() || outs.empty(),
                    "unisono:gather: only the root may pass outputs");
  const Tensors none;
  const Tensors& list = root == getRank() ? only_list("gather", outs) : none;
  return launch({.type = OpType::GATHER,
                 .op = "gather",
                 .inputs = ins,
                 .outputs = list,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                gather_piece(list, in, root, getRank(), getSize()));
}

WorkPointer Backend::gather_single(at::Tensor& out, at::Tensor& in,
                                   const c10d::GatherOptions& options) {
  check_root("gather_single", options.rootRank);
  const int root = static_cast<int>(options.rootRank);
  return launch({.type = OpType::GATHER,
                 .op = "gather_single",
                 .inputs = in,
                 .outputs = root == getRank() ? at::TensorList(out) : at::TensorList(),
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                gather_single_piece(out, in, root, getRank(), getSize()));
}

WorkPointer Backend::scatter(Tensors& outs, TensorLists& ins, const c10d::ScatterOptions& options) {
  check_root("scatter", options.rootRank);
  const at::Tensor& out = only("scatter", "outputs", outs);
  const int root = static_cast<int>(options.rootRank);
  TORCH_CHECK_VALUE(root == getRank() || ins.empty(),
                    "unisono:scatter: only the root may pass inputs");
  const Tensors none;
  const Tensors& list = root == getRank() ? only_list("scatter", ins) : none;
  return launch({.type = OpType::SCATTER,
                 .op = "scatter",
                 .inputs = list,
                 .outputs = outs,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                scatter_piece(out, list, root, getRank(), getSize()));
}

WorkPointer Backend::reduce_scatter(Tensors& outs, TensorLists& ins,
                                    const c10d::ReduceScatterOptions& options) {
  const at::Tensor& out = only("reduce_scatter", "outputs", outs);
  const Tensors& list = only_list("reduce_scatter", ins);
  return launch({.type = OpType::REDUCE_SCATTER,
                 .op = "reduce_scatter",
                 .inputs = list,
                 .outputs = outs,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                reduce_scatter_list_piece(out, list, options.reduceOp, getRank(), getSize()));
}

WorkPointer Backend::_reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                          const c10d::ReduceScatterOptions& options) {
  return launch({.type = OpType::_REDUCE_SCATTER_BASE,
                 .op = "_reduce_scatter_base",
                 .inputs = in,
                 .outputs = out,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                reduce_scatter_piece("reduce_scatter_tensor", out, in, options.reduceOp, getRank(),
                                     getSize()));
}

WorkPointer Backend::reduce_scatter_tensor_coalesced(Tensors& outs, Tensors& ins,
                                                     const c10d::ReduceScatterOptions& options) {
  const char* op = "reduce_scatter_tensor_coalesced";
  check_pairs(op, outs.size(), ins.size());
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < ins.size(); ++i) {
    pieces.push_back(
        reduce_scatter_piece(op, outs[i], ins[i], options.reduceOp, getRank(), getSize()));
  }
  return launch({.type = OpType::REDUCE_SCATTER_TENSOR_COALESCED,
                 .op = "reduce_scatter_tensor_coalesced",
                 .inputs = ins,
                 .outputs = outs,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                pieces);
}

WorkPointer Backend::alltoall_base(at::Tensor& out, at::Tensor& in,
                                   std::vector<int64_t>& out_splits,
                                   std::vector<int64_t>& in_splits,
                                   const c10d::AllToAllOptions& options) {
  return launch({.type = OpType::ALLTOALL_BASE,
                 .op = "all_to_all",
                 .inputs = in,
                 .outputs = out,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                all_to_all_piece(out, in, out_splits, in_splits, getRank(), getSize()));
}

WorkPointer Backend::alltoall(Tensors& outs, Tensors& ins, const c10d::AllToAllOptions& options) {
  return launch({.type = OpType::ALLTOALL,
                 .op = "all_to_all",
                 .inputs = ins,
                 .outputs = outs,
                 .timeout = options.timeout,
                 .async = options.asyncOp},
                all_to_all_list_piece(outs, ins, getRank(), getSize()));
}

WorkPointer Backend::send(Tensors& tensors, int to, int tag) {
  const at::Tensor& tensor = only("send", "tensors", tensors);
  check_rank("send", "destination", to);
  return transfer({.type = OpType::SEND, .op = "send", .inputs = tensors}, tensor, true, to, tag);
}

WorkPointer Backend::recv(Tensors& tensors, int from, int tag) {
  const at::Tensor& tensor = only("recv", "tensors", tensors);
  check_rank("recv", "source", from);
  return transfer({.type = OpType::RECV, .op = "recv", .inputs = tensors, .outputs = tensors},
                  tensor, false, from, tag);
}

WorkPointer Backend::recvAnysource(Tensors& tensors, int tag) {
  const at::Tensor& tensor = only("recv", "tensors", tensors);
  return transfer(
      {.type = OpType::RECVANYSOURCE, .op = "recvAnySource", .inputs = tensors, .outputs = tensors},
      tensor, false, unisono::kAnySource, tag);
}

// Both kinds use the whole time limit, and report what each rank that has not arrived is doing.
// Afterwards the world is unusable.
void Backend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  // A limit of 0 is valid, too.
  const auto limit = options.timeout == std::chrono::milliseconds(0) ? std::chrono::milliseconds(1)
                                                                     : options.timeout;
  launch({.type = OpType::BARRIER,
          .op = "monitored_barrier",
          .timeout = limit,
          .async = false,
          .monitored = wait_all_ranks ? Monitored::all_late : Monitored::first_late},
         Piece{.call = {.collective = unisono::Collective::barrier}});
}

namespace {

// Properties of a sparse tensor that receivers need before its elements: the number of elements,
// and the shape, which must be equal on all ranks.
class SparseShape {
 public:
  static constexpr std::int64_t kMostDims = 64;
  static constexpr std::int64_t kWords = 3 + kMostDims;

  static at::Tensor of(const at::Tensor& tensor) {
    TORCH_CHECK_VALUE(tensor.dim() <= kMostDims, "unisono:all_reduce: a sparse tensor of ",
                      tensor.dim(), " dimensions; at most ", kMostDims, " work");
    at::Tensor words = at::zeros({kWords}, at::kLong);
    auto* word = words.data_ptr<std::int64_t>();
    *word++ = tensor._nnz();
    *word++ = tensor.sparse_dim();
    *word++ = tensor.dim();
    std::copy(tensor.sizes().begin(), tensor.sizes().end(), word);
    return words;
  }
  // Checks that all ranks have equal shapes. All ranks reach the same decision. `table`: the words
  // of all ranks.
  static void check_alike(const at::Tensor& table) {
    const at::Tensor shapes = table.narrow(1, 1, kWords - 1);
    for (std::int64_t rank = 1; rank < table.size(0); ++rank) {
      TORCH_CHECK_VALUE(shapes[0].equal(shapes[rank]),
                        "unisono:all_reduce: the sparse tensors differ: rank 0 has ",
                        describe(shapes[0]), ", rank ", rank, " has ", describe(shapes[rank]),
                        "; all ranks must have the same shape");
    }
  }

 private:
  static std::string describe(const at::Tensor& shape) {
    const auto* word = shape.data_ptr<std::int64_t>();
    return c10::str("sizes ", c10::IntArrayRef(word + 2, static_cast<std::size_t>(word[1])),
                    " with ", word[0], " sparse dimensions");
  }
};

}  // namespace

// Gathers the elements of all ranks on every rank, which adds them up. Runs in the caller's thread.
WorkPointer Backend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
  TORCH_CHECK_VALUE(options.reduceOp.op_ == c10d::ReduceOp::SUM,
                    "unisono:all_reduce: only SUM works on sparse tensors");
  const at::Tensor& sparse = tensors[0];
  TORCH_CHECK_VALUE(sparse.is_cpu(), "unisono:all_reduce: a sparse tensor on ", sparse.device(),
                    "; sparse tensors are supported only on the CPU");
  const at::Tensor mine = sparse.detach().coalesce();
  const auto size = static_cast<std::int64_t>(getSize());
  Launch step{.type = OpType::_ALLREDUCE_SPARSE,
              .op = "sparse_all_reduce",
              .inputs = tensors,
              .timeout = options.timeout,
              .async = false};
  at::Tensor shapes = at::empty({size, SparseShape::kWords}, at::kLong);
  launch(step, all_gather_piece("all_reduce", shapes, SparseShape::of(mine), getRank(), getSize()));
  SparseShape::check_alike(shapes);
  Tensors indices;
  Tensors values;
  auto value_sizes = mine._values().sizes().vec();
  for (std::int64_t rank = 0; rank < size; ++rank) {
    const std::int64_t count = shapes[rank][0].item<std::int64_t>();
    value_sizes[0] = count;
    indices.push_back(at::empty({mine.sparse_dim(), count}, mine._indices().options()));
    values.push_back(at::empty(value_sizes, mine._values().options()));
  }
  launch(step, all_gather_list_piece("all_reduce", indices, mine._indices(), getRank(), getSize()));
  launch(step, all_gather_list_piece("all_reduce", values, mine._values(), getRank(), getSize()));
  const at::Tensor total =
      at::sparse_coo_tensor(at::cat(indices, 1), at::cat(values, 0), sparse.sizes()).coalesce();
  {
    const at::NoGradGuard no_grad;
    tensors[0].copy_(total);
  }
  if (!options.asyncOp) {
    return nullptr;
  }
  auto work = c10::make_intrusive<Operation>(
      Operation::Description{.rank = getRank(), .type = step.type, .outputs = tensors},
      pending_operations_);
  work->complete_now();
  return work;
}

}  // namespace unisono_torch
