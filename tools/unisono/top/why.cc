#include "top/why.h"

#include <algorithm>
#include <map>
#include <set>

namespace unisono::cli {
namespace {

// An edge of the wait graph: one rank waits for another, in a group.
struct Edge {
  int from = 0;  // in the world, like `to`
  int to = 0;
  const comm::ObservedGroup* group = nullptr;
  const comm::ObservedRank* waiter = nullptr;
  bool has_entered = true;  // `to` has entered the collective in which `from` waits
};

Text group_text(const Job& job, const comm::ObservedGroup& group) {
  if (&group == &job.world.group || static_cast<std::size_t>(group.size) == job.world.pids.size()) {
    return {};
  }
  std::vector<int> members;
  for (const comm::ObservedRank& rank : group.ranks) {
    members.push_back(rank.world_rank);
  }
  const int elsewhere = group.size - static_cast<int>(members.size());
  return elsewhere > 0
             ? say(" of the group of {} here and {} more elsewhere",
                   "（此处 {} 与别处另外 {} 个 rank 的组）", say_ranks(members), elsewhere)
             : say(" of the group of {}", "（{} 的组）", say_ranks(members));
}

Text debug_later() {
  return say("if it happens again: unisono trace why and gdb, while it still runs",
             "若再次发生：趁其仍在运行时用 unisono trace why 和 gdb 查看");
}

Text advice(comm::Advice what) {
  switch (what) {
    case comm::Advice::same_algorithm:
      return {std::string(to_string(what)),
              "所有 rank 必须使用同一算法：比较它们的 UNISONO_ALGORITHM、UNISONO_PROFILE "
              "以及调用中指定的算法"};
    case comm::Advice::same_max_error:
      return {std::string(to_string(what)),
              "所有 rank 必须用同一个算法容许同样的误差：比较它们的 "
              "UNISONO_MAX_ERROR、UNISONO_ALGORITHM 以及各自的调用"};
    case comm::Advice::same_counts:
      return {std::string(to_string(what)),
              "所有 rank 必须给每个 rank 同样的 count：各 count 不同，尽管总和相同"};
    case comm::Advice::same_factor:
      return {std::string(to_string(what)), "所有 rank 必须给 premul_sum 同样的系数"};
    case comm::Advice::same_group:
      return {std::string(to_string(what)),
              "在 group() 中也是如此：多个 all_reduce 合并为这一个，其中每一个的 count 都必须相同"};
    default:
      return {std::string(to_string(what)), "所有 rank 必须以相同顺序做相同的调用"};
  }
}

class Hang {
 public:
  Hang(const Job& job, std::int64_t now_ns) : job_(job), now_ns_(now_ns) {
    add_edges(job.world.group);
    add_mismatches(job.world.group);
    for (const comm::ObservedGroup& group : job.groups) {
      add_edges(group);
      add_mismatches(group);
    }
  }

  std::vector<Finding> explain() {
    std::set<int> explained;
    std::vector<int> elsewhere;
    for (const int rank : culprits()) {
      if (!is_here(job_, static_cast<std::size_t>(rank))) {
        elsewhere.push_back(rank);
        continue;
      }
      findings_.push_back(blame(rank));
      explained.insert(findings_.back().waiting.begin(), findings_.back().waiting.end());
    }
    if (!elsewhere.empty()) {
      findings_.push_back(look_elsewhere(elsewhere));
      explained.insert(findings_.back().waiting.begin(), findings_.back().waiting.end());
    }
    for (const auto& [rank, edges] : edges_) {
      if (!explained.contains(rank)) {
        findings_.push_back(deadlock(rank));
        explained.insert(findings_.back().ranks.begin(), findings_.back().ranks.end());
        explained.insert(findings_.back().waiting.begin(), findings_.back().waiting.end());
      }
    }
    for (const auto& [rank, edge] : alone_) {
      if (!explained.contains(rank) && !culprits().contains(rank)) {
        findings_.push_back(unanswered(edge));
      }
    }
    std::stable_sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
      return a.waiting.size() > b.waiting.size();
    });
    return std::move(findings_);
  }

