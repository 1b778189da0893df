// Splits a log into lines, without the text that launchers write before each line.
//
//   [1,0]<stdout>:# nThread 1 ...                mpirun --tag-output
//   0: # nThread 1 ...                           srun -l
//   [default0]:# nThread 1 ...                   torchrun
//   2026-01-26T10:00:00.123Z # nThread 1 ...     kubectl logs --timestamps
//   <stdout rank="0"># nThread ...&#010;</stdout>  mpirun --xml
//   {"log":"# nThread 1 ...\n","stream":"stdout"}  Docker
//
// The code knows no launcher by name. It finds the heading that a benchmark prints, and the text
// before this heading. Other lines lose a prefix that equals this text except for the numbers in
// it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace unisono::network_model {

struct LogLine {
  std::string_view text = {};
  std::size_t number = 0;   // from 1
  std::string source = {};  // text before the line without times; identifies the rank that wrote it
};

// Calls `take` for each line until it returns false. `heading_at`: the position of a heading in a
// line; npos: the line is not a heading.
void for_each_log_line(std::string_view text,
                       const std::function<std::size_t(std::string_view)>& heading_at,
                       const std::function<bool(const LogLine&)>& take);

}  // namespace unisono::network_model
