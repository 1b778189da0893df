#include "diagnose/group_records.h"

#include <algorithm>
#include <utility>

#include "base/rank_list.h"
#include "bootstrap/hosts.h"

namespace unisono::comm {
namespace {

// The number of latest operations to report: a message may be left over from an earlier operation.
constexpr std::uint64_t kTold = 4;

template <class Each>
void for_latest(const FlightRecorder& recorder, std::uint64_t newest, const Each& each) noexcept {
  for (std::uint64_t one = newest - std::min(newest, kTold) + 1; one <= newest; ++one) {
    if (const auto record = read_record(recorder, one)) {
      each(*record);
    }
  }
}

}  // namespace

GroupRecords::GroupRecords(const Hosts& hosts, std::vector<int> members, int rank, std::uint64_t id,
                           std::byte* segment, RemoteRecords* remote)
    : members_(std::move(members)), rank_(rank), id_(id), remote_(remote) {
  const GroupLayout layout(static_cast<int>(hosts.local_of(members_).size()));
  auto* const here_first = reinterpret_cast<FlightRecorder*>(segment + layout.recorders);
  FlightRecorder* next = here_first;
  for (const int member : members_) {
    here_.push_back(hosts.is_here(member) ? next++ : nullptr);
  }
  const auto me = static_cast<std::size_t>(&mine() - here_first);
  costs_.calls = reinterpret_cast<CallCounts*>(segment + layout.calls) + me * kCallKinds;
  costs_.most_for = &mine().wait.most_for;
  auto* const row =
      reinterpret_cast<std::atomic<std::uint64_t>*>(segment + layout.waits + me * layout.waits_row);
  for (const FlightRecorder* const recorder : here_) {
    costs_.waited_for.push_back(recorder == nullptr ? nullptr : row + (recorder - here_first));
  }
}

int GroupRecords::group_rank(int world_rank) const noexcept {
  const auto found = std::find(members_.begin(), members_.end(), world_rank);
  return found == members_.end() ? -1 : static_cast<int>(found - members_.begin());
}

std::string GroupRecords::name(int rank) const {
  return member_text(rank, world_rank(rank));
}

const FlightRecorder* GroupRecords::find(int rank) const noexcept {
  const FlightRecorder* const recorder = here(rank);
  return recorder != nullptr || remote_ == nullptr ? recorder
                                                   : remote_->find(id_, world_rank(rank));
}

std::vector<int> GroupRecords::late() const {
  const std::uint64_t latest = newest_record(*here_[static_cast<std::size_t>(rank_)]).sequence;
  std::vector<int> ranks;
  for (int peer = 0; peer < size(); ++peer) {
    const FlightRecorder* const theirs = find(peer);
    if (theirs == nullptr ? latest != 0 : newest_record(*theirs).sequence < latest) {
      ranks.push_back(peer);
    }
  }
  return ranks;
}

void GroupRecords::tell_others(std::uint64_t newest, bool ask) noexcept {
  if (remote_ == nullptr) {
    return;
  }
  for_latest(mine(), newest, [&](const OperationRecord& record) {
    remote_->tell(members_, id_, {.record = record, .asks = ask && record.sequence == newest});
  });
}

void GroupRecords::keep_last(std::uint64_t newest) noexcept {
  if (remote_ == nullptr) {
    return;
  }
  for_latest(mine(), newest,
             [&](const OperationRecord& record) { remote_->keep_last(id_, {.record = record}); });
}

bool GroupRecords::hear_others() noexcept {
  remote_->listen();
  return remote_->was_asked(id_);
}

}  // namespace unisono::comm
