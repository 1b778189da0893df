// Exchanges reports between hosts, for mismatch and timeout errors and for the search for
// deadlocks. A rank that waits for long reports its operations to ranks on other hosts, and reports
// its wait when they ask. Nothing waits for these reports, and a report is dropped if its reader is
// busy.
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

// A rank's question about another rank's wait: the call in which the asking rank waits.
struct Question {
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;  // of a collective; 0: not in a collective

  friend bool operator==(const Question&, const Question&) = default;
};
// The answer of a rank that waits alone, without progress between two checks. With it the asking
// rank proves that no data of that rank is in transit to it (world_waits.h).
struct Answer {
  std::int64_t name_ns = 0;  // name of its wait; 0: no answer
  Question question = {};
  bool has_entered = false;       // it has entered the asker's collective, or does not know the
                                  // group
  transport::Frames frames = {};  // those received by the first check, and sent by the second
};

class RemoteRecords {
 public:
  // `rank` of `ranks`: in the world. Throws resource.
  RemoteRecords(transport::Network& network, int rank, int ranks);
  ~RemoteRecords();

  struct Report {
    OperationRecord record = {};
    bool asks = false;  // asks the group's waiting ranks to report theirs
  };
  // `members`: world ranks; skips those on this host. Threads: any.
  void tell(std::span<const int> members, std::uint64_t group, const Report& report) noexcept;
  // Keeps one of the last calls of a group that ends, for farewell(). Only the latest groups are
  // kept.
  void keep_last(std::uint64_t group, const Report& report) noexcept;
  // Returns the kept calls, for Network::leave(). A rank that later waits for this one reads them.
  std::string farewell() noexcept;
  // If another rank has left as well, describes how its call differs from a kept call of this rank;
  // empty if no difference is known. A rank that leaves uses this function, because it makes no
  // further call that could report the difference.
  // REQUIRES: listen().
  std::string last_disagreement() noexcept;
  // Like the above, for a rank that continues: a kept call differs from that of a rank which is
  // still in the group, and waits there.
  struct Late {
    int rank = -1;  // world rank; -1: no difference is known
    std::string text = {};
  };
  Late take_late_disagreement() noexcept;
  // Receives all reports that have arrived, including farewells.
  void listen() noexcept;
  // Returns true if a rank has asked for reports since the last call.
  bool was_asked(std::uint64_t group) noexcept;
  // Reports a wait to world ranks. `ask`: asks them to report theirs.
  void tell_wait(std::span<const int> ranks, const WorldWaiting& waiting, bool ask) noexcept;
  // Like tell_wait(), as the answer to a rank's question.
  void answer(int rank, const WorldWaiting& waiting, const Answer& answer) noexcept;
  // Returns the questions since the last call, by asking rank.
  std::map<int, Question> take_questions();
  // Returns the latest reported wait of a rank on another host; since_ns is the time of the report.
  std::optional<WorldWaiting> wait_of(int rank) noexcept;
  // Returns the rank's answer about that wait.
  Answer answer_of(int rank) noexcept;
  // Returns false if this rank has not entered the question's collective. REQUIRES: join() of this
  // rank's groups.
  bool has_entered(const Question& question) noexcept;
  transport::Frames frames(int rank) const noexcept { return network_.frames(rank); }
  // Returns the recorder of a rank on another host for a group; nullptr if the rank has not
  // reported.
  const FlightRecorder* find(std::uint64_t group, int rank) noexcept;
  // Registers a new group; `recorder`: this rank's recorder, valid until forget().
  void join(std::uint64_t group, const FlightRecorder& recorder);
  // Removes a group that has ended.
  void forget(std::uint64_t group) noexcept;

 private:
  struct Note;
  struct WaitNote;

  void send(std::span<const int> ranks, const void* note, std::size_t bytes) noexcept;
  void hear_farewells();
  void take(int from, const Note& note);
  void take(int from, const WaitNote& note);
  std::string text_of(const Note& mine, int other, const OperationRecord& theirs) const;

  // Limits the memory that an authenticated peer can use; reports about more groups are dropped.
  static constexpr std::size_t kMostFlightRecorders = 16384;

  transport::Network& network_;
  const int rank_;
  std::mutex mutex_;  // guards the members below
  std::unique_ptr<transport::Transport> lanes_;
  std::map<std::pair<std::uint64_t, int>, std::unique_ptr<FlightRecorder>> flight_recorders_;
  std::set<std::uint64_t> asked_;                       // groups for which a rank asked
  std::map<std::uint64_t, const FlightRecorder*> own_;  // by group
  std::map<int, Question> questions_;                   // by rank
  struct Told {
    WorldWaiting waiting = {};
    Answer answer = {};
  };
  std::map<int, Told> waits_;  // by rank
  int events_seen_ = 0;        // last value of Network::events()
  std::set<int> left_;         // ranks whose farewells were read
  std::vector<Note> last_;
  Late late_;
};

}  // namespace unisono::comm
