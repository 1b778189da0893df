/* Pipelines: a chain of stages y = w x, compared with the product of all of them. */
#include "unisono/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "c_program.h"

enum { kMicrobatches = 6, kWidth = 5 };

/* This rank's part of the model. */
typedef struct model {
  int stages;
  double gradient[8]; /* of each stage's weight */
  double loss;
  int passes;
  unisono_result_t answer; /* of the third forward pass */
} model_t;

static float weight_of(int stage) {
  return (float)(stage + 2);
}

static float input_of(int microbatch, int i) {
  return (float)(microbatch + i);
}

static float in_at(const unisono_pipeline_pass_t* pass, int i) {
  return pass->input == NULL ? input_of(pass->microbatch, i) : ((const float*)pass->input)[i];
}

/* The loss is the sum of the last stage's outputs. */
static float gradient_at(const unisono_pipeline_pass_t* pass, int i) {
  return pass->output_gradient == NULL ? 1.0F : ((const float*)pass->output_gradient)[i];
}

static unisono_result_t forward(const unisono_pipeline_pass_t* pass, void* context) {
  model_t* model = context;
  int i;
  EXPECT(pass->input_bytes == (pass->stage == 0 ? 0 : kWidth * sizeof(float)));
  EXPECT(pass->output_bytes == (pass->stage + 1 == model->stages ? 0 : kWidth * sizeof(float)));
  for (i = 0; i < kWidth; ++i) {
    const float y = weight_of(pass->stage) * in_at(pass, i);
    if (pass->output == NULL) {
      model->loss += y;
    } else {
      ((float*)pass->output)[i] = y;
    }
  }
  return ++model->passes == 3 ? model->answer : UNISONO_SUCCESS;
}

static unisono_result_t backward_input(const unisono_pipeline_pass_t* pass, void* context) {
  int i;
  (void)context;
  EXPECT((pass->input_gradient == NULL) == (pass->stage == 0));
  for (i = 0; i < kWidth && pass->input_gradient != NULL; ++i) {
    ((float*)pass->input_gradient)[i] = weight_of(pass->stage) * gradient_at(pass, i);
  }
  return UNISONO_SUCCESS;
}

static unisono_result_t backward_weight(const unisono_pipeline_pass_t* pass, void* context) {
  model_t* model = context;
  int i;
  for (i = 0; i < kWidth; ++i) {
    model->gradient[pass->stage] += (double)in_at(pass, i) * (double)gradient_at(pass, i);
  }
  return UNISONO_SUCCESS;
}

static unisono_result_t backward(const unisono_pipeline_pass_t* pass, void* context) {
  backward_input(pass, context);
  return backward_weight(pass, context);
}

static unisono_pipeline_t make(const char* name, int record, model_t* model, unisono_comm_t comm) {
  static const size_t shape[1] = {kWidth};
  unisono_pipeline_options_t options = UNISONO_PIPELINE_OPTIONS_INIT;
  const unisono_pipeline_stage_t start = UNISONO_PIPELINE_STAGE_INIT;
  unisono_pipeline_stage_t stages[8];
  unisono_pipeline_schedule_t schedule = NULL;
  unisono_pipeline_t pipeline = NULL;
  size_t count = 0;
  int stage;
  SUCCEEDS(
      unisono_pipeline_schedule_by_name(name, unisono_size(comm), kMicrobatches, 0, &schedule));
  memset(model, 0, sizeof(*model));
  model->stages = unisono_pipeline_schedule_stages(schedule);
  for (stage = 0; stage < model->stages; ++stage) {
    if (unisono_pipeline_schedule_rank_of(stage, schedule) == unisono_rank(comm)) {
      const int is_last = stage + 1 == model->stages;
      stages[count] = start;
      stages[count].stage = stage;
      stages[count].dtype = UNISONO_F32;
      stages[count].shape = is_last ? NULL : shape;
      stages[count].dimensions = is_last ? 0 : 1;
      ++count;
    }
  }
  options.record = record;
  options.forward = forward;
  options.backward = backward;
  options.backward_input = backward_input;
  options.backward_weight = backward_weight;
  options.context = model;
  SUCCEEDS(unisono_pipeline_create(schedule, stages, count, &options, comm, &pipeline));
  SUCCEEDS(unisono_pipeline_schedule_free(&schedule));
  EXPECT(schedule == NULL);
  return pipeline;
}

