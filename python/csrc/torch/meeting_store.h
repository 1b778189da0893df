// What the ranks of a group that is being made say to each other through c10d's store.
#pragma once

#include <c10/util/Exception.h>

#include <chrono>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

namespace unisono_torch {

// What the ranks meet for, in the message of a time limit: "ranks 1, 3 did not come to WHAT
// within".
struct Purpose {
  std::string what = "this process group";
  std::string question =
      "check that every rank makes it, with the same world size and the same store";
};

// What all ranks say on one subject, by rank. A rank that refuses ends this for the others at once,
// as DistBackendError; so do ranks that do not come in time. `look` is called while some are
// missing, and may throw what ends it sooner.
std::vector<std::string> tell_all(c10d::Store& store, const std::string& subject, int rank,
                                  int size, const std::string& mine,
                                  std::chrono::milliseconds timeout,
                                  const std::function<void()>& look, const Purpose& purpose = {});

// What a rank hears of another one that gives up.
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

// Whether one has, for waits of another kind; asks the store seldom, and takes no answer for no.
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
