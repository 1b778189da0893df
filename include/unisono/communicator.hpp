// Communicator: the collectives between the ranks of a group, and send/recv.
//
// Thread rule: one thread at a time uses a communicator, and a second one is refused; send and recv
// may be called in another thread than the collectives. Different communicators are independent.
// abort(), failure() and statistics() alone may be called from any thread, at any time.
//
// Buffers belong to the caller. Counts are elements. In place: `in` and `out` start at the same
// address for broadcast, reduce, all_reduce; for all_gather `in` is this rank's part of `out`; for
// reduce_scatter `out` is this rank's part of `in`; for scatter (gather) the root's `out` (`in`) is
// its part of `in` (`out`); for all_to_all `in` is `out`. Any other overlap is an error.
//
// Errors: every call throws unisono::Error (see error.hpp). After peer_lost, timeout, mismatch or
// abort the communicator and all that were split from the same world are unusable; every rank gets
// the same reason. The ranks that are left can go on with shrink(). If ranks make different
// collective calls, all get mismatch: in that call, or in the next one in which they wait for
// another rank, as in every barrier (docs/reliability.md says what is compared). If the call was a
// rank's last one, the rank reports the mismatch on stderr when it leaves, as far as it is known by
// then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/call.hpp"
#include "unisono/error.hpp"
#include "unisono/explain.hpp"
#include "unisono/export.hpp"
#include "unisono/options.hpp"
#include "unisono/typed_call.hpp"
#include "unisono/types.hpp"

namespace unisono {

struct Statistics;

class Communicator;
class Request;

namespace detail {
class Core;
class Heap;
struct PlanState;
struct RequestState;
struct RegionState;
std::shared_ptr<RequestState> take_state(Request&& request) noexcept;
// What the next calls of this rank on this group alone are for, in place of its label(); empty:
// that again. For threads that make calls of their own. Any thread. Errors: usage.
void label_group(Communicator& group, std::string_view text);
}  // namespace detail

// An operation under way. Its buffers must live until wait() returns. The destructor waits, and
// reports an error on stderr that no call has told yet: call wait() to catch it. Waiting twice is
// an error.
class [[nodiscard]] UNISONO_EXPORT Request {
 public:
  Request();
  explicit Request(std::shared_ptr<detail::RequestState> state);
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();
  void wait(int timeout_ms = -1);
  bool test();  // true: done (then wait() returns at once)
  // `tell` is called once when the operation has ended, with nullptr or what ended it: at once if
  // it is done, or by the thread that moved it last (that of progress or of an Exchange, or one
  // that waits on this communicator). It must not block on this world, end that Exchange, or throw.
  void on_done(std::function<void(const Error*)> tell);
  // Only for a receive that is done: the rank that its message came from.
  int source() const;

 private:
  friend std::shared_ptr<detail::RequestState> detail::take_state(Request&& request) noexcept;
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

// Where registered memory is, for the ranks that share memory with its owner. Plain data: it may be
// sent to them.
struct SharedPlace {
  std::uint64_t address = 0;  // in the owner's process
  std::uint64_t offset = 0;   // in its region
  std::uint32_t region = 0;   // 0: nobody else can read it
  std::int32_t reserved = 0;
};

// For recv and recv_async: whichever rank sends first. Other receives with the same tag go first
// where they name the sender.
inline constexpr int kAnySource = -1;

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
  // On how many hosts the ranks of this group are. Ranks of one host that do not share memory
  // (UNISONO_TRANSPORT=tcp, UNISONO_HOST) count as on several.
  int hosts() const;
  // On which of them rank `rank` of this group is; they are numbered in the order of their lowest
  // ranks. Errors: usage.
  int host(int rank) const;

  // Untyped forms.
  void run(const Call& call);
  Request run_async(const Call& call);
  Plan plan(const Call& call);
  // Which algorithm the call gets, and why. Local: the other ranks need not call it, and the
  // buffers may be null. Builds every schedule that could serve.
  Explanation explain(const Call& call);

