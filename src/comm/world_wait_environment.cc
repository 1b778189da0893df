#include "comm/world_wait_environment.h"

#include <string>

namespace unisono::comm {

void WorldWaitEnvironment::look_for_deaths() noexcept {
  membership_.watch().look();
  rosters_.look();
}

void WorldWaitEnvironment::ask_whether_to_go_on() noexcept {
  if (options_.interrupted != nullptr && options_.interrupted()) {
    membership_.abort().raise(ErrorCode::aborted, rank_,
                              "rank " + std::to_string(rank_) + " was interrupted");
  }
}

int WorldWaitEnvironment::longest_sleep_us() const noexcept {
  return host_.event_counts().longest_sleep_us();
}

bool WorldWaitEnvironment::sleep(const std::function<bool()>& look, int timeout_us) {
  shm::EventCounts& event_counts = host_.event_counts();
  const std::uint32_t seen = event_counts.prepare_wait(host_.rank());
  bool seen_more = true;
  try {
    seen_more = look() || aborted();
  } catch (...) {
    event_counts.cancel_wait(host_.rank());
    throw;
  }
  if (seen_more) {
    event_counts.cancel_wait(host_.rank());
    return true;
  }
  if (network_ == nullptr) {
    event_counts.wait(host_.rank(), seen, timeout_us);
    return false;
  }
  network_->wait(timeout_us);
  event_counts.cancel_wait(host_.rank());
  if (membership_.watch().network_has_more()) {
    look_for_deaths();
  }
  return false;
}

}  // namespace unisono::comm
