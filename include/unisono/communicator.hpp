// Communicator: the collectives between the ranks of a group, and send/recv.
//
// Thread rule: one thread at a time uses a communicator; different communicators are independent.
// abort() alone may be called from any thread.
//
// Buffers belong to the caller. Counts are elements. In place: `in` and `out` start at the same
// address for broadcast, reduce, all_reduce; for all_gather `in` is this rank's part of `out`; for
// reduce_scatter `out` is this rank's part of `in`; for scatter (gather) the root's `out` (`in`) is
// its part of `in` (`out`); for all_to_all `in` is `out`. Any other overlap is an error.
//
// Errors: every call throws unisono::Error (see error.hpp). After peer_lost, timeout, mismatch or
// abort the communicator and all that were split from the same world are unusable; every rank gets
// the same reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/error.hpp"
#include "unisono/export.hpp"
#include "unisono/options.hpp"
#include "unisono/types.hpp"

namespace unisono {

// Combines `count` elements: inout[i] = in[i] op inout[i]. Must be associative and commutative.
struct UserOp {
  void (*combine)(void* inout, const void* in, std::size_t count, void* context) = nullptr;
  void* context = nullptr;
};

// A reduce operation with what it needs: converts from ReduceOp.
struct Reduction {
  ReduceOp op = ReduceOp::sum;
  double factor = 1.0;  // premul_sum
  UserOp user = {};
  constexpr Reduction(ReduceOp value) : op(value) {}  // NOLINT(google-explicit-constructor)
  static Reduction premul_sum(double factor) {
    Reduction result{ReduceOp::premul_sum};
    result.factor = factor;
    return result;
  }
  static Reduction custom(UserOp user) {
    Reduction result{ReduceOp::user};
    result.user = user;
    return result;
  }
};
inline constexpr Reduction sum{ReduceOp::sum};
inline constexpr Reduction prod{ReduceOp::prod};
inline constexpr Reduction min{ReduceOp::min};
inline constexpr Reduction max{ReduceOp::max};
inline constexpr Reduction avg{ReduceOp::avg};

// The untyped form of a collective call, which all others come down to.
//
//   collective       in                              out                     count
//   broadcast        root: count                     count                   the vector
//   reduce           count                           root: count             the vector
//   all_reduce       count                           count                   the vector
//   scatter          root: n*count                   count                   one rank's part
//   gather           count                           root: n*count           one rank's part
//   all_gather       count                           n*count                 one rank's part
//   reduce_scatter   n*count                         count                   one rank's part
//   all_to_all       n*count                         n*count                 one pair's part
//
// v-forms give `counts` instead: of each rank's part (scatter_v, gather_v, all_gather_v,
// reduce_scatter_v; the same on all ranks), or this rank's send and receive counts (all_to_all_v:
// counts, recv_counts). Parts lie packed in rank order unless `displs` (`recv_displs`) give their
// offsets in elements.
struct Call {
  Collective collective = Collective::barrier;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  Dtype dtype = Dtype::u8;
  Reduction reduction = ReduceOp::sum;
  int root = 0;
  std::span<const std::size_t> counts = {};
  std::span<const std::size_t> displs = {};
  std::span<const std::size_t> recv_counts = {};
  std::span<const std::size_t> recv_displs = {};
  std::string_view algorithm = {};  // empty: chosen
  int timeout_ms = -1;              // -1: the communicator's; 0: for ever
};

namespace detail {
class Core;
struct PlanState;
struct RequestState;
struct RegionState;
template <typename T>
constexpr Dtype dtype_of() {
  static_assert(kDtypeOf<T>.has_value(), "unisono: no Dtype for this element type");
  return *kDtypeOf<T>;
}
// The Calls of the typed forms. `expect` throws usage when a span has not the length that the
// others ask for.
UNISONO_EXPORT void expect(Collective collective, const char* what, std::size_t have,
                           std::size_t need);
// The same for a v-form, whose lists say the lengths.
UNISONO_EXPORT void expect_parts(const Call& call, std::size_t in, std::size_t out, int rank,
                                 int ranks);
template <typename T>
Call vector_call(Collective collective, std::span<const T> in, std::span<T> out,
                 Reduction reduction, int root) {
  expect(collective, "out", out.size(), in.size());
  return {.collective = collective,
          .in = in.data(),
          .out = out.data(),
          .count = in.size(),
          .dtype = dtype_of<T>(),
          .reduction = reduction,
          .root = root};
}
template <typename T>
Call reduce_call(std::span<const T> in, std::span<T> out, Reduction reduction, int root,
                 bool is_root) {
  if (is_root) {
    expect(Collective::reduce, "out", out.size(), in.size());
  }
  return {.collective = Collective::reduce,
          .in = in.data(),
          .out = out.data(),
          .count = in.size(),
          .dtype = dtype_of<T>(),
          .reduction = reduction,
          .root = root};
}
// One side is a part of `count`, the other the vector of all parts; `has_in` and `has_out`: which
// of them count.
template <typename T>
Call part_call(Collective collective, std::span<const T> in, std::span<T> out, std::size_t count,
               int root, bool has_in, bool has_out, int ranks, Reduction reduction = sum) {
  const std::size_t whole = count * static_cast<std::size_t>(ranks);
  const bool in_whole =
      collective == Collective::scatter || collective == Collective::reduce_scatter;
  if (has_in) {
    expect(collective, "in", in.size(), in_whole ? whole : count);
  }
  if (has_out) {
    expect(collective, "out", out.size(), in_whole ? count : whole);
  }
  return {.collective = collective,
          .in = in.data(),
          .out = out.data(),
          .count = count,
          .dtype = dtype_of<T>(),
          .reduction = reduction,
          .root = root};
}
template <typename T>
Call pair_call(std::span<const T> in, std::span<T> out, int ranks) {
  const auto n = static_cast<std::size_t>(ranks < 1 ? 1 : ranks);  // an empty communicator refuses
  expect(Collective::all_to_all, "in", in.size(), in.size() / n * n);
  expect(Collective::all_to_all, "out", out.size(), in.size());
  return {.collective = Collective::all_to_all,
          .in = in.data(),
          .out = out.data(),
          .count = in.size() / n,
          .dtype = dtype_of<T>()};
}
template <typename T>
Call v_call(Collective collective, std::span<const T> in, std::span<T> out,
            std::span<const std::size_t> counts, int root, int rank, int ranks,
            Reduction reduction = sum, std::span<const std::size_t> recv_counts = {}) {
  const Call call{.collective = collective,
                  .in = in.data(),
                  .out = out.data(),
                  .dtype = dtype_of<T>(),
                  .reduction = reduction,
                  .root = root,
                  .counts = counts,
                  .recv_counts = recv_counts};
  expect_parts(call, in.size(), out.size(), rank, ranks);
  return call;
}
}  // namespace detail

// An operation under way. Its buffers must live until wait() returns. The destructor waits, and
// swallows errors: call wait() to see them. Waiting twice is an error.
class [[nodiscard]] UNISONO_EXPORT Request {
 public:
  Request();
  explicit Request(std::shared_ptr<detail::RequestState> state);
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();
  void wait(int timeout_ms = -1);
  bool test();  // true: done (then wait() returns at once)

