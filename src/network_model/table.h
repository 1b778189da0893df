// Tables of measured times, as comma separated values.
//
//   machine,collective,dtype,ranks,bytes,time_us,source
//   dgx-a100,all_reduce,float32,2,1048576,44.2,"a paper, its table 3"
//
// The first line names the columns, in any order. Needed: collective, ranks, bytes and time_us.
// `machine` groups the rows ("" without it), `algorithm` names one of the catalogue (the library's
// own choice without it); rows with a `wait` policy (base/wait_policy.h) were measured with another
// way of waiting than the usual one, and `oversubscribed` is 1 where there were more ranks than
// CPUs; rows with `threads` with so many threads of each rank, to be compared with each other. All
// other columns are for people, and the account names them. A field in double quotes may hold
// commas, and two double quotes for one. Empty lines and lines that begin with # are left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/account.h"
#include "base/parsed.h"
#include "cost/machine.h"

namespace unisono::network_model {

struct Table {
  struct Row {
    std::string machine;
    cost::Point point;
    std::string wait = {};        // "": as nobody has said
    bool oversubscribed = false;  // more ranks than CPUs
    int threads = 0;              // 0: as nobody has said
  };
  std::vector<Row> rows;
  Account account = {};  // all rows are used

  // Each once, in the order of their first rows.
  std::vector<std::string> machines() const;
  // Except the rows that give `wait` or `threads`.
  std::vector<cost::Point> points(std::string_view machine) const;
};

// The position of a failure is "line 17".
Parsed<Table> parse_table(std::string_view text);

}  // namespace unisono::network_model
