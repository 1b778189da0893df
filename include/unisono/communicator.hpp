// Communicator: collectives between the ranks of a group, and point-to-point messages.
//
// rules.h states the rules for C and C++: shapes, in-place use, errors, threads, messages, and the
// arguments that must be equal on all ranks. A call that fails throws unisono::Error (error.hpp).
// After an error that ends the world, the remaining ranks can continue with shrink().
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
struct Handles;
struct PlanState;
struct RequestState;
struct RegionState;
std::shared_ptr<RequestState> take_state(Request&& request) noexcept;
// Local. Labels this rank's next calls on this group with `text`, which replaces the label of
// Communicator::label() for this group only. An empty text restores the label of
// Communicator::label(). For library threads that make calls.
// Threads: any.
// Errors: usage.
void label_group(Communicator& group, std::string_view text);
// For bindings in which a message must have the length and the element type of the receive's
// buffer. A message with another length or type is a mismatch. A message without a type matches
// every type.
struct UNISONO_EXPORT ExactReceives {
  static void recv(Communicator& group, void* data, std::size_t bytes, int from, int tag,
                   int timeout_ms);
  static void send_recv(Communicator& group, const void* send_data, std::size_t send_bytes, int to,
                        void* recv_data, std::size_t recv_bytes, int from, int tag, int timeout_ms);
  static Request recv_async(Communicator& group, void* data, std::size_t bytes, int from, int tag,
                            int timeout_ms);
  static Request recv_async(Communicator& group, void* data, std::size_t count, Dtype dtype,
                            int from, int tag, int timeout_ms);
  static Request send_async(Communicator& group, const void* data, std::size_t count, Dtype dtype,
                            int to, int tag, int timeout_ms);
};
}  // namespace detail

// Local. An operation in progress. The operation's buffers must live until wait() returns. The
// destructor waits for the operation. If the operation failed and no call has reported the error to
// the program, the destructor prints the error on stderr. Call wait() to catch the error.
class [[nodiscard]] UNISONO_EXPORT Request {
 public:
  Request();
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();
  // Blocks until the operation has ended.
  // Units: milliseconds. -1: the call's timeout_ms, or the communicator's if the call has none. 0:
  // no limit.
  // Errors: those of the operation; timeout, which ends the world; usage on a second wait(); usage
  // on a request that was made in Communicator::group(), because group() waits for this request.
  void wait(int timeout_ms = -1);
  // Makes progress without blocking. Returns true if the operation has ended; then wait() returns
  // at once.
  bool test();
  // Calls `tell` once when the operation ends: tell(nullptr) after success, tell(&error) after a
  // failure. A second on_done() before the end of the operation replaces the first `tell`. If the
  // operation has already ended, on_done() itself calls `tell`. Otherwise the thread that completes
  // the operation calls `tell`: the progress thread, the thread of an ExpertExchange, or a thread
  // that waits on this communicator. `tell` must not throw and must not make a blocking call on
  // this world. If the thread of an ExpertExchange calls `tell`, `tell` must not destroy this
  // ExpertExchange.
  void on_done(std::function<void(const Error*)> tell);
  // Returns the rank that sent the message, or kAnySource if the receive has not ended.
  // Errors: usage if the operation is not a receive.
  int source() const;
  // Returns the length of the message, or 0 if the receive has not ended. The message may be
  // shorter than the buffer.
  // Units: bytes.
  // Errors: usage if the operation is not a receive.
  std::size_t received() const;

 private:
  friend struct detail::Handles;
  explicit Request(std::shared_ptr<detail::RequestState> state);
  friend std::shared_ptr<detail::RequestState> detail::take_state(Request&& request) noexcept;
  std::shared_ptr<detail::RequestState> state_;
};

// A collective call that is checked, planned and lowered once, and can then be started any number
// of times on the same buffers. The buffers must live as long as the plan. Each start is a
// collective call.
class UNISONO_EXPORT Plan {
 public:
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();
  // Runs the collective and blocks until it is done.
  // Errors: those of Communicator::run().
  void start();
  // Starts the collective and returns at once. Request::wait() blocks until the collective is done.
  // Errors: those of Communicator::run().
  [[nodiscard]] Request start_async();
  // Local. Returns the algorithm that this plan runs, with its parameters.
  std::string_view algorithm() const;