 private:
  std::shared_ptr<detail::RequestState> state_;
};

// A collective whose checks, algorithm choice and lowering are done once. start() runs it on the
// same buffers and blocks; start_async() returns a Request.
class UNISONO_EXPORT Plan {
 public:
  explicit Plan(std::unique_ptr<detail::PlanState> state);
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();
  void start();
  [[nodiscard]] Request start_async();
  std::string_view algorithm() const;

 private:
  std::unique_ptr<detail::PlanState> state_;
};

// Memory that the peers on this host can read and write directly while it is registered: no copy
// through slots. Move-only; unregisters when destroyed.
class UNISONO_EXPORT Region {
 public:
  Region();
  explicit Region(std::shared_ptr<detail::RegionState> state);
  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;
  ~Region();
  std::span<std::byte> bytes() const;

 private:
  std::shared_ptr<detail::RegionState> state_;
};

class UNISONO_EXPORT Communicator {
 public:
  // Joins the world that the options and the environment describe; blocks until all ranks are
  // there.
  static Communicator connect(const ConnectOptions& options = {});
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  int rank() const;
  int size() const;

  // Untyped forms.
  void run(const Call& call);
  Request run_async(const Call& call);
  Plan plan(const Call& call);

  // Typed forms. Each has the blocking name and an `_async` one; counts follow from the spans, and
  // their lengths must fit the table above (checked).
  template <typename T>
  void broadcast(std::span<T> data, int root) {
    run(detail::vector_call(Collective::broadcast, std::span<const T>(data), data, sum, root));
  }
  template <typename T>
  Request broadcast_async(std::span<T> data, int root) {
    return run_async(
        detail::vector_call(Collective::broadcast, std::span<const T>(data), data, sum, root));
  }
  template <typename T>
  void all_reduce(std::span<const T> in, std::span<T> out, Reduction reduction) {
    run(detail::vector_call(Collective::all_reduce, in, out, reduction, 0));
  }
  template <typename T>
  Request all_reduce_async(std::span<const T> in, std::span<T> out, Reduction reduction) {
    return run_async(detail::vector_call(Collective::all_reduce, in, out, reduction, 0));
  }
  // In place.
  template <typename T>
  void all_reduce(std::span<T> data, Reduction reduction) {
    run(detail::vector_call(Collective::all_reduce, std::span<const T>(data), data, reduction, 0));
  }
  template <typename T>
  Request all_reduce_async(std::span<T> data, Reduction reduction) {
    return run_async(
        detail::vector_call(Collective::all_reduce, std::span<const T>(data), data, reduction, 0));
  }
  // `out` is used on the root alone.
  template <typename T>
  void reduce(std::span<const T> in, std::span<T> out, Reduction reduction, int root) {
    run(detail::reduce_call(in, out, reduction, root, rank() == root));
  }
  template <typename T>
  Request reduce_async(std::span<const T> in, std::span<T> out, Reduction reduction, int root) {
    return run_async(detail::reduce_call(in, out, reduction, root, rank() == root));
  }
  // `in` is used on the root alone.
  template <typename T>
  void scatter(std::span<const T> in, std::span<T> out, int root) {
    run(detail::part_call(Collective::scatter, in, out, out.size(), root, rank() == root, true,
                          size()));
  }
  template <typename T>
  Request scatter_async(std::span<const T> in, std::span<T> out, int root) {
    return run_async(detail::part_call(Collective::scatter, in, out, out.size(), root,
                                       rank() == root, true, size()));
  }
  // `out` is used on the root alone.
  template <typename T>
  void gather(std::span<const T> in, std::span<T> out, int root) {
    run(detail::part_call(Collective::gather, in, out, in.size(), root, true, rank() == root,
                          size()));
  }
  template <typename T>
  Request gather_async(std::span<const T> in, std::span<T> out, int root) {
    return run_async(detail::part_call(Collective::gather, in, out, in.size(), root, true,
                                       rank() == root, size()));
  }
  template <typename T>
  void all_gather(std::span<const T> in, std::span<T> out) {
    run(detail::part_call(Collective::all_gather, in, out, in.size(), 0, true, true, size()));
  }
  template <typename T>
  Request all_gather_async(std::span<const T> in, std::span<T> out) {
    return run_async(
        detail::part_call(Collective::all_gather, in, out, in.size(), 0, true, true, size()));
  }
  template <typename T>
  void reduce_scatter(std::span<const T> in, std::span<T> out, Reduction reduction) {
    run(detail::part_call(Collective::reduce_scatter, in, out, out.size(), 0, true, true, size(),
                          reduction));
  }
  template <typename T>
  Request reduce_scatter_async(std::span<const T> in, std::span<T> out, Reduction reduction) {
    return run_async(detail::part_call(Collective::reduce_scatter, in, out, out.size(), 0, true,
                                       true, size(), reduction));
  }
  template <typename T>
  void all_to_all(std::span<const T> in, std::span<T> out) {
    run(detail::pair_call(in, out, size()));
  }
  template <typename T>
  Request all_to_all_async(std::span<const T> in, std::span<T> out) {
    return run_async(detail::pair_call(in, out, size()));
  }
  // v-forms: parts packed in rank order; run() takes offsets as well.
  template <typename T>
  void all_gather_v(std::span<const T> in, std::span<T> out, std::span<const std::size_t> counts) {
    run(detail::v_call(Collective::all_gather_v, in, out, counts, 0, rank(), size()));
  }
  template <typename T>
  Request all_gather_v_async(std::span<const T> in, std::span<T> out,
                             std::span<const std::size_t> counts) {
    return run_async(detail::v_call(Collective::all_gather_v, in, out, counts, 0, rank(), size()));
  }
  template <typename T>
  void reduce_scatter_v(std::span<const T> in, std::span<T> out,
                        std::span<const std::size_t> counts, Reduction reduction) {
    run(detail::v_call(Collective::reduce_scatter_v, in, out, counts, 0, rank(), size(),
                       reduction));
  }
  template <typename T>
  Request reduce_scatter_v_async(std::span<const T> in, std::span<T> out,
                                 std::span<const std::size_t> counts, Reduction reduction) {
    return run_async(detail::v_call(Collective::reduce_scatter_v, in, out, counts, 0, rank(),
                                    size(), reduction));
  }
  template <typename T>
  void scatter_v(std::span<const T> in, std::span<T> out, std::span<const std::size_t> counts,
                 int root) {
    run(detail::v_call(Collective::scatter_v, in, out, counts, root, rank(), size()));
  }
  template <typename T>
  Request scatter_v_async(std::span<const T> in, std::span<T> out,
                          std::span<const std::size_t> counts, int root) {
    return run_async(detail::v_call(Collective::scatter_v, in, out, counts, root, rank(), size()));
  }
  template <typename T>
  void gather_v(std::span<const T> in, std::span<T> out, std::span<const std::size_t> counts,
                int root) {
    run(detail::v_call(Collective::gather_v, in, out, counts, root, rank(), size()));
  }
  template <typename T>
  Request gather_v_async(std::span<const T> in, std::span<T> out,
                         std::span<const std::size_t> counts, int root) {
    return run_async(detail::v_call(Collective::gather_v, in, out, counts, root, rank(), size()));
  }
  template <typename T>
  void all_to_all_v(std::span<const T> in, std::span<const std::size_t> send_counts,
                    std::span<T> out, std::span<const std::size_t> recv_counts) {
    run(detail::v_call(Collective::all_to_all_v, in, out, send_counts, 0, rank(), size(), sum,
                       recv_counts));
  }
  template <typename T>
  Request all_to_all_v_async(std::span<const T> in, std::span<const std::size_t> send_counts,
                             std::span<T> out, std::span<const std::size_t> recv_counts) {
    return run_async(detail::v_call(Collective::all_to_all_v, in, out, send_counts, 0, rank(),
                                    size(), sum, recv_counts));
  }
  void barrier(int timeout_ms = -1) {
    run({.collective = Collective::barrier, .timeout_ms = timeout_ms});
  }
  Request barrier_async() { return run_async({.collective = Collective::barrier}); }

