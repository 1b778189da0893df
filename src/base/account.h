// Records how a reader interpreted a file that another program wrote. cli/account.h prints the
// record as text and as JSON.
//
// A reader counts the entries that it used. leave_out() records why entries were skipped, and
// assume() records what the file did not specify. A reader rejects a file that contradicts itself.
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

  std::string source = {};  // the program or format: "nccl-tests"
  std::string unit = {};    // name of a counted entry, in the singular: "row"
  std::int64_t used = 0;
  std::vector<LeftOut> left_out = {};
  std::vector<std::string> assumed = {};

  // Number of entries read.
  std::int64_t read() const { return used + left_out_in_all(); }
  std::int64_t left_out_in_all() const {
    std::int64_t all = 0;
    for (const LeftOut& one : left_out) {
      all += one.count;
    }
    return all;
  }
  // Adds `count` to the total for this reason. Does nothing for a count of 0. Because a file can
  // cause any number of reasons, those beyond kMostReasons share one total.
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
  // Adds the account of another reader for the same kind of file.
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
