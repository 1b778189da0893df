// Maps the ranks of a world to hosts. Ranks on one host share memory, and also have local numbers
// in the order of their ranks.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace unisono::comm {

class Hosts {
 public:
  // Makes a map in which all ranks are on one host.
  Hosts(int rank, int size)
      : Hosts(rank, std::vector<std::string>(static_cast<std::size_t>(size))) {}
  // `names` has one entry per rank; ranks with the same name are on one host.
  Hosts(int rank, const std::vector<std::string>& names);

  int size() const noexcept { return static_cast<int>(host_.size()); }
  int count() const noexcept { return count_; }
  bool single() const noexcept { return count_ == 1; }
  // Hosts are numbered in the order of their lowest ranks.
  int host(int rank) const noexcept { return host_[at(rank)]; }
  bool is_here(int rank) const noexcept { return host_[at(rank)] == here_; }
  // Returns a rank's number among the ranks on its host.
  int local(int rank) const noexcept { return local_[at(rank)]; }
  // The ranks on this host, by local number.
  const std::vector<int>& here() const noexcept { return ranks_here_; }
  // Returns the local numbers of all members of `ranks` that are on this host.
  std::vector<int> local_of(std::span<const int> ranks) const;

 private:
  static std::size_t at(int rank) noexcept { return static_cast<std::size_t>(rank); }

  std::vector<int> host_;
  std::vector<int> local_;
  std::vector<int> ranks_here_;
  int here_ = 0;
  int count_ = 0;
};

}  // namespace unisono::comm
