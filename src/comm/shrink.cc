#include "comm/shrink.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/hash.h"
#include "comm/connect.h"
#include "diagnose/remote_records.h"
#include "membership/agreement.h"
#include "membership/meet_again.h"
#include "membership/watch.h"
#include "select/profile.h"

namespace unisono::comm {
namespace {

// If a rank dies while the others connect, they notice it after this time, and agree again.
constexpr int kMeetMs = 5000;
// Time for which a rank may still come after its connection was closed.
constexpr int kEndedMs = 100;
constexpr int kPartedMs = 1000;

constexpr unsigned kLookUs = 200;
// The tag with which ranks on different hosts report to each other that they have connected to all
// ranks.
constexpr std::uint64_t kMeeting = Hash().add("meeting").value();

// Returns false for `aborted`, because an interrupted rank will not connect again.
bool may_try_again(const Error& error) {
  return error.code() == ErrorCode::connection || error.code() == ErrorCode::peer_lost ||
         error.code() == ErrorCode::timeout;
}

// Returns true if this loss shows that the peer's system closed the connection. The connection of a
// living process stays open.
bool is_closed(const transport::Loss& loss) {
  using Kind = transport::Loss::Kind;
  return loss.kind == Kind::closed || loss.kind == Kind::reset || loss.kind == Kind::broken;
}

// One agreement on the ranks that continue, and the attempt to connect them.
class ShrinkAttempt {
 public:
  ShrinkAttempt(World& world, const Deadline& deadline, bool quorum);
  std::shared_ptr<World> run();

 private:
  std::shared_ptr<World> run_here();
  std::shared_ptr<World> run_across();
  Rules rules();
  bool has_ended(int rank) const;
  int patience_with(int rank) const;
  bool is_interrupted();
  Setup setup() const;
  bool has_given_up(int place, World& fresh, bool& is_settled) const;
  void await_others(World& fresh, const Deadline& deadline) const;
  // Returns the function that is called while the ranks connect. The new world keeps this function
  // and may outlive this object; the function then returns false.
  Interrupted interrupted();

