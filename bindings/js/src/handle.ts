/** @internal */
export interface Raw {
  slots?(): number;
  blocks(): number;
  modules?(): number;
  k(): number;
  byte_len(): number;
  seed(): bigint;
  free(): void;
}

/** What a freed handle calls. A test in each call would be slower. */
const FREED = new Proxy({} as Raw, {
  get() {
    throw new TypeError("its memory is freed, by free() or the end of `using`");
  },
});

/** Names a class for consoles, because the build shortens the names in the code. @internal */
export function named(type: Function, name: string): void {
  Object.defineProperty(type, "name", { value: name });
  Object.defineProperty(type.prototype, Symbol.toStringTag, { value: name });
}

/** A filter or bank in the module's memory. `free` returns the memory. Otherwise garbage collection does, later. */
export abstract class Handle implements Disposable {
  /** Number of blocks of 64 bytes, of all modules. In a bank, of each filter. */
  declare readonly blocks: number;
  /** Bits tested per lookup, 1 to 16, in each module. */
  declare readonly k: number;
  /** Bytes of all blocks. */
  declare readonly byteLength: number;
  /** The seed of the keys' hashes. */
  declare readonly seed: bigint;
  /** @internal */
  declare raw: Raw;

  /** @internal */
  constructor(raw: Raw) {
    this.describe(raw);
    // Comparisons such as `deepEqual` see it, too, so filters of one size and other keys differ.
    this.raw = raw;
  }

  /** Sets what is known of the filter, in properties of its own, because consoles show no others. @internal */
  describe(raw: Raw): void {
    const facts = {
      slots: raw.slots?.(), blocks: raw.blocks(), nModules: raw.modules?.(), k: raw.k(), byteLength: raw.byte_len(),
      seed: raw.seed(),
    };
    for (const [name, value] of Object.entries(facts)) {
      if (value !== undefined) Object.defineProperty(this, name, { value, enumerable: true, configurable: true });
    }
  }

  /** Throws, because JSON of a filter would lose its keys. */
  toJSON(): never {
    const name = this.constructor.name;
    throw new TypeError(`a ${name} is bytes, which JSON cannot hold: store toBytes(), or the file it is from`);
  }

  /** Returns the memory now. Later calls throw a `TypeError`. */
  free(): void {
    if (this.raw !== FREED) this.raw.free();
    this.raw = FREED;
  }

  [Symbol.dispose](): void {
    this.free();
  }
}
