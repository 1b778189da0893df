#include "run/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>

#include "cli/failure.h"
#include "cli/output_file.h"
#include "record/files.h"
#include "record/merge.h"
#include "trace/recorder.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

JobEnd job_end(const JobResult& result, const LaunchOptions& options) {
  JobEnd end{.ranks = options.ranks};
  for (std::size_t rank = 0; rank < result.ends.size(); ++rank) {
    const ProcessEnd& its = result.ends[rank];
    end.ends.push_back(its.by_launcher ? say("stopped by the launcher", "被启动器停止")
                                       : end_text(its));
    end.processes.ns.push_back(its.when.time_since_epoch() / std::chrono::nanoseconds(1));
    if (its.by_launcher) {
      end.stopped.push_back(static_cast<int>(rank));
    }
    if (its.killed_by_chaos() || (its.signal != 0 && !its.by_launcher)) {
      end.gone.emplace(static_cast<int>(rank), signal_hint(its.signal, options));
    }
    if (its.killed_by_chaos()) {
      end.by_chaos.push_back(static_cast<int>(rank));
    }
  }
  end.processes.clock = trace::recording_clock();
  end.findings = result.findings;
  if (result.timed_out) {
    end.ended = say("stopped after {:g} s, as --timeout says", "{:g} s 后被停止（--timeout）",
                    options.timeout_s);
  } else if (result.launcher_signal != 0) {
    end.ended = say("the launcher was stopped from outside", "被启动者停止");
  } else if (result.first_failure >= 0) {
    const std::vector<int> killed = killed_before(result);
    end.ended = end_sentence(result.first_failure,
                             result.ends[static_cast<std::size_t>(result.first_failure)]);
    if (!killed.empty()) {
      end.ended = say("--chaos killed {}, then {}", "--chaos 杀死了 {}，随后 {}", say_ranks(killed),
                      end.ended);
    }
  }
  return end;
}

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

JobRecorder::JobRecorder(std::string path, const std::string& job) : path_(std::move(path)) {
  struct stat status = {};
  const bool named_folder = path_.ends_with('/');
  if (named_folder && ::mkdir(path_.c_str(), 0777) != 0 && errno != EEXIST) {
    throw UsageError(fmt::format("--record '{}': {}", path_, ::strerror(errno)));
  }
  if (named_folder || (::stat(path_.c_str(), &status) == 0 && S_ISDIR(status.st_mode))) {
    path_ += (named_folder ? "" : "/") + job + ".json";
  }
  check_output(path_);
}

void JobRecorder::prepare(LaunchOptions& options, const Console& console) {
  if (!options.remote.empty()) {
    folders_.emplace(options.remote, console);
    options.spared = folders_->pids();
    for (RemoteRank& rank : options.remote) {
      if (const std::string folder = folders_->folder_of(rank); !folder.empty()) {
        // With "/." the path must be an existing folder: a rank that starts after its removal
        // creates no new folder.
        rank.script = "export UNISONO_RECORD=" + shell_quote(folder + "/.") + "\n" + rank.script;
      }
    }
    return;
  }
  for (int rank = 0; rank < options.ranks; ++rank) {
    memory_.emplace_back(::memfd_create("unisono-recording", MFD_CLOEXEC));
    if (!memory_.back()) {
      throw Error(ErrorCode::resource,
                  fmt::format("no memory to record in: {}\n{}", ::strerror(errno),
                              errno == EMFILE || errno == ENFILE
                                  ? "raise the limit of open files (ulimit -n)"
                                  : "memfd_create is needed: allow it in the container's seccomp "
                                    "profile"));
    }
    options.rank_environment.push_back(
        fmt::format("UNISONO_RECORD=/proc/{}/fd/{}", ::getpid(), memory_.back().get()));
  }
}

void JobRecorder::write(const JobResult& result, const LaunchOptions& options,
                        const Console& console) {
  std::vector<trace::RankRecord> records;
  const auto add = [&records](std::vector<trace::RankRecord> more) {
    std::move(more.begin(), more.end(), std::back_inserter(records));
  };
  for (const UniqueFd& memory : memory_) {
    add(trace::read_records(read_bytes(memory.get())));
  }
  if (folders_) {
    for (const std::vector<std::byte>& file : folders_->collect(console)) {
      add(trace::read_records(file));
    }
  }
  const nlohmann::ordered_json document = merge_records(records, job_end(result, options));
  write_output(path_, dump(document));
  console.note(fmt::format("recorded {} and {} in {}: unisono view {}",
                           plural(document["ops"]["rank"].size(), "call"),
                           plural(document["messages"]["from"].size(), "message"), path_, path_));
  for (const nlohmann::ordered_json& finding : document["findings"]) {
    if (finding["kind"] == "dropped") {
      console.note(fmt::format("{}\n  {}", finding["text"].get<std::string>(),
                               finding["next"].get<std::string>()));
    }
  }
}

}  // namespace unisono::cli
