// Communicator: collectives between the ranks of a group, and point-to-point messages.
//
// rules.h has the rules that hold in C as well: shapes, in-place use, errors, threads, messages,
// and what ranks must agree on. A call that fails throws unisono::Error (error.hpp). After an error
// that ends the world, the remaining ranks can continue with shrink().
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
// Local. Labels this rank's next calls on this group, and only these, instead of the text of
// Communicator::label(); an empty text restores that text. For library threads that make calls.
// Threads: any.
// Errors: usage.
void label_group(Communicator& group, std::string_view text);
// For bindings whose receives accept only messages of the buffer's length and element type. Any
// other message is a mismatch on both sides. A message without a type matches every type.
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

// Local. An operation in progress. Its buffers must live until wait() returns. The destructor
// waits. If the operation failed and nobody has seen the error, the destructor prints the error on
// stderr. Call wait() to catch the error.
class [[nodiscard]] UNISONO_EXPORT Request {
 public:
  Request();
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();
  // Blocks until the operation has ended.
  // Units: milliseconds; -1: the limit of the call or the communicator, 0: no limit.
  // Errors: those of the operation; timeout, which ends the world; usage on a second wait(), and on
  // a request that was made in Communicator::group(), because group() itself waits.
  void wait(int timeout_ms = -1);
  // Makes progress without blocking and returns true if the operation has ended, so that wait()
  // returns at once.
  bool test();
  // Calls tell(nullptr) once when the operation has succeeded, or tell(&error) once when it has
  // failed. A second on_done() before the end replaces the first. If the operation has already
  // ended, on_done() calls `tell` itself. Otherwise the thread that completes the operation calls
  // it: the progress thread, the thread of an ExpertExchange, or a thread that waits on this
  // communicator. `tell` must not throw, must not make a blocking call on this world, and must not
  // destroy the ExpertExchange whose thread calls it.
  void on_done(std::function<void(const Error*)> tell);
  // Returns the rank that sent the message; kAnySource before the receive has ended.
  // Errors: usage if the operation is not a receive.
  int source() const;
  // Returns the length of the message, which may be shorter than the buffer; 0 before the receive
  // has ended.
  // Units: bytes.
  // Errors: usage if the operation is not a receive.
  std::size_t received() const;

 private:
  friend struct detail::Handles;
  explicit Request(std::shared_ptr<detail::RequestState> state);
  friend std::shared_ptr<detail::RequestState> detail::take_state(Request&& request) noexcept;
  std::shared_ptr<detail::RequestState> state_;
};

// A collective that is checked, planned and lowered once, and then started any number of times on
// the same buffers. The buffers must live as long as the plan. Each start is collective.
class UNISONO_EXPORT Plan {
 public:
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();
  // Runs the collective and blocks until it is done.
  // Errors: those of Communicator::run().
  void start();
  // Starts the collective and returns at once. The Request's wait() completes it.
  // Errors: those of Communicator::run().
  [[nodiscard]] Request start_async();
  // Local. Returns the algorithm that this plan runs, with its parameters.
  std::string_view algorithm() const;

 private:
  friend class Communicator;
  explicit Plan(std::unique_ptr<detail::PlanState> state);
  std::unique_ptr<detail::PlanState> state_;
};

// Local. Registered memory: peers on this host read and write it directly, without a copy through
// slots. Movable, not copyable. The destructor unregisters the memory. When it runs, no operation
// on any rank may use the memory.
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

// Describes registered memory to the ranks that share memory with its owner. It is plain data, so
// it can be sent to these ranks.
struct SharedPlace {
  std::uint64_t address = 0;  // in the owner's process
  std::uint64_t offset = 0;   // in the owner's region
  std::uint32_t region = 0;   // 0: no other rank can read the memory
  std::int32_t reserved = 0;
};

// For recv and recv_async: receives from whichever rank sends first. A receive with the same tag
// that names the sender has priority.
inline constexpr int kAnySource = -1;

class UNISONO_EXPORT Communicator {
 public:
  // Collective. Joins the world that the options and the environment describe. Blocks until all
  // ranks have joined.
  // Errors: usage, config, connection, peer_lost, timeout, resource, aborted.
  static Communicator connect(const ConnectOptions& options = {});
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  // Local. Leaves the group. Plans, requests and regions of the group remain usable. When this rank
  // has destroyed its last communicator, plan, request and region of a world, peers that still wait
  // for this rank get peer_lost.
  ~Communicator();

