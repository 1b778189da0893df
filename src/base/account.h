// Account of a file that another program wrote: a reader lists what it read, used, left out and
// assumed. cli/account.h prints the account as text and as JSON.
//
// A reader counts what it used, and says with leave_out() and assume() why the rest was not used
// and what the file did not say. It refuses a file that contradicts itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace unisono {

struct Account {
  static constexpr std::size_t kMostReasons = 50;
  static constexpr const char* kOtherReasons = "for other reasons";
  static constexpr const char* kOtherAssumptions = "and other things of these kinds";

  struct LeftOut {
    std::int64_t count = 0;
    std::string why = {};  // follows the count: "of sendrecv_perf, which is no collective"
  };

  std::string source = {};  // the program or the format: "nccl-tests"
  std::string unit = {};    // what is counted, in the singular: "row"
  std::int64_t used = 0;
  std::vector<LeftOut> left_out = {};
  std::vector<std::string> assumed = {};

  // All that was read.
  std::int64_t read() const { return used + left_out_in_all(); }
  std::int64_t left_out_in_all() const {
    std::int64_t all = 0;
    for (const LeftOut& one : left_out) {
      all += one.count;
    }
    return all;
  }
  // Adds to the count of the same reason. Does nothing for a count of 0. A file may make up any
  // number of reasons: those beyond kMostReasons count together.
  void leave_out(std::int64_t count, const std::string& why) {
    const auto same = std::ranges::find(left_out, why, &LeftOut::why);
    if (same != left_out.end()) {
      same->count += count;
    } else if (count > 0 && left_out.size() >= kMostReasons && why != kOtherReasons) {
      leave_out(count, kOtherReasons);
    } else if (count > 0) {
      left_out.push_back({.count = count, .why = why});
    }
  }
  void assume(std::string what) {
    if (std::ranges::find(assumed, what) != assumed.end()) {
      return;
    }
    if (assumed.size() < kMostReasons || what == kOtherAssumptions) {
      assumed.push_back(std::move(what));
    } else {
      assume(kOtherAssumptions);
    }
  }
  // Adds what another reader of the same kind counted.
  void add(const Account& other) {
    source = source.empty() ? other.source : source;
    unit = unit.empty() ? other.unit : unit;
    used += other.used;
    for (const LeftOut& one : other.left_out) {
      leave_out(one.count, one.why);
    }
    for (const std::string& what : other.assumed) {
      assume(what);
    }
  }
};

}  // namespace unisono
