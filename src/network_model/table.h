// Tables of measured times, as comma separated values.
//
//   machine,collective,dtype,ranks,bytes,time_us,source
//   dgx-a100,all_reduce,float32,2,1048576,44.2,"a paper, its table 3"
//
// The first line names the columns, in any order. Required: collective, ranks, bytes and time_us.
// Optional:
//   machine         groups the rows; "" if missing
//   algorithm       an algorithm of the catalogue; if missing, the library chose its algorithm
//   wait            a waiting policy (base/wait_policy.h) other than the usual one
//   oversubscribed  1 if there were more ranks than CPUs
//   threads         number of threads per rank; such rows are compared with each other
// All other columns are for readers only, and the account lists them. A field in double quotes may
// contain commas; inside such a field, "" is one double quote. Empty lines and lines that begin
// with # are ignored.
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
    std::string wait = {};        // "": default policy
    bool oversubscribed = false;  // more ranks than CPUs
    int threads = 0;              // 0: default number
  };
  std::vector<Row> rows;
  Account account = {};  // all rows are used

  // Returns each machine once, in the order of its first row.
  std::vector<std::string> machines() const;
  // Returns the machine's points, except rows with `wait` or `threads`.
  std::vector<cost::Point> points(std::string_view machine) const;
};

// The position of a failure is "line 17".
Parsed<Table> parse_table(std::string_view text);

}  // namespace unisono::network_model
