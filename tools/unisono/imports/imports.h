// Recordings of other programs: the collectives that their ranks called, with times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/account.h"
#include "record/job_calls.h"

namespace unisono::cli {

struct ImportedCall {
  std::string group = {};       // "world" for the group of all ranks
  std::string collective = {};  // "all_reduce"
  std::string dtype = {};       // empty: not told
  double bytes = 0;             // the larger of what a rank sends and receives in all
  double start_us = 0;
  std::optional<double> end_us = {};  // none: the call has not ended
  int number = 0;                     // number of the call in its group on this rank, from 1
  std::int64_t sequence = -1;         // PyTorch's number of the call in its group; below 0: unknown
  std::string backend = {};           // the backend of the annotation or kernel; empty: unknown
  double received = 0;                // received bytes of an all_to_all with counts; else 0
  double issued_us = kUnknownUs;      // when the host issued the call
  double took_us = kUnknownUs;        // exact duration, if start and end are times of a watchdog
  bool is_begun = true;               // false: the device has not reached it
  std::string place = {};             // in the program: "train.py:120"; empty: unknown
};

// The data of one rank.
struct ImportedRank {
  std::string path = {};
  int rank = -1;
  std::string host = {};  // empty: not told
  std::map<std::string, std::vector<int>> groups = {};
  std::map<std::string, std::string> axes = {};  // by group: its purpose, such as "mesh_tp"
  std::vector<ImportedCall> calls = {};          // in the order in which the rank issued them
  // Sends and receives, as calls of groups of two: "0->1 in pp". Recordings leave them out.
  std::vector<ImportedCall> messages = {};
  Account account = {};    // the data that was left out; calls are counted last
  bool has_groups = true;  // false: the groups of calls are unknown
  bool has_sizes = true;   // false: a call of 0 bytes may have an unknown size
  // The end of a call is the time at which a watchdog saw it, which is late by up to a fixed time.
  bool has_seen_ends = false;
  bool has_times = true;  // false: only the order of the calls is known
};

// Reasons for leaving calls out.
inline constexpr const char* kSendsAndReceives = "sends and receives";
std::string no_collective(std::string_view name);

struct ImportFile {
  std::string path = {};
  std::string text = {};
};

// Reads a dump of PyTorch's flight recorder, from a pickle, or from JSON within the limits of
// cli/json_document.h. Returns nothing for any other document. Throws UsageError.
std::optional<ImportedRank> read_flight_recorder(const ImportFile& file);
// Reads a trace of PyTorch's profiler (Kineto). Throws UsageError.
ImportedRank read_kineto(const nlohmann::json& document, const std::string& path);
// Returns true if annotations of this PyTorch backend mark launches, so that only kernels have the
// times.
bool is_device_backend(std::string_view name);
bool is_nccl_log(std::string_view text);
// Reads logs of NCCL. A file may contain several ranks, and a rank may have several files. Throws
// UsageError.
std::vector<ImportedRank> read_nccl_logs(const std::vector<ImportFile>& files);
// Returns true if the text begins like the JSON of NCCL Inspector, or like an answer of NCCL's RAS.
bool is_nccl_inspector(std::string_view text);
bool is_nccl_ras(std::string_view text);
// Reads files of NCCL Inspector, one for each process. Throws UsageError.
std::vector<ImportedRank> read_nccl_inspector(const std::vector<ImportFile>& files);
// Reads an answer of NCCL's RAS (ncclras), as text or JSON: for each communicator, the number of
// calls of each rank. Returns the last call that all ranks have made, and the calls that only some
// ranks have made. Throws UsageError.
std::vector<ImportedRank> read_nccl_ras(const ImportFile& file);
// Gives different names to groups that have the same name but different members, and a group to the
// calls of each backend that does not name groups.
void settle_groups(std::vector<ImportedRank>& ranks);
// Reads `count` files of any of these kinds, recognised by their content; all must be of one kind.
// Calls file_at() from several threads, once for each file. Throws UsageError, and what file_at()
// throws.
using FileAt = std::function<ImportFile(std::size_t)>;
std::vector<ImportedRank> read_imports(std::size_t count, const FileAt& file_at);
std::vector<ImportedRank> read_imports(const std::vector<ImportFile>& files);

// Returns unisono's name of a collective ("_allgather_base" -> "all_gather"); empty: there is none.
std::string collective_named_by_torch(std::string_view name);
// "Float" -> "f32", 4 bytes.
struct TorchType {
  std::string name = {};
  int bytes = 1;
  std::string unknown = {};  // the name of an unknown type
};
TorchType type_named_by_torch(std::string_view name);

// Leaves out the first calls of a group if another rank has only later ones: recorders keep only
// the latest calls, and a profiler may begin later on one rank. Returns the number of these calls.
std::int64_t leave_out_before_all(std::vector<ImportedRank>& ranks);

// Numbers the calls of each group, and aligns the clocks of different hosts: if no rank leaves a
// collective before all have arrived, its end is the same moment on all of its ranks. Returns the
// remaining uncertainty by rank; below 0: unknown.
std::vector<double> align(std::vector<ImportedRank>& ranks);

// For calls without times: sets their times to their places in one order that agrees with the order
// of each rank, with a duration of zero. Numbers the calls of each group. Returns the number of
// calls whose order differs between ranks, so that these ranks would wait for each other forever.
std::int64_t order(std::vector<ImportedRank>& ranks);

// Returns a sentence for each group whose ranks have begun different numbers of calls, or different
// calls at the same place.
std::vector<std::string> who_is_behind(const std::vector<ImportedRank>& ranks);

// Returns the ranks that files mention but that have no file themselves.
std::vector<int> missing_ranks(const std::vector<ImportedRank>& ranks);

// Returns the calls for a verdict, or for simulations of changes. Calls align() or order() first.
JobCalls job_calls_of(std::vector<ImportedRank>& ranks);

// unisono.trace/1.
nlohmann::ordered_json recording_of(const std::vector<ImportedRank>& ranks,
                                    const std::vector<double>& uncertainty);
// unisono.workload/1: the calls, and the computation of each rank between them. Calls that some
// ranks of the group lack are left out.
struct ImportedWorkload {
  nlohmann::ordered_json document = {};
  std::size_t left_out = 0;
  std::size_t without_size = 0;  // calls of 0 bytes whose size may be unknown
};
ImportedWorkload workload_of(const std::vector<ImportedRank>& ranks);

}  // namespace unisono::cli
