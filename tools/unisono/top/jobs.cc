#include "top/jobs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "cli/failure.h"
#include "cli/wrap.h"
#include "transport/shm/segment.h"

namespace unisono::cli {
namespace {

// A mapping of a unisono segment in a process.
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

// "begin-end perms offset dev inode   /memfd:unisono-world (deleted)". Returns false if this user
// may not see the process's memory.
bool add_segments(int pid, std::vector<Mapped>& mapped) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  if (!maps) {
    return false;
  }
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
  return true;
}

// Returns the process id in the process's own view, which differs in a container.
int own_pid(int pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("NSpid:")) {
      return std::atoi(line.c_str() + line.find_last_of(" \t:") + 1);
    }
  }
  return pid;
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

// Finds all segments on this host, and the jobs to which they belong.
class Search {
 public:
  explicit Search(Unrelated* unrelated) {
    const auto now = std::chrono::steady_clock::now();
    if (unrelated != nullptr) {
      std::erase_if(unrelated->processes, [now](const auto& process) {
        return now - process.second >= Unrelated::kLookAgain;
      });
    }
    for (const int pid : all_pids()) {
      if (unrelated != nullptr && unrelated->processes.contains(pid)) {
        hidden_.insert(pid);  // it may have joined a world since then
        continue;
      }
      const std::size_t before = mapped_.size();
      if (!add_segments(pid, mapped_)) {
        hidden_.insert(pid);
      } else if (unrelated != nullptr && mapped_.size() == before) {
        unrelated->processes[pid] = now;
      }
    }
    for (const Mapped& segment : mapped_) {
      mappers_[segment.inode].insert(segment.pid);
      if (segment.is_world) {
        own_pids_.emplace(segment.pid, own_pid(segment.pid));
      }
    }
  }
  std::vector<Job> jobs() {
    for (const Mapped& segment : mapped_) {
      if (segment.is_world && !jobs_.contains(segment.inode)) {
        add_world(segment);
      }
    }
    std::set<std::uint64_t> seen;
    for (const Mapped& segment : mapped_) {
      if (!segment.is_world && !seen.contains(segment.inode) && add_group(segment)) {
        seen.insert(segment.inode);
      }
    }
    std::vector<Job> found;
    for (auto& [inode, job] : jobs_) {
      found.push_back(std::move(job));
    }
    return join_parts(std::move(found));
  }

 private:
  void add_world(const Mapped& segment) {
    auto world = comm::observe_world(reader_of(segment));
    if (!world) {
      return;
    }
    Job job{.segment = segment.inode, .world = std::move(*world)};
    for (const int pid : job.world.pids) {
      job.processes.push_back(pid == 0 ? std::nullopt : process_of(segment.inode, pid));
    }
    jobs_[segment.inode] = std::move(job);
  }
  std::optional<ProcessState> process_of(std::uint64_t segment, int own) const {
    for (const int pid : mappers_.at(segment)) {
      if (own_pids_.at(pid) == own) {
        return state_of(pid);
      }
    }
    // Its memory may belong to another user.
    return hidden_.contains(own) ? state_of(own) : std::nullopt;
  }

  bool add_group(const Mapped& segment) {
    auto group = comm::observe_group(reader_of(segment));
    if (!group) {
      return false;
    }
    for (auto& [inode, job] : jobs_) {
      if (mappers_.at(inode).contains(segment.pid) &&
          comm::world_mark(job.world.job) == group->world) {
        job.groups.push_back(std::move(*group));
        return true;
      }
    }
    return true;
  }

  std::vector<Mapped> mapped_;
  std::set<int> hidden_;                            // processes that this user may not read
  std::map<std::uint64_t, std::set<int>> mappers_;  // by segment
  std::map<int, int> own_pids_;                     // of the processes that have mapped a world
  std::map<std::uint64_t, Job> jobs_;               // by segment
};

// Returns true if both jobs have a common rank.
bool overlap(const Job& a, const Job& b) {
  for (std::size_t rank = 0; rank < a.world.pids.size(); ++rank) {
    if (is_here(a, rank) && is_here(b, rank)) {
      return true;
    }
  }
  return false;
}

bool same_group(const comm::ObservedGroup& a, const comm::ObservedGroup& b) {
  return a.id == b.id && a.size == b.size && a.first == b.first;
}

void add_ranks(comm::ObservedGroup& to, const comm::ObservedGroup& from) {
  to.ranks.insert(to.ranks.end(), from.ranks.begin(), from.ranks.end());
  std::sort(to.ranks.begin(), to.ranks.end(),
            [](const auto& a, const auto& b) { return a.world_rank < b.world_rank; });
}

