// Builds the calls of each collective. Parts of equal length use the plain forms, other parts the
// v-forms. The choice depends only on information that all ranks have.
#include <algorithm>
#include <numeric>
#include <utility>

#include "pieces.h"

namespace unisono_torch {
namespace {

using unisono::Collective;

std::size_t count_of(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel());
}

std::vector<std::size_t> counts_of(const std::vector<at::Tensor>& tensors, std::size_t units) {
  std::vector<std::size_t> counts;
  for (const at::Tensor& tensor : tensors) {
    counts.push_back(count_of(tensor) * units);
  }
  return counts;
}

bool all_equal(const std::vector<std::size_t>& counts) {
  return std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
}

void check_list(const char* op, const std::vector<at::Tensor>& list, int size,
                const at::Tensor& like) {
  TORCH_CHECK_VALUE(list.size() == static_cast<std::size_t>(size), "unisono:", op, ": a list of ",
                    list.size(), " tensors for ", size, " ranks; there must be one for each");
  for (const at::Tensor& tensor : list) {
    check_tensor(op, tensor);
    check_alike(op, tensor, like);
  }
}

// Converts 16-bit integers to 32-bit integers for the operation.
at::Tensor widened(const Reducing& how, const at::Tensor& tensor) {
  return how.as == at::ScalarType::Undefined ? tensor : tensor.detach().to(how.as).contiguous();
}

at::Tensor wide_room(Piece& piece, const Reducing& how, const at::Tensor& out) {
  if (how.as == at::ScalarType::Undefined) {
    return out;
  }
  const at::Tensor room = at::empty(out.sizes(), out.options().dtype(how.as).requires_grad(false));
  piece.after.push_back([room, out] { out.detach().copy_(room); });
  return room;
}

// Returns the number of elements for each rank, in rows of dim 0.
std::vector<std::size_t> split_counts(const at::Tensor& tensor,
                                      const std::vector<std::int64_t>& splits, int size,
                                      const char* which, std::size_t units) {
  const std::int64_t rows = tensor.dim() == 0 ? 0 : tensor.size(0);
  const std::int64_t row = rows == 0 ? 0 : tensor.numel() / rows;
  if (splits.empty()) {
    TORCH_CHECK_VALUE(tensor.dim() > 0 && rows % size == 0, "unisono:all_to_all: dim 0 of the ",
                      which, " is ", rows, ", which ", size,
                      " ranks do not divide; give split sizes");
    return std::vector<std::size_t>(static_cast<std::size_t>(size),
                                    static_cast<std::size_t>(rows / size * row) * units);
  }
  TORCH_CHECK_VALUE(splits.size() == static_cast<std::size_t>(size),
                    "unisono:all_to_all: ", splits.size(), " ", which, " split sizes for ", size,
                    " ranks");
  std::vector<std::size_t> counts;
  std::int64_t sum = 0;
  for (const std::int64_t split : splits) {
    TORCH_CHECK_VALUE(split >= 0, "unisono:all_to_all: an ", which, " split size is ", split);
    TORCH_CHECK_VALUE(split <= rows - sum, "unisono:all_to_all: the ", which,
                      " split sizes add up to more than its dim 0, which is ", rows);
    sum += split;
    counts.push_back(static_cast<std::size_t>(split * row) * units);
  }
  TORCH_CHECK_VALUE(sum == rows, "unisono:all_to_all: the ", which, " split sizes add up to ", sum,
                    ", but its dim 0 is ", rows);
  return counts;
}

}  // namespace

Piece broadcast_piece(const at::Tensor& tensor, int root) {
  Piece piece;
  const Elements elements = elements_of(tensor.scalar_type());
  void* data = piece.read_and_write(tensor);
  piece.call = {.collective = Collective::broadcast,
                .in = data,
                .out = data,
                .count = count_of(tensor) * elements.units,
                .dtype = elements.dtype,
                .root = root};
  return piece;
}

