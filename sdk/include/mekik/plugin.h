/* mekik/plugin.h - the complete binary contract between the engine ("host") and a plugin. C11, also valid C++.
 *
 * Rules that keep old plugins working:
 *  1. Every table begins with struct_size, set by the side that OWNS the memory to what it was built with.
 *  2. Tables grow at the end only; check MEKIK_HAS before touching anything newer than revision 1. No padding anywhere,
 *     or a later field would hide in it: `gcc -Wpadded` is silent. Members named `reserved` are 0 and not read.
 *  3. Whatever would be wrong to ignore never joins an existing argument struct: it becomes a new function, a `uses`
 *     or capability bit, or an op code, because struct_size tells what the writer knew, not what the reader understood.
 *  4. Arrays of structs travel with a stride (..._size); who fills one gets it zeroed. Enum values are written out,
 *     never renumbered or reused; an unknown one is refused.
 *  5. Each side frees only what it made. Pointers are borrowed for the call unless a comment says longer.
 *     Nothing throws or longjmps across; text is UTF-8; times are nanoseconds of one monotonic clock; sizes are bytes.
 *  6. The floating-point mode is left as found (no -ffast-math at link time: it makes loading flush subnormals).
 * Thread tags, on every function. "Instance" is what the first argument points to.
 *  [load]   at start, reload and shutdown; like [engine], and calls without an instance come one at a time.
 *  [engine] calls on one instance never overlap; other instances may be called meanwhile from other threads.
 *  [any]    re-entrant, from any thread, never blocks for long. */
