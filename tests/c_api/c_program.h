/* What the parts of the C program share. */
#pragma once

#include <stddef.h>

#include "unisono/unisono.h"

/* Says what is wrong, and lets the program fail at its end. */
void expect(int right, const char* what, const char* file, int line);
#define EXPECT(condition) expect((condition) != 0, #condition, __FILE__, __LINE__)
/* The call succeeds; its text is shown if not. */
void expect_success(unisono_result_t result, const char* what, const char* file, int line);
#define SUCCEEDS(call) expect_success((call), #call, __FILE__, __LINE__)
/* The call fails with this code and this text. */
void expect_failure(unisono_result_t result, unisono_result_t code, const char* text,
                    const char* what, const char* file, int line);
#define FAILS(call, code, text) expect_failure((call), (code), (text), #call, __FILE__, __LINE__)

/* What rank `rank` has in place `i` before a collective: exact in f32. */
float value(int rank, size_t i);

/* Scenarios: each runs in a world of its own. */
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