 private:
  friend class Communicator;
  explicit Plan(std::unique_ptr<detail::PlanState> state);
  std::unique_ptr<detail::PlanState> state_;
};

// Local. Registered memory. Peers on this host read and write registered memory directly, without
// copies through slots. The destructor unregisters the memory. When the destructor runs, no
// operation on any rank may still use the memory. Movable, not copyable.
class UNISONO_EXPORT Region {
 public:
  Region();
  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;
  ~Region();
  // Local. Returns the whole region.
  std::span<std::byte> bytes() const;

 private:
  friend struct detail::Handles;
  explicit Region(std::shared_ptr<detail::RegionState> state);
  std::shared_ptr<detail::RegionState> state_;
};

// The place of registered memory, for the ranks that share memory with its owner. Plain data, which
// the owner can send to these ranks.
struct SharedPlace {
  std::uint64_t address = 0;  // in the owner's process
  std::uint64_t offset = 0;   // in the owner's region
  std::uint32_t region = 0;   // 0: no other rank can read the memory
  std::int32_t reserved = 0;
};

// A receive with this value as `from` accepts a message from any rank. If a receive with the same
// tag names the sender, that receive gets the message first.
inline constexpr int kAnySource = -1;

class UNISONO_EXPORT Communicator {
 public:
  // Collective. Joins the world that the options and the environment describe. Blocks until all
  // ranks have joined.
  // Errors: usage, config, connection, peer_lost, timeout, resource, aborted.
  static Communicator connect(const ConnectOptions& options = {});
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  // Local. Leaves the group. Plans, requests and regions of the group remain usable. This rank
  // leaves the world when it has destroyed all its communicators, plans, requests and regions of
  // the world. Peers that still wait for this rank then get peer_lost.
  ~Communicator();

  // Local. rank() returns this rank's number in the group, from 0. size() returns the number of
  // ranks in the group.
  int rank() const;
  int size() const;
  // Local. Returns the number of hosts on which the group's ranks run. If ranks on one machine do
  // not share memory (UNISONO_TRANSPORT=tcp, UNISONO_HOST), they count as ranks on different hosts.
  int hosts() const;
  // Local. local_size() returns the number of the group's ranks on this rank's host. local_rank()
  // returns this rank's index among the group's ranks on this host, in rank order, from 0.
  int local_rank() const;
  int local_size() const;
  // Local. Returns the number of the host on which rank `rank` of this group runs. Hosts are
  // numbered from 0, in the order of their lowest ranks.
  // Errors: usage.
  int host(int rank) const;

  // Collective. Untyped forms of all collectives. run() blocks. run_async() returns a Request: the
  // buffers must live until Request::wait() returns, but the lists of counts may be reused as soon
  // as run_async() returns. plan() prepares the call for repeated starts; plan() itself is local.
  // Shapes: see rules.h.
  // In place: see rules.h.
  // Errors: usage, before this rank sends anything; peer_lost, timeout, mismatch and aborted, on
  // all ranks.
  void run(const Call& call);
  Request run_async(const Call& call);
  Plan plan(const Call& call);
  // Local. Explains which algorithm the call would use, and why. Builds the schedule of every
  // algorithm that can serve the call. The buffers may be null.
  // Errors: usage.
  Explanation explain(const Call& call);

