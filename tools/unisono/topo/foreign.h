// Topologies that other programs write, as far as they say how a machine is joined. Figures that
// they do not have are usual ones; the source of what is made says which.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"
#include "topology/topology.h"

namespace unisono::cli {

// The words of a line, without what underlines them on a terminal.
std::vector<std::string> words_in(std::string_view line);

// The matrix that `nvidia-smi topo -m` prints. The position is "line N".
bool is_smi_matrix(std::string_view text);
Parsed<Topology> read_smi_matrix(std::string_view text);

// Returns true for the XML that NCCL and RCCL write to NCCL_TOPO_DUMP_FILE and read from
// NCCL_TOPO_FILE.
bool is_nccl_topology(std::string_view text);
Parsed<Topology> read_nccl_topology(std::string_view text);

// Reads the output of `rocm-smi --showtopo`.
bool is_rocm_topology(std::string_view text);
Parsed<Topology> read_rocm_topology(std::string_view text);

// Figures that are assumed: of one NVLink and one XGMI link each way, of a PCIe 4.0 slot of 16
// lanes, and between the sockets of a host, in bytes per microsecond.
inline constexpr double kNvlinkBytesPerUs = 25e3;
inline constexpr double kXgmiBytesPerUs = 50e3;
inline constexpr double kSlotBytesPerUs = 31.5e3;
inline constexpr double kSocketsBytesPerUs = 40e3;
inline constexpr double kNvlinkUs = 0.5;
inline constexpr double kSlotUs = 0.5;
inline constexpr double kSocketsUs = 0.1;

}  // namespace unisono::cli