Piece all_reduce_piece(const char* op, const at::Tensor& tensor, const c10d::ReduceOp& how) {
  check_tensor(op, tensor);
  Piece piece;
  const Reducing reducing = reducing_of(tensor.scalar_type(), how);
  at::Tensor data = tensor;
  if (reducing.as != at::ScalarType::Undefined) {
    data = widened(reducing, tensor);
    piece.after.push_back([data, tensor] { tensor.detach().copy_(data); });
  }
  void* place = piece.read_and_write(data);
  piece.call = {.collective = Collective::all_reduce,
                .in = place,
                .out = place,
                .count = count_of(tensor) * reducing.units,
                .dtype = reducing.dtype,
                .reduction = reducing.reduction};
  return piece;
}

Piece reduce_piece(const at::Tensor& tensor, const c10d::ReduceOp& how, int root, bool is_root) {
  Piece piece = all_reduce_piece("reduce", tensor, how);
  piece.call.collective = Collective::reduce;
  piece.call.root = root;
  if (!is_root) {
    piece.call.out = nullptr;
    piece.after.clear();
  }
  return piece;
}

Piece all_gather_piece(const char* op, const at::Tensor& out, const at::Tensor& in, int rank,
                       int size) {
  check_tensor(op, out);
  check_tensor(op, in);
  check_alike(op, out, in);
  TORCH_CHECK_VALUE(out.numel() == in.numel() * size, "unisono:", op, ": the output has ",
                    out.numel(), " elements; ", size, " ranks of ", in.numel(), " make ",
                    in.numel() * size);
  Piece piece;
  const Elements elements = elements_of(in.scalar_type());
  piece.call = {.collective = Collective::all_gather,
                .in = piece.read(in),
                .out = piece.write(out),
                .count = count_of(in) * elements.units,
                .dtype = elements.dtype};
  piece.separate(in.nbytes(), out.nbytes(), static_cast<std::ptrdiff_t>(in.nbytes()) * rank);
  return piece;
}

Piece all_gather_list_piece(const char* op, const std::vector<at::Tensor>& outs,
                            const at::Tensor& in, int rank, int size) {
  check_tensor(op, in);
  check_list(op, outs, size, in);
  const at::Tensor& mine = outs[static_cast<std::size_t>(rank)];
  TORCH_CHECK_VALUE(mine.numel() == in.numel(), "unisono:", op, ": the input has ", in.numel(),
                    " elements, its place in the output list ", mine.numel());
  Piece piece;
  const Elements elements = elements_of(in.scalar_type());
  std::size_t bytes = 0;
  std::size_t before = 0;
  for (int other = 0; other < size; ++other) {
    before += other < rank ? outs[static_cast<std::size_t>(other)].nbytes() : 0;
    bytes += outs[static_cast<std::size_t>(other)].nbytes();
  }
  piece.counts = counts_of(outs, elements.units);
  piece.call = {.collective = Collective::all_gather_v,
                .in = piece.read(in),
                .out = piece.write_all(outs),
                .dtype = elements.dtype};
  if (all_equal(piece.counts)) {
    piece.call.collective = Collective::all_gather;
    piece.call.count = piece.counts.front();
    piece.counts.clear();
  }
  piece.separate(in.nbytes(), bytes, static_cast<std::ptrdiff_t>(before));
  return piece;
}

Piece reduce_scatter_piece(const char* op, const at::Tensor& out, const at::Tensor& in,
                           const c10d::ReduceOp& how, int rank, int size) {
  check_tensor(op, out);
  check_tensor(op, in);
  check_alike(op, out, in);
  TORCH_CHECK_VALUE(in.numel() == out.numel() * size, "unisono:", op, ": the input has ",
                    in.numel(), " elements; ", size, " ranks of ", out.numel(), " make ",
                    out.numel() * size);
  Piece piece;
  const Reducing reducing = reducing_of(in.scalar_type(), how);
  const at::Tensor from = widened(reducing, in);
  const at::Tensor to = wide_room(piece, reducing, out);
  piece.call = {.collective = Collective::reduce_scatter,
                .in = piece.read(from),
                .out = piece.write(to),
                .count = count_of(out) * reducing.units,
                .dtype = reducing.dtype,
                .reduction = reducing.reduction};
  piece.separate(from.nbytes(), to.nbytes(), -static_cast<std::ptrdiff_t>(to.nbytes()) * rank);
  return piece;
}

