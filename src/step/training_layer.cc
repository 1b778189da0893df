// Forward and backward of a layer of a training step.
#include "step/training_parts.h"

namespace unisono::step {
namespace {

using Linear = Node::Linear;
using Dims = std::vector<std::string>;

const Dims kQueries = {"sequences", "places", "heads", "dim"};
const Dims kKeys = {"sequences", "places", "kv_heads", "dim"};
const Dims kSeen = {"sequences", "seen", "kv_heads", "dim"};

class LayerMaker {
 public:
  LayerMaker(TrainingParts& parts, int layer)
      : p_(parts), build_(parts.build), prefix_("layer " + std::to_string(layer) + " ") {
    out_ = "layer " + std::to_string(layer + 1) + " x";
  }

  void forward() {
    p_.activation(name("attention in"), kRows);
    p_.by_rows("attention norm", {name("x"), name("attention norm")}, name("attention in"), kRows);
    p_.enter(name("attention in"));
    p_.product("query", name("attention in"), name("query"), name("q"), kQueries);
    p_.product("key", name("attention in"), own(name("key")), name("k"), kKeys);
    p_.product("value", name("attention in"), own(name("value")), name("v"), kKeys);
    attention();
    p_.product("attention output", name("attended"), name("attention output"), name("y"), kRows);
    p_.leave(name("y"));
    p_.activation(name("middle"), kRows);
    p_.sum("attention added", {name("x"), name("y")}, name("middle"));
    p_.activation(name("inner in"), kRows);
    p_.by_rows("inner norm", {name("middle"), name("inner norm")}, name("inner in"), kRows);
    p_.enter(name("inner in"));
    inner();
    p_.product("down", name("active"), name("down"), name("z"), kRows);
    p_.leave(name("z"));
    p_.activation(out_, kRows);
    p_.sum("inner added", {name("middle"), name("z")}, out_);
  }

  void backward() {
    inner_backward();
    attention_backward();
    p_.weight_gradient(name("down"), name("active"), inner_out_);
    for (const std::string& matrix : inner_matrices()) {
      p_.weight_gradient(name(matrix), name("inner in"), name("d " + matrix + " out"));
    }
    p_.weight_gradient(name("attention output"), name("attended"), attention_out_);
    p_.weight_gradient(name("query"), name("attention in"), dq_);
    p_.weight_gradient(name("key"), name("attention in"), dk_);
    p_.weight_gradient(name("value"), name("attention in"), dv_);
  }

 private:
  const Dims kRows = {"sequences", "places", "width"};
  const Dims kInner = {"sequences", "places", "hidden"};

  std::string name(const std::string& what) const { return prefix_ + what; }
  Dims inner_matrices() const { return p_.shape.gated ? Dims{"up", "gate"} : Dims{"up"}; }

  // The rows of a weight that belong to this rank's heads, of those that all ranks have whole.
  std::string own(const std::string& weight) {
    return p_.shares_keys ? p_.moved("own heads", weight, weight + " here", "tp", replicate(),
                                     shard("kv_heads"))
                          : weight;
  }

  std::string to_heads(const std::string& tensor, const std::string& made, const char* heads) {
    return p_.moved("to heads", tensor, made, "uly", shard("places"), shard(heads));
  }
  std::string to_rows(const std::string& tensor, const std::string& made, const char* heads) {
    return p_.moved("to rows", tensor, made, "uly", shard(heads), shard("places"));
  }
  // Keys or values have places of their own: a query sees those of others.
  std::string as_seen(const std::string& tensor, const std::string& made) {
    p_.activation(made, kSeen);
    build_.compute({.name = "seen",
                    .reads = {tensor},
                    .writes = {made},
                    .pointwise = {"sequences", "places", "kv_heads", "dim"},
                    .linear = Linear::together,
                    .renamed = {{"places", "seen"}}});
    return made;
  }
  void around(const char* text, const std::string& keys, const std::string& values,
              const char* ring) {
    if (p_.task.gathers_keys) {
      build_.redistribute(text, keys, "cp", shard("seen"), replicate());
      build_.redistribute(text, values, "cp", shard("seen"), replicate());
    } else {
      build_.redistribute(text, {keys, values}, {keys, values}, "cp", shard("seen"), replicate(),
                          ring);
    }
  }

  void attention() {
    const std::string q = to_heads(name("q"), name("q of heads"), "heads");
    const std::string keys =
        as_seen(to_heads(name("k"), name("k of heads"), "kv_heads"), name("keys"));
    const std::string values =
        as_seen(to_heads(name("v"), name("v of heads"), "kv_heads"), name("values"));
    around("keys and values", keys, values, "ring");
    const bool is_moved = build_.is_wide("uly");
    const std::string out = name(is_moved ? "attended of heads" : "attended");
    const std::string log_sum = name(is_moved ? "log_sum of heads" : "log_sum");
    p_.activation(out, kQueries);
    p_.activation(log_sum, {"sequences", "places", "heads"});
    build_.compute({.name = "attention",
                    .reads = {q, keys, values},
                    .writes = {out, log_sum},
                    .pointwise = {"sequences", "places", "heads"},
                    .summed = {"seen"},
                    .flops = 2});  // the causal mask leaves half of two products
    to_rows(out, name("attended"), "heads");
    to_rows(log_sum, name("log_sum"), "heads");
  }

  void inner() {
    for (const std::string& matrix : inner_matrices()) {
      p_.product(matrix, name("inner in"), name(matrix), name(matrix + " out"), kInner);
    }
    Dims reads;
    for (const std::string& matrix : inner_matrices()) {
      reads.push_back(name(matrix + " out"));
    }
    p_.activation(name("active"), kInner);
    build_.pointwise("activation", reads, name("active"), kInner);
  }

