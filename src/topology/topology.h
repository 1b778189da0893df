// A topology: devices, the links between them, and the devices of the ranks.
//
// A link has one direction. A physical link is usually a pair of links, one in each direction, each
// with its own bandwidth; `reverse` is the other link of the pair. Latency is in microseconds,
// bandwidth in bytes per microsecond (1 GB/s = 1000), always for one direction.
//
// Devices may be inside others (a GPU in a node). Containment is for display and for faults of a
// whole node, and does not affect routing. A route passes through no device with a rank (routes.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unisono {

struct JsonProblem;

inline constexpr int kMostTopologyRanks = 1 << 20;

enum class DeviceKind : std::uint8_t { node, socket, core, gpu, nic, network_switch, group };

std::string_view to_string(DeviceKind kind);  // "switch" for DeviceKind::network_switch
std::optional<DeviceKind> parse_device_kind(std::string_view text);

struct Device {
  std::string name;
  DeviceKind kind = DeviceKind::node;
  int inside = -1;  // the device that contains it; -1: none
  // The share of its links' bandwidth that a switch reaches when it sums their data and copies the
  // sum to all of them. 0: it only forwards data.
  double reduces = 0;
};

struct Link {
  int from = 0;
  int to = 0;
  double latency_us = 0;
  double bytes_per_us = 0;
  int reverse = -1;  // the link of the opposite direction in the pair
};

// One of the protocols by which a library moves data. GPU libraries have one that starts early and
// uses little of the links' bandwidth, and one that starts late and fills the links. An operation
// uses the fastest one.
struct Protocol {
  std::string name;
  double start_us = 0;    // per operation: launching kernels, synchronising ranks
  double message_us = 0;  // per message, besides overhead and links
  double share = 1;       // share of the links' bandwidth
};

struct Topology {
  std::string name;
  std::string source;                    // source of the figures
  double overhead_us = 0;                // cost of a message before it enters the first link
  std::vector<Protocol> protocols = {};  // none: operations start at once, and messages fill the
                                         // links
  std::vector<Device> devices;
  std::vector<Link> links;
  std::vector<int> ranks;  // by rank: its device

  int rank_count() const { return static_cast<int>(ranks.size()); }
};

// Adds a pair of links, each with the given figures.
void connect(Topology& topology, int a, int b, double latency_us, double bytes_per_us);
int add_device(Topology& topology, std::string name, DeviceKind kind, int inside = -1);

// The links that leave each device, in order.
class LinksOut {
 public:
  explicit LinksOut(const Topology& topology, bool reversed = false);
  std::span<const int> of(int device) const {
    const auto at = static_cast<std::size_t>(device);
    const auto first = static_cast<std::size_t>(first_[at]);
    return std::span(links_).subspan(first, static_cast<std::size_t>(first_[at + 1]) - first);
  }

 private:
  std::vector<int> first_;
  std::vector<int> links_;
};

// Returns the first error: figures, ends of links, containment, ranks without a route to each
// other. The position is a JSON pointer into the explicit form (json.h), or empty for the whole
// document.
std::optional<JsonProblem> check(const Topology& topology);

}  // namespace unisono
