// `nvidia-smi topo -m`: the NVLinks between devices, and the path of their PCIe traffic. The matrix
// may follow other lines, such as the command.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/words.h"
#include "topo/foreign.h"

namespace unisono::cli {
namespace {

constexpr int kMostMatrixDevices = 256;
constexpr int kMostLinks =
    18;  // the most NVLinks of a GPU; a row with more lists links to a switch

bool is_gpu_name(const std::string& word) {
  constexpr std::string_view kGpu = "GPU";
  return word.starts_with(kGpu) && word.size() > kGpu.size();
}

// Returns the devices of a heading, which come before "CPU Affinity". Devices other than GPUs may
// have any name ("NIC0", "mlx5_0", "bnxt_re0"). Empty: the line is not a heading.
std::vector<std::string> devices_in(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "CPU");
  const bool is_heading = end != words.end() && end + 1 != words.end() &&
                          end[1].starts_with("Affinity") && is_gpu_name(words.front());
  return is_heading ? std::vector<std::string>(words.begin(), end) : std::vector<std::string>{};
}

// Returns the number of NVLinks of a cell; 0: none.
int links_of(const std::string& cell) {
  int links = 0;
  if (cell.starts_with("NV")) {
    std::from_chars(cell.data() + 2, cell.data() + cell.size(), links);
  }
  return links;
}

class MatrixReader {
 public:
  explicit MatrixReader(std::string_view text) : text_(text) {}

  Parsed<Topology> read() {
    for (std::string_view rest = text_; !rest.empty() && problem_.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      ++line_;
      take(words_in(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (problem_.empty() && names_.empty()) {
      fail("no heading with GPUs and \"CPU Affinity\"");
    }
    if (problem_.empty() && cells_.size() < names_.size()) {
      fail(fmt::format("{} rows for {} devices", cells_.size(), names_.size()));
    }
    if (problem_.empty()) {
      check();
    }
    if (!problem_.empty()) {
      return Parsed<Topology>::failure(problem_, fmt::format("line {}", line_));
    }
    return make();
  }

 private:
  void fail(const std::string& problem) { problem_ = "nvidia-smi topo -m: " + problem; }
  bool is_gpu(std::size_t i) const { return names_[i].starts_with("GPU"); }

  void take(const std::vector<std::string>& words) {
    if (names_.empty()) {
      names_ = devices_in(words);
      has_numa_ = std::find(words.begin(), words.end(), "NUMA") != words.end();
      if (names_.size() > kMostMatrixDevices) {
        fail(fmt::format("more than {} devices", kMostMatrixDevices));
      }
      return;
    }
    if (cells_.size() == names_.size() && !devices_in(words).empty()) {
      fail("a second matrix begins: give the matrix of one host");
    }
    if (words.empty() || cells_.size() == names_.size()) {
      return;
    }
    if (words.front() != names_[cells_.size()]) {
      fail(fmt::format("the row of {} is missing", names_[cells_.size()]));
      return;
    }
    if (words.size() <= names_.size()) {
      fail(fmt::format("{} cells for {} devices", words.size() - 1, names_.size()));
      return;
    }
    const auto first = words.begin() + 1;
    const auto end = first + static_cast<std::ptrdiff_t>(names_.size());
    cells_.emplace_back(first, end);
    std::replace(cells_.back().begin(), cells_.back().end(), std::string("SOC"),
                 std::string("SYS"));  // as old drivers call it
    rest_.emplace_back(end, words.end());
  }

  // Checks that both directions between two devices are the same, and of a known kind.
  void check() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      for (std::size_t k = 0; k < names_.size(); ++k) {
        const std::string& cell = cells_[i][k];
        const bool is_known =
            cell == "PIX" || cell == "PXB" || cell == "PHB" || cell == "NODE" || cell == "SYS" ||
            (cell.starts_with("NV") && links_of(cell) > 0 && links_of(cell) <= kMostLinks);
        if ((i == k) != (cell == "X") || (i != k && !is_known)) {
          fail(fmt::format("{} to {} is \"{}\", none of X, NV#, PIX, PXB, PHB, NODE and SYS",
                           names_[i], names_[k], cell.substr(0, 20)));
          return;
        }
        if (cell != cells_[k][i]) {
          fail(fmt::format("{} to {} is {}, but back is {}", names_[i], names_[k], cell,
                           cells_[k][i]));
          return;
        }
      }
    }
    check_paths();
  }

  // Checks that no SYS joins two devices that other cells place on one socket.
  void check_paths() {
    const std::vector<int> near = groups(is_near);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (near[i] == near[k] && cells_[i][k] == "SYS") {
          fail(fmt::format("{} to {} is SYS, but other cells join them on one socket", names_[k],
                           names_[i]));
          return;
        }
      }
    }
  }

