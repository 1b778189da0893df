// Checks the buffers of each collective, and defines its Python methods.
#include <pybind11/stl.h>

#include "collective_calls.h"
#include "communicator.h"

namespace unisono_python {
namespace {

using unisono::Collective;
using Object = const py::object&;

void expect(const char* name, const Memory& memory, std::size_t count) {
  if (memory.count() != count) {
    Job::refuse(std::string(name) + " has " + std::to_string(memory.count()) +
                " elements; it must have " + std::to_string(count));
  }
}

std::size_t count_of_rank(const Job& job, const Counts& counts) {
  return counts.size() == job.size() ? counts[static_cast<std::size_t>(job.rank())] : 0;
}

// Defines the blocking, the asynchronous and the plan method of a collective from a function that
// fills in the job.
template <typename... Inputs, typename... Extra>
void define(py::class_<Comm, std::shared_ptr<Comm>>& comm, const std::string& name,
            Collective collective, void (*fill)(Job&, Inputs...), const std::string& doc,
            const Extra&... extra) {
  const auto prepare = [fill, collective](Comm& self, Inputs... inputs, Object dtype,
                                          double max_error, const std::string& algorithm,
                                          int timeout_ms) {
    auto job = self.job({.dtype = dtype, .algorithm = algorithm, .timeout_ms = timeout_ms});
    job->call.collective = collective;
    job->call.max_error = max_error;
    fill(*job, inputs...);
    return job;
  };
  const auto add = [&](const std::string& method, auto function, const std::string& text) {
    comm.def(method.c_str(), function, extra..., py::arg("dtype") = py::none(),
             py::arg("max_error") = unisono::kInheritedMaxError, py::arg("algorithm") = "",
             py::arg("timeout_ms") = -1, text.c_str());
  };
  add(
      name,
      [prepare](Comm& self, Inputs... inputs, Object dtype, double max_error,
                const std::string& algorithm, int timeout_ms) {
        return self.run(prepare(self, inputs..., dtype, max_error, algorithm, timeout_ms));
      },
      doc);
  add(
      name + "_async",
      [prepare](Comm& self, Inputs... inputs, Object dtype, double max_error,
                const std::string& algorithm, int timeout_ms) {
        return self.start(prepare(self, inputs..., dtype, max_error, algorithm, timeout_ms));
      },
      "As " + name + "(), but returns a Request. Do not touch its buffers before it ends.");
  add(
      name + "_plan",
      [prepare](Comm& self, Inputs... inputs, Object dtype, double max_error,
                const std::string& algorithm, int timeout_ms) {
        return self.plan(prepare(self, inputs..., dtype, max_error, algorithm, timeout_ms));
      },
      "Prepares " + name + "() on these buffers, which start() runs repeatedly. Sends nothing.");
}

}  // namespace

namespace calls {

void broadcast(Job& job, Object data, int root) {
  const Memory& memory = job.write(data, "data");
  job.call.in = memory.data();
  job.set_count(memory.count());
  job.set_root(root);
}

void all_reduce(Job& job, Object data, Object out, Object op) {
  if (out.is_none()) {
    const Memory& memory = job.write(data, "data");
    job.call.in = memory.data();
    job.set_count(memory.count());
  } else {
    const Memory& memory = job.read(data, "data");
    expect("out", job.write(out, "out"), memory.count());
    job.set_count(memory.count());
  }
  job.set_op(op);
}

void reduce(Job& job, Object data, Object out, Object op, int root) {
  job.set_root(root);
  if (job.rank() == root) {
    all_reduce(job, data, out, op);
    return;
  }
  job.set_count(job.read(data, "data").count());
  job.set_op(op);
}

void scatter(Job& job, Object data, Object out, int root) {
  job.set_root(root);
  const std::size_t count = job.write(out, "out").count();
  if (job.rank() == root) {
    expect("data", job.read(data, "data"), count * job.size());
  }
  job.set_count(count);
}

void gather(Job& job, Object data, Object out, int root) {
  job.set_root(root);
  const std::size_t count = job.read(data, "data").count();
  if (job.rank() == root) {
    expect("out", job.write(out, "out"), count * job.size());
  }
  job.set_count(count);
}

void all_gather(Job& job, Object data, Object out) {
  const std::size_t count = job.read(data, "data").count();
  expect("out", job.write(out, "out"), count * job.size());
  job.set_count(count);
}

void reduce_scatter(Job& job, Object data, Object out, Object op) {
  const Memory& memory = job.read(data, "data");
  const std::size_t count = job.write(out, "out").count();
  expect("data", memory, count * job.size());
  job.set_count(count);
  job.set_op(op);
}

void all_to_all(Job& job, Object data, Object out) {
  const Memory& memory = job.read(data, "data");
  expect("out", job.write(out, "out"), memory.count());
  if (memory.count() % job.size() != 0) {
    Job::refuse("data has " + std::to_string(memory.count()) + " elements, which " +
                std::to_string(job.size()) + " ranks do not divide; use all_to_all_v");
  }
  job.set_count(memory.count() / job.size());
}

void barrier(Job&) {}

void all_gather_v(Job& job, Object data, Object out, const Counts& counts, OptionalCounts displs) {
  const Memory& memory = job.read(data, "data");
  job.set_parts(counts, displs, &job.write(out, "out"), "out");
  expect("data", memory, count_of_rank(job, counts));
}

void reduce_scatter_v(Job& job, Object data, Object out, const Counts& counts, Object op,
                      OptionalCounts displs) {
  job.set_parts(counts, displs, &job.read(data, "data"), "data");
  expect("out", job.write(out, "out"), count_of_rank(job, counts));
  job.set_op(op);
}

void scatter_v(Job& job, Object data, Object out, const Counts& counts, int root,
               OptionalCounts displs) {
  job.set_root(root);
  const Memory& memory = job.write(out, "out");
  job.set_parts(counts, displs, job.rank() == root ? &job.read(data, "data") : nullptr, "data");
  expect("out", memory, count_of_rank(job, counts));
}

void gather_v(Job& job, Object data, Object out, const Counts& counts, int root,
              OptionalCounts displs) {
  job.set_root(root);
  const Memory& memory = job.read(data, "data");
  job.set_parts(counts, displs, job.rank() == root ? &job.write(out, "out") : nullptr, "out");
  expect("data", memory, count_of_rank(job, counts));
}

void all_to_all_v(Job& job, Object data, const Counts& counts, Object out,
                  const Counts& recv_counts, OptionalCounts displs, OptionalCounts recv_displs) {
  job.set_parts(counts, displs, &job.read(data, "data"), "data");
  job.set_received(recv_counts, recv_displs, job.write(out, "out"));
}

}  // namespace calls

void define_collectives(py::class_<Comm, std::shared_ptr<Comm>>& comm) {
  using py::arg;
  define_collective_calls(
      [&comm](const char* name, Collective collective, auto fill, const std::string& doc,
              const auto&... extra) { define(comm, name, collective, fill, doc, extra...); });
  comm.def(
      "explain",
      [](Comm& self, const std::string& collective, std::size_t count, Object dtype, int root,
         const std::string& algorithm) {
        const auto word = unisono::parse_collective(collective);
        if (!word.has_value()) {
          Job::refuse("there is no collective '" + collective + "'");
        }
        auto job = self.job({.dtype = dtype, .algorithm = algorithm});
        job->call.collective = *word;
        job->set_root(root);
        job->set_count(count);
        const Counts equal(job->size(), count);
        if (collective.ends_with("_v")) {
          job->set_parts(equal, std::nullopt, nullptr, "");
        }
        return self.alone([&](unisono::Communicator& open) { return open.explain(job->call); });
      },
      arg("collective"), arg("count"), arg("dtype") = "float32", py::kw_only(), arg("root") = 0,
      arg("algorithm") = "",
      "Explains which algorithm a call with `count` elements uses, and why; for v-forms, with that "
      "many elements per part. Local.");
}

}  // namespace unisono_python
