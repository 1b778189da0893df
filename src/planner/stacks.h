// Stacks: programs that train, with the steps that were measured of their releases
// (src/planner/stacks/). What a step takes beside its formula is predicted from the residuals of
// these steps, and with it how far off the prediction may be.
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
  std::string name = {};    // "megatron-bridge-26.04"
  std::string source = {};  // document and revision
  double year = 0;
  bool materialised_attention = false;  // and no sequence parallelism, as of then
  std::string like = {};  // without measured steps: the family whose level is taken for its own

  std::string family() const;  // "megatron-bridge"
};

// "2026-04"
std::string date_text(double year);

// A step's time is `times` what the formula says; its logarithm has this deviation.
struct Level {
  double times = 1;
  double deviation = 0;

  double low() const;  // nine of ten steps are between these
  double high() const;
};

// The properties of a step that determine how its residual correlates with those of others.
struct StepPlace {
  std::string family = {};  // of the stack
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
  // The level of each step as the others predict it.
  std::vector<Level> left_out() const;

 private:
  friend class Levels;
  std::vector<MeasuredStep> steps_;
  std::vector<StepPlace> places_;
  Kriging kriging_;
};

// The steps of all stacks that are built in.
const Evidence& built_in_evidence();
// Newest first.
const std::vector<Stack>& known_stacks();
// By its name, or that of its family: the newest. Empty: there is none.
std::optional<Stack> find_stack(std::string_view name);
// The newest that was measured on this device with a model of this kind; else with any model of
// this kind.
Stack default_stack(std::string_view device, bool has_experts);

// Predicts the levels of one question's layouts. The evidence must outlive it.
class Levels {
 public:
  Levels(const Evidence& evidence, const Stack& stack, const ModelShape& shape,
         const TrainingTask& task, std::string device);

  double times(const Layout& layout) const;
  Level at(const Layout& layout) const;

  // Measured steps of the stack's family with such a model on this device.
  std::size_t alike() const { return alike_; }
  // Returns the step whose layout is the nearest among those; null: there is none.
  const MeasuredStep* nearest(const Layout& layout) const;

 private:
  // The covariance of a measured step with any layout, and with an equal one.
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

// An estimate of the formula, `times` as long in all its parts.
TrainingEstimate scaled(TrainingEstimate estimate, double times);
// The same, with what is known of such a layout: also between which times nine of ten steps are.
TrainingEstimate at_level(const TrainingEstimate& estimate, const Levels& levels);
// A cluster on which the formula alone gives such times, to play the step with.
Cluster at_level(Cluster cluster, double times);

}  // namespace unisono::planner
