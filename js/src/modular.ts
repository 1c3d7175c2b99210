import type { LoadOptions, StandaloneBytes } from "./bytes.js";
import { load, place } from "./bytes.js";
import type { SizeForKeys } from "./filter.js";
import { FilterHandle, checkNames, forKeys, seedOf } from "./filter.js";
import type { Key, Keys } from "./keys.js";
import { inBatches, sourceOf, stage } from "./keys.js";
import { Modular, whole } from "./module.js";

/**
 * The size of a modular filter, given by expected keys and at most `maxModules` modules (1 to 4, by default 4), or by
 * modules of blocks of 64 bytes. Allow fewer modules if most lookups are of present keys.
 */
export type ModularOptions =
  ((SizeForKeys & { maxModules?: number }) | { modules: number; blocks: number; k: number }) & { seed?: bigint };

function created(options: ModularOptions): Modular {
  checkNames(options, "{ modules, blocks, k }", /^(expectedKeys|fpr|bitsPerKey|maxModules|modules|blocks|k|seed)$/);
  const seed = seedOf(options);
  if ("modules" in options) {
    return new Modular(whole("modules", options.modules), whole("blocks", options.blocks), whole("k", options.k), seed);
  }
  const most = whole("maxModules", options.maxModules ?? 4);
  return forKeys(
    options, (keys, fpr) => Modular.for_fpr(keys, fpr, most, seed),
    (keys, bits) => Modular.for_bits_per_key(keys, bits, most, seed),
  );
}

/**
 * Several filters of blocks, called modules, that must all have a key. At false-positive rates of 0.1% and below, it
 * needs fewer bits than a `BloomFilter` of the same rate. A lookup of an absent key mostly reads one cache line, and of
 * a present key one line of each module.
 */
export class ModularBloomFilter extends FilterHandle {
  /** An empty filter, for example `new ModularBloomFilter({ expectedKeys: 1_000_000, fpr: 0.0001 })`. */
  constructor(options: ModularOptions);
  /** @internal */
  constructor(options: ModularOptions | Modular);
  constructor(options: ModularOptions | Modular) {
    super(options instanceof Modular ? options : created(options));
  }

  /** @internal */
  declare raw: Modular;

  /**
   * Copies standalone bytes into the module's memory and verifies them.
   *
   * @throws if the bytes are damaged, cut, or a filter of a different kind.
   */
  static fromBytes(bytes: StandaloneBytes): ModularBloomFilter {
    return new ModularBloomFilter(Modular.open(place(bytes)));
  }

  /** Opens the body of a response, as `fromBytes` does. */
  static async fromResponse(response: Response, options?: LoadOptions): Promise<ModularBloomFilter> {
    return new ModularBloomFilter(Modular.open(await load(response, options)));
  }

  /** Adds a key. Returns `true` if it is new, and `false` if it was possibly present. */
  add(key: Key): boolean {
    return this.raw.insert(stage(key));
  }

  /** Adds many keys. If one of them is invalid, throws, and the keys before it may have been added. */
  addAll(keys: Keys): void {
    inBatches(sourceOf(keys), ({ kind, count, length }) => this.raw.insert_batch(kind, count, length));
  }

  /** Returns a new filter with the keys of both. Throws if they differ in seed, k, modules or blocks. */
  union(other: ModularBloomFilter): ModularBloomFilter {
    if (!(other instanceof ModularBloomFilter)) throw new TypeError("the other filter must be a ModularBloomFilter");
    // Throws if the other filter is freed.
    other.raw.k();
    return new ModularBloomFilter(this.raw.union(other.raw));
  }

  /** Divides the number of blocks of each module by `factor`, one of its divisors. The false-positive rate rises. */
  fold(factor: number): void {
    this.raw.fold(whole("factor", factor));
  }

  /** Copies the first modules, a smaller filter of the same keys with a higher false-positive rate. */
  truncated(modules: number): ModularBloomFilter {
    return new ModularBloomFilter(this.raw.truncated(whole("modules", modules)));
  }

  /** Removes all keys. */
  clear(): void {
    this.raw.clear();
  }

  /** Number of modules, 1 to 16. */
  get modules(): number {
    return this.raw.modules();
  }
}
