#include "diagnose/rosters.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>

#include "base/hash.h"
#include "bootstrap/hosts.h"
#include "bootstrap/local_host.h"
#include "membership/abort_word.h"
#include "transport/network.h"
#include "transport/transport.h"

namespace unisono::comm {
namespace {

constexpr std::uint64_t kLanes = Hash().add("rosters").value();
constexpr std::size_t kMostHeard = 4096;

using Words = std::array<std::uint64_t, kRosterWords>;

// Returns nothing while the entry is being written; its writer compares afterwards.
std::optional<Roster> read(const RosterEntry& entry) {
  const std::uint64_t version = entry.version.load(std::memory_order_acquire);
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = entry.words[i].load(std::memory_order_relaxed);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  if (version == 0 || entry.version.load(std::memory_order_relaxed) != version) {
    return std::nullopt;
  }
  Roster roster{};
  std::memcpy(&roster, words.data(), sizeof(roster));
  return roster;
}

std::string names(int rank, const Roster& roster) {
  std::string text = "rank " + std::to_string(rank) + " names ";
  const int told = std::min(roster.count, kRosterMembers);
  for (int i = 0; i < told; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(roster.members[i]);
  }
  return text + (roster.count > told ? ", ..." : "");
}

}  // namespace

Rosters::Rosters(const Hosts& hosts, LocalHost& host, transport::Network* network, AbortWord& abort,
                 int rank)
    : hosts_(hosts), host_(host), abort_(abort), rank_(rank) {
  if (network != nullptr) {
    std::vector<int> all(static_cast<std::size_t>(hosts.size()));
    std::iota(all.begin(), all.end(), 0);
    lanes_ = network->lanes(kLanes, all, rank);
  }
}

Rosters::~Rosters() = default;

// REQUIRES: mutex_ is held. Two groups with one id would use the same lanes and receive each
// other's messages.
std::shared_ptr<const void> Rosters::claim(const Roster& roster) {
  const std::pair key(roster.group, roster.id);
  if (!claimed_.insert(key).second) {
    throw Error(ErrorCode::usage,
                "subgroup " + std::to_string(roster.id) + ": rank " + std::to_string(rank_) +
                    " has a group with this id already\ngive each group that is made of one "
                    "communicator a different id, or end the first group before",
                {.rank = rank_});
  }
  const auto release = [this, key](const void*) {
    const std::lock_guard held(mutex_);
    claimed_.erase(key);
  };
  return {this, release};
}

std::uint64_t Rosters::count_made(std::uint64_t hash) {
  const std::lock_guard lock(mutex_);
  return made_[hash]++;
}

std::shared_ptr<const void> Rosters::enter(std::uint64_t group, std::uint64_t id,
                                           std::span<const int> members) {
  Roster roster{};
  roster.group = group;
  roster.id = id;
  roster.count = static_cast<int>(members.size());
  Hash hash;
  for (const int member : members) {
    hash.add(static_cast<std::uint64_t>(member));
  }
  roster.hash = hash.value();
  const std::size_t told = std::min<std::size_t>(members.size(), kRosterMembers);
  std::copy_n(members.begin(), told, roster.members);

  const std::lock_guard lock(mutex_);
  mine_.push_back({.roster = roster, .members = {members.begin(), members.end()}});
  if (mine_.size() > kRosters) {
    mine_.pop_front();
  }
  publish(roster);
  if (lanes_ != nullptr) {
    for (const int member : members) {
      if (!hosts_.is_here(member)) {
        lanes_->send(member, &roster, sizeof(roster), 0);  // false: the member does not listen
      }
    }
    lanes_->flush(transport::kEveryLane);
    listen();
  }
  const Mine mine = mine_.back();
  bool differs = false;
  for (const int rank : hosts_.here()) {
    const RosterBoard& board = host_.memory().rosters(hosts_.local(rank));
    for (const RosterEntry& entry : board.entries) {
      const auto theirs = rank == rank_ ? std::nullopt : read(entry);
      differs = differs || (theirs && compare(mine, rank, *theirs));
    }
  }
  for (const auto& [rank, theirs] : heard_) {
    differs = differs || compare(mine, rank, theirs);
  }
  if (differs) {
    abort_.throw_reason({.rank = rank_});
  }
  return claim(roster);
}

void Rosters::look() noexcept {
  if (lanes_ == nullptr) {
    return;  // among ranks on one host, the later caller sees both rosters
  }
  try {
    const std::lock_guard lock(mutex_);
    listen();
  } catch (const std::bad_alloc&) {
    return;  // an error text will only have less information
  }
}

// If two ranks publish at once, at least one of them sees the other's roster.
void Rosters::publish(const Roster& roster) noexcept {
  RosterBoard& board = host_.memory().rosters(host_.rank());
  RosterEntry& entry = board.entries[board.written % kRosters];
  Words words;
  std::memcpy(words.data(), &roster, sizeof(roster));
  entry.version.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 0; i < words.size(); ++i) {
    entry.words[i].store(words[i], std::memory_order_relaxed);
  }
  entry.version.store(++board.written, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Rosters::listen() {
  for (int from = 0; from < lanes_->ranks(); ++from) {
    transport::Incoming message;
    while (lanes_->peek(from, message)) {
      Roster roster{};
      const bool fits = message.bytes == sizeof(roster);
      if (fits) {
        std::memcpy(&roster, message.data, sizeof(roster));
      }
      lanes_->release(from);
      if (!fits) {
        continue;
      }
      heard_.emplace_back(from, roster);
      if (heard_.size() > kMostHeard) {
        heard_.pop_front();
      }
      for (const Mine& mine : mine_) {
        compare(mine, from, roster);
      }
    }
  }
}

// Returns true if the rosters differ; the world then ends.
bool Rosters::compare(const Mine& mine, int rank, const Roster& theirs) {
  const auto told = theirs.members + std::clamp(theirs.count, 0, kRosterMembers);
  const bool concerned =
      std::find(mine.members.begin(), mine.members.end(), rank) != mine.members.end() ||
      std::find(theirs.members, told, rank_) != told;
  if (!concerned || theirs.group != mine.roster.group || theirs.id != mine.roster.id ||
      theirs.hash == mine.roster.hash) {
    return false;
  }
  std::string first = names(rank_, mine.roster);
  std::string second = names(rank, theirs);
  if (rank < rank_) {
    std::swap(first, second);
  }
  abort_.raise(ErrorCode::mismatch, rank,
               "subgroup " + std::to_string(mine.roster.id) + ": " + first + "; " + second +
                   " (ranks of the world)\nall members must name the same ranks in the same "
                   "order, and no other group of theirs may have this id");
  return true;
}

}  // namespace unisono::comm