  // Typed forms. A buffer is all that std::span can be made of: a span, a std::vector, a
  // std::array, an array. Each has the blocking name and an `_async` one, whose buffers must live
  // until wait() returns. Counts follow from the buffers, whose lengths must fit the table in
  // call.hpp (checked). Ranks that do not use a buffer may pass {} for it.
  template <OutBuffer Data>
  void broadcast(Data&& data, int root) {
    run(detail::vector_call(Collective::broadcast, detail::view(data), detail::out_view(data), sum,
                            root));
  }
  template <OutBuffer Data>
  Request broadcast_async(Data&& data, int root) {
    return run_async(detail::vector_call(Collective::broadcast, detail::view(data),
                                         detail::out_view(data), sum, root));
  }
  template <InBuffer In, OutBufferLike<In> Out>
  void all_reduce(In&& in, Out&& out, Reduction reduction) {
    run(detail::vector_call(Collective::all_reduce, detail::view(in), detail::out_view(out),
                            reduction, 0));
  }
  template <AsyncInBuffer In, OutBufferLike<In> Out>
  Request all_reduce_async(In&& in, Out&& out, Reduction reduction) {
    return run_async(detail::vector_call(Collective::all_reduce, detail::view(in),
                                         detail::out_view(out), reduction, 0));
  }
  // In place.
  template <OutBuffer Data>
  void all_reduce(Data&& data, Reduction reduction) {
    run(detail::vector_call(Collective::all_reduce, detail::view(data), detail::out_view(data),
                            reduction, 0));
  }
  template <OutBuffer Data>
  Request all_reduce_async(Data&& data, Reduction reduction) {
    return run_async(detail::vector_call(Collective::all_reduce, detail::view(data),
                                         detail::out_view(data), reduction, 0));
  }
  // `out` is used on the root alone.
  template <InBuffer In, OutBufferLike<In> Out = std::span<ElementOf<In>>>
  void reduce(In&& in, Out&& out, Reduction reduction, int root) {
    run(detail::reduce_call(detail::view(in), detail::out_view(out), reduction, root,
                            rank() == root));
  }
  template <AsyncInBuffer In, OutBufferLike<In> Out = std::span<ElementOf<In>>>
  Request reduce_async(In&& in, Out&& out, Reduction reduction, int root) {
    return run_async(detail::reduce_call(detail::view(in), detail::out_view(out), reduction, root,
                                         rank() == root));
  }
  // `in` is used on the root alone.
  template <OutBuffer Out, InBufferLike<Out> In = std::span<ElementOf<Out>>>
  void scatter(In&& in, Out&& out, int root) {
    run(detail::scatter_call(detail::view(in), detail::out_view(out), root, rank(), size()));
  }
  template <OutBuffer Out, AsyncInBufferLike<Out> In = std::span<ElementOf<Out>>>
  Request scatter_async(In&& in, Out&& out, int root) {
    return run_async(
        detail::scatter_call(detail::view(in), detail::out_view(out), root, rank(), size()));
  }
  // `out` is used on the root alone.
  template <InBuffer In, OutBufferLike<In> Out = std::span<ElementOf<In>>>
  void gather(In&& in, Out&& out, int root) {
    run(detail::gather_call(detail::view(in), detail::out_view(out), root, rank(), size()));
  }
  template <AsyncInBuffer In, OutBufferLike<In> Out = std::span<ElementOf<In>>>
  Request gather_async(In&& in, Out&& out, int root) {
    return run_async(
        detail::gather_call(detail::view(in), detail::out_view(out), root, rank(), size()));
  }
  template <InBuffer In, OutBufferLike<In> Out>
  void all_gather(In&& in, Out&& out) {
    run(detail::all_gather_call(detail::view(in), detail::out_view(out), size()));
  }
  template <AsyncInBuffer In, OutBufferLike<In> Out>
  Request all_gather_async(In&& in, Out&& out) {
    return run_async(detail::all_gather_call(detail::view(in), detail::out_view(out), size()));
  }
  template <InBuffer In, OutBufferLike<In> Out>
  void reduce_scatter(In&& in, Out&& out, Reduction reduction) {
    run(detail::reduce_scatter_call(detail::view(in), detail::out_view(out), size(), reduction));
  }
  template <AsyncInBuffer In, OutBufferLike<In> Out>
  Request reduce_scatter_async(In&& in, Out&& out, Reduction reduction) {
    return run_async(
        detail::reduce_scatter_call(detail::view(in), detail::out_view(out), size(), reduction));
  }
  template <InBuffer In, OutBufferLike<In> Out>
  void all_to_all(In&& in, Out&& out) {
    run(detail::pair_call(detail::view(in), detail::out_view(out), size()));
  }
  template <AsyncInBuffer In, OutBufferLike<In> Out>
  Request all_to_all_async(In&& in, Out&& out) {
    return run_async(detail::pair_call(detail::view(in), detail::out_view(out), size()));
  }
  // v-forms: parts packed in rank order; run() takes offsets as well.
  template <InBuffer In, OutBufferLike<In> Out>
  void all_gather_v(In&& in, Out&& out, std::span<const std::size_t> counts) {
    run(detail::v_call(Collective::all_gather_v, detail::view(in), detail::out_view(out), counts, 0,
                       rank(), size()));
  }
  template <AsyncInBuffer In, OutBufferLike<In> Out>
  Request all_gather_v_async(In&& in, Out&& out, std::span<const std::size_t> counts) {
    return run_async(detail::v_call(Collective::all_gather_v, detail::view(in),
                                    detail::out_view(out), counts, 0, rank(), size()));
  }
  template <InBuffer In, OutBufferLike<In> Out>
  void reduce_scatter_v(In&& in, Out&& out, std::span<const std::size_t> counts,
                        Reduction reduction) {
    run(detail::v_call(Collective::reduce_scatter_v, detail::view(in), detail::out_view(out),
                       counts, 0, rank(), size(), reduction));
  }
  template <AsyncInBuffer In, OutBufferLike<In> Out>
  Request reduce_scatter_v_async(In&& in, Out&& out, std::span<const std::size_t> counts,
                                 Reduction reduction) {
    return run_async(detail::v_call(Collective::reduce_scatter_v, detail::view(in),
                                    detail::out_view(out), counts, 0, rank(), size(), reduction));
  }
  template <OutBuffer Out, InBufferLike<Out> In = std::span<ElementOf<Out>>>
  void scatter_v(In&& in, Out&& out, std::span<const std::size_t> counts, int root) {
    run(detail::v_call(Collective::scatter_v, detail::view(in), detail::out_view(out), counts, root,
                       rank(), size()));
  }
  template <OutBuffer Out, AsyncInBufferLike<Out> In = std::span<ElementOf<Out>>>
  Request scatter_v_async(In&& in, Out&& out, std::span<const std::size_t> counts, int root) {
    return run_async(detail::v_call(Collective::scatter_v, detail::view(in), detail::out_view(out),
                                    counts, root, rank(), size()));
  }
  template <InBuffer In, OutBufferLike<In> Out = std::span<ElementOf<In>>>
  void gather_v(In&& in, Out&& out, std::span<const std::size_t> counts, int root) {
    run(detail::v_call(Collective::gather_v, detail::view(in), detail::out_view(out), counts, root,
                       rank(), size()));
  }
  template <AsyncInBuffer In, OutBufferLike<In> Out = std::span<ElementOf<In>>>
  Request gather_v_async(In&& in, Out&& out, std::span<const std::size_t> counts, int root) {
    return run_async(detail::v_call(Collective::gather_v, detail::view(in), detail::out_view(out),
                                    counts, root, rank(), size()));
  }
  template <InBuffer In, OutBufferLike<In> Out>
  void all_to_all_v(In&& in, std::span<const std::size_t> send_counts, Out&& out,
                    std::span<const std::size_t> recv_counts) {
    run(detail::v_call(Collective::all_to_all_v, detail::view(in), detail::out_view(out),
                       send_counts, 0, rank(), size(), sum, recv_counts));
  }
  template <AsyncInBuffer In, OutBufferLike<In> Out>
  Request all_to_all_v_async(In&& in, std::span<const std::size_t> send_counts, Out&& out,
                             std::span<const std::size_t> recv_counts) {
    return run_async(detail::v_call(Collective::all_to_all_v, detail::view(in),
                                    detail::out_view(out), send_counts, 0, rank(), size(), sum,
                                    recv_counts));
  }
  void barrier(int timeout_ms = -1) {
    run({.collective = Collective::barrier, .timeout_ms = timeout_ms});
  }
  Request barrier_async() { return run_async({.collective = Collective::barrier}); }

