// The life of a communicator, and how its operations run.
#include "communicator.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <set>

namespace unisono_python {
namespace {

// Open communicators, which leave in order at the end of the process.
std::set<Comm*>& open_communicators() {
  static auto* all = new std::set<Comm*>;
  return *all;
}

void close_all() {
  for (Comm* comm : std::set<Comm*>(open_communicators())) {
    comm->close();
  }
}

void define_requests(py::module_& module) {
  using py::arg;
  py::class_<Request>(module, "Request",
                      "An operation under way. Keeps its buffers alive; its destructor waits.")
      .def("wait", &Request::wait, arg("timeout_ms") = -1,
           "Returns what the blocking form returns when the operation has ended, or raises what "
           "ended it. timeout_ms: -1 the communicator's, 0 for ever; running out of it ends the "
           "operations of the world.")
      .def("test", &Request::test, "Whether it has ended. Never blocks.")
      .def("source", &Request::source, "Of a receive that has ended: the rank it came from.");
  py::class_<Plan>(module, "Plan",
                   "A collective whose checks and choices are made once; keeps its buffers.")
      .def("start", &Plan::start, "Runs it, and returns as the blocking form does.")
      .def("start_async", &Plan::start_async, "Begins it, and returns a Request.")
      .def_property_readonly("algorithm", &Plan::algorithm, "What was chosen, such as 'ring'.");
  py::class_<Premultiplied>(module, "premul_sum",
                            "op=premul_sum(factor): each rank's input times `factor`, summed.")
      .def(py::init<double>(), arg("factor"))
      .def_readonly("factor", &Premultiplied::factor);
}

void define_explanation(py::module_& module) {
  using unisono::Explanation;
  const auto rows = [](const Explanation& self) {
    py::list result;
    for (const Explanation::Candidate& candidate : self.candidates) {
      py::dict row;
      row["algorithm"] = candidate.algorithm;
      row["steps"] = candidate.steps;
      row["sent_bytes"] = candidate.sent_bytes;
      row["predicted_us"] =
          candidate.predicted_us < 0 ? py::object(py::none()) : py::cast(candidate.predicted_us);
      row["chosen"] = candidate.chosen;
      result.append(row);
    }
    return result;
  };
  py::class_<Explanation>(module, "Explanation", "Which algorithm a call gets, and why.")
      .def_readonly("chosen", &Explanation::chosen)
      .def_property_readonly(
          "why", [](const Explanation& self) { return to_string(self.why); },
          "call, option, profile or built_in.")
      .def_readonly("profile", &Explanation::profile, "The file, where there is one.")
      .def_property_readonly("candidates", rows, "Fastest first as far as that is known.")
      .def_property_readonly(
          "unable",
          [](const Explanation& self) {
            py::dict result;
            for (const Explanation::Unable& other : self.unable) {
              result[py::str(other.algorithm)] = other.reason;
            }
            return result;
          },
          "Why the others cannot serve.")
      .def("__str__", &Explanation::text);
}

}  // namespace

std::shared_ptr<Comm> adopt(unisono::Communicator communicator) {
  return adopt(std::make_shared<unisono::Communicator>(std::move(communicator)));
}

std::shared_ptr<Comm> adopt(std::shared_ptr<unisono::Communicator> communicator) {
  auto comm = std::make_shared<Comm>(std::move(communicator));
  open_communicators().insert(comm.get());
  return comm;
}

Request::~Request() {
  const py::gil_scoped_release unlocked;
  request_ = {};
}

py::object Request::wait(int timeout_ms) {
  {
    const py::gil_scoped_release unlocked;
    const std::lock_guard lock(waiting_);
    outcome_.wait(request_, timeout_ms);
  }
  job_->rethrow_user_error();
  return job_->result;
}

bool Request::test() {
  const py::gil_scoped_release unlocked;
  const std::unique_lock lock(waiting_, std::try_to_lock);
  return lock.owns_lock() && (outcome_.has_ended() || request_.test());
}

py::object Plan::start() {
  comm_->alone([this](unisono::Communicator&) { plan_.start(); });
  job_->rethrow_user_error();
  return job_->result;
}

std::unique_ptr<Request> Plan::start_async() {
  return comm_->begin(job_, [this] { return plan_.start_async(); });
}

unisono::Communicator& Comm::open() const {
  if (communicator_ == nullptr) {
    throw py::value_error("this communicator is closed");
  }
  return *communicator_;
}

std::shared_ptr<unisono::Communicator> Comm::shared() const {
  open();
  return communicator_;
}

void Comm::close() {
  open_communicators().erase(this);
  const py::gil_scoped_release unlocked;
  const std::lock_guard lock(using_);
  std::shared_ptr<unisono::Communicator> leaving;
  const std::lock_guard alone(looking_);
  leaving.swap(communicator_);
}

void Comm::abort(const std::string& reason) {
  const py::gil_scoped_release unlocked;
  const std::lock_guard lock(looking_);
  open().abort(reason);
}

void Comm::label(const std::string& text) {
  const py::gil_scoped_release unlocked;
  const std::lock_guard lock(looking_);
  open().label(text);
}

py::object Comm::failure() {
  std::optional<unisono::Error> found;
  {
    const py::gil_scoped_release unlocked;
    const std::lock_guard lock(looking_);
    found = open().failure();
  }
  return found ? to_python(*found) : py::none();
}

std::vector<int> Comm::late_ranks() {
  return locked([this] { return open().late_ranks(); });
}

py::dict Comm::statistics() {
  unisono::Statistics found;
  {
    const py::gil_scoped_release unlocked;
    const std::lock_guard lock(looking_);
    found = open().statistics();
  }
  py::dict result;
  for (const unisono::Statistics::Row& row : found.rows) {
    py::dict values;
    values["calls"] = row.calls;
    values["bytes"] = row.bytes;
    values["moving_s"] = row.moving_s;
    values["waiting_s"] = row.waiting_s;
    values["waiting_for_s"] = row.waiting_for_s;
    values["skew"] = std::vector<std::uint64_t>(row.skew.begin(), row.skew.end());
    result[py::str(row.what)] = values;
  }
  return result;
}

std::shared_ptr<Job> Comm::job(const Common& common) const {
  return std::make_shared<Job>(rank(), size(), common);
}

py::object Comm::run(std::shared_ptr<Job> job) {
  alone([&](unisono::Communicator& open) { open.run(job->call); });
  job->rethrow_user_error();
  return job->result;
}

std::unique_ptr<Plan> Comm::plan(std::shared_ptr<Job> job) {
  std::optional<unisono::Plan> plan;
  alone([&](unisono::Communicator& open) { plan = open.plan(job->call); });
  return std::make_unique<Plan>(shared_from_this(), std::move(job), std::move(*plan));
}

std::unique_ptr<Request> Comm::start(std::shared_ptr<Job> job) {
  const unisono::Call& call = job->call;
  return begin(std::move(job), [this, &call] { return open().run_async(call); });
}

std::unique_ptr<Request> Comm::begin(std::shared_ptr<Job> job,
                                     const std::function<unisono::Request()>& begin) {
  unisono::Request request;
  const bool grouping = alone([&](unisono::Communicator&) {
    request = begin();
    return grouping_;
  });
  if (grouping) {
    grouped_.push_back(job);
  }
  return std::make_unique<Request>(std::move(job), std::move(request));
}

void Comm::group(const py::function& body) {
  std::vector<std::shared_ptr<Job>> jobs;
  alone([&](unisono::Communicator& open) {
    const bool outer = !std::exchange(grouping_, true);
    try {
      open.group([&] {
        const py::gil_scoped_acquire locked;
        body();
      });
    } catch (...) {
      grouping_ = !outer;
      jobs = outer ? std::exchange(grouped_, {}) : std::vector<std::shared_ptr<Job>>{};
      throw;
    }
    grouping_ = !outer;
    if (outer) {
      jobs = std::exchange(grouped_, {});
    }
  });
  for (const auto& job : jobs) {
    job->rethrow_user_error();
  }
}

void define_communicator(py::module_& module) {
  using py::arg;
  define_requests(module);
  define_region(module);
  define_explanation(module);
  py::class_<Comm, std::shared_ptr<Comm>> comm(
      module, "Communicator",
      "This rank's end of a group of ranks. Calls of several threads run one after the other; "
      "abort(), failure() and statistics() alone do not wait for them. With an `accuracy`, such as "
      "0.01, of a call, ranks on several hosts may round float32 on the way.");
  comm.def_property_readonly("rank", &Comm::rank, "This rank's number in the group, from 0.")
      .def_property_readonly("size", &Comm::size, "How many ranks the group has.")
      .def_property_readonly("hosts", &Comm::hosts, "On how many hosts the ranks of the group are.")
      .def_property_readonly("closed", &Comm::is_closed)
      .def("close", &Comm::close, "Leaves the group. Peers that wait for this rank get PeerLost.")
      .def("abort", &Comm::abort, arg("reason") = "",
           "Ends all operations of this world on all ranks with Aborted. Any thread.")
      .def("label", &Comm::label, arg("text") = "",
           "What the next calls of this rank on any group of this world are for: a layer, a phase. "
           "Recordings name the calls by it, until the next label; empty: nothing. Any thread.")
      .def(
          "failure", &Comm::failure,
          "What has ended the world of this communicator, as the exception that the next operation "
          "would raise; None while nothing is known. Looks for ranks that have died, and never "
          "waits. Any thread, also during an operation.")
      .def("late_ranks", &Comm::late_ranks,
           "The ranks of this group that have not entered the latest collective of this rank: also "
           "when that has ended with a timeout. Ranks of other hosts tell where they are while "
           "somebody "
           "waits, and are late before.")
      .def("statistics", &Comm::statistics,
           "What the calls of this group have cost this rank: for each kind of call its calls, "
           "bytes, moving_s, waiting_s, waiting_for_s by rank, and skew, a histogram of the waits "
           "of "
           "calls: [0] below a microsecond, [k] from 2**(k-1) to 2**k. Any thread, also during an "
           "operation.")
      .def("__enter__", [](const std::shared_ptr<Comm>& self) { return self; })
      .def("__exit__",
           [](Comm& self, const py::object& type, const py::object& error, const py::object&) {
             if (!type.is_none() && !self.is_closed()) {  // peers must not wait for this rank
               self.abort(py::str(error));
             }
             self.close();
           })
      .def("__repr__", [](const Comm& self) {
        return self.is_closed() ? std::string("<unisono.Communicator, closed>")
                                : "<unisono.Communicator, rank " + std::to_string(self.rank()) +
                                      " of " + std::to_string(self.size()) + ">";
      });
  define_collectives(comm);
  define_messages(comm);
  define_groups(comm);
  define_connecting(module);
  module.attr("ANY_SOURCE") = unisono::kAnySource;
  module.def("_close_all", &close_all);
}

}  // namespace unisono_python
