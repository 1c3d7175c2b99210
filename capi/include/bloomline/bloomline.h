/* bloomline: a Bloom filter in one cache line. Made by cbindgen from capi/src; do not edit.
 *
 * What holds for every function:
 *
 * Pointers are null or point at what the function asks for: a filter, view, builder or policy that one of these functions
 * made and that has not been freed; as many bytes or numbers as the length beside them says. What null means is said at
 * each function; a length of 0 makes a null key, or no numbers, good. Bytes may have any alignment, numbers their own.
 * A null key of length 0 is the empty key, a key like any other.
 *
 * No key is lost by a mistake: whatever is wrong in a lookup, such as null or bytes that are no filter, it answers true,
 * "may be in". An insert with wrong arguments inserts nothing and says so.
 *
 * Errors: a function gives a status, or null, or the value named at it; bloomline_last_status and bloomline_last_error
 * then say what went wrong, for the thread that called. No function panics on any argument, and none lets a panic pass.
 *
 * Threads: any number of threads may call functions at once that take the same object as a pointer to const. Functions
 * that take it as a pointer to non-const, to change or free it, are for one thread at a time, with none of the others at
 * the same time. Different objects have nothing to do with each other.
 *
 * Memory: what a function makes is freed by the _free function of its type, and bytes "from malloc" by free. Where memory
 * cannot be had, functions that can be asked for any size report it; small allocations, copies of filters and the keys
 * that a builder collects abort the process.
 */


#ifndef BLOOMLINE_BLOOMLINE_H
#define BLOOMLINE_BLOOMLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * How a call ended.
 */
enum bloomline_status_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * As asked.
   */
  BLOOMLINE_OK = 0,
  /**
   * A pointer is null where it must not be, numbers are not aligned to their size, or a length is greater than
   * that of any object.
   */
  BLOOMLINE_INVALID_ARGUMENT = 1,
  /**
   * A size, a rate, a k or a factor out of range.
   */
  BLOOMLINE_SIZING = 2,
  /**
   * The filters differ in blocks, k or seed, so they cannot be combined.
   */
  BLOOMLINE_MISMATCH = 3,
  /**
   * The bytes are no filter, or are damaged.
   */
  BLOOMLINE_DECODE = 4,
  /**
   * Memory cannot be had.
   */
  BLOOMLINE_OUT_OF_MEMORY = 5,
  /**
   * The buffer is shorter than what was to be written to it. Nothing was.
   */
  BLOOMLINE_BUFFER_TOO_SMALL = 6,
  /**
   * A seed is set before the first key, and keys have been added.
   */
  BLOOMLINE_NOT_EMPTY = 7,
  /**
   * The library was built with a hash that gives other values than the format asks for.
   */
  BLOOMLINE_HASH_CHANGED = 8,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum bloomline_status_t bloomline_status_t;
#else
typedef int32_t bloomline_status_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Collects keys, then makes a filter of the right size: what the writer of an SSTable uses.
 *
 * Keeps 8 bytes a key until it is finished. A key may be added any number of times; the size follows from the distinct
 * ones. A finished builder is empty and can be used again.
 */
typedef struct bloomline_builder_t bloomline_builder_t;

/**
 * A set of keys that answers "certainly not in" or "may be in", with one cache line touched per lookup.
 *
 * Keys cannot be taken out. Memory is fixed at construction: with more keys than it was sized for, the filter stays
 * correct and answers "may be in" more often.
 */
typedef struct bloomline_filter_t bloomline_filter_t;

/**
 * Creates and queries the filters of a database, in the shape of LevelDB's FilterPolicy.
 *
 * Filters are compact bytes of seed 0, and say by themselves how to read them, so a policy of any bits per key reads
 * those of any other. Any number of threads may use a policy at once.
 */
typedef struct bloomline_policy_t bloomline_policy_t;

/**
 * A filter read in place from its bytes, at any alignment, without copying. The bytes must outlive the view and must
 * not change.
 */
typedef struct bloomline_view_t bloomline_view_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * What went wrong in the last failed call on this thread, in English: a string that ends in a NUL, and lives until
 * the thread's next failure or its end. Never null: empty if there was no failure. A call that succeeds leaves it as
 * it is.
 */
const char *bloomline_last_error(void);

/**
 * The status of the last failed call on this thread, BLOOMLINE_OK if there was none. A call that succeeds leaves it
 * as it is, like errno.
 */
bloomline_status_t bloomline_last_status(void);

