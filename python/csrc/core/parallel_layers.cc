// Tensor, sequence and vocabulary parallelism.
#include <pybind11/stl.h>

#include <string>

#include "parallel.h"
#include "unisono/parallel/tensor_parallel.hpp"

namespace unisono_python {
namespace {

namespace up = unisono::parallel;
using py::arg;
using Use = Memory::Use;

using Region = void (*)(unisono::Communicator&, const up::RegionShape&, up::ConstAnySpan,
                        up::AnySpan);

void define_region(py::module_& module, const char* name, Region function, const char* doc) {
  module.def(
      name,
      [function](const std::shared_ptr<Comm>& comm, std::size_t rows, std::size_t width,
                 const py::object& data, const py::object& out, bool sequence) {
        const AnyFloats in(data, Use::read, "data");
        const AnyFloats to(out, Use::write, "out");
        comm->alone([&](unisono::Communicator& open) {
          function(open, {.rows = rows, .width = width, .sequence = sequence}, in.span(),
                   to.span());
        });
        return out;
      },
      arg("comm"), arg("rows"), arg("width"), arg("data"), arg("out"), py::kw_only(),
      arg("sequence") = false, doc);
}

py::slice slice_of(const up::Range& range) {
  return {static_cast<py::ssize_t>(range.first),
          static_cast<py::ssize_t>(range.first + range.count), 1};
}

py::object embedding(const std::shared_ptr<Comm>& comm, std::size_t vocabulary, std::size_t width,
                     const py::object& table, const py::object& tokens, const py::object& out) {
  const AnyFloats rows(table, Use::read, "table");
  const Integers words(tokens, "tokens");
  const AnyFloats to(out, Use::write, "out");
  comm->alone([&](unisono::Communicator& open) {
    up::vocabulary_embedding(open, vocabulary, width, rows.span(), words.span(), to.span());
  });
  return out;
}

py::object embedding_backward(const std::shared_ptr<Comm>& comm, std::size_t vocabulary,
                              std::size_t width, const py::object& out_gradient,
                              const py::object& tokens, const py::object& table_gradient) {
  const AnyFloats from(out_gradient, Use::read, "out_gradient");
  const Integers words(tokens, "tokens");
  const AnyFloats to(table_gradient, Use::write, "table_gradient");
  comm->alone([&](unisono::Communicator& open) {
    up::vocabulary_embedding_backward(open, vocabulary, width, from.span(), words.span(),
                                      to.span());
  });
  return table_gradient;
}

py::object cross_entropy(const std::shared_ptr<Comm>& comm, std::size_t vocabulary,
                         const py::object& logits, const py::object& targets, float scale,
                         const py::object& losses) {
  const AnyFloats parts(logits, Use::write, "logits");
  const Integers words(targets, "targets");
  const Floats to(losses, Use::write, "losses");
  comm->alone([&](unisono::Communicator& open) {
    up::vocabulary_cross_entropy(open, vocabulary, parts.span(), words.span(), scale, to.span());
  });
  return losses;
}

}  // namespace

void define_layers(py::module_& module) {
  define_region(module, "enter_region", up::enter_region,
                "Enters a tensor-parallel region: does nothing, or with sequence an all_gather of "
                "the rows. Returns `out`, with all rows.");
  define_region(
      module, "enter_region_backward", up::enter_region_backward,
      "The backward pass of entering: all_reduce, or with sequence reduce_scatter over the rows.");
  define_region(module, "leave_region", up::leave_region,
                "Leaves a tensor-parallel region: sums `data` over the ranks, with sequence only "
                "for this rank's rows.");
  define_region(
      module, "leave_region_backward", up::leave_region_backward,
      "The backward pass of leaving: nothing, or with sequence an all_gather of the rows.");
  module.def(
      "head_share",
      [](std::size_t heads, std::size_t key_value_heads, int ranks, int rank, bool even) {
        const auto share = up::head_share(heads, key_value_heads, ranks, rank, even);
        return py::make_tuple(slice_of(share.query), slice_of(share.key_value));
      },
      arg("heads"), arg("key_value_heads"), arg("ranks"), arg("rank"), arg("even") = false,
      "Returns the query heads and the key-value heads of a rank, as slices; `even` rejects heads "
      "that the ranks do not divide.");
  module.def(
      "head_map",
      [](std::size_t heads, std::size_t key_value_heads, int ranks, int rank) {
        const auto share = up::head_share(heads, key_value_heads, ranks, rank);
        std::vector<std::size_t> map;
        for (std::size_t head = 0; head < share.query.count; ++head) {
          map.push_back(share.key_value_of(head));
        }
        return map;
      },
      arg("heads"), arg("key_value_heads"), arg("ranks"), arg("rank"),
      "Returns, for each query head of head_share(), the index of its key-value head among those "
      "of the rank.");
  module.def("vocabulary_embedding", &embedding, arg("comm"), arg("vocabulary"), arg("width"),
             arg("table"), arg("tokens"), arg("out"),
             "Sets out[i] to row tokens[i] of the table if this rank has it, else to zeros; the "
             "sum over ranks is the embedding.");
  module.def("vocabulary_embedding_backward", &embedding_backward, arg("comm"), arg("vocabulary"),
             arg("width"), arg("out_gradient"), arg("tokens"), arg("table_gradient"),
             "Adds the gradients of this rank's rows to table_gradient.");
  module.def("vocabulary_cross_entropy", &cross_entropy, arg("comm"), arg("vocabulary"),
             arg("logits"), arg("targets"), arg("scale"), arg("losses"),
             "Returns the loss of each token from this rank's columns of the logits, and replaces "
             "the logits by their gradients times `scale`.");
  module.def(
      "top_candidates",
      [](const std::shared_ptr<Comm>& comm, std::size_t vocabulary, const py::object& logits,
         std::size_t count) {
        const AnyFloats parts(logits, Use::read, "logits");
        const auto found = comm->alone([&](unisono::Communicator& open) {
          return up::top_candidates(open, vocabulary, parts.span(), count);
        });
        std::vector<std::pair<float, std::int32_t>> all;
        for (const up::Candidate& candidate : found) {
          all.emplace_back(candidate.logit, candidate.token);
        }
        return all;
      },
      arg("comm"), arg("vocabulary"), arg("logits"), arg("count"),
      "Returns the most likely tokens, likeliest first, as (logit, token), the same on all ranks.");
  module.def(
      "sample",
      [](const std::vector<std::pair<float, std::int32_t>>& candidates, double temperature,
         double uniform) {
        std::vector<up::Candidate> all;
        for (const auto& [logit, token] : candidates) {
          all.push_back({.logit = logit, .token = token});
        }
        return up::sample(all, temperature, uniform);
      },
      arg("candidates"), arg("temperature"), arg("uniform"),
      "Draws one of top_candidates() with softmax(logit / temperature); uniform: in [0, 1), the "
      "same on all ranks.");
}

}  // namespace unisono_python
