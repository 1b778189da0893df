// Recordings of other programs: which collectives their ranks called, and when.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::cli {

struct ImportedCall {
  std::string group = {};       // "world" for that of all ranks
  std::string collective = {};  // "all_reduce"
  std::string dtype = {};       // empty: not told
  double bytes = 0;             // the larger of what a rank sends and receives in all
  double start_us = 0;
  double end_us = -1;  // below 0: it has not ended
  int number = 0;      // of the calls of the group on this rank, from 1
};

// What one rank left.
struct ImportedRank {
  std::string path = {};
  int rank = -1;
  std::string host = {};  // empty: not told
  std::map<std::string, std::vector<int>> groups = {};
  std::vector<ImportedCall> calls = {};  // in the order of their start
  std::int64_t sends = 0;                // and receives, which are counted only
};

// Trace of PyTorch's profiler (Kineto). Throws UsageError.
ImportedRank read_kineto(const nlohmann::json& document, const std::string& path);
// Dump of PyTorch's flight recorder, as JSON. Throws UsageError.
ImportedRank read_flight_recorder(const nlohmann::json& document, const std::string& path);
// Either of them, by what is in it.
ImportedRank read_import(const std::string& path);

// The name that a collective has here ("_allgather_base" -> "all_gather"); empty: none.
std::string collective_named_by_torch(std::string_view name);
// "Float" -> "f32", 4 bytes. REQUIRES nothing: unknown ones are {"", 1}.
struct TorchType {
  std::string name = {};
  int bytes = 1;
};
TorchType type_named_by_torch(std::string_view name);

// Numbers the calls of each group, and brings the clocks of different hosts together: the end of a
// collective that no rank leaves before all have come is one moment for all of its ranks. Returns,
// by rank, how much that leaves in doubt; below 0: not known.
std::vector<double> align(std::vector<ImportedRank>& ranks);

// unisono.trace/1.
nlohmann::ordered_json recording_of(const std::vector<ImportedRank>& ranks,
                                    const std::vector<double>& uncertainty);
// unisono.workload/1: what each rank computed between its calls, and these. Calls that not all
// ranks of the group have are left out; `left_out` counts them.
nlohmann::ordered_json workload_of(const std::vector<ImportedRank>& ranks, std::int64_t& left_out);

}  // namespace unisono::cli