#ifndef MEKIK_PLUGIN_H
#define MEKIK_PLUGIN_H
#include <stddef.h>
#include <stdint.h>
#if UINTPTR_MAX != 0xFFFFFFFFFFFFFFFFu
#error "mekik plugins are 64-bit"
#endif
#ifdef __cplusplus
extern "C" {
#endif
#if defined(_WIN32)
#define MEKIK_EXPORT __declspec(dllexport)
#else
#define MEKIK_EXPORT __attribute__((visibility("default")))
#endif
#define MEKIK_ABI_MINOR 0u
#define MEKIK_MAGIC 0x31504B4Du /* the bytes "MKP1" in memory */
#define MEKIK_HAS(T, p, m) ((p)->struct_size >= offsetof(T, m) + sizeof(((T *)0)->m))

typedef struct mekik_str { const char *ptr; size_t len; } mekik_str; /* not 0-terminated */
typedef int32_t mekik_status;
enum mekik_code { MEKIK_OK = 0, MEKIK_E_INVALID = 1, MEKIK_E_UNSUPPORTED = 2, MEKIK_E_NO_MEMORY = 3, MEKIK_E_BUSY = 4,
  MEKIK_E_IO = 5, MEKIK_E_CANCELLED = 6, MEKIK_E_INTERNAL = 7, MEKIK_E_DEVICE_LOST = 8 };
/* ---- host services ------------------------------------------------------------------------------------------- */
typedef struct mekik_host { uint32_t struct_size, abi_minor;         /* lasts until deinit */
  void *self; const char *name, *version;
  /* [any] Remember why this thread's current call is about to fail. Returns `code`, so `return h->fail(...)`. */
  mekik_status (*fail)(const struct mekik_host *, mekik_status code, mekik_str why);
  /* [any] Find a service table ("mekik.log/1"); NULL if this host lacks it. Valid until deinit. */
  const void *(*service)(const struct mekik_host *, const char *id);
} mekik_host;

#define MEKIK_LOG "mekik.log/1"
typedef struct mekik_log { uint32_t struct_size, reserved;
  int (*enabled)(const mekik_host *, int32_t level);                                    /* [any] 0 trace ... 5 fatal */
  void (*write)(const mekik_host *, int32_t level, mekik_str component, mekik_str message);  /* [any] */
} mekik_log;
#define MEKIK_METRICS "mekik.metrics/1"
typedef struct mekik_metric mekik_metric;
typedef struct mekik_metrics { uint32_t struct_size, reserved;    /* handles last until deinit; labels "k=v,k=v" */
  mekik_metric *(*counter)(const mekik_host *, const char *name, const char *help, const char *labels); /* [any] */
  mekik_metric *(*gauge)(const mekik_host *, const char *name, const char *help, const char *labels);  /* [any] */
  mekik_metric *(*histogram)(const mekik_host *, const char *name, const char *help, const char *labels,
    const double *bounds, uint32_t n);  /* [any] */
  void (*record)(mekik_metric *, double value);              /* [any] add, set or observe, as the handle was made */
} mekik_metrics;
#define MEKIK_MEMORY "mekik.memory/1"
typedef struct mekik_memory { uint32_t struct_size, reserved;     /* host memory, zeroed, accounted per component */
  void *(*alloc)(const mekik_host *, size_t bytes, size_t align, const char *tag);       /* [any] NULL when refused */
  void (*release)(const mekik_host *, void *);  /* [any] */
} mekik_memory;
#define MEKIK_TASKS "mekik.tasks/1"
typedef struct mekik_tasks { uint32_t struct_size, reserved;
  uint32_t (*width)(const mekik_host *);  /* [any] */
  /* [engine] Runs fn(ctx, 0 .. n-1) and returns when all are done. A backend runs its work here, or it has workers of
   * its own and says so (MEKIK_CAP_OWN_THREADS): then the host leaves these threads asleep while a step runs. */
  void (*parallel)(const mekik_host *, uint32_t n, void (*fn)(void *ctx, uint32_t i), void *ctx);
} mekik_tasks;
/* ---- configuration: declared by the plugin, checked by the host before the plugin sees it -------------------- */
typedef struct mekik_config mekik_config;       /* a validated table: every declared key is present and in range */
enum mekik_option_type { MEKIK_OPT_BOOL = 1, MEKIK_OPT_INT = 2, MEKIK_OPT_REAL = 3, MEKIK_OPT_TEXT = 4, MEKIK_OPT_CHOICE = 5,
  MEKIK_OPT_SIZE = 6, MEKIK_OPT_DURATION = 7, MEKIK_OPT_PATH = 8, MEKIK_OPT_TABLE = 9, MEKIK_OPT_COMPONENT = 10 };
enum mekik_option_flag { MEKIK_OPT_REQUIRED = 1, MEKIK_OPT_LIST = 2, MEKIK_OPT_RELOADABLE = 4,
  MEKIK_OPT_DEPRECATED = 8, MEKIK_OPT_SECRET = 16 };
typedef struct mekik_option { const char *key; uint32_t type, flags;
  const char *fallback;                         /* the default, spelled as TOML */
  double min, max;                              /* numbers, or the length of text and lists; min > max: unchecked */
  const char *choices;                          /* CHOICE: "a|b|c". COMPONENT: the kind id it must refer to, or "model" */
  const struct mekik_option *fields; uint32_t n_fields, field_size; /* TABLE */
  const char *doc;                              /* one sentence: `mekik describe` and the reference are made of these */
} mekik_option;
#define MEKIK_CONFIG "mekik.config/1"           /* what it returns lasts as long as the mekik_config */
/* Element i of a list of scalars is the key "name.i". An option that was neither given nor has a default has length 0 and
 * reads as 0, "" or NULL. */
typedef struct mekik_config_api { uint32_t struct_size, reserved;
  int64_t (*i64)(const mekik_config *, const char *key);             /* [any] also bool, choice index, bytes, ns */
  double (*f64)(const mekik_config *, const char *key);  /* [any] */
  mekik_str (*text)(const mekik_config *, const char *key);  /* [any] */
  uint32_t (*length)(const mekik_config *, const char *key);  /* [any] */
  const mekik_config *(*table)(const mekik_config *, const char *key, uint32_t i); /* [any] */
  /* [any] A cross-field complaint only the plugin can make; the host adds file, line, column. Returns MEKIK_E_INVALID. */
  mekik_status (*reject)(const mekik_config *, const char *key, mekik_str why);
} mekik_config_api;
/* ---- entry --------------------------------------------------------------------------------------------------- */
typedef struct mekik_component { uint32_t struct_size, reserved;
  const char *kind;                             /* "mekik.backend/1", ... ; third parties: "com.example.thing/1" */
  const char *name;                             /* what a pipeline file writes: "cuda", "continuous", "q4_1" */
  const char *version, *summary;
  const mekik_option *options; uint32_t n_options, option_size;
  const void *table;                            /* the kind's function table below */
  const void *(*extension)(const char *id);     /* [any] optional further tables; NULL pointer or NULL result: none */
} mekik_component;
typedef struct mekik_plugin { uint32_t magic, struct_size, abi_minor, reserved;
  const char *id, *vendor, *version, *license;
  const char *built_for;                        /* exact engine version; only compared for draft kinds (".../0") */
  mekik_status (*init)(const mekik_host *, mekik_str library_path); /* [load] cheap: no devices, threads or files */
  void (*deinit)(void);                                             /* [load] after every instance is gone */
  uint32_t (*count)(void);  /* [load] */
  const mekik_component *(*component)(uint32_t index);              /* [load] static until deinit */
} mekik_plugin;
/* The single exported name. Its suffix is the ABI major, readable without loading the file; 0 until it is frozen. */
#ifdef MEKIK_STATIC_NAME                         /* a static build has many entries, so each carries its <kind>_<name> */
#define MEKIK_ENTRY_JOIN_(a, b) a##b
#define MEKIK_ENTRY_JOIN(a, b) MEKIK_ENTRY_JOIN_(a, b)
#define MEKIK_ENTRY MEKIK_ENTRY_JOIN(mekik_plugin_v0_, MEKIK_STATIC_NAME)
#else
#define MEKIK_ENTRY mekik_plugin_v0
#endif
MEKIK_EXPORT extern const mekik_plugin MEKIK_ENTRY;
/* ---- numbers and forms: how stored weights are described to backends ----------------------------------------- */
enum mekik_num { MEKIK_F32 = 1, MEKIK_F16 = 2, MEKIK_BF16 = 3, MEKIK_E8M0 = 4, MEKIK_UE4M3 = 5, MEKIK_I8 = 6,
  MEKIK_U8 = 7, MEKIK_I32 = 8, MEKIK_E4M3 = 9, MEKIK_E5M2 = 10, MEKIK_F64 = 11, MEKIK_I16 = 12, MEKIK_I64 = 13,
  MEKIK_E8M0_HALF = 14 };                       /* E8M0: 2^(x-127), 255 is NaN; HALF, as in GGUF: 2^(x-128), 255, too */
enum mekik_form_kind { MEKIK_FORM_FLOAT = 1, MEKIK_FORM_AFFINE = 2, MEKIK_FORM_CODEBOOK = 3 };
/* A tensor is [experts][n rows, outputs][k columns, inputs]; a vector is n = 1. FLOAT: w = kept, for every column.
 * Else, each step rounded to F32:  s = scale, or super * scale;  m = min, or super_min * min;
 *   c = code - zero (AFFINE), or table[code] (CODEBOOK);  w = s * c;
 * and then those that are present, in this order:  w -= m;  w *= tensor_scale[expert];  w = (round_num)w. */
typedef struct mekik_form { uint32_t struct_size, kind, bits;         /* bits of a code, 1 to 8 */
  uint32_t group_k, group_n;                    /* a scale covers group_k columns of group_n rows; the last may be short */
  uint32_t super_k;                             /* columns under one super, a multiple of group_k; 0: scales stand alone */
  uint32_t scale_num, super_num, min_num, super_min_num; /* 0: absent */
  uint32_t zero_num;                            /* U8: a zero point per group; 0: the constant below */
  int32_t zero;
  uint32_t round_num;                           /* what the format's own tool rounds a weight to (F16, BF16); 0: nothing */
  uint32_t exact;                               /* 1: equal to decode() to the bit; 0: within 2^-22 relative */
  uint32_t n_table, n_kept;
  float table_unit;                             /* > 0: table entries are this times integers in -128..127 */
  float act_outlier;                            /* > 0: activations this large are not rounded to 8 bits, decided per row */
  const float *table, *tensor_scale;            /* [n_table]; [experts] or NULL */
  const uint32_t *k_perm;                       /* [k] code column j meets input k_perm[j]; NULL: as they come */
  const uint32_t *kept_k;                       /* [n_kept] ascending inputs whose weights are floats apart, codes unused */
  uint64_t experts, n, k;
  uint32_t kept_num, row_step;                  /* rows() is asked at multiples of row_step, itself one of group_n; or to n */
  void *owner; } mekik_form;                    /* the scheme's, for release() */
/* Where rows n0..n1 go: the caller's memory, row-major, members absent from the form are NULL. codes [n1-n0][k], one a
 * byte; scale, min, zero [ceil((n1-n0)/group_n)][ceil(k/group_k)]; super, super_min the same with super_k;
 * kept [n1-n0][n_kept], or [n1-n0][k] for FLOAT. */
typedef struct mekik_form_rows { uint32_t struct_size, reserved;
  uint8_t *codes; void *scale, *super, *min, *super_min, *zero, *kept; } mekik_form_rows;
/* ---- programs: what a backend runs --------------------------------------------------------------------------- */
enum mekik_dim { MEKIK_DIM_TOKENS = -1, MEKIK_DIM_SEQS = -2, MEKIK_DIM_ROWS = -3 };   /* sizes bound per batch */
enum mekik_role { MEKIK_ROLE_WEIGHT = 1, MEKIK_ROLE_INPUT = 2, MEKIK_ROLE_TEMP = 3, MEKIK_ROLE_STATE = 4,
  MEKIK_ROLE_OUTPUT = 5, MEKIK_ROLE_SLOT = 6 };                /* STATE: a row per token, in blocks; SLOT: whole states */
typedef struct mekik_tensor { const char *name;
  const char *scheme;                           /* "f32", ...; of STATE: a name from mekik.backend.kv/1 */
  const mekik_form *form;                       /* WEIGHT only */
  uint32_t role, rank; int64_t shape[4];
  uint32_t group;                               /* STATE: layers of one group share a block table */
  /* TEMP: 0, or 1 + the index of the tensor whose columns `column` and up this one is: same rows, the other's row stride,
   * no memory of its own, never written. `column` counts elements within a row. */
  uint32_t view_of; uint64_t column; } mekik_tensor;
/* Positions and counts of operands and attributes are frozen per code in mekik/ops.def. A new attribute is a new code. */
#define MEKIK_NONE 0xFFFFFFFFu                  /* in place of an optional operand that is absent */
typedef struct mekik_op { uint32_t code, layer; const uint32_t *in, *out; uint32_t n_in, n_out;
  const int64_t *ints; const double *reals; uint32_t n_ints, n_reals; } mekik_op;
#define MEKIK_MAX_GROUPS 8
typedef struct mekik_program { uint32_t struct_size, op_set;          /* op_set: newest revision of ops.def used */
  const mekik_tensor *tensors; uint32_t n_tensors, tensor_size;
  const mekik_op *ops; uint32_t n_ops, op_size;                       /* already ordered; every temp written once */
  uint32_t n_groups, reserved; } mekik_program;
/* What a batch makes use of. submit() answers MEKIK_E_UNSUPPORTED to any bit that its plan did not list. */
enum mekik_use { MEKIK_USE_CHAINED = 1, MEKIK_USE_PICK = 2, MEKIK_USE_TREE = 4, MEKIK_USE_STATE_OUT = 8,
  MEKIK_USE_ADAPTER = 16, MEKIK_USE_EMBEDS = 32, MEKIK_USE_AXES = 64, MEKIK_USE_SPANS = 128, MEKIK_USE_HIDDEN = 256,
  MEKIK_USE_TYPES = 512 };
typedef struct mekik_pick { float temperature, top_p, min_p; int32_t top_k; /* temperature 0: greedy, ties to lower id */
  double uniform;                               /* in [0, 1), drawn by the core from (seed, position) */
  const uint32_t *allowed; } mekik_pick;        /* a bit per token, or NULL */
/* Token i of a sequence's step is stored at row context_len + i of its blocks, whatever its position says. A slot is
 * saved after each sequence's last token, after others only with STATE_OUT. Arrays and outputs are borrowed until the
 * ticket completes; those whose bit is not in `uses` are NULL. */
typedef struct mekik_batch { uint32_t struct_size, n_tokens, n_seqs, n_rows, max_blocks;
  uint32_t n_axes, n_embeds, n_top, pick_size, reserved;             /* n_axes 1 without AXES */
  uint64_t uses;
  const int32_t *token_ids, *positions;         /* [n_tokens]; [n_axes][n_tokens] */
  const int32_t *seq_start, *context_len;       /* [n_seqs+1]; [n_seqs] tokens stored before this step */
  const int32_t *const *blocks;                 /* [n_groups] of [n_seqs][max_blocks]; -1: past the end, or out of window */
  const int32_t *rows;                          /* [n_rows] tokens whose row reaches the head */
  const int32_t *state_in, *state_out;          /* slots: [n_seqs] -1: fresh; [n_tokens] where to save after it, -1: no */
  const int32_t *token_from;                    /* CHAINED: [n_tokens] row of the previous submit's picks, -1: token_ids */
  const uint64_t *tree;                         /* TREE: [n_tokens] bit j: sees token j of its sequence's step (max 64) */
  const int32_t *adapters;                      /* ADAPTER: [n_seqs] or -1 */
  const int32_t *embed_rows; const float *embeds; /* EMBEDS: [n_tokens] or -1; [n_embeds][width] in place of token ids */
  const int32_t *spans;                         /* SPANS: [n_tokens] equal numbers see each other both ways, -1: causal */
  const mekik_pick *picks;                      /* PICK: [n_rows] */
  float *logits, *hidden;                       /* [n_rows][vocab] or NULL; HIDDEN: [n_rows][size of that output's rows] */
  int32_t *picked; float *picked_logprob;       /* PICK: [n_rows][1 + n_top] the pick, then the likeliest */
  const int32_t *token_types; } mekik_batch;    /* TYPES: [n_tokens] the part of a pair that a token is of; else all are 0 */
/* ---- backend ------------------------------------------------------------------------------------------------- */
#define MEKIK_KIND_BACKEND "mekik.backend/1"
typedef struct mekik_device mekik_device; typedef struct mekik_exec mekik_exec;
enum mekik_device_kind { MEKIK_DEVICE_CPU = 1, MEKIK_DEVICE_GPU = 2, MEKIK_DEVICE_OTHER = 3 };
enum mekik_cap { MEKIK_CAP_ASYNC = 1, MEKIK_CAP_UNIFIED_MEMORY = 2, MEKIK_CAP_GRAPH_CAPTURE = 4,
  MEKIK_CAP_ROW_INVARIANT = 8, MEKIK_CAP_OWN_THREADS = 16 }; /* ROW_INVARIANT: no bit of a row depends on its batch */
typedef struct mekik_device_info { uint32_t struct_size, device_kind; uint64_t caps, bytes_total, bytes_free, alignment;
  char name[64], uid[32]; } mekik_device_info;
typedef struct mekik_limits { uint32_t struct_size, max_tokens, max_seqs, max_rows, max_blocks; /* of one batch */
  uint32_t block_tokens, n_slots, n_adapters, adapter_rank, reserved;
  uint32_t n_blocks[MEKIK_MAX_GROUPS];          /* the pool; ids are 0 .. n_blocks-1 within a group */
  uint64_t device_bytes, host_bytes; } mekik_limits;
typedef struct mekik_plan { uint32_t struct_size, slot_every;         /* states to reuse lie at multiples of it, tokens */
  uint32_t max_in_flight, reserved;             /* tickets; one more submit answers MEKIK_E_BUSY */
  uint64_t uses;                                /* what batches may use */
  uint64_t weight_bytes, peak_load_bytes, work_bytes, adapter_bytes, host_bytes; /* weight: packed. adapter: for one */
  uint64_t slot_bytes, block_bytes[MEKIK_MAX_GROUPS];                /* of one slot; of one block */
  uint8_t layout_id[32], numeric_id[32]; } mekik_plan; /* SHA-256 of all that shapes stored state; that can change a bit */
typedef struct mekik_weight { uint32_t struct_size, tensor;           /* index in the program */
  const mekik_form *form; void *self;
  mekik_status (*rows)(void *self, uint64_t expert, uint64_t n0, uint64_t n1, const mekik_form_rows *out); /* [any] */
} mekik_weight;
enum mekik_what { MEKIK_WHAT_BLOCK = 1, MEKIK_WHAT_SLOT = 2, MEKIK_WHAT_ROWS = 3 };
typedef struct mekik_move { uint32_t what, group; int32_t from, to;   /* a copy inside a group; ROWS: n_rows of a block */
  uint32_t from_row, to_row, n_rows, reserved; } mekik_move;
/* A device is opened once a process and has one exec per model. The backend owns all device memory; the core numbers
 * blocks and slots, and reuses one only when the last ticket that named it has completed. Work of one exec takes effect
 * in the order of its calls, work of one device one step at a time; tickets ascend and complete in order. A call that
 * fails changed nothing; a ticket that fails leaves what it wrote undefined.
 * After MEKIK_E_DEVICE_LOST, from any call, every ticket counts as failed and lets go of its memory; only exec_free and
 * close may follow, and both must succeed. Bytes already read out by state_read stay good for a reopened device. */
typedef struct mekik_backend { uint32_t struct_size, reserved;
  mekik_status (*probe)(uint32_t index, mekik_device_info *out);       /* [load] MEKIK_E_INVALID past the last device */
  /* [load] n > 1: the devices act as one; sharding and collectives are the backend's. */
  mekik_status (*open)(const mekik_host *, const uint32_t *indices, uint32_t n, const mekik_config *, mekik_device **out);
  void (*close)(mekik_device *);                                       /* [load] after its execs are freed */
  /* [any] Pure. 1: native. 0: lower it or refuse the model; says why through fail(). 0 for any count it does not know. */
  int (*supports)(mekik_device *, const mekik_program *, uint32_t op);
  /* [any] Pure, touches no weights. First asked with n_blocks 0 to learn block_bytes, then with the final limits. */
  mekik_status (*plan)(mekik_device *, const mekik_program *, const mekik_limits *, mekik_plan *out);
  /* [load] Allocates what plan() said for these limits and no more, then or in weight(). */
  mekik_status (*compile)(mekik_device *, const mekik_program *, const mekik_limits *, mekik_exec **out);
  void (*exec_free)(mekik_exec *);                                     /* [load] waits for what is in flight */
  mekik_status (*weight)(mekik_exec *, const mekik_weight *);          /* [load] pulls rows in its own order and threads */
  /* [engine] Pairs per adapted tensor: A [rank][k], then B [n][rank] with alpha/rank in it. n 0: unload. */
  mekik_status (*adapter)(mekik_exec *, uint32_t index, const mekik_weight *, uint32_t n, uint32_t weight_size);
  mekik_status (*submit)(mekik_exec *, const mekik_batch *, uint64_t *ticket);  /* [engine] */
  /* [engine] In the order given; what it does is seen by later submits. */
  mekik_status (*move)(mekik_exec *, const mekik_move *, uint32_t n, uint32_t move_size, uint64_t *ticket);
  /* [engine] Both: BLOCK or SLOT, whole: block_bytes or slot_bytes, opaque, good for any exec of equal layout_id and
   * numeric_id. The memory is borrowed until the ticket completes. */
  mekik_status (*state_read)(mekik_exec *, uint32_t what, uint32_t group, int32_t id, void *, uint64_t bytes, uint64_t *ticket);
  mekik_status (*state_write)(mekik_exec *, uint32_t what, uint32_t group, int32_t id, const void *, uint64_t bytes,
    uint64_t *ticket);
  mekik_status (*wait)(mekik_exec *, uint64_t ticket, uint64_t timeout_ns); /* [engine] MEKIK_E_BUSY: not yet; 0 polls */
} mekik_backend;
#define MEKIK_BACKEND_KV "mekik.backend.kv/1"   /* extension: how STATE can be stored; other names never load */
typedef struct mekik_kv_form { const char *name, *doc; uint32_t num, group; double bits_per_value; } mekik_kv_form;
typedef struct mekik_backend_kv { uint32_t struct_size, n_forms, form_size, reserved;
  const mekik_kv_form *forms; } mekik_backend_kv; /* group: values under one scale within a head, 0: none */
/* Extension: weights as this backend packs them, which the host keeps in a file from one start to the next. Packed bytes
 * depend on the weight's form and rows and on what id() digests, on nothing else. */
#define MEKIK_BACKEND_PREPARED "mekik.backend.prepared/1"
typedef struct mekik_backend_prepared { uint32_t struct_size, reserved;
  mekik_status (*id)(mekik_exec *, uint8_t *sha256);                   /* [load] [32] */
  /* [any] Of a tensor that weight() has brought: good until exec_free or its next weight(). */
  mekik_status (*packed)(mekik_exec *, uint32_t tensor, const void **data, uint64_t *bytes);
  /* [load] In place of weight(), with bytes that packed() gave for an equal form and id. They are aligned to 64, checked by
   * the host, never written, and borrowed until exec_free. */
  mekik_status (*map)(mekik_exec *, const mekik_weight *, const void *data, uint64_t bytes);
} mekik_backend_prepared;
/* Extension: what the device can do at most, and where the time of steps goes. For `mekik bench`. */
#define MEKIK_BACKEND_MEASURE "mekik.backend.measure/1"
/* A second: bytes read, products of 8-bit integers summed in 32 bits, products of F32. 0: not known. */
typedef struct mekik_roof { uint32_t struct_size, reserved; double bytes, int8_products, f32_products; } mekik_roof;
typedef struct mekik_backend_measure { uint32_t struct_size, reserved;
  /* [load] Measured now, by all of the device, in half a second or so; reads `bytes` of memory again and again. */
  mekik_status (*roof)(mekik_device *, uint64_t bytes, mekik_roof *out);
  mekik_status (*profile)(mekik_exec *, int on);                  /* [engine], or while it is idle. on: from zero */
  /* Likewise. Nanoseconds of the steps since profile(on), by operation of the program; where several are run as one, all of it
   * counts for one of them. */
  mekik_status (*spent)(mekik_exec *, uint64_t *ns, uint32_t n_ops);
} mekik_backend_measure;
/* ---- loader and scheme: files, and what their tensors mean --------------------------------------------------- */
typedef struct mekik_part { const char *name, *scheme;                /* scheme: of a block format, else NULL and num */
  uint32_t num, rank; int64_t shape[4]; uint64_t bytes;
  const void *data; } mekik_part;               /* NULL when not mapped: use read */
#define MEKIK_KIND_LOADER "mekik.loader/1"
typedef struct mekik_model_file mekik_model_file;
typedef struct mekik_loader { uint32_t struct_size, reserved;
  int (*probe)(mekik_str path, const void *head, size_t head_bytes);   /* [any] 0 no ... 100 certain */
  mekik_status (*open)(const mekik_host *, mekik_str path, mekik_model_file **out);  /* [load] */
  void (*close)(mekik_model_file *);                                   /* [load] ends all it gave out */
  /* [any] config, tokenizer, template; files: paths of all that decides the weights, for whoever keeps what was made of them */
  mekik_status (*meta)(mekik_model_file *, mekik_str key, mekik_str *json_out);
  mekik_status (*tensors)(mekik_model_file *, const mekik_part **out, uint32_t *n, uint32_t *part_size); /* [any] */
  mekik_status (*read)(mekik_model_file *, uint32_t i, uint64_t at, void *, uint64_t bytes);  /* [any] */
} mekik_loader;
/* One weight as its checkpoint holds it, in the order of `suffixes`; a missing optional part has a NULL name. experts, n and
 * k: what shape() said, 0 before. config_json: the checkpoint's quantization_config, with the model's own number type
 * ("bfloat16") as its member "model_dtype" where config.json says one. */
typedef struct mekik_parts { uint32_t struct_size, n_parts, part_size, reserved; const mekik_part *parts;
  uint64_t experts, n, k; mekik_str config_json;
  void *self;
  mekik_status (*read)(void *self, uint32_t part, uint64_t at, void *, uint64_t bytes);  /* [any] */
} mekik_parts;
#define MEKIK_KIND_SCHEME "mekik.scheme/1"      /* extension "mekik.scheme.kernels/1": native code for (backend, op) */
typedef struct mekik_scheme { uint32_t struct_size, block_elems, block_bytes, reserved; /* 0, 0: not a block format */
  /* What stands for "weight", NULL: one part. "qweight qzeros? scales": X.qweight and its like are X.weight together; one
   * that begins with '_' is appended to a whole name: X_blocks is of X. '?': may be missing. '!': no part of a weight, left
   * unread, and said so at load. */
  const char *suffixes;
  /* [any] By config_json, names and shapes: 0 no ... 100 certain. Of several parts: asked for every X of which more is there
   * than X.weight, and where X.weight is no F32, F16 or BF16; 0 leaves its tensors as they are. */
  int (*claims)(const mekik_parts *);
  /* [any] Reads small parts only. MEKIK_E_UNSUPPORTED: there is no form, only decode. What it points to lasts until
   * release(), the parts' memory until then, too. */
  mekik_status (*describe)(const mekik_parts *, mekik_form *out);
  void (*release)(mekik_form *);  /* [any] */
  mekik_status (*rows)(const mekik_parts *, const mekik_form *, uint64_t expert, uint64_t n0, uint64_t n1,
    const mekik_form_rows *out);  /* [any] */
  mekik_status (*decode)(const mekik_parts *, uint64_t expert, uint64_t n0, uint64_t n1, float *out);   /* [any] the truth */
  /* [any] Optional. x [n][k], importance [k] or NULL; blocks row after row. */
  mekik_status (*encode)(const float *x, const float *importance, uint64_t n, uint64_t k, void *blocks, uint64_t bytes);
  /* [any] Of several parts: rank 2 [n][k] or 3 [experts][n][k], by shapes, config_json and small parts; what cannot be read
   * fails here. */
  mekik_status (*shape)(const mekik_parts *, int64_t *shape, uint32_t *rank);
  /* [any] Optional, of several parts: what this weight's config asks for and this scheme leaves out (quantized activations);
   * static, length 0: nothing. Said once at load. */
  mekik_str (*left_out)(const mekik_parts *);
} mekik_scheme;
/* ---- scheduler ----------------------------------------------------------------------------------------------- */
#define MEKIK_KIND_SCHEDULER "mekik.scheduler/1"
typedef struct mekik_sched mekik_sched;
typedef struct mekik_seq_view { uint64_t id, tenant, arrival_ns, deadline_ns; /* 0: no deadline */
  uint64_t ttft_ns, tpot_ns, swap_bytes;        /* targets, durations, 0: none; see SWAP */
  int32_t priority; uint32_t running, waiting_fetch;                  /* higher goes first; waiting: cannot RUN yet */
  uint32_t prompt_left, cached, generated, max_drafts, blocks_held; /* tokens; blocks */
  /* Of the prompt_left of one that does not run: what the cache has as it seems now, and what need not be computed then. */
  uint32_t known, reserved; } mekik_seq_view;
typedef struct mekik_step_view { uint32_t struct_size, n_seqs, seq_size, max_tokens, max_seqs, block_tokens;
  uint32_t free_blocks, reserved;               /* free and held blocks are those of the scarcest group */
  uint64_t now_ns; const mekik_seq_view *seqs; } mekik_step_view;
enum mekik_action { MEKIK_RUN = 1, MEKIK_HOLD = 2, MEKIK_DROP = 3, MEKIK_SWAP = 4, MEKIK_REFUSE = 5 };
/* seq: index into the view. HOLD keeps its blocks and waits, as does a sequence not listed; DROP frees them to compute
 * again; SWAP stores them in the cache's slower tier, and is for sequences with swap_bytes > 0: their state is so large, and to
 * read it back takes less time than to compute it again; REFUSE ends the request ("try again in retry_ns"). drafts: how many
 * proposed tokens a sequence with max_drafts > 0 may run beside its one token. Of all that are proposed the host runs what is
 * likeliest, within the tokens that the plan leaves. */
typedef struct mekik_choice { uint32_t seq, action, tokens, drafts; uint64_t retry_ns; } mekik_choice;
typedef struct mekik_scheduler { uint32_t struct_size, reserved;
  mekik_status (*create)(const mekik_host *, const mekik_config *, mekik_sched **out); void (*destroy)(mekik_sched *); /* [load] */
  /* [engine] *n: room in, used out; the host checks the limits again. */
  mekik_status (*plan)(mekik_sched *, const mekik_step_view *, mekik_choice *out, uint32_t choice_size, uint32_t *n);
  void (*observe)(mekik_sched *, const mekik_step_view *, uint64_t step_ns); /* [engine] optional feedback */
} mekik_scheduler;
/* ---- cache: which blocks and states to keep, and an optional slower tier for them ----------------------------- */
#define MEKIK_KIND_CACHE "mekik.cache/1"
typedef struct mekik_cache mekik_cache;
typedef struct mekik_key { uint8_t sha256[32]; } mekik_key; /* of parent, tokens, extra key, layout_id and numeric_id */
typedef struct mekik_node { mekik_key key, parent; uint64_t bytes, last_use_ns, recompute_ns;
  uint32_t tokens, children, uses, what; } mekik_node; /* what: MEKIK_WHAT_BLOCK or _SLOT */
typedef struct mekik_known { uint64_t bytes, expected_ns; } mekik_known; /* of a value: 0: it is not there; how long it takes */
typedef void (*mekik_done)(void *ctx, mekik_status);        /* [any] once per call that returned MEKIK_OK; before destroy */
typedef struct mekik_cache_policy { uint32_t struct_size, reserved;
  mekik_status (*create)(const mekik_host *, const mekik_config *, mekik_cache **out); void (*destroy)(mekik_cache *); /* [load] */
  void (*touched)(mekik_cache *, const mekik_key *, uint64_t now_ns);  /* [engine] */
  /* [engine] Writes up to n indices of nodes that free at least `bytes` together; returns how many. */
  uint32_t (*victims)(mekik_cache *, const mekik_node *, uint32_t n, uint32_t node_size, uint64_t bytes, uint32_t *chosen);
  /* The slower tier; all four NULL: none. store and fetch return at once, memory is borrowed until done(); a fetch of an
   * unknown key, or of other `bytes`, ends in MEKIK_E_INVALID. cancel hurries the done() of ctx, which still comes. store of
   * 0 bytes only asks: MEKIK_E_UNSUPPORTED, this instance has no tier; MEKIK_E_INVALID, it has. Bytes must come back as they
   * were: that is the plugin's to check. */
  int (*has)(mekik_cache *, const mekik_key *, uint64_t *bytes, uint64_t *expected_ns); /* [any] 1: yes, and how long */
  mekik_status (*store)(mekik_cache *, const mekik_key *, const void *, uint64_t bytes, mekik_done, void *ctx); /* [engine] */
  mekik_status (*fetch)(mekik_cache *, const mekik_key *, void *, uint64_t bytes, mekik_done, void *ctx); /* [engine] */
  void (*cancel)(mekik_cache *, void *ctx);  /* [any] */
  /* [engine] Optional, in place of many has() where looking takes time. Returns at once, keys and out are borrowed until done(),
   * cancel() hurries it. chain 1: a key is of use only with all before it, so nothing behind the first missing one need be
   * looked for. */
  mekik_status (*ask)(mekik_cache *, const mekik_key *, uint32_t n, uint32_t chain, mekik_known *out, uint32_t known_size,
    mekik_done, void *ctx);
  uint64_t (*host_bytes)(mekik_cache *); /* [load] Optional: how much of the host's memory its tier may come to take, for the plan */
} mekik_cache_policy;
/* ---- sampler: one link of the logits chain; an instance belongs to one sequence ------------------------------- */
enum mekik_token_flag { MEKIK_TOKEN_SPECIAL = 1, MEKIK_TOKEN_END = 2, MEKIK_TOKEN_UNUSED = 4 };
typedef struct mekik_vocab { uint32_t struct_size, n; const void *self; /* outlives whoever was created with it */
  mekik_str (*piece)(const void *self, int32_t id);                    /* [any] raw bytes, maybe a part of a character */
  uint32_t (*flags)(const void *self, int32_t id);  /* [any] */
} mekik_vocab;
#define MEKIK_KIND_SAMPLER "mekik.sampler/1"
typedef struct mekik_chain mekik_chain;
typedef struct mekik_sampler { uint32_t struct_size, reserved;
  mekik_status (*create)(const mekik_host *, const mekik_config *, const mekik_vocab *, mekik_str request_json,
    mekik_chain **out);  /* [any] */
  void (*destroy)(mekik_chain *);  /* [engine] */
  /* [engine] Optional: for drafts by a model, which then sees logits as this chain leaves them. */
  mekik_status (*fork)(const mekik_chain *, mekik_chain **out);
  void (*accept)(mekik_chain *, const int32_t *tokens, uint32_t n, int prompt);  /* [engine] */
  /* [engine] On host memory; -inf bans a token. `uniform` is the only randomness, in [0, 1), by (seed, position). */
  mekik_status (*apply)(mekik_chain *, float *logits, uint32_t vocab, double uniform);
  /* [engine] The device path, each optional: clear the bits of banned tokens; the rest of the link as parameters
   * (but uniform and allowed). MEKIK_E_UNSUPPORTED: apply() must run on the host. */
  mekik_status (*allow)(mekik_chain *, uint32_t *bits, uint32_t vocab);
  mekik_status (*pick)(mekik_chain *, mekik_pick *out, uint32_t pick_size);  /* [engine] */
} mekik_sampler;
/* ---- drafter, a draft revision: proposes tokens; the core verifies, and runs any model the drafter names ------ */
#define MEKIK_KIND_DRAFTER "mekik.drafter/0"
/* MODEL: an option "model" of type COMPONENT, "model". The core runs that model and asks for one token at a time. */
enum mekik_draft_want { MEKIK_WANT_MODEL = 1 };
typedef struct mekik_draft mekik_draft;
/* tokens: all so far, the prompt first; they only grow. MODEL: the last `drafted` of them are this drafter's own, not verified
 * yet, and logits [vocab] is what the draft model says of the next, after the sequence's sampler chain, to draw from with
 * `uniform`, which the core draws with, too. */
typedef struct mekik_draft_ask { uint64_t seq, tenant; const int32_t *tokens; uint32_t n_tokens, n_prompt, drafted, room;
  const float *logits; double uniform; uint32_t vocab, reserved; } mekik_draft_ask;
/* The host's arrays of `room`: tokens that follow each other, and for each how likely it comes true if those before it do. The
 * host corrects these by what it measures, so their order is what matters. */
typedef struct mekik_draft_out { int32_t *tokens; float *probs; uint32_t n, reserved; } mekik_draft_out;
typedef struct mekik_drafter { uint32_t struct_size, wants;
  mekik_status (*create)(const mekik_host *, const mekik_config *, const mekik_vocab *, mekik_draft **out); /* [load] */
  void (*destroy)(mekik_draft *);  /* [load] */
  /* [engine] n asks, n answers; returning fewer tokens than `room`, or none, is fine. Not all that is proposed is run. */
  mekik_status (*propose)(mekik_draft *, const mekik_draft_ask *, uint32_t n, uint32_t ask_size, mekik_draft_out *out,
    uint32_t out_size);
  /* [engine] Of the last proposal the first `run` tokens were run, the first `accepted` came true. */
  void (*verified)(mekik_draft *, uint64_t seq, uint32_t run, uint32_t accepted);
  /* [engine] A sequence that was asked for has ended. tokens: all of it. */
  void (*forget)(mekik_draft *, uint64_t seq, uint64_t tenant, const int32_t *tokens, uint32_t n_tokens, uint32_t n_prompt);
} mekik_drafter;
/* ---- sink: where metrics and events go ------------------------------------------------------------------------ */
#define MEKIK_KIND_SINK "mekik.sink/1"
typedef struct mekik_sink mekik_sink;
enum mekik_sample_type { MEKIK_SAMPLE_COUNTER = 1, MEKIK_SAMPLE_GAUGE = 2, MEKIK_SAMPLE_HISTOGRAM = 3 };
typedef struct mekik_sample { const char *name, *help, *labels; uint32_t type, n_bounds;
  double value; uint64_t count;                 /* HISTOGRAM: value is the sum, of count; counts[i] are <= bounds[i] */
  const double *bounds; const uint64_t *counts; } mekik_sample;
typedef struct mekik_field { const char *key; uint32_t type, reserved; double number; mekik_str text; } mekik_field;
typedef struct mekik_sink_api { uint32_t struct_size, reserved;       /* a field's type: MEKIK_OPT_BOOL, INT, REAL, TEXT */
  mekik_status (*create)(const mekik_host *, const mekik_config *, mekik_sink **out); void (*destroy)(mekik_sink *); /* [load] */
  void (*publish)(mekik_sink *, uint64_t now_ns, const mekik_sample *, uint32_t n, uint32_t sample_size); /* [engine] */
  /* [any] Optional: one line, of a finished request for instance. */
  void (*event)(mekik_sink *, const char *name, uint64_t now_ns, const mekik_field *, uint32_t n, uint32_t field_size);
  /* [any] Optional: the body of GET /metrics in a type of `accept`. write() is called within the call only;
   * *content_type is static. */
  mekik_status (*scrape)(mekik_sink *, mekik_str accept, const mekik_sample *, uint32_t n, uint32_t sample_size,
    void (*write)(void *ctx, mekik_str), void *ctx, mekik_str *content_type);
} mekik_sink_api;
#ifdef __cplusplus
}
#endif
#endif
