// Stacks: training programs, with the measured steps of their releases (src/planner/stacks/). The
// residuals of these steps predict how a step deviates from its formula, and the error of that
// prediction.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/kriging.h"
#include "planner/measured.h"

namespace unisono::planner {

struct TrainingEstimate;

struct Stack {
  std::string name = {};    // such as "megatron-bridge-26.04"
  std::string source = {};  // document and revision
  double year = 0;
  bool materialised_attention = false;  // and no sequence parallelism, as was usual then
  std::string like = {};                // without measured steps: the family whose level it uses

  std::string family() const;  // such as "megatron-bridge"
};

// Returns a text such as "2026-04".
std::string date_text(double year);

// A step takes `times` the formula's time; the logarithm of `times` has this standard deviation.
struct Level {
  double times = 1;
  double deviation = 0;

  double low() const;  // nine of ten steps lie between low() and high()
  double high() const;
};

// The properties of a step that determine how its residual correlates with those of others.
struct StepPlace {
  std::string family = {};  // family of the stack
  std::string device = {};
  double year = 0;
  Precision precision = Precision::bf16;
  std::array<double, 4> model = {};  // its sizes; experts last
  std::array<double, 9> layout = {};
};

class Evidence {
 public:
  explicit Evidence(std::vector<MeasuredStep> steps);

  const std::vector<MeasuredStep>& steps() const { return steps_; }
  // Returns the level of each step as predicted from all others.
  std::vector<Level> left_out() const;

 private:
  friend class Levels;
  std::vector<MeasuredStep> steps_;
  std::vector<StepPlace> places_;
  Kriging kriging_;
};

// The steps of all built-in stacks.
const Evidence& built_in_evidence();
// Newest first.
const std::vector<Stack>& known_stacks();
// Finds a stack by its name, or the newest one of a family. Returns nothing if there is none.
std::optional<Stack> find_stack(std::string_view name);
// Returns the newest stack that was measured on this device with a model of this kind; if there is
// none, the newest one measured with a model of this kind.
Stack default_stack(std::string_view device, bool has_experts);

// Predicts the levels of the layouts of one task. `evidence` must outlive it.
class Levels {
 public:
  Levels(const Evidence& evidence, const Stack& stack, const ModelShape& shape,
         const TrainingTask& task, std::string device);

  double times(const Layout& layout) const;
  Level at(const Layout& layout) const;

  // Returns the number of measured steps of the stack's family with such a model on this device.
  std::size_t alike() const { return alike_; }
  // Returns the one of these steps whose layout is nearest; nullptr if there is none.
  const MeasuredStep* nearest(const Layout& layout) const;

 private:
  // The covariance of a measured step with any layout, and with an equal layout.
  struct Common {
    double any = 0;
    double equal = 0;
  };
  std::vector<double> with(const Layout& layout) const;

  const Evidence& evidence_;
  StepPlace place_;
  double sequence_ = 0;
  double unknown_ = 0;  // variance of a stack without measured steps
  std::vector<Common> common_;
  std::size_t alike_ = 0;
};

// Returns the formula's estimate with all parts scaled by `times`.
TrainingEstimate scaled(TrainingEstimate estimate, double times);
// Returns the estimate at the level predicted for its layout, with the interval that contains nine
// of ten steps.
TrainingEstimate at_level(const TrainingEstimate& estimate, const Levels& levels);
// Returns a cluster on which the formula alone gives `times` as long a step, for simulating it.
Cluster at_level(Cluster cluster, double times);

}  // namespace unisono::planner
