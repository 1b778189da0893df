// Fetches the recordings of ranks on other hosts, through the same program that started the ranks,
// and removes them there.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cli/console.h"
#include "run/hosts.h"

namespace unisono::cli {

// A shell on each host that creates a new folder, which no other user can enter. The shell removes
// the folder after printing its files, or when this process ends in any way, even by SIGKILL.
class RemoteFolders {
 public:
  // Waits until each host has its folder, for at most a minute. Names hosts without a folder on
  // stderr. Throws UsageError if the program that connects to a host cannot be started.
  RemoteFolders(const std::vector<RemoteRank>& ranks, const Console& console);
  ~RemoteFolders();
  RemoteFolders(const RemoteFolders&) = delete;
  RemoteFolders& operator=(const RemoteFolders&) = delete;
  // Returns the children of this process that must outlive the job.
  std::vector<pid_t> pids() const;
  // Returns the folder on the host of a rank; empty: there is none.
  std::string folder_of(const RemoteRank& rank) const;
  // Returns the files in the folder on each host. Names hosts on stderr that do not answer
  // completely within a minute.
  std::vector<std::vector<std::byte>> collect(const Console& console);

 private:
  using Clock = std::chrono::steady_clock;
  struct RemoteShell {
    std::vector<std::string> words = {};
    std::string folder = {};
    pid_t pid = -1;
    UniqueFd input = {};
    UniqueFd out = {};
    UniqueFd err = {};
  };
  // Starts a shell that creates a folder, or that prints the files of `folder` if it is given.
  static RemoteShell start(const std::vector<std::string>& words, const std::string& folder);
  static void await_folder(RemoteShell& shell, Clock::time_point deadline, const Console& console);
  struct Answer {
    std::vector<std::vector<std::byte>> files = {};
    bool whole = false;  // the answer was complete
    bool ended = false;  // the program that connects to the host ended in time
    std::string last_error_line = {};
  };
  static Answer ask(RemoteShell& shell, Clock::time_point deadline);
  static Answer ask_again(const RemoteShell& shell, Clock::time_point deadline);
  static std::vector<std::vector<std::byte>> collect_from(RemoteShell& shell,
                                                          const Console& console);
  static void end(RemoteShell& shell);

  std::vector<RemoteShell> shells_;
};

// Returns the files in the other side's output, which may begin with other text.
std::vector<std::vector<std::byte>> files_in(const std::string& printed);

}  // namespace unisono::cli
