#include "membership/watch.h"

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bootstrap/hosts.h"
#include "bootstrap/local_host.h"
#include "bootstrap/process.h"
#include "membership/abort_word.h"
#include "membership/liveness.h"
#include "transport/network.h"

namespace unisono::comm {
namespace {

constexpr std::string_view kMemoryAdvice = "check the limits on memory (ulimit -v, cgroup)";
constexpr std::string_view kAdvice =
    "look at its last output; the other ranks cannot continue without it";

// Returns true if the peer closed the connection, even while data was unread.
bool is_closing(transport::Loss::Kind kind) {
  return kind == transport::Loss::Kind::closed || kind == transport::Loss::Kind::reset;
}

}  // namespace

Watch::Watch(const Hosts& hosts, LocalHost& host, transport::Network* network, AbortWord& abort,
             std::vector<int> first_ranks)
    : hosts_(hosts),
      host_(host),
      network_(network),
      abort_(abort),
      first_ranks_(std::move(first_ranks)) {
  if (!host_.is_one_process()) {
    token_ = std::make_unique<LivenessToken>(host_.memory().liveness(host_.rank()));
  }
}

Watch::~Watch() = default;

void Watch::look() noexcept {
  try {
    look_for_local_death();
  } catch (const std::exception& error) {
    abort_.raise(error);
  }
  listen();
}

int Watch::first_rank(int rank) const {
  return first_ranks_.empty() ? rank : first_ranks_[static_cast<std::size_t>(rank)];
}

void Watch::look_for_local_death() {
  std::optional<Death> death;
  if (!host_.find_death(death) || !death) {
    return;
  }
  const int rank = hosts_.here()[static_cast<std::size_t>(death->rank)];
  abort_.raise(ErrorCode::peer_lost, rank,
               "rank " + std::to_string(rank) + " (pid " +
                   std::to_string(host_.peer(death->rank).pid) + ") is gone: " +
                   end_reasons_.end_and_advice(
                       {.process = first_rank(rank), .how = std::move(death->how)}, kAdvice));
}

bool Watch::network_has_more() const noexcept {
  return network_ != nullptr && network_->events() != events_seen_.load(std::memory_order_relaxed);
}

void Watch::listen() noexcept {
  if (network_ == nullptr) {
    return;
  }
  network_->progress();
  network_->look_for_losses();
  const int events = network_->events();
  if (events == events_seen_.exchange(events, std::memory_order_relaxed) || abort_.is_set()) {
    return;
  }
  try {
    if (const auto abort = network_->aborted()) {
      abort_.take(*abort);
    } else if (const transport::Loss loss = network_->first_loss();
               loss.kind == transport::Loss::Kind::given_up) {
      abort_.raise(Error(ErrorCode::resource, loss.how + "\n" + std::string(kMemoryAdvice)));
    } else if (loss) {
      const bool damaged = loss.kind == transport::Loss::Kind::damaged;
      abort_.raise(damaged ? ErrorCode::corrupt : ErrorCode::peer_lost, loss.peer,
                   "rank " + std::to_string(loss.peer) + " is gone: " +
                       end_reasons_.end_and_advice({.process = first_rank(loss.peer),
                                                    .how = loss.how,
                                                    .by_its_closing = is_closing(loss.kind)},
                                                   kAdvice));
    }
  } catch (const std::exception& error) {
    abort_.raise(error);
  }
}

bool Watch::has_left(int rank) noexcept {
  return hosts_.is_here(rank) ? host_.has_left(hosts_.local(rank)) : network_->has_left(rank);
}

bool Watch::has_left_here(int rank) noexcept {
  return hosts_.is_here(rank) && host_.has_left(hosts_.local(rank));
}

bool Watch::is_dead_here(int rank) {
  return hosts_.is_here(rank) && host_.is_dead(hosts_.local(rank));
}

bool Watch::same_process_as(int rank) const noexcept {
  return hosts_.is_here(rank) && host_.same_process(hosts_.local(rank));
}

pid_t Watch::stopped_process(int rank) const {
  if (!hosts_.is_here(rank) || same_process_as(rank)) {
    return 0;
  }
  const pid_t pid = host_.peer(hosts_.local(rank)).pid;
  return pid > 0 && is_stopped(pid) ? pid : 0;
}

}  // namespace unisono::comm
