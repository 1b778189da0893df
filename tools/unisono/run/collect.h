// Fetches what ranks of other hosts recorded, by the same program that started them there.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/console.h"
#include "run/hosts.h"

namespace unisono::cli {

// The files of `folder` on each host of these ranks, where it is removed. A host that does not
// answer within a minute is named on stderr.
std::vector<std::vector<std::byte>> collect_files(const std::vector<RemoteRank>& ranks,
                                                  const std::string& folder,
                                                  const Console& console);

// The files in what the other side printed, which may have said other things before.
std::vector<std::vector<std::byte>> files_in(const std::string& printed);

}  // namespace unisono::cli
