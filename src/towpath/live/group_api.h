/* SPDX-FileCopyrightText: The Towpath authors
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Live groups for extensions of other programs, as a table of C functions, so that an extension
 * is compiled against this file alone. Python hands the table over as a capsule named
 * TOWPATH_GROUP_API_NAME: towpath._core.group_api().
 *
 * What each function does is said in group.hpp, call.hpp and live/shared_array.hpp. None
 * throws; where something can go wrong, the error says what. */

#define TOWPATH_GROUP_API_NAME "towpath.group_api"
#define TOWPATH_GROUP_API_VERSION 4

#ifdef __cplusplus
extern "C" {
#endif

typedef struct towpath_group towpath_group;
typedef struct towpath_call towpath_call;
typedef struct towpath_array towpath_array;

enum { TOWPATH_OK, TOWPATH_PEER_DIED, TOWPATH_TIMEOUT, TOWPATH_DISAGREEMENT, TOWPATH_WRONG };

typedef struct {
  int kind;
  int peer; /* the culprit, or -1 */
  char sentence[4096];
} towpath_error;

typedef struct {
  void* data;
  uint64_t size_bytes;
} towpath_span;

typedef struct {
  const char* transport; /* "shm", or "ucx" between hosts */
  const char* job;       /* at most 64 bytes; the same at all ranks, and in no other group */
  const char* token;     /* of a job at HOST:PORT, the secret that its ranks share; else "" */
  int listener;          /* what `listen` gave; -1 where nobody has called it */
  int rank;
  int ranks;
  double timeout_s;
} towpath_options;

enum {
  TOWPATH_INT8,
  TOWPATH_UINT8,
  TOWPATH_INT32,
  TOWPATH_UINT32,
  TOWPATH_INT64,
  TOWPATH_UINT64,
  TOWPATH_FLOAT16,
  TOWPATH_BFLOAT16,
  TOWPATH_FLOAT32,
  TOWPATH_FLOAT64
};

enum { TOWPATH_SUM, TOWPATH_PROD, TOWPATH_MIN, TOWPATH_MAX };

typedef struct {
  int type;
  int operation;
} towpath_reduction;

enum {
  TOWPATH_EXCHANGE,
  TOWPATH_ALL_REDUCE,
  TOWPATH_REDUCE,
  TOWPATH_REDUCE_SCATTER,
  TOWPATH_BROADCAST,
  TOWPATH_SEND,
  TOWPATH_RECEIVE,
  TOWPATH_ALL_GATHER,
  TOWPATH_ALL_TO_ALL,
  TOWPATH_BARRIER
};

typedef struct {
  int kind;
  const char* name; /* at most 47 characters */
  int peer;
  uint64_t tag;
  uint32_t element;
  const towpath_span* inputs;
  uint64_t input_count;
  const towpath_span* outputs;
  uint64_t output_count;
  void (*combine)(void* context, void* result, const void* a, const void* b, uint64_t size_bytes);
  void (*finish)(void* context, void* data, uint64_t size_bytes);
  void* combine_context;
  uint32_t element_bytes;
  double timeout_s;
  void (*done)(void* context);
  void* context;
} towpath_request;

/* What a rank waits for in arrays that all map: until holds(context) is not 0. */
typedef struct {
  int (*holds)(void* context);
  void* context;
  int peer;         /* from whom, or -1 */
  const char* what; /* "a signal of rank 1" */
  double timeout_s;
} towpath_condition;

typedef struct {
  uint32_t version;
  /* Listens for a job over "ucx" at a free port of this host, named by an address or a name; the
   * socket, which the rank 0 that connects takes over, and the HOST:PORT. -1 where it cannot. */
  int (*listen)(const char* host, char* job, uint64_t job_bytes, towpath_error* error);
  towpath_group* (*connect)(const towpath_options* options, towpath_error* error);
  void (*leave)(towpath_group* group);
  void (*destroy)(towpath_group* group);
  void (*abort)(towpath_group* group, const char* reason);
  /* What ended the group, so that nothing can follow on it; TOWPATH_OK while nothing did. */
  int (*failure)(towpath_group* group, towpath_error* error);
  uint64_t (*sequence)(const towpath_group* group);
  /* NULL where the request is wrong. Release each call once, at any time. */
  towpath_call* (*post)(towpath_group* group, const towpath_request* request, towpath_error* error);
  void (*wake)(towpath_group* group);
  int (*wait)(towpath_group* group, towpath_call* call, double timeout_s);
  int (*has_ended)(const towpath_call* call);
  /* Of a call that has ended; TOWPATH_OK where it is done. */
  int (*result)(const towpath_call* call, towpath_error* error);
  int (*source)(const towpath_call* call);
  uint64_t (*sequence_of)(const towpath_call* call);
  void (*release)(towpath_call* call);
  /* TOWPATH_WRONG where there is no such reduction. */
  int (*reduce)(void* result, const void* a, const void* b, uint64_t size_bytes,
                towpath_reduction reduction);
  int (*divide)(void* data, uint64_t size_bytes, int type, int64_t divisor);
  /* An array at `place` that all ranks of a host map; the transport of the options is "shm". */
  towpath_array* (*share)(const towpath_options* options, void* place, uint64_t size_bytes,
                          towpath_error* error);
  void* (*array_of)(const towpath_array* array, int rank);
  int (*wait_for)(towpath_array* array, const towpath_condition* condition, towpath_error* error);
  void (*wake_peers)(towpath_array* array);
  void (*unshare)(towpath_array* array);
} towpath_group_api;

/* The table; it is valid for as long as the library is loaded. */
const towpath_group_api* towpath_get_group_api(void);

#ifdef __cplusplus
}
#endif