  // Collective. Typed forms. A buffer is anything from which std::span can be constructed: a span,
  // a std::vector, a std::array, an array. Each collective has a blocking form and an `_async`
  // form. The buffers of an `_async` form must live until Request::wait() returns. A rank that does
  // not use a buffer may pass {} for this buffer.
  // Shapes: the buffer lengths determine the counts, and must match the table in rules.h. A wrong
  // length throws usage.
  // Errors: those of run().
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
  // In-place form.
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
  // Rank r gets the reduction of the inputs of ranks 0 to r. avg throws usage.
  template <InBuffer In, OutBufferLike<In> Out>
  void scan(In&& in, Out&& out, Reduction reduction) {
    run(detail::vector_call(Collective::scan, detail::view(in), detail::out_view(out), reduction,
                            0));
  }
  template <AsyncInBuffer In, OutBufferLike<In> Out>
  Request scan_async(In&& in, Out&& out, Reduction reduction) {
    return run_async(detail::vector_call(Collective::scan, detail::view(in), detail::out_view(out),
                                         reduction, 0));
  }
  // In-place form.
  template <OutBuffer Data>
  void scan(Data&& data, Reduction reduction) {
    run(detail::vector_call(Collective::scan, detail::view(data), detail::out_view(data), reduction,
                            0));
  }
  template <OutBuffer Data>
  Request scan_async(Data&& data, Reduction reduction) {
    return run_async(detail::vector_call(Collective::scan, detail::view(data),
                                         detail::out_view(data), reduction, 0));
  }
  // Rank r gets the reduction of the inputs of ranks 0 to r-1. Rank 0 gets the identity of the
  // operation, such as 0 for sum; a user-defined operation leaves `out` of rank 0 unchanged. avg
  // throws usage.
  template <InBuffer In, OutBufferLike<In> Out>
  void exclusive_scan(In&& in, Out&& out, Reduction reduction) {
    run(detail::vector_call(Collective::exclusive_scan, detail::view(in), detail::out_view(out),
                            reduction, 0));
  }
  template <AsyncInBuffer In, OutBufferLike<In> Out>
  Request exclusive_scan_async(In&& in, Out&& out, Reduction reduction) {
    return run_async(detail::vector_call(Collective::exclusive_scan, detail::view(in),
                                         detail::out_view(out), reduction, 0));
  }
  // In-place form.
  template <OutBuffer Data>
  void exclusive_scan(Data&& data, Reduction reduction) {
    run(detail::vector_call(Collective::exclusive_scan, detail::view(data), detail::out_view(data),
                            reduction, 0));
  }
  template <OutBuffer Data>
  Request exclusive_scan_async(Data&& data, Reduction reduction) {
    return run_async(detail::vector_call(Collective::exclusive_scan, detail::view(data),
                                         detail::out_view(data), reduction, 0));
  }
  // Only the root uses `out`.
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
  // Only the root uses `in`.
  template <OutBuffer Out, InBufferLike<Out> In = std::span<ElementOf<Out>>>
  void scatter(In&& in, Out&& out, int root) {
    run(detail::scatter_call(detail::view(in), detail::out_view(out), root, rank(), size()));
  }
  template <OutBuffer Out, AsyncInBufferLike<Out> In = std::span<ElementOf<Out>>>
  Request scatter_async(In&& in, Out&& out, int root) {
    return run_async(
        detail::scatter_call(detail::view(in), detail::out_view(out), root, rank(), size()));
  }
  // Only the root uses `out`.
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
  // Collective. The v-forms, in which parts may differ in length. Parts are packed in rank order;
  // use run() for other offsets.
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
  // Collective. Returns when all ranks have called barrier().
  void barrier(int timeout_ms = -1) {
    run({.collective = Collective::barrier, .timeout_ms = timeout_ms});
  }
  Request barrier_async() { return run_async({.collective = Collective::barrier}); }