  // Blocking point-to-point. Messages with one tag between two ranks arrive in order. A receive of
  // fewer bytes than were sent is an error on both sides. send() may return before the receive
  // begins if the message fits the lane's buffer (16 KiB); larger ones wait for the receiver.
  void send(const void* data, std::size_t bytes, int to, int tag = 0, int timeout_ms = -1);
  void recv(void* data, std::size_t bytes, int from, int tag = 0, int timeout_ms = -1);
  // Sends to one rank and receives from another (or the same) at once: what rings and shifts are
  // made of.
  void exchange(const void* send_data, std::size_t send_bytes, int to, void* recv_data,
                std::size_t recv_bytes, int from, int tag = 0, int timeout_ms = -1);
  Request send_async(const void* data, std::size_t bytes, int to, int tag = 0);
  Request recv_async(void* data, std::size_t bytes, int from, int tag = 0);

  // Ranks with the same color form a group, ordered by key, then rank. color < 0: no group (an
  // empty communicator is returned, whose size() is 0). All ranks must call it.
  Communicator split(int color, int key);

  // Ends all operations of this world on all ranks with ErrorCode::aborted. Any thread.
  void abort(std::string_view reason = {});

  // Registered memory. allocate(): new, zeroed, page-aligned. register_buffer(): moves the whole
  // pages of ordinary private memory onto shared ones at the same address (about 1 ms per MiB,
  // once); the memory must stay mapped while the Region lives. Local calls: the peers need not do
  // the same.
  Region allocate(std::size_t bytes);
  Region register_buffer(std::span<std::byte> memory);

  // Several operations started as one: `body` calls async operations on this communicator; group()
  // returns when all are done.
  void group(const std::function<void()>& body);

  explicit Communicator(std::shared_ptr<detail::Core> core);

 private:
  std::shared_ptr<detail::Core> core_;
};

// Runs `body` on `ranks` ranks as threads of this process, and waits for them. The first exception
// is rethrown.
UNISONO_EXPORT void run_threads(int ranks, const std::function<void(Communicator&)>& body,
                                const ConnectOptions& options = {});

}  // namespace unisono
