import type { LoadOptions, Source } from "./bytes.js";
import { load, place } from "./bytes.js";
import type { Key, Keys } from "./keys.js";
import { answers, inBatches, sourceOf, stage, staging } from "./keys.js";
import { Filter, Size as RawSize } from "./module.js";

/** The size of a filter: for a false-positive rate (1 % unless given), for bits per key, or as blocks of 64 bytes. */
export type Size =
  | { expectedKeys: number; fpr?: number }
  | { expectedKeys: number; bitsPerKey: number }
  | { blocks: number; k: number };

/** Filters are united only if their seeds are equal. */
export type FilterOptions = Size & { seed?: bigint };

export interface Sizing {
  blocks: number;
  /** Bits tested per lookup, all in one block. */
  k: number;
  byteLength: number;
  /** Of the expected keys, as the next. */
  bitsPerKey?: number;
  /** The false-positive rate, by the exact model of blocks. */
  fpr?: number;
}

export interface KeyEstimate {
  keys: number;
  /** The estimate is off by less than this two times in three. */
  standardError: number;
}

function rawSize(size: Size): RawSize {
  if (typeof size !== "object" || size === null) {
    throw new TypeError("give a size: { expectedKeys, fpr }, { expectedKeys, bitsPerKey } or { blocks, k }");
  }
  if ("blocks" in size) return RawSize.with_blocks(size.blocks, size.k);
  if (!("bitsPerKey" in size)) return RawSize.for_fpr(size.expectedKeys, size.fpr ?? 0.01);
  if ("fpr" in size) throw new TypeError("give fpr or bitsPerKey, not both");
  return RawSize.for_bits_per_key(size.expectedKeys, size.bitsPerKey);
}

/** The size of `new BloomFilter(size)`, which is not made. */
export function sizing(size: Size): Sizing {
  const raw = rawSize(size);
  const made: Sizing = { blocks: raw.blocks(), k: raw.k(), byteLength: raw.byte_len() };
  if ("expectedKeys" in size) {
    made.bitsPerKey = (8 * made.byteLength) / Math.max(size.expectedKeys, 1);
    made.fpr = raw.fpr();
  }
  raw.free();
  return made;
}

function created(options: FilterOptions): Filter {
  const size = rawSize(options);
  try {
    const { seed = 0n } = options;
    if (BigInt.asUintN(64, seed) !== seed) throw new RangeError(`the seed is ${seed}: give 0n to 2n ** 64n - 1n`);
    return new Filter(size, seed);
  } finally {
    size.free();
  }
}

function estimate(numbers: Float64Array | undefined): KeyEstimate | undefined {
  return numbers && { keys: numbers[0]!, standardError: numbers[1]! };
}

/** A filter that is asked, not changed: the bytes of a file. */
export class BloomView implements Disposable {
  #raw: Filter | undefined;

  /**
   * Copies standalone bytes into the module's memory and verifies them.
   *
   * @throws if the bytes are damaged, cut, or of another kind of filter.
   */
  constructor(bytes: Source);
  /** @internal */
  constructor(bytes: Source | Filter);
  constructor(bytes: Source | Filter) {
    this.#raw = bytes instanceof Filter ? bytes : Filter.open(place(bytes));
  }

  /** Opens the body of a response, which goes into the module's memory as it arrives. */
  static async fromResponse(response: Response, options?: LoadOptions): Promise<BloomView> {
    return new BloomView(Filter.open(await load(response, options)));
  }

  /** @internal */
  get raw(): Filter {
    if (!this.#raw) throw new TypeError("the filter is freed");
    return this.#raw;
  }

  /** `true`: possibly present. `false`: definitely absent. */
  has(key: Key): boolean {
    return this.raw.contains(staging, stage(key));
  }

  /** For each key 1 (possibly present) or 0 (definitely absent). */
  hasAll(keys: Keys): Uint8Array {
    const source = sourceOf(keys);
    const all = new Uint8Array(source.count);
    inBatches(source, ({ kind, count }, start) => {
      this.raw.contains_batch(staging, kind, count);
      all.set(answers(count), start);
    });
    return all;
  }

  /** The key's hash, under the filter's seed. */
  hash(key: Key): bigint {
    return BigInt.asUintN(64, this.raw.hash(staging, stage(key)));
  }

  /** A new filter with the keys of both, whose seed, k and blocks must be equal. */
  union(other: BloomView): BloomFilter {
    return new BloomFilter(this.raw.union(other.raw));
  }

  /** Bits tested per lookup, 1 to 16. */
  get k(): number {
    return this.raw.k();
  }

  /** Blocks of 64 bytes. */
  get blocks(): number {
    return this.raw.blocks();
  }

  get byteLength(): number {
    return this.raw.byte_len();
  }

  get seed(): bigint {
    return BigInt.asUintN(64, this.raw.seed());
  }

  /** The number of distinct keys, if the file says it. */
  get knownKeys(): number | undefined {
    return this.raw.known_keys();
  }

  /** Set bits ÷ all bits. Reads the whole filter, as the estimates do. */
  get fillRatio(): number {
    return this.raw.fill_ratio();
  }

  /** The false-positive rate of the filter as it is. */
  get estimatedFpr(): number {
    return this.raw.estimated_fpr();
  }

  /** `undefined` if the filter is too full. */
  get estimatedKeys(): KeyEstimate | undefined {
    return estimate(this.raw.estimated_keys());
  }

  /** The keys in either filter. */
  estimatedUnion(other: BloomView): KeyEstimate | undefined {
    return estimate(this.raw.estimated_union(other.raw));
  }

  /** The keys in both filters. */
  estimatedIntersection(other: BloomView): KeyEstimate | undefined {
    return estimate(this.raw.estimated_intersection(other.raw));
  }

  /** Standalone bytes, with checksums: a file for every language. */
  toBytes(): Uint8Array<ArrayBuffer> {
    return this.raw.to_standalone() as Uint8Array<ArrayBuffer>;
  }

  /** Gives the memory back, now instead of after garbage collection. Later calls throw a `TypeError`. */
  free(): void {
    this.#raw?.free();
    this.#raw = undefined;
  }

  [Symbol.dispose](): void {
    this.free();
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
  static fromBytes(bytes: Source): BloomFilter {
    return new BloomFilter(Filter.open(place(bytes)));
  }

  static override async fromResponse(response: Response, options?: LoadOptions): Promise<BloomFilter> {
    return new BloomFilter(Filter.open(await load(response, options)));
  }

  /** Returns `true` if the key was surely new, and `false` if it was possibly present. */
  add(key: Key): boolean {
    return this.raw.insert(staging, stage(key));
  }

  /** If a key is an error, the keys before it may have been added. */
  addAll(keys: Keys): void {
    inBatches(sourceOf(keys), ({ kind, count }) => this.raw.insert_batch(staging, kind, count));
  }

  /** Divides the number of blocks by `factor`, one of its divisors. The false-positive rate grows. */
  fold(factor: number): void {
    this.raw.fold(factor);
  }

  /** Folds as far as the estimated false-positive rate stays at or below `fpr`. */
  shrinkToFpr(fpr: number): void {
    this.raw.shrink_to_fpr(fpr);
  }

  /** Removes all keys. */
  clear(): void {
    this.raw.clear();
  }
}
