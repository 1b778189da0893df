#include "top/jobs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "cli/failure.h"
#include "transport/shm/segment.h"

namespace unisono::cli {
namespace {

// A segment of ours in a process.
struct Mapped {
  int pid = 0;
  std::uint64_t begin = 0;
  std::uint64_t inode = 0;
  bool is_world = false;
};

std::vector<int> all_pids() {
  std::vector<int> pids;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    int pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size()) {
      pids.push_back(pid);
    }
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

// "begin-end perms offset dev inode   /memfd:unisono-world (deleted)"
void add_segments(int pid, std::vector<Mapped>& mapped) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    const bool is_world = line.find("/memfd:unisono-world") != std::string::npos;
    if (!is_world && line.find("/memfd:unisono-group") == std::string::npos) {
      continue;
    }
    std::istringstream fields(line);
    std::string range;
    std::string permissions;
    std::string offset;
    std::string device;
    Mapped segment{.pid = pid, .is_world = is_world};
    fields >> range >> permissions >> offset >> device >> segment.inode;
    const auto first =
        std::from_chars(range.data(), range.data() + range.size(), segment.begin, 16);
    if (fields && first.ec == std::errc() && offset.find_first_not_of('0') == std::string::npos) {
      mapped.push_back(segment);
    }
  }
}

std::optional<ProcessState> state_of(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text) || text.rfind(')') == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream fields(text.substr(text.rfind(')') + 1));  // the name may have spaces
  ProcessState process{.pid = pid};
  std::string skipped;
  fields >> process.state;
  for (int i = 0; i < 10; ++i) {
    fields >> skipped;
  }
  double user = 0;
  double system = 0;
  fields >> user >> system;
  process.cpu_s = (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return fields ? std::optional(process) : std::nullopt;
}

comm::ReadSegment reader_of(const Mapped& segment) {
  return [segment](std::size_t offset, std::span<std::byte> to) {
    return shm::read_process(segment.pid, segment.begin + offset, to.data(), to.size()) ==
           to.size();
  };
}

}  // namespace

std::vector<Job> find_jobs() {
  std::vector<Mapped> mapped;
  for (const int pid : all_pids()) {
    add_segments(pid, mapped);
  }
  std::map<std::uint64_t, Job> jobs;
  std::map<int, std::uint64_t> job_of;  // a process's first one
  std::map<std::uint64_t, std::vector<int>> pids;
  for (const Mapped& segment : mapped) {
    if (!segment.is_world) {
      continue;
    }
    job_of.emplace(segment.pid, segment.inode);
    pids[segment.inode].push_back(segment.pid);
    if (!jobs.contains(segment.inode)) {
      if (auto world = comm::observe_world(reader_of(segment))) {
        jobs[segment.inode] = {.segment = segment.inode, .world = std::move(*world)};
      }
    }
  }
  std::vector<std::uint64_t> seen;
  for (const Mapped& segment : mapped) {
    const auto owner = job_of.find(segment.pid);
    if (segment.is_world || owner == job_of.end() || !jobs.contains(owner->second) ||
        std::find(seen.begin(), seen.end(), segment.inode) != seen.end()) {
      continue;
    }
    if (auto group = comm::observe_group(reader_of(segment))) {
      seen.push_back(segment.inode);
      jobs[owner->second].groups.push_back(std::move(*group));
    }
  }
  std::vector<Job> found;
  for (auto& [inode, job] : jobs) {
    for (const int pid : job.world.pids) {
      const auto& known = pids[inode];
      const bool here = std::find(known.begin(), known.end(), pid) != known.end();
      job.processes.push_back(here ? state_of(pid) : std::nullopt);
    }
    found.push_back(std::move(job));
  }
  return found;
}

std::vector<Job> find_jobs(std::string_view word) {
  std::vector<Job> jobs = find_jobs();
  if (!word.empty()) {
    std::erase_if(jobs, [word](const Job& job) {
      const bool has_pid = std::any_of(job.world.pids.begin(), job.world.pids.end(),
                                       [word](int pid) { return std::to_string(pid) == word; });
      return job.world.job != word && !has_pid;
    });
  }
  if (jobs.empty()) {
    throw UsageError(
        word.empty() ? "no job of unisono runs here"
                     : fmt::format("no job here is named '{}' or has that process", word),
        "only jobs of this host whose processes this user may read are seen", "unisono help top");
  }
  return jobs;
}

std::string state_text(const std::optional<ProcessState>& process) {
  if (!process) {
    return "is gone";
  }
  switch (process->state) {
    case 'R':
      return "runs";
    case 'S':
    case 'I':
      return "sleeps";
    case 'D':
      return "waits for a device";
    case 'T':
      return "is stopped";
    case 't':
      return "is held by a debugger";
    case 'Z':
    case 'X':
      return "has ended";
    default:
      return "is in an unknown state";
  }
}

}  // namespace unisono::cli