  // Local. Returns this rank's number in the group, and the number of ranks.
  int rank() const;
  int size() const;
  // Local. Returns the number of hosts that the group's ranks run on. Ranks on one host that do not
  // share memory (UNISONO_TRANSPORT=tcp, UNISONO_HOST) count as being on several hosts.
  int hosts() const;
  // Local. local_size() returns how many ranks of the group run on this rank's host. local_rank()
  // returns this rank's number among them, from 0, in rank order.
  int local_rank() const;
  int local_size() const;
  // Local. Returns the host of rank `rank` of this group. Hosts are numbered in the order of their
  // lowest ranks.
  // Errors: usage.
  int host(int rank) const;

  // Collective. Untyped forms of all collectives: run() blocks, run_async() returns a Request,
  // plan() prepares the call for repeated starts (preparing is local).
  // run_async(): the buffers must live until wait() returns; lists of counts may be reused as soon
  // as run_async() returns.
  // Shapes: see rules.h.
  // In place: see rules.h.
  // Errors: usage before anything is sent; peer_lost, timeout, mismatch and aborted on all ranks.
  void run(const Call& call);
  Request run_async(const Call& call);
  Plan plan(const Call& call);
  // Local. Explains which algorithm the call would get and why. Builds every schedule that can
  // serve the call. The buffers may be null.
  // Errors: usage.
  Explanation explain(const Call& call);

  // Collective. Typed forms. A buffer is anything that std::span can be constructed from: a span, a
  // std::vector, a std::array, an array. Each collective has a blocking form and an `_async` form.
  // The buffers of an `_async` form must live until wait() returns. Ranks that do not use a buffer
  // may pass {}.
  // Shapes: counts follow from the buffer lengths, which must fit the table in rules.h; a wrong
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
  // Rank r gets the reduction of the inputs of ranks 0 to r. avg is a usage error.
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
  // In place.
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
  // Rank r gets the reduction of the inputs of ranks 0 to r-1, and rank 0 gets the identity of the
  // operation, such as 0 for sum. avg is a usage error. A user-defined operation leaves `out` of
  // rank 0 unchanged.
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
  // In place.
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
  // Collective. The v-forms: parts may differ in length. Parts are packed in rank order; use run()
  // for other offsets.
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
  // Collective. Returns when all ranks have called it.
  void barrier(int timeout_ms = -1) {
    run({.collective = Collective::barrier, .timeout_ms = timeout_ms});
  }
  Request barrier_async() { return run_async({.collective = Collective::barrier}); }

  // Sends to or receives from one rank, by the rules for messages in rules.h. recv() returns the
  // length of the message.
  // Units: bytes.
  // Threads: one thread at a time may send or receive; another thread may make collective calls
  // meanwhile.
  // Errors: usage; mismatch if the message is longer than the buffer, timeout, peer_lost and
  // aborted, on all ranks.
  void send(const void* data, std::size_t bytes, int to, int tag = 0, int timeout_ms = -1);
  std::size_t recv(void* data, std::size_t bytes, int from, int tag = 0, int timeout_ms = -1);
  // Sends to one rank and receives from the same or another rank, at the same time. Use it for
  // rings and shifts. Returns what recv() returns.
  // Errors: those of send() and recv().
  std::size_t send_recv(const void* send_data, std::size_t send_bytes, int to, void* recv_data,
                        std::size_t recv_bytes, int from, int tag = 0, int timeout_ms = -1);
  // Typed forms. A buffer is a span, a std::vector, a std::array or anything else that std::span
  // can be constructed from, except a built-in array. Its elements are trivially copyable. recv()
  // and send_recv() return the number of elements received.
  // Errors: those above; usage on this rank, after the receive, if the message ends within an
  // element.
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
  // Asynchronous forms. The buffers must live until wait() returns.
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

  // Collective. Forms one group for each color. The ranks of a group are ordered by key, then by
  // their rank in this communicator. A rank with a negative color gets an empty communicator, whose
  // size() is 0.
  // Errors: those of a collective, resource.
  Communicator split(int color, int key);
  // Makes a group of `members`: ranks of this communicator, in the order that they have in the new
  // group. Collective over these members alone. Each member must be a separate process. `id` must
  // be the same on all members. If two groups are made from this communicator, share a member and
  // live at the same time, their ids must differ. A group costs one memory mapping, and no
  // descriptor or thread.
  // Threads: any.
  // Errors: those of a collective; mismatch with both lists if the members name different ranks or
  // another order; connection if a member does not call subgroup() within the time limit of
  // connect(); resource.
  Communicator subgroup(std::span<const int> members, std::uint64_t id);