  // send() sends a message to rank `to`. recv() receives a message from rank `from`, or from any
  // rank if `from` is kAnySource. Both follow the rules for messages in rules.h. recv() returns the
  // length of the message.
  // Units: bytes.
  // Threads: one thread at a time may send or receive. Another thread may make collective calls at
  // the same time.
  // Errors: usage; mismatch if the message is longer than the buffer, timeout, peer_lost and
  // aborted, on all ranks.
  void send(const void* data, std::size_t bytes, int to, int tag = 0, int timeout_ms = -1);
  std::size_t recv(void* data, std::size_t bytes, int from, int tag = 0, int timeout_ms = -1);
  // Sends to one rank and receives from the same or another rank, at the same time, for example in
  // a ring. Returns the length of the received message.
  // Errors: those of send() and recv().
  std::size_t send_recv(const void* send_data, std::size_t send_bytes, int to, void* recv_data,
                        std::size_t recv_bytes, int from, int tag = 0, int timeout_ms = -1);
  // Typed forms. A buffer is anything from which std::span can be constructed, such as a span, a
  // std::vector or a std::array, but not a built-in array. Its elements must be trivially copyable.
  // recv() and send_recv() return the number of received elements.
  // Errors: those of the untyped forms; usage on this rank, after the receive, if the message does
  // not consist of whole elements.
  template <Message In>
  void send(In&& data, int to, int tag = 0, int timeout_ms = -1) {
    const auto in = detail::view(data);
    send(in.data(), in.size_bytes(), to, tag, timeout_ms);
  }
  template <Message Out>
    requires OutBuffer<Out>
  std::size_t recv(Out&& data, int from, int tag = 0, int timeout_ms = -1) {
    const auto out = detail::out_view(data);
    return detail::whole_elements(recv(out.data(), out.size_bytes(), from, tag, timeout_ms),
                                  sizeof(ElementOf<Out>));
  }
  template <Message In, Message Out>
    requires OutBuffer<Out>
  std::size_t send_recv(In&& send_data, int to, Out&& recv_data, int from, int tag = 0,
                        int timeout_ms = -1) {
    const auto in = detail::view(send_data);
    const auto out = detail::out_view(recv_data);
    return detail::whole_elements(send_recv(in.data(), in.size_bytes(), to, out.data(),
                                            out.size_bytes(), from, tag, timeout_ms),
                                  sizeof(ElementOf<Out>));
  }
  // Asynchronous forms. The buffers must live until Request::wait() returns.
  // Errors: those of send() and recv().
  Request send_async(const void* data, std::size_t bytes, int to, int tag = 0, int timeout_ms = -1);
  Request recv_async(void* data, std::size_t bytes, int from, int tag = 0, int timeout_ms = -1);
  template <Message In>
    requires AsyncInBuffer<In>
  Request send_async(In&& data, int to, int tag = 0, int timeout_ms = -1) {
    const auto in = detail::view(data);
    return send_async(in.data(), in.size_bytes(), to, tag, timeout_ms);
  }
  template <Message Out>
    requires OutBuffer<Out>
  Request recv_async(Out&& data, int from, int tag = 0, int timeout_ms = -1) {
    const auto out = detail::out_view(data);
    return recv_async(out.data(), out.size_bytes(), from, tag, timeout_ms);
  }

  // Collective. Ranks that pass the same color form a group. Within a group, ranks are ordered by
  // key, then by their rank in this communicator. A rank that passes a negative color gets an empty
  // communicator, whose size() is 0.
  // Errors: those of a collective, resource.
  Communicator split(int color, int key);
  // Collective over the ranks in `members`. Makes a group of these ranks of this communicator; the
  // rank order in the group is the order in `members`. Each member must be a separate process. All
  // members pass the same `id`. Two groups that are made from this communicator must have different
  // ids if they share a member and live at the same time. A group needs one memory mapping, but no
  // descriptor and no thread.
  // Threads: any.
  // Errors: those of a collective; mismatch, with both lists, if two members pass different lists;
  // connection if a member does not call subgroup() within the time limit of connect(); resource.
  Communicator subgroup(std::span<const int> members, std::uint64_t id);

  // Local. Sets the label of this rank's next calls on all groups of this world, for example the
  // name of a layer or a phase. The label applies until the next label(); an empty text removes it.
  // `unisono top` shows the label. A recording (UNISONO_RECORD, unisono run --record) stores the
  // label with each call. Without a recording, label() costs about ten nanoseconds.
  // Units: at most 103 bytes; further bytes are dropped. A recording keeps about 400 different
  // labels.
  // Threads: any.
  // Errors: usage.
  void label(std::string_view text);
  // Local. Returns this rank's current label.
  std::string label() const;

  // Local. Ends all operations of this world, on all ranks, with ErrorCode::aborted.
  // Threads: any.
  void abort(std::string_view reason = {});
  // Local. Returns the error that has ended this communicator's world, or nothing if no error is
  // known. The next operation would throw the same error. As a waiting operation does, failure()
  // checks for dead ranks and for reports from other hosts. A thread can therefore use failure() to
  // monitor the world while this rank computes. failure() never blocks. It takes about a
  // microsecond, plus about a microsecond for each rank on another host. It does not report a
  // stopped process, or a rank that left normally before another rank needed it.
  // Threads: any.
  // Errors: usage.
  std::optional<Error> failure() const;