Piece reduce_scatter_list_piece(const at::Tensor& out, const std::vector<at::Tensor>& ins,
                                const c10d::ReduceOp& how, int rank, int size) {
  check_tensor("reduce_scatter", out);
  check_list("reduce_scatter", ins, size, out);
  const at::Tensor& mine = ins[static_cast<std::size_t>(rank)];
  TORCH_CHECK_VALUE(mine.numel() == out.numel(), "unisono:reduce_scatter: the output has ",
                    out.numel(), " elements, its place in the input list ", mine.numel());
  Piece piece;
  const Reducing reducing = reducing_of(out.scalar_type(), how);
  std::vector<at::Tensor> from;
  std::size_t bytes = 0;
  std::size_t before = 0;
  for (const at::Tensor& in : ins) {
    before = from.size() == static_cast<std::size_t>(rank) ? bytes : before;
    from.push_back(widened(reducing, in));
    bytes += from.back().nbytes();
  }
  const at::Tensor to = wide_room(piece, reducing, out);
  piece.counts = counts_of(ins, reducing.units);
  piece.call = {.collective = Collective::reduce_scatter_v,
                .in = piece.read_all(from),
                .out = piece.write(to),
                .dtype = reducing.dtype,
                .reduction = reducing.reduction};
  if (all_equal(piece.counts)) {
    piece.call.collective = Collective::reduce_scatter;
    piece.call.count = piece.counts.front();
    piece.counts.clear();
  }
  piece.separate(bytes, to.nbytes(), -static_cast<std::ptrdiff_t>(before));
  return piece;
}

Piece gather_piece(const std::vector<at::Tensor>& outs, const at::Tensor& in, int root, int rank,
                   int size) {
  check_tensor("gather", in);
  Piece piece;
  const Elements elements = elements_of(in.scalar_type());
  piece.call = {.collective = Collective::gather,
                .in = piece.read(in),
                .count = count_of(in) * elements.units,
                .dtype = elements.dtype,
                .root = root};
  if (rank != root) {
    return piece;
  }
  check_list("gather", outs, size, in);
  for (const at::Tensor& out : outs) {
    TORCH_CHECK_VALUE(out.numel() == in.numel(), "unisono:gather: the input has ", in.numel(),
                      " elements, an output ", out.numel(), "; all must be equal");
  }
  piece.call.out = piece.write_all(outs);
  piece.separate(in.nbytes(), in.nbytes() * static_cast<std::size_t>(size),
                 static_cast<std::ptrdiff_t>(in.nbytes()) * rank);
  return piece;
}

// `out` is used only on the root.
Piece gather_single_piece(const at::Tensor& out, const at::Tensor& in, int root, int rank,
                          int size) {
  check_tensor("gather_single", in);
  Piece piece;
  const Elements elements = elements_of(in.scalar_type());
  piece.call = {.collective = Collective::gather,
                .in = piece.read(in),
                .count = count_of(in) * elements.units,
                .dtype = elements.dtype,
                .root = root};
  if (rank == root) {
    check_tensor("gather_single", out);
    check_alike("gather_single", out, in);
    TORCH_CHECK_VALUE(out.numel() == in.numel() * size, "unisono:gather_single: the output has ",
                      out.numel(), " elements; ", size, " ranks of ", in.numel(), " make ",
                      in.numel() * size);
    piece.call.out = piece.write(out);
    piece.separate(in.nbytes(), out.nbytes(), static_cast<std::ptrdiff_t>(in.nbytes()) * rank);
  }
  return piece;
}