/**
 * Forgets the last failure of this thread: before calls that tell of a failure by `bloomline_last_status` only.
 */
void bloomline_clear_error(void);

/**
 * An empty filter that answers "may be in" for at most a share `fpr` of missing keys, once it holds `expected_keys`
 * distinct keys. 1 % takes 9.9 bits per key.
 *
 * Null if `fpr` is not between 1.263e-8 and 1 (BLOOMLINE_SIZING), or memory cannot be had (BLOOMLINE_OUT_OF_MEMORY).
 */
bloomline_filter_t *bloomline_filter_with_fpr(size_t expected_keys, double fpr);

/**
 * An empty filter with `bits_per_key` for each of `expected_keys` distinct keys, rounded up to whole blocks of 64
 * bytes, and the k that is best for it.
 *
 * Null if `bits_per_key` is not above 0 and at most 64 (BLOOMLINE_SIZING), or memory cannot be had
 * (BLOOMLINE_OUT_OF_MEMORY).
 */
bloomline_filter_t *bloomline_filter_with_bits_per_key(size_t expected_keys, double bits_per_key);

/**
 * An empty filter of `n_blocks` blocks of 64 bytes, with `k` probes per key, 1 to 16.
 *
 * Null if `n_blocks` or `k` is out of range (BLOOMLINE_SIZING), or memory cannot be had (BLOOMLINE_OUT_OF_MEMORY).
 */
bloomline_filter_t *bloomline_filter_with_blocks(size_t n_blocks, uint32_t k);

/**
 * Gives an empty filter another seed than 0: its keys are then placed differently, so that what one filter takes for
 * present another does not.
 *
 * BLOOMLINE_NOT_EMPTY if keys have been inserted since the filter was made or cleared; nothing is changed then.
 */
bloomline_status_t bloomline_filter_set_seed(bloomline_filter_t *filter, uint64_t seed);

/**
 * A copy, to be freed on its own. Null if `filter` is null.
 */
bloomline_filter_t *bloomline_filter_clone(const bloomline_filter_t *filter);

/**
 * Frees a filter. Null is fine.
 */
void bloomline_filter_free(bloomline_filter_t *filter);

/**
 * Inserts the key of `length` bytes; whether that changed a bit. If not, `bloomline_filter_contains` was true already.
 *
 * With a null filter, or a null key whose length is not 0, nothing is inserted: false, and `bloomline_last_status` is
 * then BLOOMLINE_INVALID_ARGUMENT. Lookups with such arguments are true.
 */
bool bloomline_filter_insert(bloomline_filter_t *filter, const void *key, size_t length);

/**
 * `bloomline_filter_insert` by the key's hash, from `bloomline_hash_key` with the filter's seed. Any other hash will
 * do if all its 64 bits are well mixed and it is the same for every insert and lookup; `bloomline_mix` repairs weak
 * ones.
 */
bool bloomline_filter_insert_hash(bloomline_filter_t *filter, uint64_t hash);

/**
 * Inserts `n` keys by their hashes: faster than one by one. `hashes` may be null if `n` is 0.
 *
 * BLOOMLINE_INVALID_ARGUMENT if a pointer is null or not aligned; nothing is inserted then.
 */
bloomline_status_t bloomline_filter_insert_batch(bloomline_filter_t *filter, const uint64_t *hashes, size_t n);

/**
 * Whether the key of `length` bytes may have been inserted: false is certain.
 *
 * For a key never inserted it is true with the probability that `bloomline_filter_estimated_fpr` tells. True for a
 * null filter, and for a null key whose length is not 0.
 */
bool bloomline_filter_contains(const bloomline_filter_t *filter, const void *key, size_t length);

/**
 * `bloomline_filter_contains` by the key's hash. See `bloomline_filter_insert_hash`.
 */
bool bloomline_filter_contains_hash(const bloomline_filter_t *filter, uint64_t hash);

/**
 * Looks up `n` keys by their hashes: `found[i]` becomes whether the key of `hashes[i]` may have been inserted. Faster
 * than one by one from about eight keys on. `found` must not overlap `hashes`; both may be null if `n` is 0.
 *
 * BLOOMLINE_INVALID_ARGUMENT if a pointer is null or not aligned; all of `found`, if it is there, is then true.
 */
bloomline_status_t bloomline_filter_contains_batch(const bloomline_filter_t *filter,
                                                   const uint64_t *hashes,
                                                   size_t n,
                                                   bool *found);