  // Blocking point-to-point. Messages with one tag between two ranks arrive in order. A receive of
  // fewer bytes than were sent is an error on both sides. send() may return before the receive
  // begins if the message fits the lane's buffer (256 KiB at most); larger ones wait for the
  // receiver.
  void send(const void* data, std::size_t bytes, int to, int tag = 0, int timeout_ms = -1);
  void recv(void* data, std::size_t bytes, int from, int tag = 0, int timeout_ms = -1);
  // Sends to one rank and receives from another (or the same) at once: what rings and shifts are
  // made of.
  void exchange(const void* send_data, std::size_t send_bytes, int to, void* recv_data,
                std::size_t recv_bytes, int from, int tag = 0, int timeout_ms = -1);
  Request send_async(const void* data, std::size_t bytes, int to, int tag = 0, int timeout_ms = -1);
  Request recv_async(void* data, std::size_t bytes, int from, int tag = 0, int timeout_ms = -1);

  // Ranks with the same color form a group, ordered by key, then rank. color < 0: no group (an
  // empty communicator is returned, whose size() is 0). All ranks must call it.
  Communicator split(int color, int key);
  // A group of some ranks, which only they call: `members` are ranks of this group in the order of
  // the new one. `id` names it and is the same on all members; no two groups that are made from
  // this one and share a member may share it, which is refused while the first one lives. Members
  // that name other ranks, or another order, get an error with both lists. Each member is a process
  // of its own. Takes a mapping, and no descriptor or thread. Any thread.
  Communicator subgroup(std::span<const int> members, std::uint64_t id);