  // Returns true for a path that does not leave the socket.
  static bool is_near(const std::string& cell) { return cell[0] == 'P' || cell == "NODE"; }

  // Numbers the devices; devices that a cell joins get the same number.
  template <typename IsJoined>
  std::vector<int> groups(const IsJoined& is_joined) const {
    std::vector<int> group(names_.size());
    std::iota(group.begin(), group.end(), 0);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (is_joined(cells_[i][k]) && group[i] != group[k]) {
          std::replace(group.begin(), group.end(), std::max(group[i], group[k]),
                       std::min(group[i], group[k]));
        }
      }
    }
    return group;
  }

  // Returns the NUMA affinity of a row; empty if the matrix does not give one.
  std::string numa_of(std::size_t i) const {
    // "0-15", "0" and, in newer versions, "N/A": CPUs, NUMA node, the GPU's NUMA node.
    const bool is_known = has_numa_ && rest_[i].size() >= 2 && rest_[i][1] != "N/A";
    return is_known ? rest_[i][1].substr(0, 8) : "";
  }

  bool is_far(const std::vector<std::size_t>& some, const std::vector<std::size_t>& others) const {
    return std::any_of(some.begin(), some.end(), [&](std::size_t i) {
      return std::any_of(others.begin(), others.end(),
                         [&](std::size_t k) { return cells_[i][k] == "SYS"; });
    });
  }

  // Returns the socket of each device. Cells decide: a group of devices whose traffic does not
  // leave their socket. Where NVLinks hide the other paths, groups of one NUMA node share a socket.
  std::vector<std::string> sockets() const {
    const std::vector<int> near = groups(is_near);
    std::map<int, std::vector<std::size_t>> members;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      members[near[i]].push_back(i);
    }
    struct Socket {
      std::string numa;
      std::vector<std::size_t> devices;
    };
    std::vector<Socket> sockets;
    for (const auto& [number, devices] : members) {
      Socket socket = {.numa = "", .devices = devices};
      for (const std::size_t i : devices) {
        socket.numa = socket.numa.empty() ? numa_of(i) : socket.numa;
      }
      const auto same = std::find_if(sockets.begin(), sockets.end(), [&](const Socket& other) {
        return !socket.numa.empty() && other.numa == socket.numa && !is_far(other.devices, devices);
      });
      if (same == sockets.end()) {
        sockets.push_back(std::move(socket));
      } else {
        same->devices.insert(same->devices.end(), devices.begin(), devices.end());
      }
    }
    std::vector<std::string> names(names_.size());
    std::set<std::string> used;
    for (const Socket& socket : sockets) {
      const bool is_named = !socket.numa.empty() && used.insert(socket.numa).second;
      for (const std::size_t i : socket.devices) {
        names[i] = is_named ? "socket" + socket.numa : "socket.of." + names_[socket.devices[0]];
      }
    }
    return names;
  }

  // Returns sentences about sockets that are guessed, and about the first two devices whose cell
  // contradicts their NUMA affinities.
  std::string numa_note() const {
    std::string note;
    const std::vector<std::string> socket = sockets();
    for (std::size_t i = 0; i < names_.size() && note.empty(); ++i) {
      for (std::size_t k = i + 1; k < names_.size() && note.empty(); ++k) {
        if (cells_[i][k][0] == 'N' && socket[i] != socket[k] &&
            (numa_of(i).empty() || numa_of(k).empty())) {
          note = "; assumed: GPUs with unknown NUMA affinities are on sockets of their own";
        }
      }
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
      for (std::size_t k = i + 1; k < names_.size(); ++k) {
        const std::string& cell = cells_[i][k];
        const bool is_same = numa_of(i) == numa_of(k);
        if (!numa_of(i).empty() && !numa_of(k).empty() &&
            ((is_near(cell) && !is_same) || (cell == "SYS" && is_same))) {
          return note + fmt::format(
                            "; {} to {} is {}, but their NUMA affinities are {} and {}: the "
                            "sockets follow the cells",
                            names_[i], names_[k], cell, numa_of(i), numa_of(k));
        }
      }
    }
    return note;
  }

  Parsed<Topology> make() {
    Topology topology;
    topology.name = "nvidia-smi topo -m";
    topology.source = fmt::format(
        "nvidia-smi topo -m; assumed: {:g} GB/s each way of an NVLink, {:g} of PCIe (4.0 x16), "
        "{:g} "
        "between sockets; not included: the network beyond the NICs{}",
        kNvlinkBytesPerUs / 1e3, kSlotBytesPerUs / 1e3, kSocketsBytesPerUs / 1e3, numa_note());
    const int host = add_device(topology, "host", DeviceKind::node);
    add_pcie(topology, host);
    add_nvlinks(topology, host);
    if (topology.ranks.empty()) {
      fail("no GPU");
      return Parsed<Topology>::failure(problem_, "line 1");
    }
    return Parsed<Topology>::success(std::move(topology));
  }

  void add_pcie(Topology& topology, int host) {
    std::map<std::string, int> devices;
    std::vector<int> socket_devices;
    const auto at = [&](const std::string& name, DeviceKind kind) {
      const auto [found, is_new] = devices.try_emplace(name, 0);
      if (is_new) {
        found->second = add_device(topology, name, kind, host);
      }
      return std::pair(found->second, is_new);
    };
    const std::vector<int> bridges =
        groups([](const std::string& cell) { return cell == "PIX" || cell == "PXB"; });
    const std::vector<std::string> socket_names = sockets();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto [socket, is_new_socket] = at(socket_names[i], DeviceKind::socket);
      if (is_new_socket) {
        for (const int other : socket_devices) {
          connect(topology, other, socket, kSocketsUs, kSocketsBytesPerUs);
        }
        socket_devices.push_back(socket);
      }
      int above = socket;
      if (std::count(bridges.begin(), bridges.end(), bridges[i]) > 1) {
        const auto [bridge, is_new] =
            at(fmt::format("pcie{}", bridges[i]), DeviceKind::network_switch);
        if (is_new) {
          connect(topology, bridge, socket, kSlotUs, kSlotBytesPerUs);
        }
        above = bridge;
      }
      const int device =
          add_device(topology, names_[i], is_gpu(i) ? DeviceKind::gpu : DeviceKind::nic, host);
      devices_.push_back(device);
      connect(topology, device, above, kSlotUs, kSlotBytesPerUs);
      if (is_gpu(i)) {
        topology.ranks.push_back(device);
      }
    }
  }

  // If a GPU's row has more links than a GPU, each cell stands for all of its links to a switch.
  void add_nvlinks(Topology& topology, int host) {
    int nvswitch = -1;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      int sum = 0;
      int most = 0;
      for (const std::string& cell : cells_[i]) {
        sum += links_of(cell);
        most = std::max(most, links_of(cell));
      }
      if (sum > kMostLinks) {
        if (nvswitch < 0) {
          nvswitch = add_device(topology, "nvswitch", DeviceKind::network_switch, host);
        }
        connect(topology, devices_[i], nvswitch, kNvlinkUs / 2, most * kNvlinkBytesPerUs);
        continue;
      }
      for (std::size_t k = 0; k < i; ++k) {
        if (const int links = links_of(cells_[i][k]); links > 0) {
          connect(topology, devices_[i], devices_[k], kNvlinkUs, links * kNvlinkBytesPerUs);
        }
      }
    }
  }

  std::string_view text_;
  std::string problem_;
  int line_ = 0;
  bool has_numa_ = false;
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> cells_;
  std::vector<std::vector<std::string>> rest_;  // the affinities after the cells
  std::vector<int> devices_;
};

}  // namespace

std::vector<std::string> words_in(std::string_view line) {
  const std::string plain = without_escapes(line);
  const std::vector<std::string_view> words = words_of(plain);
  return {words.begin(), words.end()};
}

bool is_smi_matrix(std::string_view text) {
  constexpr std::size_t kLooked = 1 << 14;
  for (text = text.substr(0, kLooked); !text.empty();) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string> words = words_in(text.substr(0, end));
    if (!words.empty() && !devices_in(words).empty()) {
      return true;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

Parsed<Topology> read_smi_matrix(std::string_view text) {
  return MatrixReader(text).read();
}

}  // namespace unisono::cli
