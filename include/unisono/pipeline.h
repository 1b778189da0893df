/* Pipelines for C: schedules, and a runner that executes a schedule with a model's computations. A
 * schedule is one of `unisono pipeline list`, or comes from a file. parallel/pipeline.hpp describes
 * schedules and the runner. unisono.h describes results and errors. */
#pragma once

#include <stddef.h>

#include "unisono/unisono.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A schedule. Immutable; any thread may use it. */
typedef struct unisono_pipeline_schedule_handle* unisono_pipeline_schedule_t;
/* A schedule that runs on the ranks of a communicator. One thread at a time may use it. */
typedef struct unisono_pipeline_handle* unisono_pipeline_t;

/* Local. Makes the schedule `name`. `chunks`: the number of stages per rank, if the schedule allows
 * a choice; 0: the number that the schedule prescribes, else 2. The caller frees *schedule;
 * *schedule is NULL after a failure.
 * Errors: USAGE. */
UNISONO_EXPORT unisono_result_t
unisono_pipeline_schedule_by_name(const char* name, int ranks, int microbatches, int chunks,
                                  unisono_pipeline_schedule_t* schedule) UNISONO_NOEXCEPT;
/* Local. Parses the text of a file, at most 64 MiB: unisono.pipeline/1, or the CSV of
 * torch.distributed.pipelining. The caller frees *schedule; *schedule is NULL after a failure.
 * Errors: USAGE, with the position of the mistake or the first finding of `unisono pipeline
 * verify`. */
UNISONO_EXPORT unisono_result_t unisono_pipeline_schedule_parse(
    const char* text, unisono_pipeline_schedule_t* schedule) UNISONO_NOEXCEPT;
/* Local. Returns the number of stages; 0 for NULL. */
UNISONO_EXPORT int unisono_pipeline_schedule_stages(unisono_pipeline_schedule_t schedule)
    UNISONO_NOEXCEPT;
/* Local. Returns the rank of a stage; -1 if there is no such stage. */
UNISONO_EXPORT int unisono_pipeline_schedule_rank_of(
    int stage, unisono_pipeline_schedule_t schedule) UNISONO_NOEXCEPT;
/* Local. Frees the schedule and sets *schedule to NULL; *schedule may be NULL. Pipelines with this
 * schedule stay usable. */
UNISONO_EXPORT unisono_result_t
unisono_pipeline_schedule_free(unisono_pipeline_schedule_t* schedule) UNISONO_NOEXCEPT;

/* A stage on this rank and the shape of its output. The gradient of the output has the same shape.
 * Start from UNISONO_PIPELINE_STAGE_INIT. */
typedef struct unisono_pipeline_stage {
  size_t struct_size;
  int stage;
  unisono_dtype_t dtype;
  const size_t* shape; /* NULL, with 0 dimensions: there is no next stage */
  size_t dimensions;   /* at most 8 */
} unisono_pipeline_stage_t;
#define UNISONO_PIPELINE_STAGE_INIT {sizeof(unisono_pipeline_stage_t), 0, UNISONO_F32, NULL, 0}

/* One computation of a stage for a microbatch: F (forward), B (backward), I (backward of inputs) or
 * W (backward of weights). The library owns the buffers, which are aligned to 64 bytes. In the
 * first stage, the input's pointers are NULL, with 0 bytes; in the last stage, the output's
 * pointers are NULL. `input` does not change between the call of F and the return of B (or of W, if
 * the schedule has no B). */
typedef struct unisono_pipeline_pass {
  size_t struct_size; /* the library sets it */
  int stage;
  int microbatch;
  const void* input;
  size_t input_bytes;
  void* output; /* F writes it */
  size_t output_bytes;
  const void* output_gradient; /* B, I and W read it */
  size_t output_gradient_bytes;
  void* input_gradient; /* B and I write it */
  size_t input_gradient_bytes;
} unisono_pipeline_pass_t;

/* Callbacks. A result other than UNISONO_SUCCESS ends the world on all ranks, as unisono_abort()
 * does, and unisono_pipeline_run_step() returns this result. A callback may call unisono, but no
 * function of this pipeline. */
typedef unisono_result_t (*unisono_pass_callback_t)(const unisono_pipeline_pass_t* pass,
                                                    void* context);
typedef unisono_result_t (*unisono_stage_callback_t)(int stage, void* context);

/* Start from UNISONO_PIPELINE_OPTIONS_INIT, and set a callback for each kind of computation that
 * the schedule has for this rank. Computations that the schedule overlaps run one after the
 * other. */
typedef struct unisono_pipeline_options {
  size_t struct_size;
  int timeout_ms; /* limit of the wait for a message; -1: the communicator's limit; 0: no limit */
  int record;     /* 1: record when each action begins and ends */
  unisono_pass_callback_t forward;          /* F */
  unisono_pass_callback_t backward;         /* B */
  unisono_pass_callback_t backward_input;   /* I */
  unisono_pass_callback_t backward_weight;  /* W */
  unisono_stage_callback_t reduce_gradient; /* this callback and the next two may be NULL */
  unisono_stage_callback_t unshard;
  unisono_stage_callback_t reshard;
  void* context; /* passed to the callbacks; must live as long as the pipeline */
} unisono_pipeline_options_t;
#define UNISONO_PIPELINE_OPTIONS_INIT \
  {sizeof(unisono_pipeline_options_t), -1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}

/* Collective. Makes a pipeline. Compares the schedules and shapes of all ranks. `stages` has
 * `count` entries, one for each stage on this rank. The caller frees *pipeline; *pipeline is NULL
 * after a failure.
 * Errors: MISMATCH on all ranks if schedules or shapes differ. If a rank's stages or callbacks do
 * not fit the schedule: USAGE on this rank, MISMATCH on the other ranks. */
UNISONO_EXPORT unisono_result_t unisono_pipeline_create(
    unisono_pipeline_schedule_t schedule, const unisono_pipeline_stage_t* stages, size_t count,
    const unisono_pipeline_options_t* options, unisono_comm_t comm,
    unisono_pipeline_t* pipeline) UNISONO_NOEXCEPT;
/* Collective. Runs one step: all microbatches forward and backward.
 * Errors: TIMEOUT, PEER_LOST and ABORTED, with a text that names the action for which this rank
 * waited and the rank that has not performed this action; the result of a failed callback; USAGE if
 * a callback calls this function, or after a failed step. */
UNISONO_EXPORT unisono_result_t unisono_pipeline_run_step(unisono_pipeline_t pipeline)
    UNISONO_NOEXCEPT;
/* Collective. Sets *text to the times of all ranks in the last step, in the format
 * unisono.pipeline_times/1. Needs the option `record`. *text is valid until the next call of this
 * function, or until the pipeline is freed.
 * Errors: USAGE, those of a collective. */
UNISONO_EXPORT unisono_result_t unisono_pipeline_times(unisono_pipeline_t pipeline,
                                                       const char** text) UNISONO_NOEXCEPT;
/* Local. Returns the greatest number of bytes that inputs, outputs and gradients have occupied on
 * this rank at one time; 0 for NULL. */
UNISONO_EXPORT size_t unisono_pipeline_most_bytes(unisono_pipeline_t pipeline) UNISONO_NOEXCEPT;
/* Local. Frees the pipeline and sets *pipeline to NULL; *pipeline may be NULL. */
UNISONO_EXPORT unisono_result_t unisono_pipeline_free(unisono_pipeline_t* pipeline)
    UNISONO_NOEXCEPT;

#if defined(__cplusplus)
}
#endif
