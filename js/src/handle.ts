/** @internal */
export interface Raw {
  k(): number;
  blocks(): number;
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

/** A filter or bank in the module's memory. `free` returns the memory. Otherwise garbage collection does, later. */
export abstract class Handle implements Disposable {
  /** @internal */
  raw: Raw;

  /** @internal */
  constructor(raw: Raw) {
    this.raw = raw;
  }

  /** Bits tested per lookup, 1 to 16, in each module. */
  get k(): number {
    return this.raw.k();
  }

  /** Number of blocks of 64 bytes, of all modules. In a bank, of each filter. */
  get blocks(): number {
    return this.raw.blocks();
  }

  /** Bytes of all blocks. */
  get byteLength(): number {
    return this.raw.byte_len();
  }

  /** The seed of the keys' hashes. */
  get seed(): bigint {
    return this.raw.seed();
  }

  /** Returns the memory now. Later calls of other methods throw a `TypeError`. */
  free(): void {
    if (this.raw !== FREED) this.raw.free();
    this.raw = FREED;
  }

  [Symbol.dispose](): void {
    this.free();
  }
}
