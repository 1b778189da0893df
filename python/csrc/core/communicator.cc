// The lifetime of a communicator, and its operations.
#include "communicator.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <set>

namespace unisono_python {
namespace {

// Open communicators, which are closed in order at the end of the process.
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
                      "An operation in progress. Keeps its buffers alive; its destructor waits.")
      .def("wait", &Request::wait, arg("timeout_ms") = -1,
           "Waits for the operation, and returns what the blocking form returns, or raises its "
           "error. timeout_ms: -1 the communicator's, 0 no limit; when it expires, all operations "
           "of the world end.")
      .def("test", &Request::test, "Returns whether the operation has ended. Never blocks.")
      .def("source", &Request::source,
           "The rank from which a completed receive came; ANY_SOURCE before it has ended.")
      .def("received", &Request::received,
           "The bytes of the message of a completed receive; 0 before it has ended.");
  py::class_<Plan>(module, "Plan",
                   "A collective that is checked and planned once; keeps its buffers.")
      .def("start", &Plan::start, "Runs it, and returns what the blocking form returns.")
      .def("start_async", &Plan::start_async, "Starts it, and returns a Request.")
      .def_property_readonly("algorithm", &Plan::algorithm,
                             "The chosen algorithm, such as 'ring'.");
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
  py::class_<Explanation>(module, "Explanation", "The algorithm of a call, and why it is chosen.")
      .def_readonly("chosen", &Explanation::chosen)
      .def_property_readonly(
          "why", [](const Explanation& self) { return to_string(self.why); },
          "call, option, profile, built_in, model or max_error.")
      .def_readonly("profile", &Explanation::profile, "The profile's file, if there is one.")
      .def_property_readonly("candidates", rows,
                             "The usable algorithms, fastest first if times are known.")
      .def_property_readonly(
          "unable",
          [](const Explanation& self) {
            py::dict result;
            for (const Explanation::Unable& other : self.unable) {
              result[py::str(other.algorithm)] = other.reason;
            }
            return result;
          },
          "The other algorithms, with the reason why each is unusable.")
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
      "A group of ranks, as seen by this rank. Calls from several threads run one after the other; "
      "only abort(), label(), failure() and statistics() do not wait for them. If a call has a "
      "`max_error`, such as 0.01, float32 data between hosts may be rounded.");
  comm.def_property_readonly("rank", &Comm::rank, "This rank's number in the group, from 0.")
      .def_property_readonly("size", &Comm::size, "The number of ranks in the group.")
      .def_property_readonly("hosts", &Comm::hosts, "The number of hosts of the group.")
      .def_property_readonly("local_rank", &Comm::local_rank,
                             "This rank's number among the ranks of the group on its host.")
      .def_property_readonly("local_size", &Comm::local_size,
                             "The number of ranks of the group on this rank's host.")
      .def_property_readonly("closed", &Comm::is_closed)
      .def("close", &Comm::close,
           "Leaves the group. Once this rank has no group, plan, request or region of a world, "
           "peers that wait for this rank raise PeerLostError.")
      .def("abort", &Comm::abort, arg("reason") = "",
           "Ends all operations of this world on all ranks with AbortedError. Any thread may call "
           "it.")
      .def("label", &Comm::label, arg("text") = "",
           "Labels this rank's next calls on any group of this world, for example with a layer or "
           "phase. Recordings show the label, until the next one; empty: no label. Any thread may "
           "call it.")
      .def("failure", &Comm::failure,
           "Returns the failure that has ended this communicator's world, as the exception that "
           "the next operation would raise, or None. Checks for dead ranks, and never waits. Any "
           "thread may call it, also during an operation.")
      .def("late_ranks", &Comm::late_ranks,
           "Returns the ranks of this group that have not entered this rank's latest collective, "
           "also after a timeout. Ranks of other hosts report their position only while a rank "
           "waits; before that they count as late.")
      .def("statistics", &Comm::statistics,
           "Returns what this group's calls have cost this rank. For each kind of call: calls, "
           "bytes, moving_s, waiting_s, waiting_for_s by rank, and skew, a histogram of waits per "
           "call: [0] below one microsecond, [k] from 2**(k-1) to 2**k. Any thread may call it, "
           "also during an operation.")
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
