// The ranks of a job on several hosts: their places, and their start. A program such as ssh gets a
// shell script on its standard input. So neither the token nor anything else appears in a list of
// processes, and no word is parsed by two shells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace unisono::cli {

struct HostRanks {
  std::string host;  // "node1", "me@node1", "fd00::1": as the launcher expects it
  int ranks = 1;
};

// Returns how programs connect to the host: "node1", "[fd00::1]".
std::string address_of(const HostRanks& host);

// "a:4,b:4", "a,b", "[fd00::1]:4"; "@FILE" for a file with one of these per line (also "a 4" and "a
// slots=4"; # begins a comment). Throws UsageError.
std::vector<HostRanks> parse_hosts(const std::string& text);

struct RemoteRank {
  std::string host;                  // in the form of address_of()
  std::vector<std::string> program;  // on this host: the launcher's words
  std::string script;                // its standard input, which stays open afterwards
};

// Returns the mark that a rank's shell writes to stderr before each line of the rank's job log when
// the rank has ended: the launcher reads these lines and does not show them.
std::string log_mark(const std::string& job);

// `launcher`: the words that start a program on {host}; "" for `srun` inside of a Slurm job, else
// `ssh`. `environment`: for all ranks. Ranks are numbered host by host.
std::vector<RemoteRank> place_ranks(const std::vector<HostRanks>& hosts,
                                    const std::string& launcher,
                                    const std::vector<std::string>& program,
                                    const std::vector<std::string>& environment);

// Quotes a word for a shell.
std::string shell_quote(std::string_view word);

}  // namespace unisono::cli
