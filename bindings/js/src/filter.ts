import type { LoadOptions, StandaloneBytes } from "./bytes.js";
import { load, place } from "./bytes.js";
import { Handle, named } from "./handle.js";
import type { Key, Keys } from "./keys.js";
import { answers, inBatches, sourceOf, stage } from "./keys.js";
import {
  Filter, fpr, memory, number, refusal, size_for_bits_per_key, size_for_fpr, size_of_blocks, whole,
} from "./module.js";

/**
 * The size of a filter, given by a false-positive rate (1% by default), bits per key, or blocks of 64 bytes.
 *
 * A filter for rates below about 0.05% is divided into two modules, which must both have a key, because it then needs
 * at least 7% fewer bits. A lookup of a present key reads one cache line of each module. Give `mostModules: 1` if most
 * lookups are of present keys, and `mostModules: 4` if the last percent of memory counts.
 */
export type Size =
  | { expectedKeys: number; fpr?: number; mostModules?: number }
  | { expectedKeys: number; bitsPerKey: number; mostModules?: number }
  | { blocks: number; k: number; nModules?: number };

/** The seed is 0n by default. Only filters with equal seeds can be united. */
export type FilterOptions = Size & { seed?: bigint };

export interface Sizing {
  /** Number of blocks of 64 bytes, of all modules. */
  blocks: number;
  /** Number of modules, 1 to 16. */
  nModules: number;
  /** Bits tested per lookup, 1 to 16, all in one block of each module. */
  k: number;
  byteLength: number;
  /** Present if `expectedKeys` was given. */
  bitsPerKey?: number;
  /** The false-positive rate with the expected keys, by the exact model of blocks. Present if these were given. */
  fpr?: number;
}

export interface KeyEstimate {
  keys: number;
  /** In two of three cases, the estimate is off by less than this. */
  standardError: number;
}

/** Computes a filter's size without creating it. */
export function sizing(size: Size): Sizing {
  const [blocks = 0, nModules = 0, k = 0] = blocksModulesK(size);
  const made: Sizing = { blocks, nModules, k, byteLength: 64 * blocks };
  if ("expectedKeys" in size) {
    made.bitsPerKey = (512 * blocks) / Math.max(size.expectedKeys, 1);
    made.fpr = fpr(blocks, nModules, k, size.expectedKeys);
  }
  return made;
}

function blocksModulesK(size: Size): Uint32Array {
  if (typeof size !== "object" || size === null) {
    throw new TypeError("give a size: { expectedKeys, fpr }, { expectedKeys, bitsPerKey } or { blocks, k }");
  }
  if ("blocks" in size) {
    checkNames(size, /^(blocks|nModules|k|seed)$/);
    const { nModules = 1 } = size;
    return size_of_blocks(whole("blocks", size.blocks), whole("nModules", nModules), whole("k", size.k));
  }
  checkNames(size, /^(expectedKeys|fpr|bitsPerKey|mostModules|seed)$/);
  const expectedKeys = whole("expectedKeys", size.expectedKeys);
  const most = size.mostModules === undefined ? undefined : whole("mostModules", size.mostModules);
  if (!("bitsPerKey" in size)) {
    const { fpr = 0.01 } = size;
    return size_for_fpr(expectedKeys, number("fpr", fpr, "0.01 for 1%"), most);
  }
  if ("fpr" in size) throw new TypeError("give fpr or bitsPerKey, not both");
  return size_for_bits_per_key(expectedKeys, number("bitsPerKey", size.bitsPerKey, "10"), most);
}

function checkNames(size: Size, names: RegExp): void {
  const unknown = Object.keys(size).find((name) => !names.test(name));
  const given = "blocks" in size ? "blocks" : "expectedKeys";
  if (unknown) throw new TypeError(`there is no option ${unknown} beside ${given}`);
}

function created(options: FilterOptions): Filter {
  const [blocks = 0, nModules = 0, k = 0] = blocksModulesK(options);
  const { seed = 0n } = options;
  if (typeof seed !== "bigint" || BigInt.asUintN(64, seed) !== seed) {
    throw refusal("seed", seed, "bigint", "a bigint from 0n to 2n ** 64n - 1n");
  }
  return new Filter(blocks, nModules, k, seed);
}

function estimate(numbers: Float64Array | undefined): KeyEstimate | undefined {
  return numbers && { keys: numbers[0]!, standardError: numbers[1]! };
}

