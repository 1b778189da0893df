// Reports between hosts, for the messages of mismatch and timeout and for the search for deadlocks:
// a rank that waits for long reports its operations to ranks on other hosts, and its wait when they
// ask. Nothing waits for these reports, and a report is dropped if its reader is busy.
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
#include "transport/network.h"

namespace unisono::transport {

class Transport;

}  // namespace unisono::transport

namespace unisono::comm {

// The call in which a rank waits that asks for another one's wait.
struct Question {
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;  // of a collective; 0: none

  friend bool operator==(const Question&, const Question&) = default;
};
// The answer of a rank that waits alone, without progress between two looks: with this, the asker
// proves that nothing of that rank is in transit to it (world_waits.h).
struct Answer {
  std::int64_t name_ns = 0;  // of its wait; 0: there is no answer
  Question question = {};
  bool has_entered = false;       // it has entered that collective, or does not know the group
  transport::Frames frames = {};  // received by the first look, and sent by the second
};

class RemoteRecords {
 public:
  // Throws resource. `rank` of `ranks` of the world.
  RemoteRecords(transport::Network& network, int rank, int ranks);
  ~RemoteRecords();

  struct Report {
    OperationRecord record = {};
    bool asks = false;  // ranks that wait in the group are to report theirs now
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
  // As above, for a rank that goes on: a call kept differs from that of a rank which is still in
  // the group, and waits there.
  struct Late {
    int rank = -1;  // of the world; -1: none is known
    std::string text = {};
  };
  Late take_late_disagreement() noexcept;
  // Takes in what has come, also in farewells.
  void listen() noexcept;
  // Returns true if a rank has asked since the last call.
  bool was_asked(std::uint64_t group) noexcept;
  // Reports a wait to world ranks. `ask`: they are to report theirs.
  void tell_wait(std::span<const int> ranks, const WorldWaiting& waiting, bool ask) noexcept;
  // As above, in answer to a rank's question.
  void answer(int rank, const WorldWaiting& waiting, const Answer& answer) noexcept;
  // Returns what each rank that has asked for this rank's wait since the last call asked.
  std::map<int, Question> take_questions();
  // Returns the last reported wait of a rank on another host; since_ns is the time of the report.
  std::optional<WorldWaiting> wait_of(int rank) noexcept;
  // Returns its answer about that wait.
  Answer answer_of(int rank) noexcept;
  // Returns false if this rank has not entered that collective. REQUIRES: join() of its groups.
  bool has_entered(const Question& question) noexcept;
  transport::Frames frames(int rank) const noexcept { return network_.frames(rank); }
  // Returns the recorder of a rank on another host in a group; nullptr: it has reported nothing.
  const FlightRecorder* find(std::uint64_t group, int rank) noexcept;
  // A group begins; `recorder`: this rank's, until forget().
  void join(std::uint64_t group, const FlightRecorder& recorder);
  // A group has ended.
  void forget(std::uint64_t group) noexcept;

 private:
  struct Note;
  struct WaitNote;

  void send(std::span<const int> ranks, const void* note, std::size_t bytes) noexcept;
  void hear_farewells();
  void take(int from, const Note& note);
  void take(int from, const WaitNote& note);
  std::string text_of(const Note& mine, int other, const OperationRecord& theirs) const;

  // Reports of an authenticated peer about more groups are dropped.
  static constexpr std::size_t kMostFlightRecorders = 16384;

  transport::Network& network_;
  const int rank_;
  std::mutex mutex_;  // guards the rest
  std::unique_ptr<transport::Transport> lanes_;
  std::map<std::pair<std::uint64_t, int>, std::unique_ptr<FlightRecorder>> flight_recorders_;
  std::set<std::uint64_t> asked_;                       // groups
  std::map<std::uint64_t, const FlightRecorder*> own_;  // by group
  std::map<int, Question> questions_;                   // by rank
  struct Told {
    WorldWaiting waiting = {};
    Answer answer = {};
  };
  std::map<int, Told> waits_;  // by rank
  int events_seen_ = 0;        // of the network
  std::set<int> left_;         // ranks whose farewells were taken in
  std::vector<Note> last_;
  Late late_;
};

}  // namespace unisono::comm
