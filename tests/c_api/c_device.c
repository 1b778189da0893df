/* Collectives on device memory from C, with a driver whose device memory the host can read. */
#include "unisono/device.h"

#include <stdlib.h>
#include <string.h>

#include "c_program.h"

enum { kCount = 5000 };

static unisono_call_t call_on(float* in, float* out, size_t count) {
  unisono_call_t call = UNISONO_CALL_INIT;
  call.collective = UNISONO_ALL_REDUCE;
  call.in = in;
  call.out = out;
  call.count = count;
  call.dtype = UNISONO_F32;
  return call;
}

static void expect_sums(unisono_comm_t comm, unisono_device_t group, float* in, float* out) {
  const int ranks = unisono_size(comm);
  const unisono_call_t call = call_on(in, out, kCount);
  size_t wrong = 0;
  size_t i;
  for (i = 0; i < kCount; ++i) {
    in[i] = value(unisono_rank(comm), i);
  }
  SUCCEEDS(unisono_device_run(&call, NULL, group));
  SUCCEEDS(unisono_device_synchronize(NULL, 0, group));
  for (i = 0; i < kCount; ++i) {
    float sum = 0.0F;
    int from;
    for (from = 0; from < ranks; ++from) {
      sum += value(from, i);
    }
    wrong += out[i] != sum;
  }
  EXPECT(wrong == 0);
  SUCCEEDS(unisono_barrier(comm));
}

/* Rank r contributes r + 1 elements. */
static void expect_lists(unisono_comm_t comm, unisono_device_t group, float* in, float* out) {
  const size_t counts[] = {1, 2, 3};
  unisono_call_t call = call_on(in, out, 0);
  int from;
  call.collective = UNISONO_ALL_GATHER_V;
  call.counts = counts;
  in[0] = in[1] = in[2] = (float)unisono_rank(comm);
  SUCCEEDS(unisono_device_run(&call, NULL, group));
  SUCCEEDS(unisono_device_synchronize(NULL, 60000, group));
  for (from = 0; from < 6; ++from) {
    EXPECT(out[from] == (from == 0 ? 0.0F : from < 3 ? 1.0F : 2.0F));
  }
  SUCCEEDS(unisono_barrier(comm));
}

static void make_mistakes(unisono_comm_t comm, unisono_device_t group, float* data) {
  unisono_device_options_t options = UNISONO_DEVICE_OPTIONS_INIT;
  unisono_call_t call = call_on(data, data, 1);
  unisono_device_t none = NULL;
  float here = 0.0F;
  options.reserved = 1;
  FAILS(unisono_device_create(&options, comm, &none), UNISONO_USAGE,
        "usage: `reserved` is not 0\nstart from UNISONO_DEVICE_OPTIONS_INIT");
  EXPECT(none == NULL);
  call.in = &here;
  FAILS(unisono_device_run(&call, NULL, group), UNISONO_USAGE,
        "usage: in is memory of the host, out of the device\npass device memory to a device group, "
        "and host memory to its communicator");
  FAILS(unisono_device_run(&call, NULL, none), UNISONO_USAGE,
        "usage: the device group is NULL\nit was never created, or was freed");
  SUCCEEDS(unisono_device_check(group));
}

void run_device(unisono_comm_t comm) {
  unisono_device_t group = NULL;
  void* in = NULL;
  void* out = NULL;
  SUCCEEDS(unisono_device_create(NULL, comm, &group));
  SUCCEEDS(unisono_device_allocate(kCount * sizeof(float), group, &in));
  SUCCEEDS(unisono_device_allocate(kCount * sizeof(float), group, &out));
  if (in != NULL && out != NULL) {
    expect_sums(comm, group, (float*)in, (float*)out);
    expect_lists(comm, group, (float*)in, (float*)out);
    make_mistakes(comm, group, (float*)in);
  }
  SUCCEEDS(unisono_device_free(&group));
  EXPECT(group == NULL);
  SUCCEEDS(unisono_device_free(&group));
}

/* Without a driver, every rank gets an error and continues. */
void run_device_none(unisono_comm_t comm) {
  unisono_device_options_t options = UNISONO_DEVICE_OPTIONS_INIT;
  unisono_device_t group = NULL;
  EXPECT(unisono_device_create(&options, comm, &group) == UNISONO_CONFIG);
  EXPECT(group == NULL);
  EXPECT(strstr(unisono_last_error(), "/no/driver") != NULL);
  SUCCEEDS(unisono_barrier(comm));
}
