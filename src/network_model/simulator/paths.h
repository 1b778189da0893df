// The path of a message: latency, links, and its bandwidth when it is alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "topology/routes.h"
#include "topology/topology.h"

namespace unisono::cost {

struct Parameters;

}  // namespace unisono::cost

namespace unisono::network_model {

// Links with less bandwidth or more latency than specified.
struct LinkFault {
  // "a->b" is one direction. The name of a device means all its links, and all links of the devices
  // inside it.
  std::string name = {};
  double bandwidth_factor = 1;  // above 0, at most 1
  double added_latency_us = 0;
};

struct Path {
  double overhead_us = 0;   // at the sender
  double latency_us = 0;    // sum over the links; for spread routes, of the mean byte
  double bytes_per_us = 0;  // of the narrowest link
  std::uint32_t first = 0;  // its first link in PathList::links; only the first link of each row is
                            // listed
  std::uint32_t count = 0;
};

// Paths by their numbers.
struct PathList {
  std::vector<Path> paths = {};
  std::vector<int> all_links = {};
  std::vector<double> all_shares = {};  // by index in `all_links`, for spread routes

  const Path& path(int index) const { return paths[static_cast<std::size_t>(index)]; }
  std::span<const int> links(const Path& path) const {
    return std::span(all_links).subspan(path.first, path.count);
  }
  // Returns the share of the bytes on each of these links; empty: all bytes on every link.
  std::span<const double> shares(const Path& path) const {
    return all_shares.empty() ? std::span<const double>()
                              : std::span(all_shares).subspan(path.first, path.count);
  }
};

class PathTable {
 public:
  // Gives every pair of ranks its own link with the figures of `parameters`.
  explicit PathTable(const cost::Parameters& parameters);
  // Keeps a reference. Errors: Error(usage) for a fault that names no link. REQUIRES: all links
  // have a bandwidth.
  PathTable(const Topology& topology, std::span<const LinkFault> faults,
            RouteChoice routes = RouteChoice::fixed);

  // Returns the index of the path, which is always the same for the same pair. Errors: Error(usage)
  // if there is no route.
  int find(int from_rank, int to_rank);
  // Forgets all paths. From then on each find() makes a new path, for the messages of one block, no
  // two of which have the same pair.
  void restart();

  const PathList& list() const { return list_; }
  const Path& path(int index) const { return list_.path(index); }
  std::span<const int> links(const Path& path) const { return list_.links(path); }
  std::span<const double> shares(const Path& path) const { return list_.shares(path); }
  // The protocols of operations; empty without a topology.
  std::span<const Protocol> protocols() const {
    return topology_ == nullptr ? std::span<const Protocol>{} : topology_->protocols;
  }

  // The bandwidths of the topology's links, with faults; empty without a topology. The first link
  // of a row (link_rows.h) has the bandwidth of the row's narrowest link, and the others are on no
  // path.
  const std::vector<double>& bytes_per_us() const { return row_bytes_per_us_; }
  // Returns the bandwidth of a link by itself.
  double own_bytes_per_us(std::size_t link) const;

 private:
  void apply(const LinkFault& fault);
  void add(int from_rank, int to_rank);

  const Topology* topology_ = nullptr;
  std::vector<double> latency_us_;          // by link
  std::map<std::size_t, double> narrowed_;  // by link with a fault: remaining part of its bandwidth
  std::vector<double> row_bytes_per_us_;    // by link; 0: not the first of its row
  PathList list_;
  std::unordered_map<std::uint64_t, int> index_;  // by pair of ranks
  bool knows_pairs_ = true;
  std::vector<Router> router_;  // one if there is a topology, else none
};

}  // namespace unisono::network_model
