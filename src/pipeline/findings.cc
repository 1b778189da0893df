// Formats findings as text.
#include <array>

#include "pipeline/findings.h"

namespace unisono::pipeline {
namespace {

std::string of_rank(int rank) {
  return "rank " + std::to_string(rank);
}

// Returns "rank 1 waits for 2B0 behind 0SEND_F2 to rank 0".
std::string wait_text(const Finding::Wait& wait) {
  std::string text = of_rank(wait.rank);
  text += wait.is_through ? " is through but for " : " cannot begin ";
  text += to_string(wait.action);
  if (wait.peer < 0) {
    return text + ", whose input nobody gives";
  }
  if (!wait.has_head) {
    return text + ", for which " + of_rank(wait.peer) + " has sent nothing";
  }
  return text + (wait.is_through ? ", which " : ", as ") +
         (wait.is_through ? "" : to_string(wait.head) + " ") + "waits for " + of_rank(wait.peer);
}

}  // namespace

std::string_view to_string(Finding::Kind kind) {
  constexpr std::array<std::string_view, 7> kNames = {
      "missing", "twice", "misplaced", "too_early", "unpaired", "lane_order", "deadlock"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string sentence(const Finding& finding) {
  const std::string rank = of_rank(finding.rank);
  const std::string action = to_string(finding.action);
  const std::string at =
      finding.index < 0 ? "" : " (action " + std::to_string(finding.index + 1) + ")";
  switch (finding.kind) {
    case Finding::Kind::missing:
      return rank + " never does " + action;
    case Finding::Kind::twice:
      return rank + " does " + action + at + ", which is done already or is not of this stage";
    case Finding::Kind::misplaced:
      return rank + " does " + action + at + ", but the stage is on " + of_rank(finding.other_rank);
    case Finding::Kind::too_early:
      return rank + " does " + action + at + " without " +
             (finding.other.microbatch < 0 && finding.other.kind == ActionKind::backward_weight
                  ? "the last W of stage " + std::to_string(finding.other.stage)
                  : to_string(finding.other)) +
             " before it";
    case Finding::Kind::unpaired:
      return finding.other_rank < 0
                 ? rank + " does " + action + at + ", but nobody is at the other end"
                 : rank + " does " + action + ", for which " + of_rank(finding.other_rank) +
                       " has no " + (is_send(finding.action.kind) ? "receive" : "send");
    case Finding::Kind::lane_order:
      return rank + " sends " + action + " where " + of_rank(finding.other_rank) + " does " +
             to_string(finding.other) + ": a lane keeps its order";
    case Finding::Kind::deadlock:
      break;
  }
  std::string text;
  for (const Finding::Wait& wait : finding.waits) {
    text += (text.empty() ? "" : ", and ") + wait_text(wait);
  }
  return text;
}

}  // namespace unisono::pipeline