  // What the next calls of this rank on any group of this world are for: a layer, a phase. unisono
  // top shows it, and recordings (UNISONO_RECORD, unisono run --record) name the calls by it, until
  // the next label; empty: nothing. Up to 103 bytes, and in a recording some 400 different ones.
  // Without a recording it costs some ten nanoseconds. Any thread. Errors: usage.
  void label(std::string_view text);
  // What this rank's label is now.
  std::string label() const;

  // Ends all operations of this world on all ranks with ErrorCode::aborted. Any thread.
  void abort(std::string_view reason = {});
  // What has ended the world of this communicator, as the next operation on it would throw it; none
  // while nothing is known. Looks for ranks that have died and for what other hosts say, as an
  // operation does that waits. So a thread of one's own can watch over ranks that compute, or wait
  // for something else. Any thread, also during an operation. Never waits; some system calls (a
  // microsecond, and one more for each rank of another host). Not told: a rank that has left in
  // order, before anybody needs it; one that is stopped. Errors: usage.
  std::optional<Error> failure() const;

  // The ranks of this group that have not entered the latest collective of this rank, in order:
  // also when that has ended with a timeout, whose text says what each of them did last. Ranks
  // of other hosts tell where they are while somebody waits, and are late before. A local call.
  // Errors: usage.
  std::vector<int> late_ranks() const;

  // What the calls of this group have cost this rank so far: how many, how much, how long they
  // moved data and for whom they waited (unisono/statistics.hpp). A local call. Any thread, also
  // during an operation.
  Statistics statistics() const;

  // After peer_lost or timeout: a communicator of the ranks that are still there, in their old
  // order. All of them call it, on the communicator that connect() (or shrink(), grow()) gave; it
  // ends the old world on all ranks, and blocks until each rank has called or is known to be dead.
  // All get the same ranks. The old communicator can only be destroyed then; groups are split anew.
  // Errors: evicted (the others went on without this rank, or it may not go on without them), and
  // as of connect().
  Communicator shrink(const ShrinkOptions& options = {});
  // A communicator of `size` ranks: those of this one, with the same numbers, and new processes
  // that connect() as ranks size() and up of a world of `size`, with the job name (and address) of
  // the first world. All ranks call it. This communicator stays as it is. `address`: where rank 0
  // listens while they meet; empty: as at the first time. Errors: as of connect(), usage.
  Communicator grow(int size, const std::string& address = {});
  // By rank: what it was in the world that this one was shrunk from; empty if it was not.
  std::vector<int> previous_ranks() const;
  // How many ranks that world had; 0 if this one was not shrunk.
  int previous_size() const;

  // Registered memory. allocate(): new, zeroed, page-aligned. register_buffer(): moves the whole
  // pages of ordinary private memory onto shared ones at the same address (about 1 ms per MiB,
  // once); the memory must stay mapped while the Region lives. Local calls: the peers need not do
  // the same.
  Region allocate(std::size_t bytes);
  Region register_buffer(std::span<std::byte> memory);

  // For kernels that read peers' registered memory themselves. place_of(): how others find this
  // memory; region 0 where it is not registered. peer_memory(): where `bytes` bytes of rank `peer`
  // of this group can be read here; nullptr if they cannot. Both are local calls. Whoever reads
  // says itself when the memory may change again, by a barrier() for example; it stays readable
  // while its Region lives. Any thread.
  SharedPlace place_of(const void* data, std::size_t bytes) const;
  const std::byte* peer_memory(int peer, const SharedPlace& place, std::size_t bytes) const;

  // Several operations started as one: `body` calls async operations on this communicator; group()
  // returns when all are done.
  void group(const std::function<void()>& body);

  explicit Communicator(std::shared_ptr<detail::Core> core);

 private:
  friend class detail::Heap;
  friend void detail::label_group(Communicator& group, std::string_view text);
  std::shared_ptr<detail::Core> core_;
};

// Runs `body` on `ranks` ranks as threads of this process, and waits for them. The first exception
// is rethrown.
UNISONO_EXPORT void run_threads(int ranks, const std::function<void(Communicator&)>& body,
                                const ConnectOptions& options = {});

}  // namespace unisono
