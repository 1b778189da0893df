#include "step/finding.h"

#include "base/bytes_text.h"

namespace unisono::step {
namespace {

std::string lies(const std::string& tensor, const Placement& placement, const std::string& axis) {
  return tensor + " is " + to_text(placement) + " over " + axis;
}

std::string sentence(const Finding& f) {
  using Kind = Finding::Kind;
  switch (f.kind) {
    case Kind::not_there:
      return f.tensor + " does not exist yet";
    case Kind::unsummed:
      return lies(f.tensor, f.found, f.axis) + ", but is read as if it were whole";
    case Kind::summed_twice:
      return lies(f.tensor, f.found, f.axis) + ", but is added to summands of " + f.other +
             ": it would count once for each rank";
    case Kind::product_of_sums:
      return lies(f.tensor, f.found, f.axis) + ", and so is " + f.other +
             ": products of summands do not add up to the product";
    case Kind::two_cuts:
      return lies(f.tensor, f.found, f.axis) + ", and " + f.other + " is " + to_text(f.wanted);
    case Kind::whole_beside_part:
      return lies(f.tensor, f.found, f.axis) + ", where " + f.other + " is " + to_text(f.wanted);
    case Kind::needs_whole:
      return lies(f.tensor, f.found, f.axis) + ", but is needed whole";
    case Kind::not_as_said:
      return lies(f.tensor, f.found, f.axis) + ", not " + to_text(f.wanted);
    case Kind::no_conversion:
      return "nothing makes " + to_text(f.wanted) + " of " + to_text(f.found) + " over " + f.axis;
    case Kind::lost_dimension:
      return lies(f.tensor, f.found, f.axis) + ", a dimension that " + f.other + " does not have";
    case Kind::never_home:
      return "no ring_home over " + f.axis + " follows to return its parts";
    case Kind::never_out:
      return "no ring_with of matching parts precedes it over " + f.axis;
    case Kind::stages_differ:
      return "the " + f.tensor + " of stage " + std::to_string(f.stage) +
             " has another placement than on the first stage that has it";
    case Kind::order:
      return pipeline::sentence(*f.pipeline);
    case Kind::unread:
      return "nothing reads the " + f.tensor + " that it writes";
    case Kind::result:
      return "in the end " + lies(f.tensor, f.found, f.axis) + ", but should be " +
             to_text(f.wanted);
    case Kind::no_result:
      return f.stage < 0 ? "in the end no stage has " + f.tensor
                         : "in the end stage " + std::to_string(f.stage) + " has no " + f.tensor;
    case Kind::memory:
      return "rank " + std::to_string(f.rank) + " needs " + format_bytes(f.bytes) +
             ", more than the " + format_bytes(f.most_bytes) + " that the step states";
  }
  return {};
}

}  // namespace

std::string to_text(const Finding& finding) {
  std::string place = finding.section;
  if (!finding.node.empty()) {
    place += (place.empty() ? "" : ", ") + finding.node;
  }
  return place.empty() ? sentence(finding) : place + ": " + sentence(finding);
}

}  // namespace unisono::step
