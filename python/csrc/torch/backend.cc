// The lifetime of a group, and its operations.
#include "backend.h"

#include <ATen/record_function.h>
#include <c10/util/safe_numerics.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "common/signals.h"
#include "common/without_python.h"

namespace unisono_torch {
namespace {

// Limit for destroy_process_group() to wait until rank 0, which hosts the store, has called it too.
constexpr std::chrono::milliseconds kStoreEnds{2'000};
// Time limit for pending work on streams at the end of the process.
constexpr std::chrono::milliseconds kLast{1'000};
constexpr std::chrono::milliseconds kCallbacksEnd{10'000};

std::mutex backends_mutex;  // guards backends()
// Backends in creation order, which is equal on all ranks.
std::vector<Backend*>& backends() {
  static auto* all = new std::vector<Backend*>;
  return *all;
}

// Returns an operation's title for the profiler.
std::string title_of(const std::string& backend, const char* op) {
  return backend + ":" + (backend == "gloo" ? name_in_gloo(op) : op);
}

// Records an operation of the caller's thread in the profiler as asynchronous, like operations of
// other backends.
class Shown {
 public:
  Shown(const std::string& backend, const char* op, at::TensorList inputs)
      : record_(at::RecordScope::USER_SCOPE) {
    if (record_.isActive()) {
      std::vector<c10::IValue> values(inputs.begin(), inputs.end());
      record_._setAsync();
      record_.before(title_of(backend, op),
                     c10::ArrayRef<const c10::IValue>(values.data(), values.size()));
    }
  }

 private:
  at::RecordFunction record_;
};

// Larger than gloo's options.
alignas(std::max_align_t) constexpr std::array<std::byte, 1024> kGlooOptions = {};

}  // namespace

Backend::Backend(Pointer<c10d::Store> store, const Meeting& meeting, std::string shown_as)
    : NewerBackend(meeting.rank, meeting.size),
      as_gloo_{.store = nullptr, .options = kGlooOptions.data()},
      options_(c10::make_intrusive<Options>(meeting.timeout)),
      shown_as_(std::move(shown_as)),
      store_(std::move(store)),
      timeout_ms_(meeting.timeout.count()),
      place_(meeting.later ? Place{} : meet(store_, meeting)),
      pid_(getpid()) {
  init();
  if (meeting.members.empty() && meeting.size > 1) {
    store_host_ = std::make_unique<StoreHost>(*store_, meeting.rank);
  }
  options_->global_ranks_in_group.assign(meeting.members.begin(), meeting.members.end());
  const std::lock_guard lock(backends_mutex);
  backends().push_back(this);
}

Backend::~Backend() {
  const unisono_signals::WithoutPython unlocked;
  {
    const std::lock_guard lock(backends_mutex);
    std::erase(backends(), this);
  }
  leave(std::min(std::chrono::milliseconds(timeout_ms_), kFarewell));
  take_device().reset();  // before the group that it uses
  place_ = {};
  store_.reset();
}

void Backend::shutdown() {
  leave(std::min(std::chrono::milliseconds(timeout_ms_), kFarewell));
  if (const auto host = std::exchange(store_host_, nullptr); host != nullptr) {
    store_.reset();
    host->wait_for_end(kStoreEnds);
  }
}

void Backend::leave(std::chrono::milliseconds limit) {
  if (!open_.exchange(false) || getpid() != pid_) {
    return;
  }
  if (place_.world == nullptr) {
    return;
  }
  if (place_.part == nullptr) {
    close_world(*place_.world);
  }
  // No caller waits for pending operations any more, but other ranks may wait for operations that
  // this rank owes them. Those end within their own time limit.
  if (pending_operations_->failure() == std::nullopt) {
    pending_operations_->wait_for_owed(std::chrono::milliseconds(timeout_ms_.load()));
  }
  // Other operations may end, but must not block the program for ever.
  if (!wait_for_all(limit)) {
    place_.group().abort(
        "a process group was destroyed while operations were in progress; call wait() for them "
        "first");
    if (!wait_for_all(std::chrono::seconds(5))) {
      // The progress thread still uses these objects, and must not be the thread that destroys the
      // world.
      static_cast<void>(new Place(std::move(place_)));
      static_cast<void>(new std::shared_ptr<OnDevice>(take_device()));
      place_ = {};
      return;
    }
  }
  if (const auto place = known_device()) {
    if (const auto failure = place->failure(); failure.has_value() && !place->is_told()) {
      TORCH_WARN(
          "unisono: the group has ended with an error, and the result of operations then in "
          "progress on ",
          place->device(), " is not to be used: ", failure->message());
    }
    place->close(static_cast<int>(limit.count()));
  }
  place_.part.reset();
}

bool Backend::wait_for_all(std::chrono::milliseconds limit) {
  const auto place = known_device();
  return pending_operations_->wait_for_all(limit) &&
         (place == nullptr || place->wait_for_all(limit));
}

void Backend::leave_all(bool finish_owed) {
  {
    // Holds the lock, so that a backend dropped by another thread waits in its destructor.
    const std::lock_guard lock(backends_mutex);
    for (Backend* backend : backends()) {
      if (backend->pid_ != getpid()) {
        continue;
      }
      PendingOperations& pending = *backend->pending_operations_;
      // The peers also use the group's limit for these operations.
      const auto end =
          std::chrono::steady_clock::now() + std::chrono::milliseconds(backend->timeout_ms_.load());
      while (finish_owed && !pending.wait_for_owed(unisono_signals::kAskEvery) &&
             std::chrono::steady_clock::now() < end && !unisono_signals::is_interrupted()) {
      }
      const auto place = backend->known_device();
      if (pending.wait_for_all(std::chrono::milliseconds(0)) &&
          (place == nullptr || place->wait_for_all(kLast))) {
        backend->leave(kLast);
        backend->take_device().reset();
        backend->place_ = {};
      }
    }
  }
  // Callbacks of futures may be Python functions or hold Python objects. A thread that requests the
  // GIL after the interpreter has ended aborts the process with SIGABRT.
  const auto end = std::chrono::steady_clock::now() + kCallbacksEnd;
  while (!wait_for_all_elsewhere(unisono_signals::kAskEvery) &&
         std::chrono::steady_clock::now() < end && !unisono_signals::is_interrupted()) {
  }
}

void Backend::abort() {
  const InUse use(*this);
  if (use.has_group()) {
    use.group().abort("the process group was aborted");
  }
}

unisono::Communicator& Backend::InUse::group() const {
  TORCH_CHECK_WITH(DistBackendError, !has_been_left(),
                   "unisono: this process group has been destroyed");
  TORCH_CHECK_WITH(DistBackendError, has_group(),
                   "unisono: this process group has no members yet; call reconfigure() first");
  return backend_.place_.group();
}

int Backend::timeout_ms(std::chrono::milliseconds asked) const {
  const std::int64_t ms = asked > std::chrono::milliseconds(0) ? asked.count() : timeout_ms_.load();
  return static_cast<int>(std::min<std::int64_t>(ms, INT_MAX));
}

void Backend::raise(const unisono::Error& error) {
  if (error.code() != unisono::ErrorCode::usage && pending_operations_->note(error.code())) {
    const unisono_signals::WithoutPython unlocked;
    pending_operations_->run_hooks();
  }
  if (error.code() == unisono::ErrorCode::aborted) {
    unisono_signals::throw_if_interrupted();
  }
  std::rethrow_exception(to_torch(error));
}

unisono::Error Backend::monitored(const unisono::Error& error, const Launch& launch,
                                  unisono::Communicator& group) {
  using unisono::ErrorCode;
  const int limit = timeout_ms(launch.timeout);
  if (error.code() != ErrorCode::timeout && error.code() != ErrorCode::peer_lost) {
    return error;
  }
  std::vector<int> late;
  {
    const std::lock_guard lock(issuing_);
    late = group.late_ranks();
  }
  if (late.empty() && error.context().peer >= 0) {
    late.push_back(error.context().peer);
  }
  if (launch.monitored == Monitored::first_late && late.size() > 1) {
    late.resize(1);
  }
  std::string words;
  if (getRank() != 0) {
    words = c10::str("Rank ", getRank(),
                     " successfully reached monitoredBarrier, but received errors while waiting "
                     "for send/recv from rank 0");
  } else if (late.empty() || limit <= 1) {
    words = c10::str("Rank 0 timed out in monitoredBarrier after ", limit, " ms");
  } else {
    words = c10::str(late.size() > 1 ? "Ranks " : "Rank ", c10::Join(", ", late),
                     " failed to pass monitoredBarrier in ", limit, " ms");
  }
  return {error.code(), words + ": " + std::string(error.message()), error.context()};
}

std::shared_ptr<OperationRecord> Backend::recorded(const Launch& launch, int peer) {
  // The group gets its name only after its construction.
  std::call_once(*record_made_, [&] {
    std::vector<std::uint64_t> ranks = options_->global_ranks_in_group;
    if (ranks.empty()) {
      ranks.resize(static_cast<std::size_t>(getSize()));
      std::iota(ranks.begin(), ranks.end(), 0);
    }
    record_ = record_group(getGroupUid(), getGroupDesc(), std::move(ranks));
  });
  if (record_ == nullptr) {
    return nullptr;
  }
  const bool message = peer != kNoPeer;
  const char* const arrow = launch.type == c10d::OpType::SEND ? "->" : "<-";
  return record_->begin({.op = launch.op,
                         .inputs = launch.inputs,
                         .outputs = launch.outputs,
                         .timeout = std::chrono::milliseconds(timeout_ms(launch.timeout)),
                         .sequence = message ? 0 : sequence_.load(),
                         .between = message ? c10::str(getRank(), arrow, peer) : ""});
}

uint64_t Backend::getSequenceNumberForGroup() {
  return sequence_;
}

std::exception_ptr Backend::failure() {
  const InUse use(*this);
  std::optional<unisono::Error> error;
  if (use.has_group()) {
    error = use.group().failure();
  }
  if (const auto place = known_device(); place != nullptr && !error.has_value()) {
    error = place->failure();
  }
  return error.has_value() ? to_torch(*error) : nullptr;
}

c10d::ErrorType Backend::getError() {
  auto failure = pending_operations_->failure();
  if (const auto place = known_device(); place != nullptr && !failure.has_value()) {
    const auto error = place->failure();
    failure = error.has_value() ? std::optional(error->code()) : std::nullopt;
  }
  return failure.has_value() ? to_error_type(*failure) : c10d::ErrorType::SUCCESS;
}

void Backend::run_here(const Launch& launch, std::span<Piece> pieces) {
  const Shown shown(shown_as_, launch.op, launch.inputs);
  std::shared_ptr<OperationRecord> record;
  const InUse use(*this);
  unisono::Communicator& group = use.group();
  try {
    const std::lock_guard lock(issuing_);
    ++sequence_;
    record = recorded(launch);
    for (Piece& piece : pieces) {
      group.run(piece.call);
    }
  } catch (const unisono::Error& error) {
    raise(launch.monitored == Monitored::no ? error : monitored(error, launch, group));
  }
  for (Piece& piece : pieces) {
    for (const auto& step : piece.after) {
      step();
    }
  }
  if (record != nullptr) {
    record->finish();
  }
}

Operation::Description Backend::describe(const Launch& launch) {
  return {.rank = getRank(),
          .type = launch.type,
          .title = at::hasCallbacks() ? title_of(shown_as_, launch.op) : "",
          .inputs = launch.inputs.vec(),
          .outputs = launch.outputs.vec()};
}

Operation::Description Backend::describe(const Launch& launch, std::span<Piece> pieces) {
  Operation::Description description = describe(launch);
  const c10::Device device = pieces.empty() ? c10::Device(c10::kCPU) : pieces.front().device();
  std::vector<std::function<void()>> steps;
  for (Piece& piece : pieces) {
    std::move(piece.held.begin(), piece.held.end(), std::back_inserter(description.held));
    std::move(piece.after.begin(), piece.after.end(), std::back_inserter(steps));
  }
  if (!steps.empty()) {
    description.finish = [device, steps = std::move(steps)] {
      const auto all = [&] {
        for (const auto& step : steps) {
          step();
        }
      };
      device.is_cpu() ? all() : finish_on(device, all);
    };
  }
  return description;
}

WorkPointer Backend::launch_on_host(const Launch& launch, std::span<Piece> pieces) {
  for (Piece& piece : pieces) {
    piece.call.timeout_ms = timeout_ms(launch.timeout);
  }
  if (!launch.async) {
    run_here(launch, pieces);
    return nullptr;
  }
  auto description = describe(launch, pieces);
  const InUse use(*this);
  unisono::Communicator& group = use.group();
  try {
    const std::lock_guard lock(issuing_);
    description.sequence = ++sequence_;
    description.record = recorded(launch);
    auto work = c10::make_intrusive<Operation>(std::move(description), pending_operations_);
    std::vector<unisono::Request> requests;
    for (const Piece& piece : pieces) {
      requests.push_back(group.run_async(piece.call));
    }
    if (requests.empty()) {
      work->complete_now();
    } else {
      work->follow(std::move(requests));
    }
    return noted(std::move(work));
  } catch (const unisono::Error& error) {
    raise(error);
  }
}

WorkPointer Backend::transfer(const Launch& launch, const at::Tensor& tensor, bool sends, int peer,
                              int tag) {
  std::vector<Piece> pieces(1);
  const std::size_t bytes = tensor.nbytes();
  unisono::Call& call = pieces[0].call;
  if (sends) {
    call.in = pieces[0].read(tensor);
  } else {
    call.out = pieces[0].write(tensor);
  }
  if (!tensor.is_cpu()) {
    move_to_host(pieces[0], bytes, bytes);
  }
  const int limit = timeout_ms(c10d::kUnsetTimeout);
  const InUse use(*this);
  unisono::Communicator& group = use.group();
  try {
    auto description = describe(launch, pieces);
    description.record = recorded(launch, peer);
    auto work = c10::make_intrusive<Operation>(std::move(description), pending_operations_);
    std::vector<unisono::Request> requests;
    using unisono::detail::ExactReceives;
    const auto [dtype, units] = elements_of(tensor.scalar_type());
    if (units == 1) {
      const auto count = static_cast<std::size_t>(tensor.numel());
      requests.push_back(
          sends ? ExactReceives::send_async(group, call.in, count, dtype, peer, tag, limit)
                : ExactReceives::recv_async(group, call.out, count, dtype, peer, tag, limit));
    } else {
      requests.push_back(sends
                             ? group.send_async(call.in, bytes, peer, tag, limit)
                             : ExactReceives::recv_async(group, call.out, bytes, peer, tag, limit));
    }
    work->follow(std::move(requests));
    return noted(std::move(work));
  } catch (const unisono::Error& error) {
    raise(error);
  }
}

WorkPointer Backend::noted(WorkPointer work) {
  const std::lock_guard lock(coalescing_);
  if (const auto mine = coalesced_.find(std::this_thread::get_id()); mine != coalesced_.end()) {
    mine->second.push_back(work);
  }
  return work;
}

void Backend::startCoalescing() {
  const std::lock_guard lock(coalescing_);
  // PyTorch refuses nested coalescing. Operations of an earlier block whose body threw were never
  // ended, so drop them.
  coalesced_[std::this_thread::get_id()].clear();
}

WorkPointer Backend::endCoalescing() {
  const std::lock_guard lock(coalescing_);
  auto mine = coalesced_.extract(std::this_thread::get_id());
  TORCH_CHECK_VALUE(!mine.empty(), "unisono: coalescing ends that was not started");
  return c10::make_intrusive<Together>(
      getRank(), shown_as_ == "gloo" ? nullptr : "unisono:coalesced", std::move(mine.mapped()));
}

}  // namespace unisono_torch