/**
 * Starts loading the cache line of a hash, to be looked up or inserted a little later: with many filters to ask, the
 * waits for memory then overlap. Nothing for a null filter.
 */
void bloomline_filter_prefetch(const bloomline_filter_t *filter, uint64_t hash);

/**
 * Inserts all keys of `other` into `filter`, bit for bit as if one by one. They may be the same.
 *
 * BLOOMLINE_MISMATCH if the filters differ in blocks, k or seed; nothing is changed then.
 */
bloomline_status_t bloomline_filter_union_with(bloomline_filter_t *filter, const bloomline_filter_t *other);

/**
 * Keeps in `filter` what both may contain. Keys that are in both stay. They may be the same.
 *
 * BLOOMLINE_MISMATCH if the filters differ in blocks, k or seed; nothing is changed then.
 */
bloomline_status_t bloomline_filter_intersect_with(bloomline_filter_t *filter, const bloomline_filter_t *other);

/**
 * Makes the filter `factor` times smaller: bit for bit the filter that would have been built with so many fewer
 * blocks. Size for the worst case, then fold to what was needed.
 *
 * BLOOMLINE_SIZING if `factor` does not divide the number of blocks, BLOOMLINE_OUT_OF_MEMORY if memory for the folded
 * filter cannot be had; nothing is changed then.
 */
bloomline_status_t bloomline_filter_fold(bloomline_filter_t *filter, size_t factor);

/**
 * Folds as far as the estimated false-positive rate stays at or below `fpr`: not at all if it is above that already.
 * How far depends on the divisors of the number of blocks; a power of two leaves the most choice.
 *
 * BLOOMLINE_SIZING if `fpr` is not between 0 and 1, BLOOMLINE_OUT_OF_MEMORY if memory for the folded filter cannot be
 * had; nothing is changed then.
 */
bloomline_status_t bloomline_filter_shrink_to_fpr(bloomline_filter_t *filter, double fpr);

/**
 * Takes out all keys; size, k and seed stay.
 */
bloomline_status_t bloomline_filter_clear(bloomline_filter_t *filter);

/**
 * Probes per key, 1 to 16. 0 for a null filter.
 */
uint32_t bloomline_filter_k(const bloomline_filter_t *filter);

/**
 * Blocks of 64 bytes. 0 for a null filter.
 */
size_t bloomline_filter_n_blocks(const bloomline_filter_t *filter);

/**
 * Bytes that the blocks take in memory. 0 for a null filter.
 */
size_t bloomline_filter_size_bytes(const bloomline_filter_t *filter);

/**
 * What keys are hashed with: 0 unless `bloomline_filter_set_seed` or standalone bytes said otherwise. 0 for a null
 * filter.
 */
uint64_t bloomline_filter_seed(const bloomline_filter_t *filter);

/**
 * Share of bits that are set, 0 to 1. Best filters are a little below one half full. Reads the whole filter. 1 for a
 * null filter, as it contains everything.
 */
double bloomline_filter_fill_ratio(const bloomline_filter_t *filter);

/**
 * How many distinct keys were inserted, estimated from the bits: within 1 % from some thousand keys on, while the
 * filter is less than half full. UINT64_MAX where the filter is too full to tell, and for a null filter. Reads the
 * whole filter.
 */
uint64_t bloomline_filter_estimated_keys(const bloomline_filter_t *filter);

/**
 * The probability that a key never inserted is taken for present: exact for the bits as they are. Reads the whole
 * filter. 1 for a null filter.
 */
double bloomline_filter_estimated_fpr(const bloomline_filter_t *filter);

/**
 * Bytes of the filter's compact form. 0 for a null filter.
 */
size_t bloomline_filter_compact_size(const bloomline_filter_t *filter);

/**
 * Writes the filter's compact form to `buffer`, and its length to `length`: the blocks and one byte, for use inside a
 * container that has lengths and checksums of its own, as an SSTable has. The seed is not in it.
 * `bloomline_view_from_compact` reads it in place.
 *
 * BLOOMLINE_BUFFER_TOO_SMALL if `capacity` is less than that length: `length` is then what is needed, and the buffer
 * as it was. `buffer` may be null if `capacity` is 0. BLOOMLINE_INVALID_ARGUMENT if another pointer is null,
 * BLOOMLINE_OUT_OF_MEMORY if memory cannot be had, as much as the filter has; `length` is then 0.
 */
bloomline_status_t bloomline_filter_write_compact(const bloomline_filter_t *filter,
                                                  void *buffer,
                                                  size_t capacity,
                                                  size_t *length);

