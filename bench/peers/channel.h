// Line protocol between the report driver and a benchmark program. Rows arrive on one pipe, and one
// line of JSON per row leaves on another. Both are FIFOs in the job's directory, because each
// library's launcher handles standard input differently.
//
// A row consists of words and `key=value` options, separated by blanks:
//   all_reduce bytes=4096 dtype=f32 memory=ordinary fresh=1 budget_ms=60
#pragma once

#include <map>
#include <optional>
#include <string>

namespace unisono::bench {

struct Request {
  std::string name;
  std::map<std::string, std::string> options;

  std::string text(const std::string& key, const std::string& fallback) const;
  long number(const std::string& key, long fallback) const;
};

Request parse_request(const std::string& line);

class Channel {
 public:
  explicit Channel(const std::string& directory);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  std::optional<std::string> read_line();  // empty if the driver has ended
  void write_line(const std::string& json);

 private:
  int in_ = -1;
  int out_ = -1;
  std::string pending_;
};

}  // namespace unisono::bench
