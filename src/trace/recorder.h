// The recording of one rank. UNISONO_RECORD requests it, connecting creates it, and the launcher
// reads it (tools/unisono/record). Memory and names are set up here, so that the code between two
// messages only writes (trace/trace_writer.h).
//
// If a recording cannot be made, the job continues without it, and one line on stderr reports what
// is lost. One line also reports that a file of 64 MiB gets no more recordings. The file is mapped,
// so that it is complete even if the process is killed. Truncating the file while the job runs
// kills the process (SIGBUS); removing the file is harmless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "trace/trace_writer.h"
#include "unisono/error.hpp"
#include "unisono/types.hpp"

namespace unisono::trace {

// The same for everybody who has the same CLOCK_MONOTONIC.
std::uint64_t recording_clock();

struct RecordingSettings {
  std::string path = {};     // empty: nothing is to be recorded
  std::uint64_t events = 0;  // how many are kept, the newest
};
// Reads the environment. Throws Error if UNISONO_RECORD_EVENTS is not a number of events.
RecordingSettings recording_settings();

class Recorder {
 public:
  // nullptr: nothing is to be recorded, or it cannot be, and stderr says why. A folder gets a file
  // for each process, a file gets another recording behind those that it has. `rank`: for the
  // message.
  static std::unique_ptr<Recorder> open_for(int rank, const RecordingSettings& settings);
  // The same, but throws std::runtime_error, of one line, where that cannot be written.
  static std::unique_ptr<Recorder> open(const std::string& path, std::uint64_t events);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  // `first_ranks`: by rank, what it was in the first world; empty: the same. `world`: how many the
  // job had before.
  void introduce(int rank, int size, std::string_view job, std::span<const int> first_ranks = {},
                 int world = 0);
  // Why the world has ended: the first to be told is kept. Any thread.
  void note_abort(ErrorCode code, int culprit, int reporter, std::string_view text) noexcept;
  // For the events of a group; of one for which there is no room it records nothing.
  // `members`: ranks of the world.
  TraceWriter writer(std::uint64_t group, std::span<const int> members);
  // The number by which events know what is run.
  int name(Collective collective, std::string_view algorithm);
  // Labels the operations and transfers that begin from now on; empty: no label. Any thread.
  void label(std::string_view text);
  // The same of one group, in place of that; empty: they have that again. Any thread.
  void label_group(std::uint64_t group, std::span<const int> members, std::string_view text);

 private:
  Recorder(std::byte* memory, std::size_t bytes, bool counter, std::string file);
  recording::RecordingHeader& header() noexcept { return *view_.header; }
  int number_of(const recording::Name& wanted);
  int label_number(std::string_view text);
  int group_number(std::uint64_t id, std::span<const int> members);
  // Returns the position in the list of members; -1: there was no room.
  int add_members(std::span<const int> members);

  // Says so where somebody removed the file while the job ran.
  void say_if_removed() const;

  std::string file_;  // in the folder that was asked for; empty: it has no name of its own
  std::byte* memory_;
  std::size_t bytes_;
  RecordingView view_;
  std::mutex tables_;
  int world_size_ = 0;
};

}  // namespace unisono::trace