Piece scatter_piece(const at::Tensor& out, const std::vector<at::Tensor>& ins, int root, int rank,
                    int size) {
  check_tensor("scatter", out);
  Piece piece;
  const Elements elements = elements_of(out.scalar_type());
  piece.call = {.collective = Collective::scatter,
                .out = piece.write(out),
                .count = count_of(out) * elements.units,
                .dtype = elements.dtype,
                .root = root};
  if (rank != root) {
    return piece;
  }
  check_list("scatter", ins, size, out);
  for (const at::Tensor& in : ins) {
    TORCH_CHECK_VALUE(in.numel() == out.numel(), "unisono:scatter: the output has ", out.numel(),
                      " elements, an input ", in.numel(), "; all must be equal");
  }
  piece.call.in = piece.read_all(ins);
  piece.separate(out.nbytes() * static_cast<std::size_t>(size), out.nbytes(),
                 -static_cast<std::ptrdiff_t>(out.nbytes()) * rank);
  return piece;
}

namespace {

void check_own_block(const Piece& piece, int rank, std::size_t units) {
  const std::size_t sent = piece.counts[static_cast<std::size_t>(rank)];
  const std::size_t got = piece.recv_counts[static_cast<std::size_t>(rank)];
  TORCH_CHECK_VALUE(sent == got, "unisono:all_to_all: rank ", rank, " sends itself ", sent / units,
                    " elements and expects ", got / units,
                    " from itself; these splits of its input and output must be equal");
}

}  // namespace

Piece all_to_all_piece(const at::Tensor& out, const at::Tensor& in,
                       const std::vector<std::int64_t>& out_splits,
                       const std::vector<std::int64_t>& in_splits, int rank, int size) {
  check_tensor("all_to_all", out);
  check_tensor("all_to_all", in);
  check_alike("all_to_all", out, in);
  Piece piece;
  const Elements elements = elements_of(in.scalar_type());
  piece.counts = split_counts(in, in_splits, size, "input", elements.units);
  piece.recv_counts = split_counts(out, out_splits, size, "output", elements.units);
  piece.call = {.collective = Collective::all_to_all_v,
                .in = piece.read(in),
                .out = piece.write(out),
                .dtype = elements.dtype};
  // Uses the v-form even if this rank splits evenly, because other ranks may give split sizes.
  TORCH_CHECK_VALUE(!in_splits.empty() || !out_splits.empty() || in.numel() == out.numel(),
                    "unisono:all_to_all: the input has ", in.numel(), " elements, the output ",
                    out.numel(), "; give split sizes");
  check_own_block(piece, rank, elements.units);
  piece.separate(in.nbytes(), out.nbytes(), PTRDIFF_MIN);
  return piece;
}

Piece all_to_all_list_piece(const std::vector<at::Tensor>& outs, const std::vector<at::Tensor>& ins,
                            int rank, int size) {
  TORCH_CHECK_VALUE(!ins.empty() && !outs.empty(), "unisono:all_to_all: an empty list of tensors");
  check_tensor("all_to_all", ins.front());
  check_list("all_to_all", ins, size, ins.front());
  check_list("all_to_all", outs, size, ins.front());
  Piece piece;
  const Elements elements = elements_of(ins.front().scalar_type());
  piece.counts = counts_of(ins, elements.units);
  piece.recv_counts = counts_of(outs, elements.units);
  check_own_block(piece, rank, elements.units);
  const auto bytes = [](const std::vector<at::Tensor>& list) {
    return std::accumulate(
        list.begin(), list.end(), std::size_t{0},
        [](std::size_t sum, const at::Tensor& one) { return sum + one.nbytes(); });
  };
  piece.call = {.collective = Collective::all_to_all_v,
                .in = piece.read_all(ins),
                .out = piece.write_all(outs),
                .dtype = elements.dtype};
  piece.separate(bytes(ins), bytes(outs), PTRDIFF_MIN);
  return piece;
}

}  // namespace unisono_torch
