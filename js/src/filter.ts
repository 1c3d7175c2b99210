import type { LoadOptions, StandaloneBytes } from "./bytes.js";
import { load, place } from "./bytes.js";
import { Handle } from "./handle.js";
import type { Key, Keys } from "./keys.js";
import { answers, inBatches, sourceOf, stage } from "./keys.js";
import type { Modular } from "./module.js";
import { Filter, fpr, memory, size_for_bits_per_key, size_for_fpr, size_of_blocks, whole } from "./module.js";

/** The size of a filter: for a false-positive rate (1% unless given), for bits per key, or as blocks of 64 bytes. */
export type Size = SizeForKeys | { blocks: number; k: number };

export type SizeForKeys = { expectedKeys: number; fpr?: number } | { expectedKeys: number; bitsPerKey: number };

/** Filters are united only if their seeds are equal. */
export type FilterOptions = Size & { seed?: bigint };

export interface Sizing {
  blocks: number;
  /** Bits tested per lookup, all in one block. */
  k: number;
  byteLength: number;
  /** Present if `expectedKeys` was given. */
  bitsPerKey?: number;
  /** The false-positive rate with the expected keys, by the exact model of blocks. Present if they were given. */
  fpr?: number;
}

export interface KeyEstimate {
  keys: number;
  /** The estimate is off by less than this two times in three. */
  standardError: number;
}

/** Computes a filter's size without creating it. */
export function sizing(size: Size): Sizing {
  const [blocks = 0, k = 0] = blocksAndK(size);
  const made: Sizing = { blocks, k, byteLength: 64 * blocks };
  if ("expectedKeys" in size) {
    made.bitsPerKey = (512 * blocks) / Math.max(size.expectedKeys, 1);
    made.fpr = fpr(blocks, k, size.expectedKeys);
  }
  return made;
}

function blocksAndK(size: Size): Uint32Array {
  checkNames(size, "{ blocks, k }", /^(expectedKeys|fpr|bitsPerKey|blocks|k|seed)$/);
  if ("blocks" in size) return size_of_blocks(whole("blocks", size.blocks), whole("k", size.k));
  return forKeys(size, size_for_fpr, size_for_bits_per_key);
}

/** @internal */
export function checkNames(size: object, ofBlocks: string, names: RegExp): void {
  if (typeof size !== "object" || size === null) {
    throw new TypeError(`give a size: { expectedKeys, fpr }, { expectedKeys, bitsPerKey } or ${ofBlocks}`);
  }
  const unknown = Object.keys(size).find((name) => !names.test(name));
  if (unknown) throw new TypeError(`there is no option ${unknown}`);
}

/** What one of the functions makes of the expected keys, and of the rate or the bits per key. @internal */
export function forKeys<T>(
  size: SizeForKeys, forFpr: (keys: number, fpr: number) => T, forBits: (keys: number, bits: number) => T,
): T {
  const expectedKeys = whole("expectedKeys", size.expectedKeys);
  if (!("bitsPerKey" in size)) return forFpr(expectedKeys, size.fpr ?? 0.01);
  if ("fpr" in size) throw new TypeError("give fpr or bitsPerKey, not both");
  return forBits(expectedKeys, size.bitsPerKey);
}

/** @internal */
export function seedOf({ seed = 0n }: { seed?: bigint }): bigint {
  if (BigInt.asUintN(64, seed) !== seed) throw new RangeError(`the seed is ${seed}: give 0n to 2n ** 64n - 1n`);
  return seed;
}

function created(options: FilterOptions): Filter {
  const [blocks = 0, k = 0] = blocksAndK(options);
  return new Filter(blocks, k, seedOf(options));
}

function estimate(numbers: Float64Array | undefined): KeyEstimate | undefined {
  return numbers && { keys: numbers[0]!, standardError: numbers[1]! };
}

function rawOf(other: BloomView): Filter {
  if (!(other instanceof BloomView)) throw new TypeError("the other filter must be a BloomView or BloomFilter");
  // An error if the other filter is freed.
  other.raw.k();
  return other.raw;
}

/** What every filter says of its keys. */
export abstract class FilterHandle extends Handle {
  /** @internal */
  declare raw: Filter | Modular;

  /** `true`: possibly present. `false`: definitely absent. */
  has(key: Key): boolean {
    return this.raw.contains(stage(key));
  }

