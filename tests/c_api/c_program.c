/* A C program over the C interface: forks the ranks of a world for each scenario, and fails if one
 * of them found anything wrong. Usage: c_program SCENARIO */
#define _POSIX_C_SOURCE 200809L
#include "c_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMostRanks = 3 };

static int failures = 0;
static int this_rank = 0;

static void report(const char* what, const char* why, const char* file, int line) {
  ++failures;
  fprintf(stderr, "%s:%d: rank %d: %s: %s\n", file, line, this_rank, what, why);
}

void expect(int right, const char* what, const char* file, int line) {
  if (!right) {
    report(what, "is not so", file, line);
  }
}

void expect_success(unisono_result_t result, const char* what, const char* file, int line) {
  if (result != UNISONO_SUCCESS) {
    report(what, unisono_last_error(), file, line);
  }
}

void expect_failure(unisono_result_t result, unisono_result_t code, const char* text,
                    const char* what, const char* file, int line) {
  if (result != code) {
    report(what, unisono_result_name(result), file, line);
  }
  if (strcmp(unisono_last_error(), text) != 0) {
    report(what, unisono_last_error(), file, line);
    fprintf(stderr, "expected: %s\n", text);
  }
}

float value(int rank, size_t i) {
  return (float)(100 * (rank + 1)) + (float)i;
}

static const struct {
  const char* name;
  int ranks;
  void (*run)(unisono_comm_t comm);
} scenarios[] = {{"collectives", 3, run_collectives},
                 {"collectives_alone", 1, run_collectives},
                 {"device", 3, run_device},
                 {"device_none", 2, run_device_none},
                 {"experts", 3, run_experts},
                 {"operations", 3, run_operations},
                 {"mistakes", 3, run_mistakes},
                 {"mismatch", 2, run_mismatch},
                 {"abort", 3, run_abort},
                 {"failure", 3, run_failure},
                 {"pipeline", 3, run_pipeline},
                 {"pipeline_alone", 1, run_pipeline},
                 {"pipeline_mistakes", 1, run_pipeline_mistakes},
                 {"pipeline_callback", 3, run_pipeline_callback},
                 {"reshard", 3, run_reshard},
                 {"reshard_mistakes", 1, run_reshard_mistakes},
                 {"teams", 3, run_teams}};
enum { kScenarios = sizeof(scenarios) / sizeof(scenarios[0]) };

static int run_rank(int scenario, int rank, const char* job) {
  unisono_connect_options_t options = UNISONO_CONNECT_OPTIONS_INIT;
  unisono_comm_t comm = NULL;
  options.rank = rank;
  options.size = scenarios[scenario].ranks;
  options.job = job;
  options.timeout_ms = 60000;
  this_rank = rank;
  SUCCEEDS(unisono_connect(&options, &comm));
  if (comm != NULL) {
    EXPECT(unisono_rank(comm) == rank);
    EXPECT(unisono_size(comm) == options.size);
    scenarios[scenario].run(comm);
    SUCCEEDS(unisono_comm_free(&comm));
    EXPECT(comm == NULL);
  }
  return failures == 0 ? 0 : 1;
}

static int run_scenario(int scenario) {
  char job[64];
  pid_t ranks[kMostRanks];
  int wrong = 0;
  int rank;
  snprintf(job, sizeof(job), "c-program-%ld-%d", (long)getpid(), scenario);
  for (rank = 0; rank < scenarios[scenario].ranks; ++rank) {
    ranks[rank] = fork();
    if (ranks[rank] == 0) {
      exit(run_rank(scenario, rank, job)); /* and not _exit(): leaks are looked for there */
    }
    if (ranks[rank] < 0) {
      perror("fork");
      return 1;
    }
  }
  for (rank = 0; rank < scenarios[scenario].ranks; ++rank) {
    int status = 0;
    if (waitpid(ranks[rank], &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      fprintf(stderr, "%s: rank %d failed\n", scenarios[scenario].name, rank);
      wrong = 1;
    }
  }
  return wrong;
}

int main(int argc, char** argv) {
  int scenario;
  for (scenario = 0; scenario < kScenarios; ++scenario) {
    if (argc == 2 && strcmp(argv[1], scenarios[scenario].name) == 0) {
      return run_scenario(scenario);
    }
  }
  fprintf(stderr, "usage: c_program SCENARIO\nthere are:");
  for (scenario = 0; scenario < kScenarios; ++scenario) {
    fprintf(stderr, " %s", scenarios[scenario].name);
  }
  fprintf(stderr, "\n");
  return 2;
}
