// Reads the topologies of other programs, as far as they describe the links of a machine. Missing
// figures get typical values; the source of the topology lists them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"
#include "topology/topology.h"

namespace unisono::cli {

// Returns the words of a line, without escape sequences for underlining.
std::vector<std::string> words_in(std::string_view line);

// Recognises and reads the matrix of `nvidia-smi topo -m`. The position of an error is "line N".
bool is_smi_matrix(std::string_view text);
Parsed<Topology> read_smi_matrix(std::string_view text);

// Returns true for the XML that NCCL and RCCL write to NCCL_TOPO_DUMP_FILE and read from
// NCCL_TOPO_FILE.
bool is_nccl_topology(std::string_view text);
Parsed<Topology> read_nccl_topology(std::string_view text);

// Reads the output of `rocm-smi --showtopo`.
bool is_rocm_topology(std::string_view text);
Parsed<Topology> read_rocm_topology(std::string_view text);

// Assumed bandwidths in bytes per microsecond: one NVLink and one XGMI link in each direction, a
// PCIe 4.0 slot with 16 lanes, and between the sockets of a host.
inline constexpr double kNvlinkBytesPerUs = 25e3;
inline constexpr double kXgmiBytesPerUs = 50e3;
inline constexpr double kSlotBytesPerUs = 31.5e3;
inline constexpr double kSocketsBytesPerUs = 40e3;
inline constexpr double kNvlinkUs = 0.5;
inline constexpr double kSlotUs = 0.5;
inline constexpr double kSocketsUs = 0.1;

}  // namespace unisono::cli
