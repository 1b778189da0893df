#include "step/training_heads.h"

namespace unisono::step {
namespace {

using Dims = std::vector<std::string>;

// A matrix each, whose rows are those of its heads.
class PlainHeads : public Heads {
 public:
  using Heads::Heads;

  void forward() override {
    p_.enter(name("attention in"));
    p_.product("query", name("attention in"), name("query"), name("q"), queries());
    p_.product("key", name("attention in"), own(name("key")), name("k"), keys());
    p_.product("value", name("attention in"), own(name("value")), name("v"), keys());
  }

  std::string backward(const std::string& dq, const std::string& dk,
                       const std::string& dv) override {
    dq_ = dq;
    dk_ = dk;
    dv_ = dv;
    const Dims parts = {name("d in by query"), name("d in by key"), name("d in by value")};
    const char* here = p_.shares_keys ? " here" : "";
    p_.product("d attention in", dq_, name("query"), parts[0], kLayerRows);
    p_.product("d attention in", dk_, name("key") + here, parts[1], kLayerRows);
    p_.product("d attention in", dv_, name("value") + here, parts[2], kLayerRows);
    return p_.enter_backward(added(parts, name("d attention in")));
  }

  void weight_gradients() override {
    p_.weight_gradient(name("query"), name("attention in"), dq_);
    p_.weight_gradient(name("key"), name("attention in"), dk_);
    p_.weight_gradient(name("value"), name("attention in"), dv_);
  }

 private:
  // The rows of a weight that belong to this rank's heads, of those that all ranks have whole.
  std::string own(const std::string& weight) {
    return p_.shares_keys ? p_.moved("own heads", weight, weight + " here", "tp", replicate(),
                                     shard("kv_heads"))
                          : weight;
  }

  std::string dq_, dk_, dv_;
};

}  // namespace

const Dims& Heads::queries() {
  static const Dims kQueries = {"sequences", "places", "heads", "dim"};
  return kQueries;
}

const Dims& Heads::keys() {
  static const Dims kKeys = {"sequences", "places", "kv_heads", "dim"};
  return kKeys;
}

std::unique_ptr<Heads> make_heads(TrainingParts& parts, int layer) {
  if (parts.shape.latent.is_used()) {
    return make_latent_heads(parts, layer);
  }
  return std::make_unique<PlainHeads>(parts, layer);
}

}  // namespace unisono::step