/**
 * The filter's compact form in memory from malloc, for the caller to free; its length goes to `length`. See
 * `bloomline_filter_write_compact`.
 *
 * Null if a pointer is null (BLOOMLINE_INVALID_ARGUMENT), or memory cannot be had (BLOOMLINE_OUT_OF_MEMORY); `length`
 * is then 0.
 */
void *bloomline_filter_to_compact(const bloomline_filter_t *filter, size_t *length);

/**
 * Bytes of the filter's standalone form. 0 for a null filter.
 */
size_t bloomline_filter_standalone_size(const bloomline_filter_t *filter);

/**
 * Writes the filter's standalone form to `buffer`, and its length to `length`: the blocks and a footer of 64 bytes
 * with version, k, seed and checksums, for files and networks. `bloomline_view_from_standalone` reads it in place.
 *
 * Errors are those of `bloomline_filter_write_compact`, and BLOOMLINE_HASH_CHANGED if the library was built with
 * another hash than the format's.
 */
bloomline_status_t bloomline_filter_write_standalone(const bloomline_filter_t *filter,
                                                     void *buffer,
                                                     size_t capacity,
                                                     size_t *length);

/**
 * The filter's standalone form in memory from malloc, for the caller to free; its length goes to `length`. See
 * `bloomline_filter_write_standalone`.
 *
 * Null if a pointer is null (BLOOMLINE_INVALID_ARGUMENT), memory cannot be had (BLOOMLINE_OUT_OF_MEMORY), or the
 * library was built with another hash than the format's (BLOOMLINE_HASH_CHANGED); `length` is then 0.
 */
void *bloomline_filter_to_standalone(const bloomline_filter_t *filter, size_t *length);

/**
 * Opens the `n` bytes of a filter's compact form, of a filter of seed 0. Looks at their length and the last byte only:
 * compact bytes lean on the length and the checksum of what contains them.
 *
 * Null if the bytes are null and `n` is not 0 (BLOOMLINE_INVALID_ARGUMENT), or they are no filter (BLOOMLINE_DECODE).
 * A caller who must answer takes that for "may be in".
 */
bloomline_view_t *bloomline_view_from_compact(const void *bytes, size_t n);

/**
 * Opens the `n` bytes of a filter's compact form, of a filter with this `seed`.
 *
 * Errors are those of `bloomline_view_from_compact`. A wrong seed goes unnoticed, and most lookups then answer false:
 * keep the seed where it cannot be lost.
 */
bloomline_view_t *bloomline_view_from_compact_with_seed(const void *bytes, size_t n, uint64_t seed);

/**
 * Opens the `n` bytes of a filter's standalone form. The footer is checked, the blocks are not: see
 * `bloomline_view_verify`.
 *
 * Null if the bytes are null and `n` is not 0 (BLOOMLINE_INVALID_ARGUMENT); if they were cut, their footer is damaged
 * or of a newer version, or their keys were hashed by another function (BLOOMLINE_DECODE); or if the library was built
 * with another hash than the format's (BLOOMLINE_HASH_CHANGED).
 */
bloomline_view_t *bloomline_view_from_standalone(const void *bytes, size_t n);

/**
 * Frees a view, and not the bytes. Null is fine.
 */
void bloomline_view_free(bloomline_view_t *view);

/**
 * Reads all of a standalone filter and compares it with its checksum. Compact bytes have none: BLOOMLINE_OK.
 *
 * BLOOMLINE_DECODE if the bytes are damaged: the filter may then answer false for keys that were inserted.
 */
bloomline_status_t bloomline_view_verify(const bloomline_view_t *view);

/**
 * Whether the key of `length` bytes may have been inserted: false is certain. True for a null view, and for a null key
 * whose length is not 0.
 */
bool bloomline_view_contains(const bloomline_view_t *view, const void *key, size_t length);

/**
 * `bloomline_view_contains` by the key's hash. See `bloomline_filter_insert_hash`.
 */
bool bloomline_view_contains_hash(const bloomline_view_t *view, uint64_t hash);

/**
 * Looks up `n` keys by their hashes. As `bloomline_filter_contains_batch`, errors too.
 */
bloomline_status_t bloomline_view_contains_batch(const bloomline_view_t *view,
                                                 const uint64_t *hashes,
                                                 size_t n,
                                                 bool *found);

/**
 * Starts loading the cache line of a hash, to be looked up a little later. Nothing for a null view.
 */