  void inner_backward() {
    inner_out_ = p_.leave_backward("d " + out_);
    p_.product("d active", inner_out_, name("down"), name("d active"), kInner);
    Dims reads = {name("d active")};
    for (const std::string& matrix : inner_matrices()) {
      reads.push_back(name(matrix + " out"));
    }
    Dims parts;
    for (const std::string& matrix : inner_matrices()) {
      p_.activation(name("d " + matrix + " out"), kInner);
      build_.pointwise("activation backward", reads, name("d " + matrix + " out"), kInner);
      parts.push_back(name("d inner in by " + matrix));
      p_.product("d inner in", name("d " + matrix + " out"), name(matrix), parts.back(), kRows);
    }
    const std::string din = added(parts, name("d inner in"));
    norm_backward("inner norm", name("middle"), p_.enter_backward(din), "d " + out_,
                  "d " + name("middle"));
  }

  void attention_backward() {
    attention_out_ = p_.leave_backward("d " + name("middle"));
    p_.product("d attended", attention_out_, name("attention output"), name("d attended"),
               kQueries);
    p_.activation(name("delta"), {"sequences", "places", "heads"});
    p_.by_rows("delta", {name("attended"), name("d attended")}, name("delta"),
               {"sequences", "places", "heads"});
    const std::string q = to_heads(name("q"), name("q again"), "heads");
    const std::string k = to_heads(name("k"), name("k again"), "kv_heads");
    const std::string v = to_heads(name("v"), name("v again"), "kv_heads");
    const std::string g = to_heads(name("d attended"), name("d attended of heads"), "heads");
    const std::string log_sum = to_heads(name("log_sum"), name("log_sum again"), "heads");
    const std::string delta = to_heads(name("delta"), name("delta of heads"), "heads");
    const std::string keys = as_seen(k, name("keys again"));
    const std::string values = as_seen(v, name("values again"));
    around("keys and values", keys, values, "ring_with");
    const Dims reads = {q, keys, values, g, log_sum, delta};
    const bool is_moved = build_.is_wide("uly");
    const std::string dq = name(is_moved ? "d q of heads" : "d q");
    p_.activation(dq, kQueries);
    build_.compute({.name = "d query",
                    .reads = reads,
                    .writes = {dq},
                    .pointwise = {"sequences", "places", "heads"},
                    .summed = {"seen"},
                    .flops = 3});
    const Dims sums = {name("d keys"), name("d values")};
    for (const std::string& one : sums) {
      p_.activation(one, kSeen);
    }
    build_.compute({.name = "d keys, d values",
                    .reads = reads,
                    .writes = sums,
                    .pointwise = {"sequences", "seen", "heads"},
                    .summed = {"places"},
                    .flops = 2});
    home(sums);
    dq_ = to_rows(dq, name("d q"), "heads");
    dk_ = to_rows(as_made(sums[0], name("d k of heads")), name("d k"), "kv_heads");
    dv_ = to_rows(as_made(sums[1], name("d v of heads")), name("d v"), "kv_heads");
    const Dims parts = {name("d in by query"), name("d in by key"), name("d in by value")};
    p_.product("d attention in", dq_, name("query"), parts[0], kRows);
    p_.product("d attention in", dk_, p_.shares_keys ? name("key here") : name("key"), parts[1],
               kRows);
    p_.product("d attention in", dv_, p_.shares_keys ? name("value here") : name("value"), parts[2],
               kRows);
    norm_backward("attention norm", name("x"),
                  p_.enter_backward(added(parts, name("d attention in"))), "d " + name("middle"),
                  "d " + name("x"));
  }

  // Gradients of keys and values go to the ranks that these belong to, summed.
  void home(const Dims& sums) {
    if (p_.task.gathers_keys) {
      for (const std::string& one : sums) {
        build_.redistribute("gradients home", one, "cp", partial(), shard("seen"));
      }
    } else {
      build_.redistribute("gradients home", sums, sums, "cp", partial(), shard("seen"),
                          "ring_home");
    }
  }
  std::string as_made(const std::string& tensor, const std::string& made) {
    p_.activation(made, kKeys);
    build_.compute({.name = "made",
                    .reads = {tensor},
                    .writes = {made},
                    .pointwise = {"sequences", "seen", "kv_heads", "dim"},
                    .linear = Linear::together,
                    .renamed = {{"seen", "places"}}});
    return made;
  }

  std::string added(const Dims& parts, const std::string& made) {
    if (parts.size() == 1) {
      return parts.front();
    }
    p_.activation(made, kRows);
    p_.sum("added", parts, made);
    return made;
  }

  void norm_backward(const std::string& norm, const std::string& x, const std::string& dnormal,
                     const std::string& passed, const std::string& made) {
    p_.activation(made + " by norm", kRows);
    p_.by_rows(norm + " backward", {x, name(norm), dnormal}, made + " by norm", kRows);
    p_.gain_gradient(name(norm), x, dnormal);
    p_.activation(made, kRows);
    p_.sum("added", {passed, made + " by norm"}, made);
  }

  TrainingParts& p_;
  StepBuilder& build_;
  std::string prefix_;
  std::string out_;  // what the layer gives
  std::string inner_out_, attention_out_, dq_, dk_, dv_;
};

}  // namespace

void forward_layer(TrainingParts& parts, int layer) {
  LayerMaker(parts, layer).forward();
}

void backward_layer(TrainingParts& parts, int layer) {
  LayerMaker(parts, layer).backward();
}

}  // namespace unisono::step