 private:
  void add_edges(const comm::ObservedGroup& group) {
    for (const comm::ObservedRank& rank : group.ranks) {
      if (!rank.waiting) {
        continue;
      }
      const comm::WaitTarget& waiting = *rank.waiting;
      const std::size_t before = edges_count_;
      bool somebody_missing = false;
      for (const comm::ObservedRank& other : group.ranks) {
        if (waiting.what == comm::WaitTarget::What::collective &&
            other.newest.sequence < rank.newest.sequence) {
          add({rank.world_rank, other.world_rank, &group, &rank, false});
          somebody_missing = true;
        }
      }
      if (!somebody_missing && waiting.peer >= 0) {
        add({rank.world_rank, waiting.peer, &group, &rank, true});
      }
      if (edges_count_ == before && is_rank(rank.world_rank)) {
        alone_.try_emplace(rank.world_rank, Edge{rank.world_rank, -1, &group, &rank});
      }
    }
  }
  bool is_rank(int rank) const { return static_cast<std::size_t>(rank) < job_.world.pids.size(); }
  void add(const Edge& edge) {
    if (edge.from != edge.to && is_rank(edge.from) && is_rank(edge.to)) {
      edges_[edge.from].push_back(edge);
      ++edges_count_;
    }
  }

  // Finds ranks that should be in the same operation but are in different ones.
  void add_mismatches(const comm::ObservedGroup& group) {
    std::map<std::uint64_t, std::map<std::uint64_t, std::vector<const comm::ObservedRank*>>> calls;
    for (const comm::ObservedRank& rank : group.ranks) {
      if (rank.waiting && rank.newest.sequence != 0) {
        calls[rank.newest.sequence][rank.newest.signature].push_back(&rank);
      }
    }
    for (const auto& [sequence, by_signature] : calls) {
      if (by_signature.size() < 2) {
        continue;
      }
      Finding finding{
          .kind = "mismatch",
          .text = say("operation #{}{} is not the same on all ranks",
                      "操作 #{}{} 在各 rank 上不一致", sequence, group_text(job_, group))};
      std::vector<comm::OperationRecord> differing;
      for (const auto& [signature, ranks] : by_signature) {
        std::vector<int> numbers;
        for (const comm::ObservedRank* rank : ranks) {
          numbers.push_back(rank->world_rank);
        }
        finding.details.push_back(say("{}  {}{}", "{}  {}{}", say_ranks(numbers),
                                      comm::describe(ranks.front()->newest),
                                      label_text(*ranks.front())));
        finding.ranks.insert(finding.ranks.end(), numbers.begin(), numbers.end());
        differing.push_back(ranks.front()->newest);
      }
      finding.next = advice(comm::advice_on(differing));
      finding.waiting = finding.ranks;
      findings_.push_back(std::move(finding));
    }
  }

  // Returns the ranks that are waited for and wait for nobody.
  std::set<int> culprits() const {
    std::set<int> found;
    for (const auto& [rank, edges] : edges_) {
      for (const Edge& edge : edges) {
        if (!edges_.contains(edge.to)) {
          found.insert(edge.to);
        }
      }
    }
    return found;
  }

  // Returns the ranks that wait for this rank, directly or through others.
  std::vector<int> waiting_for(int rank) const {
    std::set<int> found;
    for (bool grown = true; grown;) {
      grown = false;
      for (const auto& [from, edges] : edges_) {
        const bool waits = std::any_of(edges.begin(), edges.end(), [&](const Edge& edge) {
          return edge.to == rank || found.contains(edge.to);
        });
        grown |= waits && from != rank && found.insert(from).second;
      }
    }
    return {found.begin(), found.end()};
  }

  double longest_wait_s(const std::vector<int>& ranks) const {
    double longest = 0;
    for (const int rank : ranks) {
      for (const Edge& edge : edges_.at(rank)) {
        longest =
            std::max(longest, static_cast<double>(now_ns_ - edge.waiter->waiting->since_ns) / 1e9);
      }
    }
    return longest;
  }

