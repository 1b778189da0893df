// `rocm-smi --showtopo`: the GPUs that XGMI joins, and the NUMA node of each GPU. The printed
// weights and hops follow from these.
//
//   =============== Link Type between two GPUs ===============
//          GPU0         GPU1
//   GPU0   0            XGMI
//   GPU1   XGMI         0
//   ====================== Numa Nodes ========================
//   GPU[0]          : (Topology) Numa Node: 0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/words.h"
#include "topo/foreign.h"

namespace unisono::cli {
namespace {

constexpr std::string_view kTitle = "Link Type between two GPUs";
constexpr std::size_t kMostGpus = 256;

class RocmReader {
 public:
  Parsed<Topology> read(std::string_view text) {
    while (!text.empty() && problem_.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      take(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (problem_.empty() && (names_.empty() || rows_.size() != names_.size())) {
      problem_ = fmt::format("{} rows of link types for {} GPUs", rows_.size(), names_.size());
    }
    if (problem_.empty()) {
      check();
    }
    return problem_.empty() ? Parsed<Topology>::success(make())
                            : Parsed<Topology>::failure("rocm-smi --showtopo: " + problem_,
                                                        fmt::format("line {}", line_));
  }

 private:
  void take(std::string_view line) {
    if (line.starts_with("==")) {
      is_matrix_ = line.find(kTitle) != std::string_view::npos;
      return;
    }
    const std::vector<std::string> words = words_in(line);
    if (words.empty()) {
      return;
    }
    if (is_matrix_ && names_.empty()) {
      names_ = words;
      if (names_.size() > kMostGpus) {
        problem_ = fmt::format("more than {} GPUs", kMostGpus);
      }
    } else if (is_matrix_ && rows_.size() < names_.size()) {
      if (words.front() != names_[rows_.size()] || words.size() != names_.size() + 1) {
        problem_ = fmt::format("no whole row of {}", in_quotes(names_[rows_.size()]));
        return;
      }
      rows_.emplace_back(words.begin() + 1, words.end());
    } else {
      take_numa_node(line);
    }
  }

  void take_numa_node(std::string_view line) {
    constexpr std::string_view kNode = "(Topology) Numa Node: ";
    constexpr std::string_view kGpu = "GPU[";
    const std::size_t at = line.find(kNode);
    if (at == std::string_view::npos || !line.starts_with(kGpu)) {
      return;
    }
    const std::string_view gpu = line.substr(kGpu.size(), line.find(']') - kGpu.size());
    const std::string_view node = line.substr(at + kNode.size());
    int number = -1;
    std::from_chars(node.data(), node.data() + node.size(), number);
    if (numa_.size() < kMostGpus) {
      numa_["GPU" + std::string(gpu)] = number;
    }
  }

  // Checks that the link of two GPUs is the same in both directions, and of a known kind.
  void check() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      for (std::size_t k = 0; k < names_.size(); ++k) {
        const std::string& link = rows_[i][k];
        if (i != k && link != "XGMI" && link != "PCIE") {
          problem_ = fmt::format("{} to {} is {}, neither XGMI nor PCIE", names_[i], names_[k],
                                 in_quotes(link));
          return;
        }
        if (i != k && link != rows_[k][i]) {
          problem_ = fmt::format("{} to {} is {}, but back is {}", names_[i], names_[k], link,
                                 rows_[k][i]);
          return;
        }
      }
    }
  }

  int node_of(const std::string& gpu) const {
    const auto found = numa_.find(gpu);
    return found == numa_.end() || found->second < 0 ? 0 : found->second;
  }

  Topology make() const {
    Topology topology;
    topology.name = "rocm-smi --showtopo";
    topology.source = fmt::format(
        "rocm-smi --showtopo; assumed: {:g} GB/s each way of XGMI between two GPUs, {:g} of PCIe "
        "(4.0 x16), {:g} between sockets; not included: NICs",
        kXgmiBytesPerUs / 1e3, kSlotBytesPerUs / 1e3, kSocketsBytesPerUs / 1e3);
    const int host = add_device(topology, "host", DeviceKind::node);
    std::map<int, int> sockets;
    for (const std::string& gpu : names_) {
      const auto [socket, is_new] = sockets.try_emplace(node_of(gpu), -1);
      if (is_new) {
        socket->second =
            add_device(topology, fmt::format("socket{}", socket->first), DeviceKind::socket, host);
        for (const auto& [node, other] : sockets) {
          if (other != socket->second) {
            connect(topology, other, socket->second, kSocketsUs, kSocketsBytesPerUs);
          }
        }
      }
      const int device = add_device(topology, gpu, DeviceKind::gpu, host);
      connect(topology, device, socket->second, kSlotUs, kSlotBytesPerUs);
      topology.ranks.push_back(device);
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (rows_[i][k] == "XGMI") {
          connect(topology, topology.ranks[k], topology.ranks[i], kNvlinkUs, kXgmiBytesPerUs);
        }
      }
    }
    return topology;
  }

  std::string problem_;
  int line_ = 0;
  bool is_matrix_ = false;
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> rows_;
  std::map<std::string, int> numa_;
};

}  // namespace

bool is_rocm_topology(std::string_view text) {
  constexpr std::size_t kLooked = 1 << 16;
  return text.substr(0, kLooked).find(kTitle) != std::string_view::npos;
}

Parsed<Topology> read_rocm_topology(std::string_view text) {
  return RocmReader().read(text);
}

}  // namespace unisono::cli
