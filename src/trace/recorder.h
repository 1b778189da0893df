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

// Returns an identifier that is equal for all processes that share a CLOCK_MONOTONIC.
std::uint64_t recording_clock();

struct RecordingSettings {
  std::string path = {};     // empty: record nothing
  std::uint64_t events = 0;  // number of events kept: the latest ones
};
// Reads the environment. Throws Error if UNISONO_RECORD_EVENTS is not a number of events.
RecordingSettings recording_settings();

class Recorder {
 public:
  // Returns nullptr if nothing is to be recorded, or if that fails, which is reported on stderr. A
  // folder gets one file per process; an existing file gets another recording after the existing
  // ones. `rank`: for the message.
  static std::unique_ptr<Recorder> open_for(int rank, const RecordingSettings& settings);
  // Like open_for(), but throws std::runtime_error with a one-line text if it fails.
  static std::unique_ptr<Recorder> open(const std::string& path, std::uint64_t events);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  // `first_ranks`: by rank, its number in the first world; empty if the numbers are the same.
  // `world`: the number of the job's earlier worlds.
  void introduce(int rank, int size, std::string_view job, std::span<const int> first_ranks = {},
                 int world = 0);
  // Records why the world has ended; keeps the first report. Threads: any.
  void note_abort(ErrorCode code, int culprit, int reporter, std::string_view text) noexcept;
  // Returns a writer for the events of a group; it records nothing if there is no room for the
  // group. `members`: ranks of the world.
  TraceWriter writer(std::uint64_t group, std::span<const int> members);
  // Returns the number by which events refer to this algorithm.
  int name(Collective collective, std::string_view algorithm);
  // Labels the operations and transfers that begin from now on; empty removes the label. Threads:
  // any.
  void label(std::string_view text);
  // Labels those of one group instead of the rank's label; empty restores the rank's label.
  // Threads: any.
  void label_group(std::uint64_t group, std::span<const int> members, std::string_view text);

 private:
  Recorder(std::byte* memory, std::size_t bytes, bool counter, std::string file);
  recording::RecordingHeader& header() noexcept { return *view_.header; }
  int number_of(const recording::Name& wanted);
  int label_number(std::string_view text);
  int group_number(std::uint64_t id, std::span<const int> members);
  // Returns the position in the list of members; -1 if there is no room.
  int add_members(std::span<const int> members);

  // Reports on stderr if the file was removed while the job ran.
  void say_if_removed() const;

  std::string file_;  // in the requested folder; empty: a file that the user named
  std::byte* memory_;
  std::size_t bytes_;
  RecordingView view_;
  std::mutex tables_;
  int world_size_ = 0;
};

}  // namespace unisono::trace