  Text call_text(const Edge& edge) const {
    const comm::WaitTarget& waiting = *edge.waiter->waiting;
    switch (waiting.what) {
      case comm::WaitTarget::What::send:
        return say("the recv with tag {} for the send of rank {}{}",
                   "rank {1} 的 send（tag {0}）所对应的 recv{2}", waiting.place, edge.from,
                   label_text(*edge.waiter));
      case comm::WaitTarget::What::recv:
        return say("the send with tag {} for the recv of rank {}{}",
                   "rank {1} 的 recv（tag {0}）所对应的 send{2}", waiting.place, edge.from,
                   label_text(*edge.waiter));
      default:
        return say("{} #{}{}{}", "{} #{}{}{}", to_string(edge.waiter->newest.collective),
                   edge.waiter->newest.sequence, group_text(job_, *edge.group),
                   label_text(*edge.waiter));
    }
  }
  // Returns the label of the program's calls: " (layer 3 attention)".
  Text label_text(const comm::ObservedRank& rank) const {
    const auto place = static_cast<std::size_t>(rank.world_rank);
    const std::string& label = rank.label.empty() && place < job_.world.labels.size()
                                   ? job_.world.labels[place]
                                   : rank.label;
    return label.empty() ? Text() : say(" ({})", "（{}）", plain(label));
  }

  // Returns the longest wait for a rank.
  const Edge& wait_for(int rank) const {
    const Edge* longest = nullptr;
    for (const auto& [from, edges] : edges_) {
      for (const Edge& edge : edges) {
        const bool longer = longest == nullptr ||
                            edge.waiter->waiting->since_ns < longest->waiter->waiting->since_ns;
        longest = edge.to == rank && longer ? &edge : longest;
      }
    }
    return *longest;
  }

  Text who_text(int rank) const {
    return say("rank {} (pid {})", "rank {}（pid {}）", rank,
               pid_of(job_, static_cast<std::size_t>(rank)));
  }
  // Describes a wait that is not for a specific rank.
  Text alone_text(const Edge& edge) const {
    const comm::WaitTarget& waiting = *edge.waiter->waiting;
    return waiting.what == comm::WaitTarget::What::recv
               ? say("a send of any rank with tag {}{}", "任一 rank 以 tag {} 的 send{}",
                     waiting.place, label_text(*edge.waiter))
               : call_text(edge);
  }
  Finding unanswered(const Edge& edge) const {
    const comm::WaitTarget& waiting = *edge.waiter->waiting;
    Finding finding{
        .kind = "unanswered",
        .waiting = {edge.from},
        .waited_s = static_cast<double>(now_ns_ - waiting.since_ns) / 1e9,
        .text = say("{} waits for {}", "{}在等待：{}", who_text(edge.from), alone_text(edge))};
    if (waiting.what == comm::WaitTarget::What::recv) {
      finding.next = say("another rank must send to this rank, with that tag",
                         "须有其他 rank 以该 tag 向它发送");
    } else {
      look_into(edge.from, finding);
    }
    return finding;
  }

  void look_into(int rank, Finding& finding) const {
    finding.next = say("see where it is: gdb -p {}", "查看它停在哪里：gdb -p {}",
                       pid_of(job_, static_cast<std::size_t>(rank)));
    finding.later = debug_later();
  }

  Finding blame(int rank) const {
    const auto index = static_cast<std::size_t>(rank);
    const std::optional<ProcessState>& process = job_.processes[index];
    const Edge& edge = wait_for(rank);
    const bool transfer = edge.waiter->waiting->what != comm::WaitTarget::What::collective;
    const Text who = who_text(rank);
    const Text call = call_text(edge);
    Finding finding{.ranks = {rank}, .waiting = waiting_for(rank)};
    finding.waited_s = longest_wait_s(finding.waiting);
    if (job_.world.left[index]) {
      finding.kind = "left";
      finding.text = say("{} has left the world, and owes {}", "{}已离开，尚欠 {}", who, call);
      finding.next = say("all ranks must make the same calls before they leave",
                         "所有 rank 离开前必须做相同的调用");
    } else if (!process || process->state == 'Z' || process->state == 'X') {
      finding.kind = "gone";
      finding.text = say("{} is gone, and owes {}", "{}已不存在，尚欠 {}", who, call);
      finding.next = say("look at its last output; was it killed (dmesg)?",
                         "查看其最后的输出；是否被杀死（dmesg）？");
    } else if (process->state == 'T' || process->state == 't') {
      finding.kind = "stopped";
      finding.text = say("{} {}, and owes {}", "{}{}，尚欠 {}", who, state_text(process), call);
      finding.next = say("let it go on: kill -CONT {}", "让它继续：kill -CONT {}", process->pid);
      finding.later = say("who stopped it? a debugger, a batch system, a terminal, kill -STOP?",
                          "谁暂停了它？调试器、批处理系统、终端，还是 kill -STOP？");
    } else if (transfer || !edge.has_entered) {
      finding.kind = "never called";
      finding.text = say("{} has not called {}", "{}没有调用 {}", who, call);
      look_into(rank, finding);
    } else {
      finding.kind = "late";
      finding.text = say("{} has entered {} and does not go on", "{}进入 {} 后停滞", who, call);
      look_into(rank, finding);
    }
    if (!transfer) {
      finding.details.push_back(plain(comm::describe(edge.waiter->newest)));
    }
    std::set<Text> others;
    for (const auto& [from, edges] : edges_) {
      for (const Edge& other : edges) {
        if (other.to == rank && call_text(other) != call) {
          others.insert(call_text(other));
        }
      }
    }
    for (const Text& other : others) {
      finding.details.push_back(say("it owes also {}", "还欠 {}", other));
    }
    if (const auto waits = alone_.find(rank); waits != alone_.end()) {
      finding.details.push_back(say("it waits for {}", "它在等待：{}", alone_text(waits->second)));
    }
    finding.details.push_back(state_detail(rank, *edge.group));
    return finding;
  }

