#include "run/collect.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <set>
#include <string_view>

#include "base/unique_fd.h"
#include "run/spawn.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{60};
constexpr std::string_view kMark = "unisono-recording ";

std::string script_of(const std::string& folder) {
  const std::string name = shell_quote(folder);
  return "{\n"
         "cd " +
         name +
         " 2>/dev/null || exit 0\n"
         "for file in *.events; do\n"
         "[ -f \"$file\" ] || continue\n"
         "echo \"unisono-recording $(wc -c < \"$file\")\"\n"
         "cat \"$file\"\n"
         "done\n"
         "cd / && rm -rf " +
         name +
         "\n"
         "exit 0\n"
         "}\n";
}

// All that the program prints until it ends, or until the deadline; false.
bool read_all(int fd, Clock::time_point deadline, std::string& printed) {
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got > 0) {
      printed.append(buffer.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return true;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd poll = {.fd = fd, .events = POLLIN, .revents = 0};
    if (left <= 0 || ::poll(&poll, 1, static_cast<int>(left)) == 0) {
      return false;
    }
  }
}

// What the script prints on the host that these words lead to. False: it did not end in time.
bool run_there(const std::vector<std::string>& words, const std::string& script,
               std::string& printed) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::resource, "cannot make a pipe\nulimit -n says how many are allowed");
  }
  const UniqueFd input(ends[0]);
  UniqueFd output(ends[1]);
  if (::write(output.get(), script.data(), script.size()) != static_cast<ssize_t>(script.size())) {
    return false;
  }
  output.reset();
  const Spawned spawned = spawn({.program = words,
                                 .environment = {},
                                 .cpu = std::nullopt,
                                 .own_group = true,
                                 .input = input.get()});
  const bool complete = read_all(spawned.out, Clock::now() + kPatience, printed);
  ::kill(-spawned.pid, SIGKILL);
  ::waitpid(spawned.pid, nullptr, 0);
  ::close(spawned.out);
  ::close(spawned.err);
  return complete;
}

}  // namespace

std::vector<std::vector<std::byte>> files_in(const std::string& printed) {
  std::vector<std::vector<std::byte>> files;
  for (std::size_t at = printed.find(kMark); at != std::string::npos;
       at = printed.find(kMark, at)) {
    at += kMark.size();
    std::size_t bytes = 0;
    const char* const end = printed.data() + printed.size();
    const auto [stop, error] = std::from_chars(printed.data() + at, end, bytes);
    if (error != std::errc() || stop == end || *stop != '\n' ||
        bytes > static_cast<std::size_t>(end - stop - 1)) {
      continue;
    }
    const auto* const begin = reinterpret_cast<const std::byte*>(stop + 1);
    files.emplace_back(begin, begin + bytes);
    at = static_cast<std::size_t>(stop + 1 - printed.data()) + bytes;
  }
  return files;
}

std::vector<std::vector<std::byte>> collect_files(const std::vector<RemoteRank>& ranks,
                                                  const std::string& folder,
                                                  const Console& console) {
  std::vector<std::vector<std::byte>> files;
  std::set<std::vector<std::string>> asked;
  for (const RemoteRank& rank : ranks) {
    if (!asked.insert(rank.program).second) {
      continue;
    }
    std::string printed;
    if (!run_there(rank.program, script_of(folder), printed)) {
      console.note(fmt::format("no recording came within {} s through: {}", kPatience.count(),
                               fmt::join(rank.program, " ")));
    }
    auto more = files_in(printed);
    std::move(more.begin(), more.end(), std::back_inserter(files));
  }
  return files;
}

}  // namespace unisono::cli
