#include "step/training_heads.h"

namespace unisono::step {
namespace {

using Dims = std::vector<std::string>;

const Dims kRows = {"sequences", "places"};
const Dims kHeads = {"sequences", "places", "kv_heads"};

Dims with(Dims dims, const std::string& last) {
  dims.push_back(last);
  return dims;
}

class LatentHeads : public Heads {
 public:
  using Heads::Heads;

  void forward() override {
    if (compresses_queries()) {
      compress("query", "query_latent");
    } else if (p_.task.sequence) {
      p_.moved("rows gathered", name("attention in"), name("attention in of all rows"), "tp",
               shard("places"), replicate());
    }
    compress("latent", "latent");
    p_.product("rotary key", name("attention in"), name("rotary down"), name("rotary k"),
               with(kRows, "rotary"));
    p_.enter(name("rotary k"));
    p_.product("query", query_in(), name("query"), name("q"), queries());
    p_.product("keys made", normal("latent"), name("key up"), name("plain k"),
               with(kHeads, "plain"));
    p_.product("values made", normal("latent"), name("value up"), name("v"),
               with(kHeads, "value_dim"));
    p_.activation(name("k"), keys());
    build_.pointwise("keys joined", {name("plain k"), name("rotary k")}, name("k"), kHeads);
  }

  std::string backward(const std::string& dq, const std::string& dk,
                       const std::string& dv) override {
    dq_ = dq;
    dv_ = dv;
    part_keys(dk);
    Dims parts = {name("d in by query"), name("d in by latent"), name("d in by rotary key")};
    query_backward(parts[0]);
    const Dims sums = {name("d latent by keys"), name("d latent by values")};
    p_.product("d latent", dplain(), name("key up"), sums[0], with(kRows, "latent"));
    p_.product("d latent", dv_, name("value up"), sums[1], with(kRows, "latent"));
    decompress("latent", added(sums, dnormal("latent"), with(kRows, "latent")), parts[1]);
    p_.product("d attention in", drotary(), name("rotary down"), parts[2], kLayerRows);
    return added(parts, name("d attention in"));
  }

  void weight_gradients() override {
    if (compresses_queries()) {
      p_.weight_gradient(name("query down"), name("attention in"), dlow("query"));
    }
    p_.weight_gradient(name("query"), query_in(), dq_);
    p_.weight_gradient(name("latent down"), name("attention in"), dlow("latent"));
    p_.weight_gradient(name("rotary down"), name("attention in"), drotary());
    p_.weight_gradient(name("key up"), normal("latent"), dplain());
    p_.weight_gradient(name("value up"), normal("latent"), dv_);
  }

 private:
  bool compresses_queries() const { return p_.shape.latent.query_rank > 0; }
  std::string low(const std::string& what) const { return name("low " + what); }
  std::string normal(const std::string& what) const { return name("low " + what + " normal"); }
  std::string dlow(const std::string& what) const { return name("d low " + what); }
  std::string dnormal(const std::string& what) const { return name("d low " + what + " normal"); }
  std::string dplain() const { return name("d plain k"); }
  std::string drotary() const { return name("d rotary k"); }

  // What queries are made of: short rows, or those of the layer, of all ranks of tp.
  std::string query_in() const {
    if (compresses_queries()) {
      return normal("query");
    }
    const std::string all = name("attention in of all rows");
    return build_.step().find_tensor(all) != nullptr ? all : name("attention in");
  }

  void compress(const std::string& what, const std::string& dim) {
    p_.product(what + " compressed", name("attention in"), name(what + " down"), low(what),
               with(kRows, dim));
    p_.activation(normal(what), with(kRows, dim));
    build_.pointwise(what + " norm", {low(what), name(what + " norm")}, normal(what), kRows);
    p_.enter(normal(what));
  }

  // From a summand of the gradient of normal(what) to that of the rows that were compressed.
  void decompress(const std::string& what, const std::string& summand, const std::string& made) {
    const std::string dnormal = p_.enter_backward(summand);
    p_.activation(dlow(what), build_.step().find_tensor(low(what))->dims);
    build_.pointwise(what + " norm backward", {low(what), name(what + " norm"), dnormal},
                     dlow(what), kRows);
    p_.gain_gradient(name(what + " norm"), low(what), dnormal);
    p_.product("d attention in", dlow(what), name(what + " down"), made, kLayerRows);
  }

  void query_backward(const std::string& made) {
    if (!compresses_queries()) {
      p_.product("d attention in", dq_, name("query"), made, kLayerRows);
      p_.enter_backward(made);
      return;
    }
    p_.product("d query latent", dq_, name("query"), dnormal("query"), with(kRows, "query_latent"));
    decompress("query", dnormal("query"), made);
  }

  // All heads have the same rotary part.
  void part_keys(const std::string& dk) {
    p_.activation(dplain(), with(kHeads, "plain"));
    build_.pointwise("d keys parted", {dk}, dplain(), kHeads);
    p_.activation(drotary(), with(kRows, "rotary"));
    build_.compute({.name = "d rotary key",
                    .reads = {dk},
                    .writes = {drotary()},
                    .pointwise = kRows,
                    .summed = {"kv_heads"}});
    p_.enter_backward(drotary());
  }

  std::string dq_, dv_;
};

}  // namespace

std::unique_ptr<Heads> make_latent_heads(TrainingParts& parts, int layer) {
  return std::make_unique<LatentHeads>(parts, layer);
}

}  // namespace unisono::step