  // Reports ranks on other hosts: each may be late, or wait for a rank on this host.
  Finding look_elsewhere(const std::vector<int>& ranks) const {
    std::set<int> waiting;
    std::set<Text> calls;
    for (const int rank : ranks) {
      const std::vector<int> some = waiting_for(rank);
      waiting.insert(some.begin(), some.end());
      calls.insert(call_text(wait_for(rank)));
    }
    Finding finding{
        .kind = "elsewhere",
        .ranks = ranks,
        .waiting = {waiting.begin(), waiting.end()},
        .text =
            say("{} {}, and not seen from here", "{} 在其他主机上，此处无法看到", say_ranks(ranks),
                ranks.size() == 1 ? "is on another host" : "are on other hosts"),
        .next = say("run unisono trace why there", "在那里运行 unisono trace why"),
        .later = say("if it happens again: unisono trace why there, while it still runs",
                     "若再次发生：趁其仍在运行时在那里用 unisono trace why 查看")};
    finding.waited_s = longest_wait_s(finding.waiting);
    for (const Text& call : calls) {
      finding.details.push_back(say("waited for: {}", "被等待的是：{}", call));
    }
    return finding;
  }

  Text state_detail(int rank, const comm::ObservedGroup& group) const {
    Text text = say("its process {}", "其进程{}",
                    state_text(job_.processes[static_cast<std::size_t>(rank)]));
    for (const comm::ObservedRank& member : group.ranks) {
      if (member.world_rank == rank) {
        text =
            member.newest.sequence == 0
                ? say("{}; it has called no collective there yet",
                      "{}；它尚未在该组调用任何集合操作", text)
                : say("{}; its latest there is #{}, {}{}", "{}；它在该组最近的是 #{}，{}{}", text,
                      member.newest.sequence, comm::describe(member.newest), label_text(member));
      }
    }
    return text;
  }

  // Reports ranks that wait for each other in a ring; the waits of `rank` lead into it.
  Finding deadlock(int rank) const {
    std::vector<int> path;
    while (std::find(path.begin(), path.end(), rank) == path.end()) {
      path.push_back(rank);
      rank = edges_.at(rank).front().to;
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), rank));
    Finding finding{
        .kind = "deadlock",
        .ranks = path,
        .text = say("{} wait for each other", "{} 互相等待", say_ranks(path)),
        .next = say("let one of them receive first, or use send_recv() or asynchronous calls",
                    "让其中之一先接收，或使用 send_recv() 或异步调用")};
    for (const int member : path) {
      const Edge& edge = edges_.at(member).front();
      finding.details.push_back(say("rank {} waits for rank {}: {}", "rank {} 在等 rank {}：{}",
                                    edge.from, edge.to, call_text(edge)));
    }
    finding.waiting = waiting_for(path.front());
    finding.waiting.push_back(path.front());
    std::sort(finding.waiting.begin(), finding.waiting.end());
    finding.waited_s = longest_wait_s(finding.waiting);
    return finding;
  }

  const Job& job_;
  std::int64_t now_ns_;
  std::map<int, std::vector<Edge>> edges_;  // by `from`
  std::size_t edges_count_ = 0;
  std::map<int, Edge> alone_;  // ranks that wait for no specific rank
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> explain_hang(const Job& job, std::int64_t now_ns) {
  return Hang(job, now_ns).explain();
}

}  // namespace unisono::cli