void join_groups(Job& job) {
  std::vector<comm::ObservedGroup> joined;
  for (comm::ObservedGroup& group : job.groups) {
    const auto same = std::find_if(
        joined.begin(), joined.end(),
        [&group](const comm::ObservedGroup& other) { return same_group(group, other); });
    if (same == joined.end()) {
      joined.push_back(std::move(group));
    } else {
      add_ranks(*same, group);
    }
  }
  job.groups = std::move(joined);
}

void add_part(Job& job, Job part) {
  for (std::size_t rank = 0; rank < job.world.pids.size(); ++rank) {
    if (is_here(part, rank)) {
      job.world.pids[rank] = part.world.pids[rank];
      job.world.left[rank] = part.world.left[rank];
      job.world.labels[rank] = part.world.labels[rank];
      job.processes[rank] = part.processes[rank];
    }
  }
  job.world.abort = job.world.abort.empty() ? part.world.abort : job.world.abort;
  add_ranks(job.world.group, part.world.group);
  std::move(part.groups.begin(), part.groups.end(), std::back_inserter(job.groups));
}

}  // namespace

// If ranks are seen twice, two runs have the same name and cannot be distinguished: their parts are
// not joined.
std::vector<Job> join_parts(std::vector<Job> parts) {
  std::map<std::pair<std::string, std::size_t>, std::vector<Job>> named;
  for (Job& part : parts) {
    named[{part.world.job, part.world.pids.size()}].push_back(std::move(part));
  }
  std::vector<Job> jobs;
  for (auto& [name, same] : named) {
    bool one_job = true;
    for (std::size_t i = 0; i < same.size(); ++i) {
      one_job &= std::none_of(same.begin(), same.begin() + static_cast<std::ptrdiff_t>(i),
                              [&](const Job& other) { return overlap(same[i], other); });
    }
    const std::size_t first = jobs.size();
    for (Job& part : same) {
      if (one_job && jobs.size() > first) {
        add_part(jobs.back(), std::move(part));
      } else {
        jobs.push_back(std::move(part));
      }
    }
  }
  std::for_each(jobs.begin(), jobs.end(), join_groups);
  return jobs;
}

std::vector<Job> find_jobs() {
  return Search(nullptr).jobs();
}

std::vector<Job> matching_jobs(std::string_view word, Unrelated* unrelated) {
  std::vector<Job> jobs = Search(unrelated).jobs();
  if (!word.empty()) {
    std::erase_if(jobs, [word](const Job& job) {
      bool has_pid = false;
      for (std::size_t rank = 0; rank < job.world.pids.size(); ++rank) {
        has_pid |= is_here(job, rank) && std::to_string(pid_of(job, rank)) == word;
      }
      return job.world.job != word && !has_pid;
    });
  }
  return jobs;
}

std::vector<Job> find_jobs(std::string_view word) {
  std::vector<Job> jobs = matching_jobs(word);
  if (jobs.empty() && !word.empty()) {
    throw UsageError(fmt::format("no job here is named '{}' or has that process", word),
                     fmt::format("give the name of a running job, or the number of one of its "
                                 "processes\n{}",
                                 kSeenJobs),
                     "unisono help top");
  }
  return jobs;
}

bool is_here(const Job& job, std::size_t rank) {
  return job.world.pids[rank] != 0;
}

int pid_of(const Job& job, std::size_t rank) {
  return job.processes[rank] ? job.processes[rank]->pid : job.world.pids[rank];
}

std::string size_text(const Job& job) {
  const auto& pids = job.world.pids;
  const auto elsewhere = std::count(pids.begin(), pids.end(), 0);
  const std::string here =
      elsewhere == 0
          ? ""
          : fmt::format(", {} of them here", static_cast<std::ptrdiff_t>(pids.size()) - elsewhere);
  return times(pids.size(), "rank") + here + ", " + times(job.groups.size() + 1, "group");
}

std::string ended_text(std::string_view why, int width) {
  std::string text;
  while (!why.empty()) {
    const std::size_t end = std::min(why.find('\n'), why.size());
    text += labelled(text.empty() ? "ended: " : "       ", why.substr(0, end), width);
    why.remove_prefix(std::min(end + 1, why.size()));
  }
  return text;
}

Text state_text(const std::optional<ProcessState>& process) {
  if (!process) {
    return {"is gone", "已不存在"};
  }
  switch (process->state) {
    case 'R':
      return {"runs", "在运行"};
    case 'S':
    case 'I':
      return {"sleeps", "在休眠"};
    case 'D':
      return {"waits for a device", "在等待设备"};
    case 'T':
      return {"is stopped", "被暂停"};
    case 't':
      return {"is held by a debugger", "被调试器停住"};
    case 'Z':
    case 'X':
      return {"has ended", "已结束"};
    default:
      return {"is in an unknown state", "状态未知"};
  }
}

}  // namespace unisono::cli
