/** @internal */
export interface Raw {
  k(): number;
  blocks(): number;
  byte_len(): number;
  seed(): bigint;
  free(): void;
}

/** What a freed handle calls: a test in each call would take longer. */
const FREED = new Proxy({} as Raw, {
  get() {
    throw new TypeError("its memory is freed, by free() or the end of `using`");
  },
});

/** A filter or bank in the module's memory, which garbage collection gives back if `free` does not. */
export abstract class Handle implements Disposable {
  /** @internal */
  raw: Raw;

  /** @internal */
  constructor(raw: Raw) {
    this.raw = raw;
  }

  /** Bits tested per lookup, 1 to 16: of each module, in a modular filter. */
  get k(): number {
    return this.raw.k();
  }

  /** Blocks of 64 bytes: of each filter, in a bank, and of each module, in a modular filter. */
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

  /** Gives the memory back now. Later calls throw a `TypeError`. */
  free(): void {
    if (this.raw !== FREED) this.raw.free();
    this.raw = FREED;
  }

  [Symbol.dispose](): void {
    this.free();
  }
}
