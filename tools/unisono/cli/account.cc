#include "cli/account.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

namespace unisono::cli {

std::string account_text(const Account& account) {
  std::string text = fmt::format("{}: {} {}{} read, {} used", account.source, account.read(),
                                 account.unit, account.read() == 1 ? "" : "s", account.used);
  for (const Account::LeftOut& one : account.left_out) {
    text += fmt::format("\n  {} left out: {}", one.count, one.why);
  }
  for (const std::string& what : account.assumed) {
    text += fmt::format("\n  assumed: {}", what);
  }
  return text;
}

void note_account(const Account& account, const Console& console) {
  const std::string text = account_text(account);
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    console.note(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

nlohmann::ordered_json account_json(const Account& account) {
  nlohmann::ordered_json json = {{"source", account.source},
                                 {"unit", account.unit},
                                 {"read", account.read()},
                                 {"used", account.used},
                                 {"left_out", nlohmann::ordered_json::array()},
                                 {"assumed", account.assumed}};
  for (const Account::LeftOut& one : account.left_out) {
    json["left_out"].push_back({{"count", one.count}, {"why", one.why}});
  }
  return json;
}

}  // namespace unisono::cli