  /** For each key 1 (possibly present) or 0 (definitely absent). */
  hasAll(keys: Keys): Uint8Array {
    const source = sourceOf(keys);
    const all = new Uint8Array(source.count);
    inBatches(source, ({ kind, count, length }, start) => {
      this.raw.contains_batch(kind, count, length);
      all.set(answers(count), start);
    });
    return all;
  }

  /** The key's hash, under the filter's seed. */
  hash(key: Key): bigint {
    return this.raw.hash(stage(key));
  }

  /** The number of distinct keys, if the file says it. */
  get knownKeys(): number | undefined {
    return this.raw.known_keys();
  }

  /** The false-positive rate of the filter as it is. Reads the whole filter, as the estimates do. */
  get estimatedFpr(): number {
    return this.raw.estimated_fpr();
  }

  /** `undefined` if the filter is too full. */
  get estimatedKeys(): KeyEstimate | undefined {
    return estimate(this.raw.estimated_keys());
  }

  /** Standalone bytes, with checksums: a file for every language. */
  toBytes(): Uint8Array<ArrayBuffer> {
    const bytes = this.raw.to_standalone();
    try {
      return new Uint8Array(memory.buffer, bytes.start(), bytes.byte_len()).slice();
    } finally {
      bytes.free();
    }
  }
}

/** A read-only filter, opened from a file's bytes. */
export class BloomView extends FilterHandle {
  /**
   * Copies standalone bytes into the module's memory and verifies them.
   *
   * @throws if the bytes are damaged, cut, or of another kind of filter.
   */
  constructor(bytes: StandaloneBytes);
  /** @internal */
  constructor(bytes: StandaloneBytes | Filter);
  constructor(bytes: StandaloneBytes | Filter) {
    super(bytes instanceof Filter ? bytes : Filter.open(place(bytes)));
  }

  /** @internal */
  declare raw: Filter;

  /** Opens the body of a response, which goes into the module's memory as it arrives. */
  static async fromResponse(response: Response, options?: LoadOptions): Promise<BloomView> {
    return new BloomView(Filter.open(await load(response, options)));
  }

  /** A new filter with the keys of both, whose seed, k and blocks must be equal. */
  union(other: BloomView): BloomFilter {
    return new BloomFilter(this.raw.union(rawOf(other)));
  }

  /** Set bits ÷ all bits. Reads the whole filter. */
  get fillRatio(): number {
    return this.raw.fill_ratio();
  }

  /** The keys in either filter. */
  estimatedUnion(other: BloomView): KeyEstimate | undefined {
    return estimate(this.raw.estimated_union(rawOf(other)));
  }

  /** The keys in both filters. */
  estimatedIntersection(other: BloomView): KeyEstimate | undefined {
    return estimate(this.raw.estimated_intersection(rawOf(other)));
  }
}

/** A set of keys that never loses one, and reports absent keys as present at the rate that you choose. */
export class BloomFilter extends BloomView {
  /** An empty filter, for example `new BloomFilter({ expectedKeys: 1_000_000, fpr: 0.01 })`. */
  constructor(options: FilterOptions);
  /** @internal */
  constructor(options: FilterOptions | Filter);
  constructor(options: FilterOptions | Filter) {
    super(options instanceof Filter ? options : created(options));
  }

  /** Copies standalone bytes, and verifies them, as `BloomView` does. */
  static fromBytes(bytes: StandaloneBytes): BloomFilter {
    return new BloomFilter(Filter.open(place(bytes)));
  }

  static override async fromResponse(response: Response, options?: LoadOptions): Promise<BloomFilter> {
    return new BloomFilter(Filter.open(await load(response, options)));
  }

  /** Returns `true` if the key was surely new, and `false` if it was possibly present. */
  add(key: Key): boolean {
    return this.raw.insert(stage(key));
  }

  /** If a key is an error, the keys before it may have been added. */
  addAll(keys: Keys): void {
    inBatches(sourceOf(keys), ({ kind, count, length }) => this.raw.insert_batch(kind, count, length));
  }

  /** Divides the number of blocks by `factor`, one of its divisors. The false-positive rate grows. */
  fold(factor: number): void {
    this.raw.fold(whole("factor", factor));
  }

  /** Removes all keys. */
  clear(): void {
    this.raw.clear();
  }
}