void bloomline_view_prefetch(const bloomline_view_t *view, uint64_t hash);

/**
 * Probes per key, 1 to 16. 0 for a null view.
 */
uint32_t bloomline_view_k(const bloomline_view_t *view);

/**
 * Blocks of 64 bytes that lookups choose from; filters of few keys have them overlap. 0 for a null view.
 */
size_t bloomline_view_n_blocks(const bloomline_view_t *view);

/**
 * What keys are hashed with. 0 for a null view.
 */
uint64_t bloomline_view_seed(const bloomline_view_t *view);

/**
 * A filter of its own, to be changed and freed; it does not need the bytes. Null for a null view.
 */
bloomline_filter_t *bloomline_view_to_filter(const bloomline_view_t *view);

/**
 * Whether the key of `length` bytes may be in the filter whose compact form, of seed 0, the `n` bytes are: false is
 * certain. Opens the filter in place, allocates nothing, and depends on no alignment.
 *
 * True for bytes that are no filter: to look in vain costs time, not to look loses data. `bloomline_view_from_compact`
 * says what is wrong with them. True for a null pointer whose length is not 0.
 */
bool bloomline_compact_may_contain(const void *bytes, size_t n, const void *key, size_t length);

/**
 * `bloomline_compact_may_contain` by the key's hash, from `bloomline_hash_key` with the seed that the filter was made
 * with.
 */
bool bloomline_compact_may_contain_hash(const void *bytes, size_t n, uint64_t hash);

/**
 * A builder of filters with `bits_per_key` for each distinct key, rounded up.
 *
 * Null if `bits_per_key` is not above 0 and at most 64 (BLOOMLINE_SIZING).
 */
bloomline_builder_t *bloomline_builder_with_bits_per_key(double bits_per_key);

/**
 * A builder of filters that answer "may be in" for at most a share `fpr` of missing keys.
 *
 * Null if `fpr` is not between 1.263e-8 and 1 (BLOOMLINE_SIZING).
 */
bloomline_builder_t *bloomline_builder_with_fpr(double fpr);

/**
 * Gives an empty builder another seed than 0. See `bloomline_filter_set_seed`.
 *
 * BLOOMLINE_NOT_EMPTY if keys have been added; nothing is changed then.
 */
bloomline_status_t bloomline_builder_set_seed(bloomline_builder_t *builder, uint64_t seed);

/**
 * Frees a builder. Null is fine.
 */
void bloomline_builder_free(bloomline_builder_t *builder);

/**
 * Adds the key of `length` bytes. Repeats are welcome.
 *
 * BLOOMLINE_INVALID_ARGUMENT if the builder is null, or the key is null and its length not 0; nothing is added then.
 */
bloomline_status_t bloomline_builder_add(bloomline_builder_t *builder, const void *key, size_t length);

/**
 * `bloomline_builder_add` by the key's hash. See `bloomline_filter_insert_hash`.
 */
bloomline_status_t bloomline_builder_add_hash(bloomline_builder_t *builder, uint64_t hash);

/**
 * Keys added, where a key that was added several times may count more than once. 0 for a null builder.
 */
size_t bloomline_builder_len(const bloomline_builder_t *builder);

/**
 * Makes the filter of the keys added, for the caller to free, and empties the builder. Null for a null builder.
 */
bloomline_filter_t *bloomline_builder_finish(bloomline_builder_t *builder);

/**
 * Makes the filter of the keys added, in compact form, and empties the builder: memory from malloc, for the caller to
 * free, whose length goes to `length`. At most 1.25 bytes a key and 65 at 10 bits per key.
 *
 * Null if a pointer is null (BLOOMLINE_INVALID_ARGUMENT), with the builder as it was; or if memory cannot be had
 * (BLOOMLINE_OUT_OF_MEMORY), with the builder empty. `length` is then 0.
 */
void *bloomline_builder_finish_compact(bloomline_builder_t *builder, size_t *length);

/**
 * A policy of `bits_per_key` for each distinct key of a filter: 10 for 1 % false positives.
 *
 * Null if `bits_per_key` is not above 0 and at most 64 (BLOOMLINE_SIZING).
 */
bloomline_policy_t *bloomline_policy_with_bits_per_key(double bits_per_key);

/**
 * A policy whose filters answer true for at most a share `fpr` of missing keys.
 *
 * Null if `fpr` is not between 1.263e-8 and 1 (BLOOMLINE_SIZING).
 */
bloomline_policy_t *bloomline_policy_with_fpr(double fpr);

