// The inner part of a layer of a training step: dense, or experts with perhaps one that all rows
// visit.
#pragma once

#include <string>
#include <vector>

#include "step/training_layer_part.h"

namespace unisono::step {

// Up, perhaps gate, an activation, and down.
class GatedPart : public LayerPart {
 public:
  // Names are within the layer, but for `kind`, which stands before those of what is the part's
  // own.
  struct Names {
    std::string kind = {};
    std::string in = {};
    std::string out = {};
  };
  struct Dims {
    std::vector<std::string> rows = {"sequences", "places"};
    std::string hidden = {};
  };
  GatedPart(TrainingParts& parts, int layer, Names names, Dims dims);
  void forward();
  // From the gradient of what it gives, a tensor, to the summands of that of what it takes.
  std::vector<std::string> backward(const std::string& dout);
  void weight_gradients();  // behind backward()

 private:
  std::string own(const std::string& what) const { return name(names_.kind + what); }
  std::vector<std::string> matrices() const;
  std::vector<std::string> with(const std::string& last) const;  // the rows' dimensions, and one

  Names names_;
  Dims dims_;
  std::string dout_;
};

// Rows go to the ranks that have the experts that the router chose for them, and what these give,
// weighted by their scores, comes back and is added up (Shazeer et al., 2017; Lepikhin et al.,
// 2020). Scores are of the chosen experts alone, and no row is dropped.
class ExpertsPart : public LayerPart {
 public:
  ExpertsPart(TrainingParts& parts, int layer);
  void forward();  // from "inner in" to "z"
  std::vector<std::string> backward(const std::string& dz);
  void weight_gradients();

 private:
  using Dims = std::vector<std::string>;

  void to_experts(const std::string& node, const std::string& rows, const std::string& made,
                  double rows_sent);
  void to_rows(const std::string& node, const std::string& routed, const std::string& made,
               double rows_sent);
  void move(Node node);
  void weigh(const std::string& node, const std::string& rows, const std::string& made);
  std::string scores_backward();

  GatedPart experts_;
  std::vector<GatedPart> shared_;  // one or none
};

class InnerHalf : public LayerPart {
 public:
  InnerHalf(TrainingParts& parts, int layer);
  void forward();
  void backward();
  void weight_gradients();  // behind backward()

 private:
  GatedPart dense_;
  ExpertsPart experts_;
  bool is_dense_;
  std::string out_;  // what the layer gives
};

}  // namespace unisono::step