  // Local. Labels the next calls of this rank on any group of this world, for example with a layer
  // or a phase, until the next label; an empty text removes the label. unisono top shows the label,
  // and recordings (UNISONO_RECORD, unisono run --record) name the calls by the label. Without a
  // recording, label() costs about ten nanoseconds.
  // Units: at most 103 bytes; further bytes are dropped. A recording keeps about 400 different
  // labels.
  // Threads: any.
  // Errors: usage.
  void label(std::string_view text);
  // Local. Returns this rank's current label.
  std::string label() const;

  // Local. Ends all operations of this world on all ranks with ErrorCode::aborted.
  // Threads: any.
  void abort(std::string_view reason = {});
  // Local. Returns the error that has ended this communicator's world (the next operation would
  // throw it), or nothing while no error is known. Checks for dead ranks and for reports from other
  // hosts, as a waiting operation does, so that a thread can monitor the world while this rank
  // computes or waits for something else. Never blocks. Its system calls take about a microsecond,
  // plus about a microsecond for each rank on another host. Does not report a rank that left
  // normally before another rank needed it, and does not report a stopped process.
  // Threads: any.
  // Errors: usage.
  std::optional<Error> failure() const;

  // Local. Returns, in ascending order, the ranks of this group that have not entered this rank's
  // latest collective. The result stays valid after that collective has timed out; the text of the
  // timeout error says what each late rank did last. Ranks on other hosts report their position
  // only while a rank waits; until then they count as late.
  // Errors: usage.
  std::vector<int> late_ranks() const;

  // Local. Returns the statistics of this group's calls on this rank so far: calls, bytes, time
  // spent moving data, and time spent waiting for each rank (statistics.hpp).
  // Threads: any.
  Statistics statistics() const;

  // Returns a communicator of the remaining ranks, in their old order. Call shrink() after an error
  // that has ended the world, on the communicator that connect(), shrink() or grow() returned.
  // Collective over the remaining ranks. It ends the old world on all ranks, and blocks until every
  // rank has called shrink() or is known to be dead. All callers get the same ranks. Afterwards the
  // old communicator can only be destroyed; split its groups again.
  // Errors: evicted if the others continued without this rank, or if this rank must not continue
  // without them; usage; those of connect().
  Communicator shrink(const ShrinkOptions& options = {});
  // Returns a communicator of `size` ranks: the ranks of this communicator, with the same numbers,
  // and new processes. Collective over the ranks of this communicator. The new processes call
  // connect() with ConnectOptions::size = `size`, with the ranks from size() to `size` - 1, and
  // with the job name (and address) of the first world. This communicator stays usable. `address`
  // is where rank 0 listens for the new processes; empty: the address of the first world.
  // Errors: those of connect(), usage.
  Communicator grow(int size, const std::string& address = {});
  // Local. Returns, for each rank, its number in the world from which shrink() made this world;
  // empty if shrink() did not make this world.
  std::vector<int> previous_ranks() const;
  // Local. Returns the number of ranks in the world from which shrink() made this world; 0 if
  // shrink() did not make this world.
  int previous_size() const;

  // Registers memory. Local: the peers need not do the same. allocate() returns new, zeroed,
  // page-aligned memory. register_buffer() copies the whole pages of ordinary private memory to
  // shared pages at the same address. This takes about 1 ms per MiB, once. The memory must stay
  // mapped while the Region lives.
  // Units: bytes.
  // Errors: usage (memory that is not mapped, or is registered already), resource.
  Region allocate(std::size_t bytes);
  Region register_buffer(std::span<std::byte> memory);

  // Local. For kernels that read other ranks' registered memory directly. place_of() describes this
  // memory to other ranks; region is 0 if the memory is not registered. peer_memory() returns the
  // address at which this rank can read `bytes` bytes of rank `peer` of this group, or nullptr if
  // it cannot. The caller must synchronise with the owner, for example with barrier(), before the
  // owner changes the memory again. The memory stays readable while its Region lives.
  // Threads: any.
  SharedPlace place_of(const void* data, std::size_t bytes) const;
  const std::byte* peer_memory(int peer, const SharedPlace& place, std::size_t bytes) const;

  // Collective. Starts several operations as one. `body` calls async operations on this
  // communicator; group() returns when all of them are done, so their requests need no wait().
  // Consecutive small all_reduces of the same dtype and operation become one. If `body` throws,
  // nothing is started, and group() rethrows the exception. `body` must throw on all ranks or on
  // none.
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

// Starts `ranks` threads in this process, each as one rank. Each thread calls `body`. Waits until
// all threads have ended, and rethrows the first exception.
UNISONO_EXPORT void run_threads(int ranks, const std::function<void(Communicator&)>& body,
                                const ConnectOptions& options = {});

}  // namespace unisono
