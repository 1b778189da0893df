// The messages that the ranks of a new group exchange through c10d's store.
#pragma once

#include <c10/util/Exception.h>

#include <chrono>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

namespace unisono_torch {

// The purpose of a rendezvous, for timeout messages: "ranks 1, 3 did not come to WHAT within".
struct Purpose {
  std::string what = "this process group";
  std::string question =
      "check that every rank makes it, with the same world size and the same store";
};

// Exchanges one text per rank on a subject, and returns all texts, by rank. If a rank refuses, or
// ranks do not come in time, throws DistBackendError at once on all ranks. Calls `look` while ranks
// are missing; it may throw to stop the wait.
std::vector<std::string> tell_all(c10d::Store& store, const std::string& subject, int rank,
                                  int size, const std::string& mine,
                                  std::chrono::milliseconds timeout,
                                  const std::function<void()>& look, const Purpose& purpose = {});

// The error on the other ranks when a rank gives up.
class RefusedByAnother : public c10::DistBackendError {
  using DistBackendError::DistBackendError;
};

// Tells the others that this rank cannot take part, and why, whether they wait for it already or
// come later. Not, if the store is gone.
void tell_refusal(c10d::Store& store, int rank, const std::string& why);

// The same where the group cannot be made, but not through a fault of this rank.
void tell_finding(c10d::Store& store, int rank, const std::string& finding);

// Throws RefusedByAnother if a rank other than this one has given up, in its words.
void throw_if_refused(c10d::Store& store, int rank);

// Checks whether a rank has refused, for other kinds of waits. Asks the store rarely; an answer
// that never comes is no refusal.
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