/**
 * Frees a policy, once no thread uses it any more. Null is fine.
 */
void bloomline_policy_free(bloomline_policy_t *policy);

/**
 * The name by which a database remembers what made its filters: the same for all policies, never null, never freed. It
 * changes whenever older code could not read newer filters.
 */
const char *bloomline_policy_name(void);

/**
 * The filter of `n` keys, `keys[i]` of `lengths[i]` bytes, in memory from malloc, for the caller to free; its length
 * goes to `filter_length`. Keys may repeat and come in any order. Never empty, even of no keys, for which `keys` and
 * `lengths` may be null.
 *
 * Null if a pointer is null or not aligned, a key being allowed to be null if its length is 0
 * (BLOOMLINE_INVALID_ARGUMENT), or memory cannot be had (BLOOMLINE_OUT_OF_MEMORY); `filter_length` is then 0.
 */
char *bloomline_policy_create_filter(const bloomline_policy_t *policy,
                                     const char *const *keys,
                                     const size_t *lengths,
                                     size_t n,
                                     size_t *filter_length);

/**
 * `bloomline_policy_create_filter` by the keys' hashes, from `bloomline_hash_key` with the seed 0. `hashes` may be null
 * if `n` is 0.
 */
char *bloomline_policy_create_filter_from_hashes(const bloomline_policy_t *policy,
                                                 const uint64_t *hashes,
                                                 size_t n,
                                                 size_t *filter_length);

/**
 * Whether the key of `length` bytes may be among those that the filter of `filter_length` bytes was created from: false
 * is certain. Allocates nothing, copies nothing, and depends on no alignment.
 *
 * True for bytes that are no filter, which are counted: see `bloomline_policy_unusable_filters`. True for a null
 * policy, and for a null pointer whose length is not 0.
 */
bool bloomline_policy_key_may_match(const bloomline_policy_t *policy,
                                    const char *key,
                                    size_t length,
                                    const char *filter,
                                    size_t filter_length);

/**
 * How many calls of `bloomline_policy_key_may_match` met bytes that are no filter, and so could spare nothing: a
 * database whose filters are damaged, or of a newer version. 0 for a null policy.
 */
uint64_t bloomline_policy_unusable_filters(const bloomline_policy_t *policy);

/**
 * The hash by which a filter with this `seed`, 0 unless set, places the key of `length` bytes: the same on every CPU.
 * To ask many filters for one key, hash it once.
 *
 * 0 for a null key whose length is not 0, and `bloomline_last_status` is then BLOOMLINE_INVALID_ARGUMENT.
 */
uint64_t bloomline_hash_key(const void *key, size_t length, uint64_t seed);

/**
 * Makes a weak 64-bit hash, or an integer key, fit for the functions that end in `_hash` and `_batch`: those need 64
 * well-mixed bits, of which the high ones pick the block. Different inputs give different outputs.
 */
uint64_t bloomline_mix(uint64_t weak);

/**
 * Sets `out` to the bits per key at which the best k reaches the false-positive rate `fpr`.
 *
 * BLOOMLINE_SIZING if `fpr` is not between 1.263e-8 and 1, BLOOMLINE_INVALID_ARGUMENT if `out` is null; `out` is then
 * as it was.
 */
bloomline_status_t bloomline_bits_per_key(double fpr, double *out);

/**
 * Sets `out` to the false-positive rate at `bits_per_key` with `k` probes, by the exact model of blocks.
 *
 * BLOOMLINE_SIZING if `bits_per_key` is not above 0 and at most 64 or `k` is not 1 to 16, BLOOMLINE_INVALID_ARGUMENT if
 * `out` is null; `out` is then as it was.
 */
bloomline_status_t bloomline_fpr(double bits_per_key, uint32_t k, double *out);

/**
 * Sets `out` to the k of the lowest rate at `bits_per_key`.
 *
 * BLOOMLINE_SIZING if `bits_per_key` is not above 0 and at most 64, BLOOMLINE_INVALID_ARGUMENT if `out` is null; `out`
 * is then as it was.
 */
bloomline_status_t bloomline_best_k(double bits_per_key, uint32_t *out);

/**
 * What lookups run on: the fastest kernel of this CPU, such as "avx2". A string that is never null and never freed.
 */
const char *bloomline_kernel_name(void);

/**
 * The library's version, such as "0.1.0". A string that is never null and never freed.
 */
const char *bloomline_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BLOOMLINE_BLOOMLINE_H */
