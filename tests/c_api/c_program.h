/* Shared by the parts of the C program. */
#pragma once

#include <stddef.h>

#include "unisono/unisono.h"

/* Prints a mistake, and makes the program fail at its end. */
void expect(int right, const char* what, const char* file, int line);
#define EXPECT(condition) expect((condition) != 0, #condition, __FILE__, __LINE__)
/* Requires that the call succeeds; prints its text otherwise. */
void expect_success(unisono_result_t result, const char* what, const char* file, int line);
#define SUCCEEDS(call) expect_success((call), #call, __FILE__, __LINE__)
/* Requires that the call fails with this code and this text. */
void expect_failure(unisono_result_t result, unisono_result_t code, const char* text,
                    const char* what, const char* file, int line);
#define FAILS(call, code, text) expect_failure((call), (code), (text), #call, __FILE__, __LINE__)

/* Returns the value of rank `rank` at index `i` before a collective: exact in f32. */
float value(int rank, size_t i);

/* Scenarios: each runs in its own world. */
void run_collectives(unisono_comm_t comm);
void run_device(unisono_comm_t comm);
void run_device_none(unisono_comm_t comm);
void run_experts(unisono_comm_t comm);
void run_experts_after_shrink(unisono_comm_t left); /* of 3 ranks the first two */
void run_operations(unisono_comm_t comm);
void run_mistakes(unisono_comm_t comm);
void run_mismatch(unisono_comm_t comm);
void run_abort(unisono_comm_t comm);
void run_failure(unisono_comm_t comm);
void run_pipeline(unisono_comm_t comm);
void run_pipeline_mistakes(unisono_comm_t comm);
void run_pipeline_callback(unisono_comm_t comm);
void run_reshard(unisono_comm_t comm);
void run_reshard_mistakes(unisono_comm_t comm);
void run_teams(unisono_comm_t comm);
