// After a failure: the ranks that are left agree who they are, and meet anew. A new world shares
// nothing with the old one, so nothing that was under way there can reach it.
#include <algorithm>
#include <utility>

#include "comm/world.h"

namespace unisono::comm {
namespace {

// Who dies while the others meet is missed after so long; then they agree again.
constexpr int kMeetMs = 5000;
// How long a rank may take to come whose connection was closed; that failed in another way.
constexpr int kEndedMs = 100;
constexpr int kPartedMs = 1000;

bool may_try_again(const Error& error) {
  return error.code() == ErrorCode::connection || error.code() == ErrorCode::peer_lost ||
         error.code() == ErrorCode::timeout;
}

}  // namespace

bool World::is_dead_here(int rank) {
  if (!hosts_.is_here(rank) || same_process_as(rank)) {
    return false;
  }
  if (is_ending(hosts_.local(rank))) {
    return true;
  }
  const std::lock_guard lock(local_use_);
  return local_->is_dead(hosts_.local(rank));
}

bool World::has_left_here(int rank) noexcept {
  return hosts_.is_here(rank) &&
         bells_->bell(hosts_.local(rank)).left.load(std::memory_order_acquire) != 0;
}

std::shared_ptr<World> World::shrink(int timeout_ms, bool quorum) {
  if (shrunk_) {
    throw Error(ErrorCode::usage,
                "shrink() has already made a communicator of the ranks that were left\ngo on with "
                "that one",
                {.rank = rank()});
  }
  raise(ErrorCode::aborted, rank(),
        "rank " + std::to_string(rank()) +
            " shrinks the world: it has ended for all\nall ranks that go on call shrink()");
  Survivors survivors;
  const Deadline deadline =
      Deadline::of_timeout(timeout_ms < 0 ? options_.connect_timeout_ms : timeout_ms);
  for (;;) {
    try {
      auto world = connections_ == nullptr ? shrink_here(deadline, quorum)
                                           : shrink_across(deadline, quorum, survivors);
      roll_call_->go_on();
      shrunk_ = true;
      return world;
    } catch (const Error& error) {
      if (!may_try_again(error) || deadline.passed()) {
        throw;
      }
    }
  }
}

World::Given World::given_for(const std::vector<int>& survivors) const {
  std::vector<int> first_ranks = survivors;
  if (!origin_.first_ranks.empty()) {
    for (int& rank : first_ranks) {
      rank = origin_.first_ranks[static_cast<std::size_t>(rank)];
    }
  }
  return {.profile = profile_,
          .recorder = Recorder::open(),
          .origin = {.world = origin_.world + 1,
                     .epoch = origin_.epoch + 1,
                     .previous_ranks = survivors,
                     .first_ranks = std::move(first_ranks)}};
}

std::shared_ptr<World> World::shrink_here(const Deadline& deadline, bool quorum) {
  const auto is_gone = [this](int one) { return is_dead_here(one) || has_left_here(one); };
  const RollCall::Answer answer = roll_call_->call(is_gone, deadline, quorum);
  ConnectOptions options = options_;
  options.file.clear();
  options.job = name_of_survivors(options_.job, std::to_string(answer.mark));
  options.size = static_cast<int>(answer.ranks.size());
  options.rank = static_cast<int>(std::find(answer.ranks.begin(), answer.ranks.end(), rank()) -
                                  answer.ranks.begin());
  return meet_here(options, Deadline::earlier(deadline, Deadline::after_ms(kMeetMs)),
                   given_for(answer.ranks));
}

int World::patience_with(int rank) {
  if (hosts_.is_here(rank)) {
    return has_left_here(rank) ? 0 : -1;
  }
  listen_to_others();
  const tcp::Reason reason = connections_->failure_of(rank).reason;
  if (connections_->has_left(rank)) {
    return 0;
  }
  // Its system closes the connections of a process that has ended; of one that lives, nobody does.
  return reason == tcp::Reason::none ? -1 : reason == tcp::Reason::closed ? kEndedMs : kPartedMs;
}

std::shared_ptr<World> World::shrink_across(const Deadline& deadline, bool quorum,
                                            Survivors& survivors) {
  if (roll_call_->has_anyone_gone_on()) {
    throw_evicted();
  }
  const int left = deadline.left_ms();
  // Who died after it had heard an answer may have gone on before, and others with it.
  const Rules rules{.is_gone =
                        [this](int one) {
                          return is_dead_here(one) &&
                                 !roll_call_->has_heard_answer(hosts_.local(one));
                        },
                    .patience_ms = [this](int one) { return patience_with(one); },
                    .timeout_ms = left < 0 ? 0 : std::max(left, 1),
                    .quorum = quorum};
  ConnectOptions options = options_;
  options.rank = rank();
  NetMeeting meeting = meet_again_over_network(options, door_, rules, survivors);
  roll_call_->hear_answer();
  return meet_across(options, Deadline::earlier(deadline, Deadline::after_ms(kMeetMs)),
                     std::move(meeting), given_for(survivors.ranks));
}

std::shared_ptr<World> World::grow(int size, const std::string& address) {
  if (size < this->size()) {
    throw Error(ErrorCode::usage, "grow(" + std::to_string(size) + "): the world has " +
                                      std::to_string(this->size()) +
                                      " ranks already\nshrink() makes it smaller");
  }
  if (connections_ != nullptr && options_.address.empty() && address.empty()) {
    throw Error(ErrorCode::usage,
                "grow(): where rank 0 listens is not set, as this world did not meet there\npass "
                "an address of its host, \"10.0.0.1:29600\", the same on all ranks");
  }
  ConnectOptions options = options_;
  options.file.clear();
  options.job = first_name(options_.job);
  options.rank = rank();
  options.size = size;
  options.address = address.empty() ? options_.address : address;
  return connect(options, {.world = origin_.world + 1});
}

}  // namespace unisono::comm
