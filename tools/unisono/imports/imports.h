// Recordings of other programs: which collectives their ranks called, and when.
#pragma once

#include <cstdint>
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
  std::string group = {};       // "world" for that of all ranks
  std::string collective = {};  // "all_reduce"
  std::string dtype = {};       // empty: not told
  double bytes = 0;             // the larger of what a rank sends and receives in all
  double start_us = 0;
  std::optional<double> end_us = {};  // none: it has not ended
  int number = 0;                     // of the calls of the group on this rank, from 1
  std::int64_t sequence = -1;         // as PyTorch counts the calls of the group; below 0: not told
  std::string backend = {};           // whose annotation or kernel it is; empty: not told
  double received = 0;                // bytes of an all_to_all with counts of its own; else 0
  double issued_us = kUnknownUs;      // when the host asked for it
  double took_us = kUnknownUs;  // exact, where start and end are times at which somebody looked
  bool is_begun = true;         // false: the device has not reached it
  std::string place = {};       // in the program: "train.py:120"; empty: not told
};

// The data of one rank.
struct ImportedRank {
  std::string path = {};
  int rank = -1;
  std::string host = {};  // empty: not told
  std::map<std::string, std::vector<int>> groups = {};
  std::map<std::string, std::string> axes = {};  // what groups are for: "mesh_tp", by their names
  std::vector<ImportedCall> calls = {};          // in the order in which the rank asked for them
  // Sends and receives, as calls of groups of two: "0->1 in pp". Recordings leave them out.
  std::vector<ImportedCall> messages = {};
  Account account = {};    // of what is left out; the calls are counted last
  bool has_groups = true;  // else which calls are of which group is not told
  bool has_sizes = true;   // else a call of no bytes may be one whose size is not told
  // The end of a call is when somebody looked: it is late by up to some time, the same for all.
  bool has_seen_ends = false;
  bool has_times = true;  // else the order of the calls is all that is known
};

// Why calls are left out.
inline constexpr const char* kSendsAndReceives = "sends and receives";
std::string no_collective(std::string_view name);

struct ImportFile {
  std::string path = {};
  std::string text = {};
};

// Dump of PyTorch's flight recorder, from JSON within the limits of cli/json_document.h or from a
// pickle. Returns nothing if it is another document, or no JSON. Throws UsageError.
std::optional<ImportedRank> read_flight_recorder(const ImportFile& file);
// Trace of PyTorch's profiler (Kineto). Throws UsageError.
ImportedRank read_kineto(const nlohmann::json& document, const std::string& path);
// Returns true if annotations of that PyTorch backend mark launches: then kernels have the times.
bool is_device_backend(std::string_view name);
bool is_nccl_log(std::string_view text);
// Logs of NCCL: a file may have several ranks, and a rank several files. Throws UsageError.
std::vector<ImportedRank> read_nccl_logs(const std::vector<ImportFile>& files);
// Returns true if the text begins like the JSON of NCCL Inspector, or like an answer of NCCL's RAS.
bool is_nccl_inspector(std::string_view text);
bool is_nccl_ras(std::string_view text);
// Files of NCCL Inspector, one for each process. Throws UsageError.
std::vector<ImportedRank> read_nccl_inspector(const std::vector<ImportFile>& files);
// An answer of NCCL's RAS (ncclras), as text or JSON: of each communicator, how many calls each
// rank has made. The last one that all have made, and those that only some have, are returned.
// Throws UsageError.
std::vector<ImportedRank> read_nccl_ras(const ImportFile& file);
// Gives groups of the same name and other members names of their own, and so the calls of backends
// that do not say their group.
void settle_groups(std::vector<ImportedRank>& ranks);
// Reads files of any of these kinds, recognised by their content; all must be of one kind.
std::vector<ImportedRank> read_imports(const std::vector<ImportFile>& files);

// The name that a collective has here ("_allgather_base" -> "all_gather"); empty: none.
std::string collective_named_by_torch(std::string_view name);
// "Float" -> "f32", 4 bytes.
struct TorchType {
  std::string name = {};
  int bytes = 1;
  std::string unknown = {};  // the name of a type that is not known
};
TorchType type_named_by_torch(std::string_view name);

// Leaves out the first calls of a group where another rank has later ones only: recorders keep the
// latest, and a profiler may begin later on one rank. Returns how many those are.
std::int64_t leave_out_before_all(std::vector<ImportedRank>& ranks);

// Numbers the calls of each group, and brings the clocks of different hosts together: the end of a
// collective that no rank leaves before all have come is one moment for all of its ranks. Returns,
// by rank, how much that leaves in doubt; below 0: not known.
std::vector<double> align(std::vector<ImportedRank>& ranks);

// Calls without times get as such their places in one order that each rank's own agrees with, of no
// length. Numbers the calls of each group. Returns how many calls come in an order
// that ranks disagree about: they would wait for each other for ever.
std::int64_t order(std::vector<ImportedRank>& ranks);

// A sentence for each group whose ranks have not begun equally many calls, or call different
// things at the same place.
std::vector<std::string> who_is_behind(const std::vector<ImportedRank>& ranks);

// The ranks that files speak of and that left none themselves.
std::vector<int> missing_ranks(const std::vector<ImportedRank>& ranks);

// For a verdict and for simulations of changes. Calls align() or order() first.
JobCalls job_calls_of(std::vector<ImportedRank>& ranks);

// unisono.trace/1.
nlohmann::ordered_json recording_of(const std::vector<ImportedRank>& ranks,
                                    const std::vector<double>& uncertainty);
// unisono.workload/1: what each rank computed between its calls, and these. Calls that not all
// ranks of the group have are left out.
struct ImportedWorkload {
  nlohmann::ordered_json document = {};
  std::size_t left_out = 0;
  std::size_t without_size = 0;  // calls of no bytes whose size may not be told
};
ImportedWorkload workload_of(const std::vector<ImportedRank>& ranks);

}  // namespace unisono::cli
