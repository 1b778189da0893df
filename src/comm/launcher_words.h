// What `unisono run` says of ranks that it ends itself, so that the others do not take the signal
// that ended them for the first cause.
#pragma once

#include <string>
#include <string_view>

namespace unisono::comm {

// How the launcher's words begin, in the file that UNISONO_LAUNCHER names; it has none before it
// ends ranks.
inline constexpr std::string_view kEndedByLauncher = "ended by the launcher";
inline constexpr std::size_t kMostLauncherWords = 1024;

// "killed by SIGKILL\nlook at its last output"; where the launcher has begun to end the job, its
// own words stand in place of both: "ended by the launcher, because rank 2 exited with code 1\nlook
// ...".
std::string end_and_advice(const std::string& how, std::string_view advice);

}  // namespace unisono::comm
