// Reports between hosts, for the messages of mismatch and timeout: a rank that waits for long
// reports its operations to ranks on other hosts. Nothing waits for these reports, and a report is
// dropped if its reader is busy.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/flight_recorder.h"

namespace unisono::transport {

class Network;
class Transport;

}  // namespace unisono::transport

namespace unisono::comm {

class RemoteRecords {
 public:
  // Throws resource. `rank` of `ranks` of the world.
  RemoteRecords(transport::Network& network, int rank, int ranks);
  ~RemoteRecords();

  struct Report {
    OperationRecord record = {};
    WaitTarget waiting = {};  // peer -1: it does not wait in this one
    bool asks = false;        // other waiting ranks are to report now
    int group_size = 0;
    int group_first = 0;  // its rank 0
  };
  // `members`: world ranks; those on this host are skipped. Any thread.
  void tell(std::span<const int> members, std::uint64_t group, const Report& report) noexcept;
  // Keeps one of the last calls of a group that ends, for farewell(): of the latest groups only.
  void keep_last(std::uint64_t group, const Report& report) noexcept;
  // The calls kept, for Network::leave(): a rank that then waits for this one reads them.
  std::string farewell() noexcept;
  // Says how a call kept differs from that of a rank which has left as well; empty: none is known.
  // REQUIRES: listen(). For a rank that leaves too: it makes no call that could tell it.
  std::string last_disagreement() noexcept;
  // Takes in what has come, also in farewells. The recorders tell for whom a rank waits, and
  // since_ns is when that came.
  void listen() noexcept;
  // Returns true if a rank has asked since the last call.
  bool was_asked(std::uint64_t group) noexcept;
  // Returns the ranks that have asked since the last call, in any group.
  std::vector<int> take_askers();
  // Returns the last reported wait of a rank on another host; since_ns is the time of the report.
  std::optional<WorldWaiting> wait_of(int rank) noexcept;
  // Returns the recorder of a rank on another host in a group; nullptr: it has reported nothing.
  const FlightRecorder* find(std::uint64_t group, int rank) noexcept;
  // A group has ended.
  void forget(std::uint64_t group) noexcept;

 private:
  struct Note;

  void hear_farewells();
  void take(int from, const Note& note);

  // Reports of an authenticated peer about more groups are dropped.
  static constexpr std::size_t kMostFlightRecorders = 16384;

  transport::Network& network_;
  const int rank_;
  std::mutex mutex_;  // guards the rest
  std::unique_ptr<transport::Transport> lanes_;
  std::map<std::pair<std::uint64_t, int>, std::unique_ptr<FlightRecorder>> flight_recorders_;
  std::set<std::uint64_t> asked_;  // groups
  std::set<int> askers_;
  std::map<int, WorldWaiting> waits_;  // by rank
  int events_seen_ = 0;                // of the network
  std::set<int> left_;                 // ranks whose farewells were taken in
  std::vector<Note> last_;
};

}  // namespace unisono::comm