  // Local. Returns the ranks of this group that have not entered this rank's latest collective, in
  // ascending order. The result is still valid after this collective has timed out. The text of the
  // timeout error describes the last call of each late rank. A rank on another host counts as late
  // until it reports its position, which it does only while a rank waits.
  // Errors: usage.
  std::vector<int> late_ranks() const;

  // Local. Returns statistics of this rank's calls on this group so far: the calls, the bytes, the
  // time spent moving data, and the time spent waiting for each rank (statistics.hpp).
  // Threads: any.
  Statistics statistics() const;

  // Collective over the remaining ranks. Returns a communicator of the remaining ranks, in their
  // old order. Call shrink() after an error that has ended the world, on the communicator that
  // connect(), shrink() or grow() returned. shrink() ends the old world on all ranks. It blocks
  // until every rank has called shrink() or is known to be dead. All callers get a communicator of
  // the same ranks. Afterwards the old communicator can only be destroyed. Split the groups again,
  // from the new communicator.
  // Errors: evicted if the other ranks continued without this rank, or if this rank must not
  // continue without the missing ranks (ShrinkOptions::quorum); usage; those of connect().
  Communicator shrink(const ShrinkOptions& options = {});
  // Collective over the ranks of this communicator. Returns a communicator of `size` ranks: the
  // ranks of this communicator, with the same numbers, and new processes. The new processes get the
  // numbers from size() to `size` - 1. Each new process calls connect() with its number as
  // ConnectOptions::rank, with ConnectOptions::size = `size`, and with the job name (and the
  // address) of the first world. This communicator stays usable. Rank 0 listens for the new
  // processes at `address`, or at the address of the first world if `address` is empty.
  // Errors: those of connect(), usage.
  Communicator grow(int size, const std::string& address = {});
  // Local. If shrink() made this world, returns each rank's number in the previous world. Otherwise
  // returns an empty list.
  std::vector<int> previous_ranks() const;
  // Local. If shrink() made this world, returns the number of ranks in the previous world.
  // Otherwise returns 0.
  int previous_size() const;

  // Local. Registers memory; the peers need not register memory as well. allocate() returns new,
  // zeroed, page-aligned memory. register_buffer() registers ordinary private memory: it replaces
  // each whole page with a shared page at the same address and with the same contents, which takes
  // about 1 ms per MiB. The memory must stay mapped while the Region lives.
  // Units: bytes.
  // Errors: usage, for example if the memory is not mapped or is already registered; resource.
  Region allocate(std::size_t bytes);
  Region register_buffer(std::span<std::byte> memory);

  // Local. For kernels that read other ranks' registered memory directly. The owner describes its
  // memory with place_of(), and sends the result to other ranks; SharedPlace::region is 0 if the
  // memory is not registered. peer_memory() returns the address at which this rank can read the
  // memory at `place` of rank `peer` of this group, or nullptr if this rank cannot read the memory.
  // Before the owner changes the memory again, it must synchronise with the readers, for example
  // with barrier(). The memory stays readable while its Region lives.
  // Threads: any.
  SharedPlace place_of(const void* data, std::size_t bytes) const;
  const std::byte* peer_memory(int peer, const SharedPlace& place, std::size_t bytes) const;

  // Collective. Starts several operations together. `body` calls asynchronous operations on this
  // communicator. group() returns when all these operations are done, so the requests need no
  // wait(). Consecutive small all_reduces of the same dtype and operation are merged into one
  // all_reduce. If `body` throws, no operation is started, and group() rethrows the exception.
  // `body` must throw on all ranks or on none.
  // Errors: usage for a blocking call on this communicator in `body`; those of the operations.
  void group(const std::function<void()>& body);

 private:
  explicit Communicator(std::shared_ptr<detail::Core> core);
  friend struct detail::Handles;
  friend class detail::Heap;
  friend struct detail::ExactReceives;
  friend void detail::label_group(Communicator& group, std::string_view text);
  std::shared_ptr<detail::Core> core_;
};

// Starts `ranks` threads in this process. Each thread is one rank, and calls `body` with its
// communicator. run_threads() returns when all threads have ended, and rethrows the first exception
// of a thread.
UNISONO_EXPORT void run_threads(int ranks, const std::function<void(Communicator&)>& body,
                                const ConnectOptions& options = {});

}  // namespace unisono
