// Checks the buffers of each collective and fills in its call.
#pragma once

#include <optional>
#include <string>

#include "job.h"

namespace unisono_python {

namespace calls {

using Object = const py::object&;
using OptionalCounts = const std::optional<Counts>&;

// Fill in the job.
void broadcast(Job& job, Object data, int root);
void all_reduce(Job& job, Object data, Object out, Object op);
void reduce(Job& job, Object data, Object out, Object op, int root);
void scatter(Job& job, Object data, Object out, int root);
void gather(Job& job, Object data, Object out, int root);
void all_gather(Job& job, Object data, Object out);
void reduce_scatter(Job& job, Object data, Object out, Object op);
void all_to_all(Job& job, Object data, Object out);
void barrier(Job&);
void all_gather_v(Job& job, Object data, Object out, const Counts& counts, OptionalCounts displs);
void reduce_scatter_v(Job& job, Object data, Object out, const Counts& counts, Object op,
                      OptionalCounts displs);
void scatter_v(Job& job, Object data, Object out, const Counts& counts, int root,
               OptionalCounts displs);
void gather_v(Job& job, Object data, Object out, const Counts& counts, int root,
              OptionalCounts displs);
void all_to_all_v(Job& job, Object data, const Counts& counts, Object out,
                  const Counts& recv_counts, OptionalCounts displs, OptionalCounts recv_displs);

}  // namespace calls

// Calls define(name, collective, function above, doc, arguments...) for each method.
template <typename Define>
void define_collective_calls(const Define& define) {
  define("broadcast", unisono::Collective::broadcast, &calls::broadcast,
         "Copies the root's `data` into `data` of all ranks. Returns `data`.", py::arg("data"),
         py::arg("root") = 0, py::kw_only());
  define("all_reduce", unisono::Collective::all_reduce, &calls::all_reduce,
         "Reduces `data` of all ranks into `out` on all ranks; without `out`, into `data`.",
         py::arg("data"), py::arg("out") = py::none(), py::arg("op") = "sum", py::kw_only());
  define("reduce", unisono::Collective::reduce, &calls::reduce,
         "Reduces `data` of all ranks into `out` on the root; without `out`, into its `data`.",
         py::arg("data"), py::arg("out") = py::none(), py::arg("op") = "sum", py::arg("root") = 0,
         py::kw_only());
  define("scatter", unisono::Collective::scatter, &calls::scatter,
         "Copies part r of the root's `data` (size * n elements) into `out` (n) of rank r.",
         py::arg("data"), py::arg("out"), py::arg("root") = 0, py::kw_only());
  define("gather", unisono::Collective::gather, &calls::gather,
         "Copies `data` (n elements) of rank r into part r of the root's `out` (size * n).",
         py::arg("data"), py::arg("out") = py::none(), py::arg("root") = 0, py::kw_only());
  define("all_gather", unisono::Collective::all_gather, &calls::all_gather,
         "Copies `data` (n elements) of rank r into part r of every `out` (size * n).",
         py::arg("data"), py::arg("out"), py::kw_only());
  define("reduce_scatter", unisono::Collective::reduce_scatter, &calls::reduce_scatter,
         "Reduces all `data` (size * n), and writes part r to `out` (n elements) of rank r.",
         py::arg("data"), py::arg("out"), py::arg("op") = "sum", py::kw_only());
  define("all_to_all", unisono::Collective::all_to_all, &calls::all_to_all,
         "Copies part d of rank s's `data` into part s of rank d's `out`; both have size * n "
         "elements.",
         py::arg("data"), py::arg("out"), py::kw_only());
  define("scan", unisono::Collective::scan, &calls::all_reduce,
         "Reduces `data` of ranks 0 to r into `out` on rank r; without `out`, into `data`.",
         py::arg("data"), py::arg("out") = py::none(), py::arg("op") = "sum", py::kw_only());
  define(
      "exclusive_scan", unisono::Collective::exclusive_scan, &calls::all_reduce,
      "Reduces `data` of ranks 0 to r-1 into `out` on rank r; without `out`, into `data`. Rank 0 "
      "gets the identity of `op`, such as 0 for a sum.",
      py::arg("data"), py::arg("out") = py::none(), py::arg("op") = "sum", py::kw_only());
  define("barrier", unisono::Collective::barrier, &calls::barrier,
         "Waits until all ranks have called it.", py::kw_only());
  const std::string lists =
      " `counts` has the number of elements of each rank's part, the same on all ranks. Parts are "
      "packed in rank order, or start at `displs`.";
  define("scatter_v", unisono::Collective::scatter_v, &calls::scatter_v,
         "Copies part r of the root's `data` into `out` of rank r." + lists, py::arg("data"),
         py::arg("out"), py::arg("counts"), py::arg("root") = 0, py::arg("displs") = py::none(),
         py::kw_only());
  define("gather_v", unisono::Collective::gather_v, &calls::gather_v,
         "Copies `data` of rank r into part r of the root's `out`." + lists, py::arg("data"),
         py::arg("out") = py::none(), py::arg("counts") = Counts{}, py::arg("root") = 0,
         py::arg("displs") = py::none(), py::kw_only());
  define("all_gather_v", unisono::Collective::all_gather_v, &calls::all_gather_v,
         "Copies `data` of rank r into part r of every `out`." + lists, py::arg("data"),
         py::arg("out"), py::arg("counts"), py::arg("displs") = py::none(), py::kw_only());
  define("reduce_scatter_v", unisono::Collective::reduce_scatter_v, &calls::reduce_scatter_v,
         "Reduces all `data`, and writes part r to `out` of rank r." + lists, py::arg("data"),
         py::arg("out"), py::arg("counts"), py::arg("op") = "sum", py::arg("displs") = py::none(),
         py::kw_only());
  define("all_to_all_v", unisono::Collective::all_to_all_v, &calls::all_to_all_v,
         "Sends counts[i] elements of `data` to rank i, and receives recv_counts[i] from it.",
         py::arg("data"), py::arg("counts"), py::arg("out"), py::arg("recv_counts"),
         py::arg("displs") = py::none(), py::arg("recv_displs") = py::none(), py::kw_only());
}

}  // namespace unisono_python