void run_pipeline(unisono_comm_t comm) {
  static const char* const names[] = {"1f1b", "zb-h1", "interleaved", "zbv"};
  size_t name;
  for (name = 0; name < sizeof(names) / sizeof(names[0]); ++name) {
    model_t model;
    unisono_pipeline_t pipeline = make(names[name], name == 1, &model, comm);
    double sum = 0;
    double product = 1;
    double loss = 0;
    int stage;
    int step;
    int i;
    for (i = 0; i < kMicrobatches * kWidth; ++i) {
      sum += input_of(i / kWidth, i % kWidth);
    }
    for (stage = 0; stage < model.stages; ++stage) {
      product *= weight_of(stage);
    }
    for (step = 0; step < 2; ++step) {
      SUCCEEDS(unisono_pipeline_run_step(pipeline));
    }
    SUCCEEDS(unisono_all_reduce(&model.loss, &loss, 1, UNISONO_F64, UNISONO_SUM, comm));
    EXPECT(loss == 2 * sum * product);
    SUCCEEDS(unisono_all_reduce(model.gradient, model.gradient, 8, UNISONO_F64, UNISONO_SUM, comm));
    for (stage = 0; stage < model.stages; ++stage) {
      EXPECT(model.gradient[stage] == 2 * sum * product / weight_of(stage));
    }
    EXPECT((unisono_pipeline_most_bytes(pipeline) > 0) == (model.stages > 1));
    if (name == 1) {
      const char* text = NULL;
      SUCCEEDS(unisono_pipeline_times(pipeline, &text));
      EXPECT(text != NULL && strstr(text, "unisono.pipeline_times/1") != NULL);
    }
    SUCCEEDS(unisono_pipeline_free(&pipeline));
    EXPECT(pipeline == NULL);
  }
}

void run_pipeline_mistakes(unisono_comm_t comm) {
  unisono_pipeline_options_t options = UNISONO_PIPELINE_OPTIONS_INIT;
  unisono_pipeline_stage_t stage = UNISONO_PIPELINE_STAGE_INIT;
  unisono_pipeline_schedule_t schedule = NULL;
  unisono_pipeline_t pipeline = NULL;
  const char* text = NULL;
  model_t model;
  FAILS(unisono_pipeline_schedule_by_name("zbx", 2, 4, 0, &schedule), UNISONO_USAGE,
        "usage: there is no pipeline schedule 'zbx'\nthere are naive, gpipe, 1f1b, interleaved, "
        "zb-h1, zb-h2, zbv, v-half, v-min, dualpipe, dualpipev");
  EXPECT(schedule == NULL);
  EXPECT(unisono_pipeline_schedule_parse("{", &schedule) == UNISONO_USAGE);
  EXPECT(schedule == NULL);
  SUCCEEDS(unisono_pipeline_schedule_parse("0F0,0B0\n", &schedule));
  EXPECT(unisono_pipeline_schedule_stages(schedule) == 1);
  EXPECT(unisono_pipeline_schedule_rank_of(0, schedule) == 0);
  EXPECT(unisono_pipeline_schedule_rank_of(1, schedule) == -1);
  options.forward = forward;
  options.backward = backward;
  stage.dimensions = 9;
  FAILS(unisono_pipeline_create(schedule, &stage, 1, &options, comm, &pipeline), UNISONO_USAGE,
        "usage: stage 0 has 9 dimensions\n`shape` is a list of at most 8");
  options.struct_size = 1;
  stage.dimensions = 0;
  FAILS(unisono_pipeline_create(schedule, &stage, 1, &options, comm, &pipeline), UNISONO_USAGE,
        "usage: struct_size is 1\nstart from UNISONO_PIPELINE_OPTIONS_INIT");
  EXPECT(pipeline == NULL);
  FAILS(unisono_pipeline_run_step(pipeline), UNISONO_USAGE,
        "usage: the pipeline is NULL\nit was never created, or was freed");
  SUCCEEDS(unisono_pipeline_schedule_free(&schedule));

  pipeline = make("gpipe", 0, &model, comm);
  FAILS(unisono_pipeline_times(pipeline, &text), UNISONO_USAGE,
        "usage: pipeline: no times were recorded\nset PipelineOptions::record");
  SUCCEEDS(unisono_pipeline_free(&pipeline));
}

/* A callback's error ends the step on all ranks. */
void run_pipeline_callback(unisono_comm_t comm) {
  model_t model;
  unisono_pipeline_t pipeline = make("1f1b", 0, &model, comm);
  if (unisono_rank(comm) == 1) {
    model.answer = UNISONO_RESOURCE;
    FAILS(unisono_pipeline_run_step(pipeline), UNISONO_RESOURCE,
          "resource: the callback `forward` returned resource\ncheck the callback, which reported "
          "this error");
  } else {
    EXPECT(unisono_pipeline_run_step(pipeline) == UNISONO_ABORTED);
    EXPECT(strstr(unisono_last_error(), "rank 1 of the pipeline failed in 1F2") != NULL);
  }
  SUCCEEDS(unisono_pipeline_free(&pipeline));
}
