// The ranks of a job on several hosts: which rank is where, and how each is started there: by a
// program such as ssh, which is given a shell script on its standard input. So neither the token
// nor anything else shows in a list of processes, and no word passes through a shell twice.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unisono::cli {

struct HostRanks {
  std::string host;  // "node1", "me@node1", "fd00::1": as its launcher takes it
  int ranks = 1;
};

// Returns how programs connect to the host: "node1", "[fd00::1]".
std::string address_of(const HostRanks& host);

// "a:4,b:4", "a,b", "[fd00::1]:4"; "@FILE" for a file with one of these a line ("a 4", "a slots=4"
// too, # begins a comment). Throws UsageError.
std::vector<HostRanks> parse_hosts(const std::string& text);

struct RemoteRank {
  std::string host;                  // as address_of() it
  std::vector<std::string> program;  // here: the launcher's words
  std::string script;                // its standard input, which then stays open
};

// Returns the mark that a rank's shell writes to stderr before each line of the rank's job log when
// the rank has ended: the launcher takes such lines and does not show them.
std::string log_mark(const std::string& job);

// `launcher`: the words that start a program on {host}; "" for `srun` inside of a Slurm job, else
// `ssh`. `environment`: of all ranks. Ranks are numbered host by host.
std::vector<RemoteRank> place_ranks(const std::vector<HostRanks>& hosts,
                                    const std::string& launcher,
                                    const std::vector<std::string>& program,
                                    const std::vector<std::string>& environment);

// In quotes for a shell.
std::string shell_quote(std::string_view word);

}  // namespace unisono::cli