  World& world_;
  const Deadline deadline_;
  const bool quorum_;
  Survivors survivors_;          // of the last meeting over the network
  std::vector<int> ranks_ = {};  // the ranks that continue
  std::uint64_t mark_ = 0;       // identifies the answer
  // Ranks on other hosts whose old connection does not show whether they live. They may come over
  // another connection.
  std::set<int> unsettled_ = {};
  const std::shared_ptr<ShrinkAttempt*> alive_ = std::make_shared<ShrinkAttempt*>(this);
};

ShrinkAttempt::ShrinkAttempt(World& world, const Deadline& deadline, bool quorum)
    : world_(world), deadline_(deadline), quorum_(quorum) {
  world_.membership().watch().listen();
  for (int one = 0; one < world_.size(); ++one) {
    if (!world_.hosts().is_here(one) && has_ended(one)) {
      unsettled_.insert(one);
    }
  }
}

std::shared_ptr<World> ShrinkAttempt::run() {
  HostAgreement& agreement = world_.membership().agreement();
  for (;;) {
    try {
      auto fresh = world_.network() == nullptr ? run_here() : run_across();
      agreement.go_on();
      return fresh;
    } catch (const Error& error) {
      agreement.give_up_meeting();
      if (!may_try_again(error) || deadline_.passed()) {
        throw;
      }
    }
  }
}

std::shared_ptr<World> ShrinkAttempt::run_here() {
  Watch& watch = world_.membership().watch();
  const auto is_gone = [&watch](int one) {
    return watch.is_dead_here(one) || watch.has_left_here(one);
  };
  HostAgreement::Answer answer = world_.membership().agreement().call(is_gone, deadline_, quorum_);
  world_.membership().agreement().begin_meeting(answer.mark);
  ranks_ = std::move(answer.ranks);
  mark_ = answer.mark;
  Setup fresh = setup();
  fresh.options.job = name_of_survivors(fresh.options.job, std::to_string(mark_));
  fresh.options.size = static_cast<int>(ranks_.size());
  fresh.options.rank =
      static_cast<int>(std::find(ranks_.begin(), ranks_.end(), world_.rank()) - ranks_.begin());
  fresh.options.file.clear();
  const Deadline end = Deadline::earlier(deadline_, Deadline::after_ms(kMeetMs));
  auto world = meet_here(std::move(fresh), end, interrupted());
  await_others(*world, end.later_by_ms(kMeetMs));
  return world;
}

std::shared_ptr<World> ShrinkAttempt::run_across() {
  HostAgreement& agreement = world_.membership().agreement();
  if (agreement.has_anyone_gone_on()) {
    throw_evicted();
  }
  ConnectOptions options = world_.options();
  options.rank = world_.rank();
  NetMeeting meeting = meet_again_over_network(options, world_.endpoints(), rules(), survivors_);
  agreement.hear_answer();
  ranks_ = survivors_.ranks;
  mark_ = Hash().add(survivors_.mark).value();
  agreement.begin_meeting(mark_);
  Setup fresh = setup();
  fresh.options = std::move(options);
  const Deadline end = Deadline::earlier(deadline_, Deadline::after_ms(kMeetMs));
  auto world = meet_across(std::move(fresh), end, std::move(meeting), interrupted());
  await_others(*world, end.later_by_ms(kMeetMs));
  return world;
}

Rules ShrinkAttempt::rules() {
  const int left = deadline_.left_ms();
  // A rank that received the answer and then died may have continued before its death, and others
  // with it. It cannot have continued if it had given up the meeting.
  const auto is_gone = [this, mark = mark_](int one) {
    const HostAgreement& agreement = world_.membership().agreement();
    const auto meeting = [&] { return agreement.meeting_of(world_.hosts().local(one), mark); };
    return world_.membership().watch().is_dead_here(one) &&
           (!agreement.has_heard_answer(world_.hosts().local(one)) ||
            (mark != 0 && meeting() != HostAgreement::Meeting::given_up));
  };
  return {.is_gone = is_gone,
          .patience_ms = [this](int one) { return patience_with(one); },
          .timeout_ms = left < 0 ? 0 : std::max(left, 1),
          .quorum = quorum_};
}

// Returns true if a rank's process has ended, according to the last messages that the old world
// received.
bool ShrinkAttempt::has_ended(int rank) const {
  if (world_.hosts().is_here(rank)) {
    return world_.membership().watch().is_dead_here(rank);
  }
  return is_closed(world_.network()->loss_of(rank)) &&
         !world_.membership().watch().has_left(rank) && !unsettled_.contains(rank);
}

int ShrinkAttempt::patience_with(int rank) const {
  Watch& watch = world_.membership().watch();
  if (world_.hosts().is_here(rank)) {
    return watch.has_left_here(rank) ? 0 : watch.is_dead_here(rank) ? kEndedMs : -1;
  }
  watch.listen();
  const auto lost = world_.network()->loss_of(rank).kind;
  if (watch.has_left(rank)) {
    return 0;
  }
  return lost == transport::Loss::Kind::none     ? -1
         : lost == transport::Loss::Kind::closed ? kEndedMs
                                                 : kPartedMs;
}

Interrupted ShrinkAttempt::interrupted() {
  return [weak = std::weak_ptr<ShrinkAttempt*>(alive_)] {
    const auto attempt = weak.lock();
    return attempt != nullptr && (*attempt)->is_interrupted();
  };
}

// Returns true if the user interrupts. Throws if connecting is in vain, because a rank has died and
// the others would wait for it until the time limit. This case is an error and not an interruption,
// because an interruption would end shrink() on all ranks.
bool ShrinkAttempt::is_interrupted() {
  const ConnectOptions& options = world_.options();
  if (options.interrupted != nullptr && options.interrupted()) {
    return true;
  }
  world_.membership().watch().listen();
  for (const int one : ranks_) {
    if (one != world_.rank() && has_ended(one)) {
      if (!world_.hosts().is_here(one)) {
        unsettled_.insert(one);  // if it joins the next attempt, it is alive
      }
      throw Error(ErrorCode::connection,
                  "rank " + std::to_string(one) +
                      " ended while the remaining ranks met, and the time of shrink() is "
                      "over\ncall it again with more time",
                  {.rank = world_.rank(), .peer = one});
    }
  }
  return false;
}

Setup ShrinkAttempt::setup() const {
  const Ancestry& ancestry = world_.setup().ancestry;
  std::vector<int> first_ranks = ranks_;
  if (!ancestry.first_ranks.empty()) {
    for (int& rank : first_ranks) {
      rank = ancestry.first_ranks[static_cast<std::size_t>(rank)];
    }
  }
  return {.options = world_.options(),
          .profile = world_.setup().profile,
          .recording = trace::recording_settings(),
          .ancestry = {.world = ancestry.world + 1,
                       .epoch = ancestry.epoch + 1,
                       .previous_size = world_.size(),
                       .previous_ranks = ranks_,
                       .first_ranks = std::move(first_ranks)}};
}

// Checks the rank at `place` of the new world. Returns true if the rank is alive but could not
// connect to the others.
bool ShrinkAttempt::has_given_up(int place, World& fresh, bool& is_settled) const {
  const int one = ranks_[static_cast<std::size_t>(place)];
  const bool ended = has_ended(one);  // first, as in await_others()
  if (world_.hosts().is_here(one)) {
    const auto meeting =
        world_.membership().agreement().meeting_of(world_.hosts().local(one), mark_);
    is_settled = meeting == HostAgreement::Meeting::done || ended ||
                 world_.membership().watch().has_left_here(one);
    return meeting == HostAgreement::Meeting::given_up;
  }
  const bool has_met = fresh.remote_records()->find(kMeeting, place) != nullptr;
  is_settled = has_met || ended;
  return !is_settled && (fresh.network()->loss_of(place) || fresh.network()->has_left(place));
}

// Waits until all ranks confirm the new world, which this rank already has. A rank that has
// confirmed never goes back; so if a rank dies before all have confirmed, the others do not go back
// either. A rank that cannot connect stays alive and reports that; then no rank has continued.
void ShrinkAttempt::await_others(World& fresh, const Deadline& deadline) const {
  world_.membership().agreement().end_meeting(mark_);
  RemoteRecords* const records = fresh.remote_records();
  if (records != nullptr) {
    std::vector<int> all(ranks_.size());
    std::iota(all.begin(), all.end(), 0);
    records->tell(all, kMeeting, {.record = {.sequence = 1}});
  }
  Deadline noticed =
      Deadline::never();  // a process that ends closes its connections one after the other
  for (bool all_settled = false; !all_settled && !deadline.passed();) {
    world_.membership().watch().listen();  // first: it may have sent something
    if (records != nullptr) {
      fresh.network()->progress();
      records->listen();
    }
    all_settled = true;
    for (int place = 0; place < fresh.size(); ++place) {
      bool is_settled = place == fresh.rank();
      if (!is_settled && has_given_up(place, fresh, is_settled)) {
        const int one = ranks_[static_cast<std::size_t>(place)];
        noticed = noticed.left_ms() < 0 ? Deadline::after_ms(kEndedMs) : noticed;
        if (world_.hosts().is_here(one) || noticed.passed()) {
          throw Error(ErrorCode::connection,
                      "rank " + std::to_string(one) +
                          " could not meet all remaining ranks\ncall shrink() again");
        }
      }
      all_settled &= is_settled;
    }
    if (!all_settled) {
      ::usleep(kLookUs);
    }
  }
  if (records != nullptr) {
    records->forget(kMeeting);
  }
}

}  // namespace

std::shared_ptr<World> shrink(World& world, int timeout_ms, bool quorum) {
  if (world.membership().shrunk()) {
    throw Error(
        ErrorCode::usage,
        "shrink() has already made a communicator of the remaining ranks\nuse that communicator",
        {.rank = world.rank()});
  }
  world.membership().abort().raise(ErrorCode::aborted, world.rank(),
                                   "rank " + std::to_string(world.rank()) +
                                       " shrinks the world, which has ended for all ranks\ncall "
                                       "shrink() on all remaining ranks");
  const Deadline deadline =
      Deadline::of_timeout(timeout_ms < 0 ? world.options().connect_timeout_ms : timeout_ms);
  auto fresh = ShrinkAttempt(world, deadline, quorum).run();
  world.membership().shrunk() = true;
  return fresh;
}

}  // namespace unisono::comm
