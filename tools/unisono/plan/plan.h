// The parts of `unisono plan`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/move_code.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "cost/machine_json.h"
#include "network_model/expert_traffic.h"
#include "network_model/plan.h"
#include "topology/topology.h"

namespace unisono::cli {

// "alpha=5us,beta=12.5GB/s[,gamma=100GB/s][,floor=10us]". Throws UsageError.
cost::Parameters parse_link(std::string_view text);
// "12.5GB/s" -> seconds a byte. Throws UsageError, which begins with `what`.
double s_per_byte(std::string_view what, std::string_view text, std::string_view next);
// Returns "5 us + 12.5 GB/s", and gamma and floor if they are set.
std::string link_text(const cost::Parameters& parameters);
// "9.43 ms": three digits and a unit.
std::string time_text(double seconds);
std::string tokens_text(double tokens);  // "1 token", "4096 tokens"
// Rounds to six digits, because measurements and predictions are not more precise.
double rounded(double value);

// Prints a table of the algorithms that could run.
void print_plan(const network_model::Plan& plan, const Console& console);

// The error of the fit on unseen measurements that are as far from the others as the call: other
// sizes, rank counts or collectives. Errors are fractions of the measured time.
struct ErrorBar {
  std::size_t rows = 0;  // 0: too few measurements
  double median = 0;
  double p90 = 0;
  std::string left_out = {};
};
ErrorBar error_bar(const std::vector<cost::Point>& points, const network_model::Call& call);

// Prints a fitted machine's prediction for a call.
void print_prediction(const cost::NamedMachine& machine, const network_model::Call& call,
                      const Console& console);

// Reads the table, fits every machine in it, and reports the error on rows that were left out.
int run_fit(const Arguments& arguments, const Console& console);

// The first words of the source of a topology that run_fit_on() fits.
inline constexpr std::string_view kFittedTo = "Fitted to ";
int run_fit_on(const Arguments& arguments, const Console& console);

// Returns the code of `--max-error` for a collective; none without it. Throws UsageError.
MoveCode code_of(const Arguments& arguments, Collective collective);

// Simulates every algorithm that supports the call on the topology, and prints the times. `code`:
// also simulates algorithms that encode moves between nodes in this way.
void plan_on(const network_model::Call& call, const Topology& topology, MoveCode code,
             const Console& console);

// `unisono plan moe`: prints bytes, bound and time of dispatch and combine on a topology.
void plan_experts(const Arguments& arguments, const Console& console);
// With --fit: predicts the time of the shape on the machines of the table.
void fit_experts(const Arguments& arguments, const network_model::ExpertShape& shape,
                 const Console& console);

cost::NamedMachine load_machine(const std::string& path);

}  // namespace unisono::cli
