#include "model/simulator/fair_share.h"

#include <algorithm>
#include <limits>

namespace unisono::model {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

void FairShare::add(int flow, std::span<const int> links) {
  if (flows_.size() <= at(flow)) {
    flows_.resize(at(flow) + 1);
  }
  flows_[at(flow)] = {.links = links, .rate = -1, .old_rate = -1};
  for (const int link : links) {
    links_[at(link)].flows.push_back(flow);
    changed_links_.push_back(link);
  }
}

void FairShare::remove(int flow) {
  for (const int link : flows_[at(flow)].links) {
    std::vector<int>& users = links_[at(link)].flows;
    *std::find(users.begin(), users.end(), flow) = users.back();
    users.pop_back();
    changed_links_.push_back(link);
  }
}

const std::vector<int>& FairShare::settle() {
  ++settling_;
  settled_.clear();
  for (const int link : changed_links_) {
    if (links_[at(link)].seen != settling_) {
      near_links_.clear();
      near_flows_.clear();
      collect(link);
      fill();
    }
  }
  changed_links_.clear();
  return settled_;
}

// All links and flows that are joined to `link` by sharing.
void FairShare::collect(int link) {
  const auto meet = [this](int other) {
    LinkState& state = links_[at(other)];
    if (state.seen != settling_) {
      state.seen = settling_;
      state.left = state.capacity;
      state.open = static_cast<int>(state.flows.size());
      near_links_.push_back(other);
    }
  };
  meet(link);
  for (std::size_t i = 0; i < near_links_.size(); ++i) {
    for (const int flow : links_[at(near_links_[i])].flows) {
      Flow& found = flows_[at(flow)];
      if (found.seen == settling_) {
        continue;
      }
      found.seen = settling_;
      found.fixed = false;
      found.old_rate = found.rate;
      near_flows_.push_back(flow);
      for (const int other : found.links) {
        meet(other);
      }
    }
  }
}

void FairShare::fill() {
  constexpr double kEqual = 1 + 1e-12;
  std::size_t open = near_flows_.size();
  while (open > 0) {
    double level = std::numeric_limits<double>::infinity();
    std::size_t kept = 0;
    for (const int link : near_links_) {
      const LinkState& state = links_[at(link)];
      if (state.open > 0) {
        near_links_[kept++] = link;
        level = std::min(level, state.left / state.open);
      }
    }
    near_links_.resize(kept);
    for (const int link : near_links_) {
      const LinkState& state = links_[at(link)];
      if (state.open == 0 || state.left / state.open > level * kEqual) {
        continue;
      }
      for (const int flow : state.flows) {
        if (!flows_[at(flow)].fixed) {
          fix(flow, level);
          --open;
        }
      }
    }
  }
}

void FairShare::fix(int flow, double rate) {
  Flow& found = flows_[at(flow)];
  found.fixed = true;
  found.rate = rate;
  if (found.rate != found.old_rate) {
    settled_.push_back(flow);
  }
  for (const int link : found.links) {
    LinkState& state = links_[at(link)];
    state.left = std::max(0.0, state.left - rate);
    --state.open;
  }
}

}  // namespace unisono::model
