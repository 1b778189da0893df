// A topology: devices, the links between them, and the devices that ranks sit on.
//
// A link goes one way. What people call a link is mostly a pair of them, one each way, with its own
// bandwidth each; `reverse` says which link is the other of the pair. Latency is in microseconds,
// bandwidth in bytes per microsecond (1 GB/s = 1000), always of the one direction.
//
// Devices may be inside others (a GPU in a node); this is for people and for faults that hit a
// whole node, and has no part in routing. A route passes through no device that has a rank
// (routes.h).
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

std::string_view to_string(DeviceKind kind);  // "switch" for network_switch
std::optional<DeviceKind> parse_device_kind(std::string_view text);

struct Device {
  std::string name;
  DeviceKind kind = DeviceKind::node;
  int inside = -1;  // the device that has it, -1: none
  // The part of its links' bandwidth that a switch reaches when it sums what they bring and copies
  // the sum to all of them. 0: it only passes data on.
  double reduces = 0;
};

struct Link {
  int from = 0;
  int to = 0;
  double latency_us = 0;
  double bytes_per_us = 0;
  int reverse = -1;  // the link of the opposite direction that it makes a pair with
};

// One of the ways in which a library moves data: GPU libraries have one that starts soon and uses
// little of the links, and one that starts late and fills them. An operation takes the one that is
// the fastest for it.
struct Protocol {
  std::string name;
  double start_us = 0;    // of an operation: kernels are launched, ranks find each other
  double message_us = 0;  // what each message costs more than overhead and links
  double share = 1;       // of the bandwidth of the links that it uses
};

struct Topology {
  std::string name;
  std::string source;                    // where the figures come from
  double overhead_us = 0;                // what a message costs before it enters the first link
  std::vector<Protocol> protocols = {};  // none: operations start at once, messages fill the links
  std::vector<Device> devices;
  std::vector<Link> links;
  std::vector<int> ranks;  // the device of each rank

  int rank_count() const { return static_cast<int>(ranks.size()); }
};

// Adds a pair of links, each with the given figures.
void connect(Topology& topology, int a, int b, double latency_us, double bytes_per_us);
int add_device(Topology& topology, std::string name, DeviceKind kind, int inside = -1);

// The links that leave each device, in the order of the links.
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

// The first thing that is wrong: figures, ends of links, containment, ranks without a way to each
// other. The position is a JSON pointer of the explicit form (json.h), empty for the whole.
std::optional<JsonProblem> check(const Topology& topology);

}  // namespace unisono
