// The public classes, which wrap detail::Core.
#include "unisono/communicator.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "base/collectives.h"
#include "base/private.h"
#include "comm/call_queue.h"
#include "comm/connect.h"
#include "comm/core.h"
#include "comm/derived.h"
#include "comm/group.h"
#include "comm/handles.h"
#include "comm/labels.h"
#include "comm/region.h"
#include "comm/world.h"
#include "unisono/allocator.hpp"
#include "unisono/statistics.hpp"

namespace unisono {
namespace {

detail::Core& core_of(const std::shared_ptr<detail::Core>& core) {
  if (core == nullptr) {
    throw Error(ErrorCode::usage,
                "this communicator is empty\nit was moved from, or split() returned no group for a "
                "negative color");
  }
  return *core;
}

detail::PlanState& state_of(const std::unique_ptr<detail::PlanState>& state) {
  if (state == nullptr) {
    throw Error(ErrorCode::usage, "this plan is empty\nit was moved from");
  }
  return *state;
}

comm::PendingTransfer transfer_of(bool send, const void* data, std::size_t bytes, int peer, int tag,
                                  comm::ElementType type = comm::kAnyType) {
  return {.send = send,
          .peer = peer,
          .tag = tag,
          .data = static_cast<std::byte*>(const_cast<void*>(data)),
          .bytes = bytes,
          .type = type};
}

}  // namespace

std::size_t detail::whole_elements(std::size_t bytes, std::size_t element_bytes) {
  if (bytes % element_bytes != 0) {
    throw Error(ErrorCode::usage, "recv: a message of " + std::to_string(bytes) +
                                      " bytes has no whole number of elements of " +
                                      std::to_string(element_bytes) +
                                      " bytes\nuse the same element type on both sides");
  }
  return bytes / element_bytes;
}

void detail::expect(Collective collective, const char* what, std::size_t have, std::size_t need) {
  if (have != need) {
    throw Error(ErrorCode::usage,
                std::string(to_string(collective)) + ": `" + what + "` has " +
                    std::to_string(have) + " elements, not the " + std::to_string(need) +
                    " that the other argument requires\nsee the table of shapes in call.hpp");
  }
}

void detail::expect_parts(const Call& call, std::size_t in, std::size_t out, int rank, int ranks) {
  if (call.counts.size() != static_cast<std::size_t>(ranks)) {
    return;  // refused by the call itself
  }
  const auto total = [](std::span<const std::size_t> counts) {
    return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  };
  const std::size_t mine = call.counts[static_cast<std::size_t>(rank)];
  const std::size_t whole = total(call.counts);
  const CollectiveTraits& traits = traits_of(call.collective);
  const auto check = [&](const char* what, std::size_t have, Holding holding, std::size_t pairs) {
    if (holding == Holding::whole_at_root && rank != call.root) {
      return;
    }
    expect(call.collective, what, have,
           holding == Holding::part    ? mine
           : holding == Holding::pairs ? pairs
                                       : whole);
  };
  check("in", in, traits.input, whole);
  check("out", out, traits.output, total(call.recv_counts));
}

Request::Request() = default;
Request::Request(std::shared_ptr<detail::RequestState> state) : state_(std::move(state)) {}
Request::Request(Request&&) noexcept = default;
Request& Request::operator=(Request&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Request::~Request() {
  if (state_ != nullptr && !state_->waited) {
    state_->driver->drop(*state_);
  }
}
void Request::wait(int timeout_ms) {
  if (state_ == nullptr) {
    throw Error(ErrorCode::usage, "this request is empty\nit was moved from, or never started");
  }
  state_->driver->wait(*state_, timeout_ms);
  if (state_ == detail::finished_send(false)) {
    state_ = detail::finished_send(true);
  }
}
bool Request::test() {
  return state_ == nullptr || state_->driver->test(*state_);
}
void Request::on_done(std::function<void(const Error*)> tell) {
  if (state_ == nullptr) {
    throw Error(ErrorCode::usage, "this request is empty\nit was moved from, or never started");
  }
  state_->driver->on_done(*state_, std::move(tell));
}
int Request::source() const {
  return state_ == nullptr ? kAnySource : state_->driver->received(*state_).source;
}
std::size_t Request::received() const {
  return state_ == nullptr ? 0 : state_->driver->received(*state_).bytes;
}

UNISONO_PRIVATE std::shared_ptr<detail::RequestState> detail::take_state(
    Request&& request) noexcept {
  return std::move(request.state_);
}

Plan::Plan(std::unique_ptr<detail::PlanState> state) : state_(std::move(state)) {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;
void Plan::start() {
  detail::PlanState& state = state_of(state_);
  state.core->start(state);
}
Request Plan::start_async() {
  detail::PlanState& state = state_of(state_);
  return detail::Handles::request(state.core->start_async(state));
}
std::string_view Plan::algorithm() const {
  return state_of(state_).algorithm();
}

Region::Region() = default;
Region::Region(std::shared_ptr<detail::RegionState> state) : state_(std::move(state)) {}
Region::Region(Region&&) noexcept = default;
Region& Region::operator=(Region&&) noexcept = default;
Region::~Region() = default;
std::span<std::byte> Region::bytes() const {
  return state_ == nullptr
             ? std::span<std::byte>()
             : std::span(state_->base, state_->adopted ? state_->bytes : state_->usable);
}

Communicator::Communicator(std::shared_ptr<detail::Core> core) : core_(std::move(core)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;
Communicator Communicator::connect(const ConnectOptions& options) {
  return Communicator(detail::core_of_world(comm::connect(options)));
}
int Communicator::rank() const {
  return core_of(core_).rank();
}
int Communicator::size() const {
  return core_ == nullptr ? 0 : core_->size();
}
int Communicator::hosts() const {
  return core_of(core_).group().hosts();
}
int Communicator::local_rank() const {
  return core_of(core_).group().ranks_here_below(rank());
}
int Communicator::local_size() const {
  return core_of(core_).group().ranks_here_below(size());
}
int Communicator::host(int rank) const {
  comm::Group& group = core_of(core_).group();
  if (rank < 0 || rank >= group.size()) {
    throw Error(ErrorCode::usage,
                "host: there is no rank " + std::to_string(rank) + " in a group of " +
                    std::to_string(group.size()) + "\ngive a rank of this communicator",
                {.rank = group.world().rank()});
  }
  return group.host(rank);
}
void Communicator::run(const Call& call) {
  core_of(core_).run(call);
}
Request Communicator::run_async(const Call& call) {
  return detail::Handles::request(core_of(core_).run_async(call));
}
Plan Communicator::plan(const Call& call) {
  return Plan(core_of(core_).plan(call));
}
Explanation Communicator::explain(const Call& call) {
  return core_of(core_).explain(call);
}

void Communicator::send(const void* data, std::size_t bytes, int to, int tag, int timeout_ms) {
  comm::PendingTransfer transfer = transfer_of(true, data, bytes, to, tag);
  core_of(core_).transfer({&transfer, 1}, timeout_ms);
}
std::size_t Communicator::recv(void* data, std::size_t bytes, int from, int tag, int timeout_ms) {
  comm::PendingTransfer transfer = transfer_of(false, data, bytes, from, tag);
  core_of(core_).transfer({&transfer, 1}, timeout_ms);
  return transfer.bytes;
}
std::size_t Communicator::send_recv(const void* send_data, std::size_t send_bytes, int to,
                                    void* recv_data, std::size_t recv_bytes, int from, int tag,
                                    int timeout_ms) {
  comm::PendingTransfer both[] = {transfer_of(true, send_data, send_bytes, to, tag),
                                  transfer_of(false, recv_data, recv_bytes, from, tag)};
  both[0].may_wait = true;
  core_of(core_).transfer(both, timeout_ms);
  return both[1].bytes;
}
void detail::ExactReceives::recv(Communicator& group, void* data, std::size_t bytes, int from,
                                 int tag, int timeout_ms) {
  comm::PendingTransfer transfer = transfer_of(false, data, bytes, from, tag);
  transfer.exact = true;
  unisono::core_of(group.core_).transfer({&transfer, 1}, timeout_ms);
}
void detail::ExactReceives::send_recv(Communicator& group, const void* send_data,
                                      std::size_t send_bytes, int to, void* recv_data,
                                      std::size_t recv_bytes, int from, int tag, int timeout_ms) {
  comm::PendingTransfer both[] = {transfer_of(true, send_data, send_bytes, to, tag),
                                  transfer_of(false, recv_data, recv_bytes, from, tag)};
  both[0].may_wait = true;
  both[1].exact = true;
  unisono::core_of(group.core_).transfer(both, timeout_ms);
}
Request detail::ExactReceives::recv_async(Communicator& group, void* data, std::size_t bytes,
                                          int from, int tag, int timeout_ms) {
  comm::PendingTransfer transfer = transfer_of(false, data, bytes, from, tag);
  transfer.exact = true;
  return Handles::request(unisono::core_of(group.core_).transfer_async(transfer, timeout_ms));
}
Request detail::ExactReceives::recv_async(Communicator& group, void* data, std::size_t count,
                                          Dtype dtype, int from, int tag, int timeout_ms) {
  comm::PendingTransfer transfer =
      transfer_of(false, data, count * size_of(dtype), from, tag, comm::element_type(dtype));
  transfer.exact = true;
  return Handles::request(unisono::core_of(group.core_).transfer_async(transfer, timeout_ms));
}
Request detail::ExactReceives::send_async(Communicator& group, const void* data, std::size_t count,
                                          Dtype dtype, int to, int tag, int timeout_ms) {
  return Handles::request(unisono::core_of(group.core_)
                              .transfer_async(transfer_of(true, data, count * size_of(dtype), to,
                                                          tag, comm::element_type(dtype)),
                                              timeout_ms));
}
Request Communicator::send_async(const void* data, std::size_t bytes, int to, int tag,
                                 int timeout_ms) {
  return detail::Handles::request(
      core_of(core_).transfer_async(transfer_of(true, data, bytes, to, tag), timeout_ms));
}
Request Communicator::recv_async(void* data, std::size_t bytes, int from, int tag, int timeout_ms) {
  return detail::Handles::request(
      core_of(core_).transfer_async(transfer_of(false, data, bytes, from, tag), timeout_ms));
}
Communicator Communicator::split(int color, int key) {
  return Communicator(detail::split(core_of(core_), color, key));
}
Communicator Communicator::subgroup(std::span<const int> members, std::uint64_t id) {
  return Communicator(detail::subgroup(core_of(core_), members, id));
}
Communicator Communicator::shrink(const ShrinkOptions& options) {
  return Communicator(detail::shrink(core_of(core_), options));
}
Communicator Communicator::grow(int size, const std::string& address) {
  return Communicator(detail::grow(core_of(core_), size, address));
}
std::vector<int> Communicator::previous_ranks() const {
  return core_of(core_).world()->setup().ancestry.previous_ranks;
}
int Communicator::previous_size() const {
  return core_of(core_).world()->setup().ancestry.previous_size;
}
void Communicator::label(std::string_view text) {
  comm::set_label(*core_of(core_).world(), text);
}
UNISONO_PRIVATE void detail::label_group(Communicator& group, std::string_view text) {
  comm::set_group_label(unisono::core_of(group.core_).group(), text);
}
std::string Communicator::label() const {
  return comm::label_of(*core_of(core_).world());
}
void Communicator::abort(std::string_view reason) {
  core_of(core_).abort(reason);
}
std::optional<Error> Communicator::failure() const {
  return core_of(core_).failure();
}
std::vector<int> Communicator::late_ranks() const {
  return core_of(core_).late_ranks();
}
Statistics Communicator::statistics() const {
  return core_of(core_).statistics();
}
Region Communicator::allocate(std::size_t bytes) {
  return detail::Handles::region(detail::allocate(core_of(core_).world(), bytes));
}
struct detail::Heap::State {
  std::shared_ptr<Core> core;
  std::mutex changing;  // guards regions
  std::map<void*, Region> regions = {};
};
detail::Heap::Heap(const Communicator& communicator)
    : state_(new State{.core = communicator.core_, .changing = {}}) {}
detail::Heap::~Heap() = default;
void* detail::Heap::allocate(std::size_t bytes) {
  // A container may ask for 0 bytes and still needs an address of its own.
  Region region = detail::Handles::region(
      detail::allocate(core_of(state_->core).world(), std::max<std::size_t>(bytes, 1)));
  void* memory = region.bytes().data();
  const std::lock_guard lock(state_->changing);
  state_->regions.emplace(memory, std::move(region));
  return memory;
}
void detail::Heap::deallocate(void* memory) noexcept {
  const std::lock_guard lock(state_->changing);
  state_->regions.erase(memory);
}
Region Communicator::register_buffer(std::span<std::byte> memory) {
  return detail::Handles::region(detail::adopt(core_of(core_).world(), memory));
}
SharedPlace Communicator::place_of(const void* data, std::size_t bytes) const {
  return detail::place_of(*core_of(core_).world(), data, bytes);
}
const std::byte* Communicator::peer_memory(int peer, const SharedPlace& place,
                                           std::size_t bytes) const {
  const detail::Core& core = core_of(core_);
  const bool is_member = peer >= 0 && peer < core.size();
  const int rank = is_member ? core.group().world_rank(peer) : -1;
  return detail::peer_memory(*core.world(), rank, place, bytes);
}
void Communicator::group(const std::function<void()>& body) {
  core_of(core_).run_together(body);
}

void run_threads(int ranks, const std::function<void(Communicator&)>& body,
                 const ConnectOptions& options) {
  if (ranks < 1) {
    throw Error(ErrorCode::usage,
                "run_threads: " + std::to_string(ranks) + " ranks\nat least one is needed");
  }
  ConnectOptions common = options;
  common.size = ranks;
  if (common.job.empty()) {
    std::random_device entropy;
    common.job = "threads-" + std::to_string(entropy()) + "-" + std::to_string(entropy());
  }
  std::mutex first;  // guards `failure`
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  const auto run_rank = [&](int rank) {
    ConnectOptions mine = common;
    mine.rank = rank;
    try {
      Communicator communicator = Communicator::connect(mine);
      try {
        body(communicator);
      } catch (const std::exception& error) {
        {
          const std::lock_guard lock(first);
          if (failure == nullptr) {
            failure = std::current_exception();
          }
        }
        communicator.abort(error.what());
      }
    } catch (...) {
      const std::lock_guard lock(first);
      if (failure == nullptr) {
        failure = std::current_exception();
      }
    }
  };
  try {
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back(run_rank, rank);
    }
  } catch (const std::system_error&) {  // no more threads: the waiting ones give up
    const std::lock_guard lock(first);
    failure = std::make_exception_ptr(
        Error(ErrorCode::resource, "run_threads: only " + std::to_string(threads.size()) + " of " +
                                       std::to_string(ranks) +
                                       " threads could be started\nraise the limit (ulimit -u), "
                                       "or start fewer ranks"));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (failure != nullptr) {
    std::rethrow_exception(failure);
  }
}

}  // namespace unisono
