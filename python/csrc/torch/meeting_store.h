// Messages that the ranks of a new group exchange through c10d's store.
#pragma once

#include <c10/util/Exception.h>

#include <chrono>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

namespace unisono_torch {

// Purpose of a rendezvous, for timeout messages: "ranks 1, 3 did not come to WHAT within".
struct Purpose {
  std::string what = "this process group";
  std::string question =
      "check that every rank makes it, with the same world size and the same store";
};

// Exchanges one text per rank about a subject. Returns all texts, by rank. If a rank refuses, or
// ranks do not come in time, throws DistBackendError on all ranks at once. Calls `look` while ranks
// are missing; it may throw to end the wait.
std::vector<std::string> tell_all(c10d::Store& store, const std::string& subject, int rank,
                                  int size, const std::string& mine,
                                  std::chrono::milliseconds timeout,
                                  const std::function<void()>& look, const Purpose& purpose = {});

// Error on the other ranks if a rank gives up.
class RefusedByAnother : public c10::DistBackendError {
  using DistBackendError::DistBackendError;
};

// Notifies the other ranks, whether they already wait or come later, that this rank cannot take
// part, and why. Does nothing if the store has ended.
void tell_refusal(c10d::Store& store, int rank, const std::string& why);

// Does the same if the group cannot be created for a reason outside this rank.
void tell_finding(c10d::Store& store, int rank, const std::string& finding);

// Throws RefusedByAnother with the other rank's text if another rank has given up.
void throw_if_refused(c10d::Store& store, int rank);

// Checks for refusals during other kinds of waits. Queries the store rarely; a missing answer does
// not count as a refusal.
class RefusalWatch {
 public:
  RefusalWatch(c10::intrusive_ptr<c10d::Store> store, int rank)
      : store_(std::move(store)), rank_(rank) {}
  bool has_refused();

 private:
  c10::intrusive_ptr<c10d::Store> store_;
  int rank_ = 0;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now();
};

}  // namespace unisono_torch