function rawOf(other: BloomView): Filter {
  if (!(other instanceof BloomView)) throw new TypeError("the other filter must be a BloomView or BloomFilter");
  // Throws if the other filter is freed.
  other.raw.k();
  return other.raw;
}

/** A read-only filter, opened from a file's bytes. */
export class BloomView extends Handle {
  static {
    named(this, "BloomView");
  }

  /**
   * Copies standalone bytes into the module's memory and verifies them.
   *
   * @throws if the bytes are damaged, cut, or a filter of a different kind.
   */
  constructor(bytes: StandaloneBytes);
  /** @internal */
  constructor(bytes: StandaloneBytes | Filter);
  constructor(bytes: StandaloneBytes | Filter) {
    super(bytes instanceof Filter ? bytes : Filter.open(place(bytes)));
  }

  /** Number of modules, which must all have a key, 1 to 16. */
  declare readonly nModules: number;
  /** @internal */
  declare raw: Filter;

  /** Opens the body of a response. Copies it into the module's memory as it arrives. */
  static async fromResponse(response: Response, options?: LoadOptions): Promise<BloomView> {
    return new BloomView(Filter.open(await load(response, options)));
  }

  /** Returns `true` if the key is possibly present, and `false` if it is definitely absent. */
  has(key: Key): boolean {
    return this.raw.contains(stage(key));
  }

  /** Looks up many keys. Returns for each 1 if it is possibly present, and 0 if it is definitely absent. */
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

  /** Number of distinct keys, if the bytes of the filter contain it, or if the filter is empty. */
  get knownKeys(): number | undefined {
    return this.raw.known_keys();
  }

  /** The false-positive rate of the current bits. Reads the whole filter, as the estimates do. */
  get estimatedFpr(): number {
    return this.raw.estimated_fpr();
  }

  /** An estimate of the number of distinct keys, or `undefined` if the filter is too full. */
  get estimatedKeys(): KeyEstimate | undefined {
    return estimate(this.raw.estimated_keys());
  }

  /** Copies the filter into standalone bytes, with checksums, a file that bloomline reads in every language. */
  toBytes(): ReturnType<Uint8Array["slice"]> {
    const bytes = this.raw.to_standalone();
    try {
      return new Uint8Array(memory.buffer, bytes.start(), bytes.byte_len()).slice();
    } finally {
      bytes.free();
    }
  }

  /**
   * Returns a new filter with the keys of both, in this filter's size. Throws if the number of blocks of `other` does
   * not divide this filter's, or if they differ in seed, k or modules.
   */
  union(other: BloomView): BloomFilter {
    return new BloomFilter(this.raw.union(rawOf(other)));
  }

  /** Fraction of bits that are set, 0 to 1. Reads the whole filter. */
  get fillRatio(): number {
    return this.raw.fill_ratio();
  }

  /** Estimates the number of keys that are in either filter. */
  estimatedUnion(other: BloomView): KeyEstimate | undefined {
    return estimate(this.raw.estimated_union(rawOf(other)));
  }

  /** Estimates the number of keys that are in both filters. */
  estimatedIntersection(other: BloomView): KeyEstimate | undefined {
    return estimate(this.raw.estimated_intersection(rawOf(other)));
  }
}

/** A set of keys that never loses a key, but reports absent keys as present at the rate that you choose. */
export class BloomFilter extends BloomView {
  static {
    named(this, "BloomFilter");
  }

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

  /** Opens the body of a response, as `BloomView.fromResponse` does. */
  static override async fromResponse(response: Response, options?: LoadOptions): Promise<BloomFilter> {
    return new BloomFilter(Filter.open(await load(response, options)));
  }

  /** Adds a key. Returns `true` if it is new, and `false` if it was possibly present. */
  add(key: Key): boolean {
    return this.raw.insert(stage(key));
  }

  /** Adds many keys. If one of them is invalid, throws, and the keys before it may have been added. */
  addAll(keys: Keys): void {
    inBatches(sourceOf(keys), ({ kind, count, length }) => this.raw.insert_batch(kind, count, length));
  }

  /** Divides the blocks of each module by `factor`, one of their number's divisors. The false-positive rate rises. */
  fold(factor: number): void {
    this.raw.fold(whole("factor", factor));
    this.describe(this.raw);
  }

  /** Removes all keys. */
  clear(): void {
    this.raw.clear();
  }
}
