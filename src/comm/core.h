// One rank's part of a group; implements Communicator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

struct PostedCollective;

class Core final : public std::enable_shared_from_this<Core> {
 public:
  // The arguments are those of comm::Group.
  Core(std::shared_ptr<comm::World> world, std::shared_ptr<shm::Mapping> segment,
       std::vector<int> members, int rank, std::uint64_t id);
  ~Core();

  // Sets one function per helper thread of the world, which makes that thread's slice of a long
  // call. REQUIRES: there is at least one function, and the user has not made a call yet.
  void take_helpers(std::vector<std::function<void(const Call& slice)>> helpers);

  // Keeps `claim` alive as long as this object.
  void keep(std::shared_ptr<const void> claim) { claim_ = std::move(claim); }

  int rank() const noexcept;
  int size() const noexcept;
  comm::Group& group() const noexcept { return *group_; }
  const std::shared_ptr<comm::World>& world() const noexcept;

  void run(const Call& call);
  std::shared_ptr<RequestState> run_async(const Call& call, std::uint64_t salt = 0);
  std::unique_ptr<PlanState> plan(const Call& call);
  Explanation explain(const Call& call);
  Statistics statistics() const;
  void start(const PlanState& plan);
  std::shared_ptr<RequestState> start_async(const PlanState& plan);
  std::shared_ptr<RequestState> transfer_async(comm::PendingTransfer transfer, int timeout_ms = -1);
  // Runs one or more transfers at the same time, and consumes them.
  void transfer(std::span<comm::PendingTransfer> transfers, int timeout_ms);

  // Implements Communicator::group().
  void run_together(const std::function<void()>& body);
  bool is_together() const noexcept { return together_; }  // inside group()

  void abort(std::string_view reason);
  std::optional<Error> failure();
  std::vector<int> late_ranks() const;

 private:
  void run_here(const Call& call, const std::shared_ptr<const comm::Prepared>* counted);
  bool run_in_slices(const Call& call);  // false: run the call whole
  std::shared_ptr<RequestState> post_async(const Call& call, std::uint64_t salt,
                                           const std::shared_ptr<const comm::Prepared>& counted);
  void check_blocking() const;
  [[noreturn]] void refuse_blocking() const;
  void check_transfer(const comm::PendingTransfer& transfer) const;
  [[noreturn]] void refuse_transfer(const comm::PendingTransfer& transfer, bool has_peer) const;
  std::shared_ptr<RequestState> new_request();
  std::shared_ptr<RequestState> post(std::shared_ptr<RequestState> request);
  std::shared_ptr<RequestState> post(PostedCollective posted);

  const std::unique_ptr<comm::Group> group_;
  const std::unique_ptr<comm::Operations> operations_;
  const std::unique_ptr<comm::Planner> planner_;
  const std::unique_ptr<comm::CallQueue> queue_;
  bool together_ = false;  // operations are being collected
  std::vector<std::shared_ptr<RequestState>> collected_;
  std::shared_ptr<const void> claim_;
  std::unique_ptr<comm::Helpers> helpers_;  // nullptr: no helpers
};

}  // namespace unisono::detail
