// After a failure: the ranks that are left agree who they are, and meet anew. A new world shares
// nothing with the old one, so nothing that was under way there can reach it.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "comm/world.h"

namespace unisono::comm {
namespace {

// Who dies while the others meet is missed after so long; then they agree again.
constexpr int kMeetMs = 5000;
// How long a rank may take to come whose connection was closed; that failed in another way.
constexpr int kEndedMs = 100;
constexpr int kPartedMs = 1000;

constexpr unsigned kLookUs = 200;
// By what ranks of other hosts tell each other that they have met all.
constexpr std::uint64_t kMeeting = Hash().add("meeting").value();

// Not aborted: then a rank was interrupted, and will not come to another meeting.
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
  const auto reunion = std::make_shared<Reunion>();
  listen_to_others();
  for (int one = 0; one < size(); ++one) {
    if (!hosts_.is_here(one) && has_ended(one, *reunion)) {
      reunion->unsettled.insert(one);  // it may come all the same, by another connection
    }
  }
  const Deadline deadline =
      Deadline::of_timeout(timeout_ms < 0 ? options_.connect_timeout_ms : timeout_ms);
  for (;;) {
    try {
      auto world = connections_ == nullptr ? shrink_here(deadline, quorum, reunion)
                                           : shrink_across(deadline, quorum, survivors, reunion);
      roll_call_->go_on();
      shrunk_ = true;
      return world;
    } catch (const Error& error) {
      roll_call_->give_up_meeting();
      if (!may_try_again(error) || deadline.passed()) {
        throw;
      }
    }
  }
}

// Whether a rank's process has ended, as far as the world that ends could tell when it last
// listened to the others.
bool World::has_ended(int rank, const Reunion& reunion) {
  if (hosts_.is_here(rank)) {
    return is_dead_here(rank);
  }
  const tcp::Failure failure = connections_->failure_of(rank);
  const bool is_closed =
      failure.reason == tcp::Reason::closed ||
      (failure.reason == tcp::Reason::reset && failure.error != ETIMEDOUT);  // nobody is silent
  return is_closed && !connections_->has_left(rank) && !reunion.unsettled.contains(rank);
}

// Asked while they meet. Throws where the meeting is in vain: one has died, and the others would
// wait for it until the time is over. That is no interruption, which ends shrink() for all.
bool World::is_meeting_interrupted(Reunion& reunion) {
  if (options_.interrupted != nullptr && options_.interrupted()) {
    return true;
  }
  listen_to_others();
  for (const int one : reunion.ranks) {
    if (one != rank() && has_ended(one, reunion)) {
      if (!hosts_.is_here(one)) {
        reunion.unsettled.insert(one);  // if it comes to the next one, then it lives
      }
      throw Error(ErrorCode::connection,
                  "rank " + std::to_string(one) +
                      " went away while those that go on met, and the time of shrink() is "
                      "over\ncall it again, with more time",
                  {.rank = rank(), .peer = one});
    }
  }
  return false;
}

World::Given World::given_for(const std::shared_ptr<Reunion>& reunion) {
  std::vector<int> first_ranks = reunion->ranks;
  if (!origin_.first_ranks.empty()) {
    for (int& rank : first_ranks) {
      rank = origin_.first_ranks[static_cast<std::size_t>(rank)];
    }
  }
  return {.profile = profile_,
          .recording = trace::recording_settings(),
          .origin = {.world = origin_.world + 1,
                     .epoch = origin_.epoch + 1,
                     .previous_ranks = reunion->ranks,
                     .first_ranks = std::move(first_ranks)},
          .interrupted = [this, weak = std::weak_ptr(reunion)] {
            const auto meeting = weak.lock();  // over when shrink() has returned
            return meeting != nullptr && is_meeting_interrupted(*meeting);
          }};
}

// Of one of the new world, number `place` there. True: it lives, and could not meet the others.
bool World::has_given_up(int place, World& fresh, const Reunion& reunion, bool& is_settled) {
  const int one = reunion.ranks[static_cast<std::size_t>(place)];
  const bool ended = has_ended(one, reunion);  // first, as in await_others()
  if (hosts_.is_here(one)) {
    const auto meeting = roll_call_->meeting_of(hosts_.local(one), reunion.mark);
    is_settled = meeting == RollCall::Meeting::done || ended || has_left_here(one);
    return meeting == RollCall::Meeting::given_up;
  }
  const bool has_met = fresh.remote_records_->find(kMeeting, place) != nullptr;
  is_settled = has_met || ended;
  tcp::Connections& there = *fresh.connections_;
  return !is_settled && (there.failure_of(place) || there.has_left(place));
}

// The new world is there for this rank, and for all if they say so. Then none of them goes back; so
// one that dies now, before all have heard from it, is no reason to go back either. One that cannot
// come so far lives on and says so: then nobody has gone on.
void World::await_others(World& fresh, const Reunion& reunion, const Deadline& deadline) {
  roll_call_->end_meeting(reunion.mark);
  if (fresh.remote_records_ != nullptr) {
    std::vector<int> all(reunion.ranks.size());
    std::iota(all.begin(), all.end(), 0);
    fresh.remote_records_->tell(all, kMeeting, {.record = {.sequence = 1}});
  }
  Deadline noticed =
      Deadline::never();  // a process that ends closes one connection after the other
  for (bool all_settled = false; !all_settled && !deadline.passed();) {
    listen_to_others();  // first: what a rank says that ends, it has said before
    if (fresh.connections_ != nullptr) {
      fresh.connections_->progress();
      fresh.remote_records_->listen();
    }
    all_settled = true;
    for (int place = 0; place < fresh.size(); ++place) {
      bool is_settled = place == fresh.rank();
      if (!is_settled && has_given_up(place, fresh, reunion, is_settled)) {
        const int one = reunion.ranks[static_cast<std::size_t>(place)];
        noticed = noticed.left_ms() < 0 ? Deadline::after_ms(kEndedMs) : noticed;
        if (hosts_.is_here(one) || noticed.passed()) {
          throw Error(ErrorCode::connection, "rank " + std::to_string(one) +
                                                 " could not meet all ranks that go on\nshrink() "
                                                 "again");
        }
      }
      all_settled &= is_settled;
    }
    if (!all_settled) {
      ::usleep(kLookUs);
    }
  }
  if (fresh.remote_records_ != nullptr) {
    fresh.remote_records_->forget(kMeeting);
  }
}

std::shared_ptr<World> World::shrink_here(const Deadline& deadline, bool quorum,
                                          const std::shared_ptr<Reunion>& reunion) {
  const auto is_gone = [this](int one) { return is_dead_here(one) || has_left_here(one); };
  RollCall::Answer answer = roll_call_->call(is_gone, deadline, quorum);
  roll_call_->begin_meeting(answer.mark);
  reunion->ranks = std::move(answer.ranks);
  reunion->mark = answer.mark;
  const std::vector<int>& ranks = reunion->ranks;
  ConnectOptions options = options_;
  options.file.clear();
  options.job = name_of_survivors(options_.job, std::to_string(answer.mark));
  options.size = static_cast<int>(ranks.size());
  options.rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
  const Deadline end = Deadline::earlier(deadline, Deadline::after_ms(kMeetMs));
  auto world = meet_here(options, end, given_for(reunion));
  await_others(*world, *reunion, end.later_by_ms(kMeetMs));
  return world;
}

int World::patience_with(int rank) {
  if (hosts_.is_here(rank)) {
    return has_left_here(rank) ? 0 : is_dead_here(rank) ? kEndedMs : -1;
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
                                            Survivors& survivors,
                                            const std::shared_ptr<Reunion>& reunion) {
  if (roll_call_->has_anyone_gone_on()) {
    throw_evicted();
  }
  const int left = deadline.left_ms();
  // Who died after it had heard an answer may have gone on before, and others with it; but not from
  // a meeting that this rank has given up.
  const auto is_gone = [this, mark = reunion->mark](int one) {
    return is_dead_here(one) && (!roll_call_->has_heard_answer(hosts_.local(one)) ||
                                 (mark != 0 && roll_call_->meeting_of(hosts_.local(one), mark) !=
                                                   RollCall::Meeting::given_up));
  };
  const Rules rules{.is_gone = is_gone,
                    .patience_ms = [this](int one) { return patience_with(one); },
                    .timeout_ms = left < 0 ? 0 : std::max(left, 1),
                    .quorum = quorum};
  ConnectOptions options = options_;
  options.rank = rank();
  NetMeeting meeting = meet_again_over_network(options, door_, rules, survivors);
  roll_call_->hear_answer();
  reunion->ranks = survivors.ranks;
  reunion->mark = Hash().add(survivors.mark).value();
  roll_call_->begin_meeting(reunion->mark);
  const Deadline end = Deadline::earlier(deadline, Deadline::after_ms(kMeetMs));
  auto world = meet_across(options, end, std::move(meeting), given_for(reunion));
  await_others(*world, *reunion, end.later_by_ms(kMeetMs));
  return world;
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
