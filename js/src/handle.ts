/** @internal */
export interface Raw {
  k(): number;
  blocks(): number;
  byte_len(): number;
  seed(): bigint;
  free(): void;
}

/** A filter or bank in the module's memory, which garbage collection gives back if `free` does not. */
export abstract class Handle implements Disposable {
  #raw: Raw | undefined;

  /** @internal */
  constructor(raw: Raw) {
    this.#raw = raw;
  }

  /** @internal */
  get raw(): Raw {
    if (!this.#raw) throw new TypeError("its memory is freed, by free() or the end of `using`");
    return this.#raw;
  }

  /** Bits tested per lookup, 1 to 16. */
  get k(): number {
    return this.raw.k();
  }

  /** Blocks of 64 bytes: of each filter, in a bank. */
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
    this.#raw?.free();
    this.#raw = undefined;
  }

  [Symbol.dispose](): void {
    this.free();
  }
}
