// One rank's end of one group: everything that a Communicator does.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/communicator.hpp"

namespace unisono::comm {

class CallQueue;
class Group;
class Helpers;
class Operations;
class Planner;
class World;
struct PendingTransfer;
struct Prepared;

}  // namespace unisono::comm

namespace unisono::shm {

class Mapping;

}  // namespace unisono::shm

namespace unisono::detail {

class Core final : public std::enable_shared_from_this<Core> {
 public:
  // The world's first group.
  static std::shared_ptr<Core> of_world(std::shared_ptr<comm::World> world);
  // As comm::Group.
  Core(std::shared_ptr<comm::World> world, std::shared_ptr<shm::Mapping> segment,
       std::vector<int> members, int rank, std::uint64_t id);
  ~Core();

  int rank() const noexcept;
  int size() const noexcept;
  int hosts() const;
  int host(int rank) const;
  int world_rank(int rank) const noexcept;  // -1: there is no such rank in the group
  const std::shared_ptr<comm::World>& world() const noexcept;

  void run(const Call& call);
  std::shared_ptr<RequestState> run_async(const Call& call, std::uint64_t salt = 0);
  std::unique_ptr<PlanState> plan(const Call& call);
  Explanation explain(const Call& call);
  Statistics statistics() const;
  void start(const PlanState& plan);
  std::shared_ptr<RequestState> start_async(const PlanState& plan);
  std::shared_ptr<RequestState> transfer_async(const comm::PendingTransfer& transfer,
                                               int timeout_ms = -1);
  // One or more at once; they are used up.
  void transfer(std::span<comm::PendingTransfer> transfers, int timeout_ms);

  void group(const std::function<void()>& body);
  bool grouping() const noexcept { return grouping_; }  // inside group(), which waits for all

  std::shared_ptr<Core> split(int color, int key);
  std::shared_ptr<Core> subgroup(std::span<const int> members, std::uint64_t id);
  void label(std::string_view text);
  void label_group(std::string_view text);  // of the calls on this group alone
  std::string label();
  void abort(std::string_view reason);
  std::optional<Error> failure();
  std::vector<int> late_ranks() const;
  std::shared_ptr<Core> shrink(const ShrinkOptions& options);
  std::shared_ptr<Core> grow(int size, const std::string& address);

 private:
  // Helper threads for its long calls, if the world has them. All ranks at once.
  void take_helpers();
  void run_here(const Call& call, const std::shared_ptr<const comm::Prepared>& counted);
  bool run_in_slices(const Call& call);  // false: it is made whole
  std::shared_ptr<RequestState> post_async(const Call& call, std::uint64_t salt,
                                           const std::shared_ptr<const comm::Prepared>& counted);
  std::shared_ptr<Core> split_off(int color, int key);
  void check_whole(const char* call) const;  // this is no group of a part of the world
  void check_blocking() const;
  [[noreturn]] void refuse_blocking() const;
  void check_transfer(const comm::PendingTransfer& transfer) const;
  std::shared_ptr<RequestState> post(const std::shared_ptr<RequestState>& request);
  std::vector<int> members_of_subgroup(std::span<const int> members, int& rank) const;

  const std::unique_ptr<comm::Group> group_;
  const std::unique_ptr<comm::Operations> operations_;
  const std::unique_ptr<comm::Planner> planner_;
  const std::unique_ptr<comm::CallQueue> queue_;
  std::uint32_t splits_ = 0;
  bool grouping_ = false;  // inside group(): operations are collected
  std::vector<std::shared_ptr<RequestState>> grouped_;
  std::unique_ptr<comm::Helpers> helpers_;  // nullptr: it has none
};

}  // namespace unisono::detail
