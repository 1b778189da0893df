#include "planner/layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "unisono/error.hpp"

namespace unisono::planner {

std::string_view to_string(Recompute recompute) {
  constexpr std::array<std::string_view, 3> kNames = {"none", "selective", "full"};
  return kNames.at(static_cast<std::size_t>(recompute));
}

std::string_view to_string(State state) {
  return state == State::f32 ? "f32" : "bf16";
}

std::string_view to_string(Offload offload) {
  return offload.activations ? (offload.optimiser ? "both" : "activations")
                             : (offload.optimiser ? "optimiser" : "none");
}

std::string text_of(const Layout& layout) {
  std::string text;
  const std::array<std::pair<const char*, int>, 7> axes = {{{"tp", layout.tp},
                                                            {"pp", layout.pp},
                                                            {"vp", layout.vp},
                                                            {"cp", layout.cp},
                                                            {"uly", layout.uly},
                                                            {"ep", layout.ep},
                                                            {"dp", layout.dp}}};
  for (const auto& [name, size] : axes) {
    if (size > 1) {
      text += std::string(name) + "=" + std::to_string(size) + ",";
    }
  }
  return text + "mb=" + std::to_string(layout.micro_batch);
}

void read_axes(std::string_view text, std::span<const AxisSize> axes, const std::string& allowed,
               const std::function<bool(std::string_view, std::string_view)>& take) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::string_view name = word.substr(0, word.find('='));
    const std::string_view value = word.substr(std::min(name.size() + 1, word.size()));
    if (take(name, value)) {
      continue;
    }
    const auto axis = std::ranges::find(axes, name, &AxisSize::name);
    int size = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (axis == axes.end() || error != std::errc{} || end != value.data() + value.size() ||
        size < axis->least || size > axis->most) {
      throw Error(ErrorCode::usage,
                  std::string(word) + " is not an axis of a layout\nthere are " + allowed);
    }
    *axis->size = size;
  }
}

Layout parse_layout(std::string_view text, int devices) {
  Layout layout;
  layout.dp = 0;
  const std::array<AxisSize, 9> axes = {{{"tp", &layout.tp},
                                         {"pp", &layout.pp},
                                         {"vp", &layout.vp},
                                         {"cp", &layout.cp},
                                         {"uly", &layout.uly},
                                         {"ep", &layout.ep},
                                         {"dp", &layout.dp},
                                         {"mb", &layout.micro_batch},
                                         {"zero", &layout.zero, 0, 3}}};
  const auto take = [&](std::string_view name, std::string_view value) {
    if (name == "recompute") {
      for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        if (value == to_string(recompute)) {
          layout.recompute = recompute;
          return true;
        }
      }
    } else if (name == "offload") {
      for (const auto offload : {Offload{}, Offload{.activations = true},
                                 Offload{.optimiser = true}, Offload{true, true}}) {
        if (value == to_string(offload)) {
          layout.offload = offload;
          return true;
        }
      }
    }
    return false;
  };
  read_axes(text, axes,
            "tp, pp, vp, cp, uly, ep, dp, mb (the microbatch), zero=0 to 3, "
            "recompute=none|selective|full, offload=none|activations|optimiser|both",
            take);
  const std::int64_t others =
      static_cast<std::int64_t>(layout.tp) * layout.pp * layout.cp * layout.uly;
  if (layout.dp == 0) {
    layout.dp = devices % others == 0 ? static_cast<int>(devices / others) : 1;
  }
  if (others * layout.dp != devices) {
    throw Error(ErrorCode::usage, "tp x pp x cp x uly x dp is " +
                                      std::to_string(others * layout.dp) + ", and there are " +
                                      std::to_string(devices) +
                                      " devices\nleave dp out and it follows");
  }
  return layout;
}

std::string problem_of(const ModelShape& shape, const Layout& layout, const TrainingTask& task) {
  const auto number = [](double value) { return std::to_string(static_cast<std::int64_t>(value)); };
  if (shape.heads % layout.tp != 0) {
    return number(shape.heads) + " heads cannot be divided by tp=" + number(layout.tp);
  }
  if (shape.heads % (layout.tp * layout.uly) != 0) {
    return number(shape.heads) +
           " heads cannot be divided by tp x uly = " + number(layout.tp * layout.uly);
  }
  if (layout.pp * layout.vp > shape.layers) {
    return number(shape.layers) + " layers are fewer than the parts of pp=" + number(layout.pp);
  }
  if (layout.ep > 1 && (!shape.has_experts() || shape.experts % layout.ep != 0)) {
    return number(shape.experts) + " experts cannot be divided by ep=" + number(layout.ep);
  }
  if (layout.stage_ranks() % layout.ep != 0) {
    return "ep=" + number(layout.ep) + " does not divide the ranks of a stage";
  }
  // Zigzag order has two parts per rank of cp, which uly divides further.
  const double parts = (layout.cp > 1 ? 2.0 : 1.0) * layout.cp * layout.uly;
  if (std::fmod(task.sequence, parts) != 0) {
    return "a sequence of " + number(task.sequence) + " cannot be cut into " + number(parts) +
           " parts for the ranks of cp and uly";
  }
  const double count = microbatches(layout, task);
  if (count < 1 || count != std::floor(count)) {
    return "a batch of " + number(task.batch) + " is not a multiple of dp x micro-batch = " +
           number(static_cast<double>(layout.dp) * layout.micro_batch);
  }
  if (layout.vp > 1 && (layout.pp == 1 || std::fmod(count, layout.pp) != 0)) {
    return "an interleaved pipeline needs a multiple of pp=" + number(layout.pp) + " microbatches";
  }
  return {};
}

}  // namespace unisono::planner
