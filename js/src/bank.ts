import type { LoadOptions, Source } from "./bytes.js";
import { load, place } from "./bytes.js";
import type { Key } from "./keys.js";
import { stage, staging } from "./keys.js";
import { Bank } from "./module.js";

/** Many filters of one size, side by side: one lookup finds which of them possibly have a key. Rust and Python build banks. */
export class FilterBank implements Disposable {
  #raw: Bank | undefined;

  /**
   * Copies a bank's standalone bytes into the module's memory and verifies them.
   *
   * @throws if the bytes are damaged, cut, or no bank.
   */
  constructor(bytes: Source);
  /** @internal */
  constructor(bytes: Source | Bank);
  constructor(bytes: Source | Bank) {
    this.#raw = bytes instanceof Bank ? bytes : Bank.open(place(bytes));
  }

  /** Opens the body of a response, which goes into the module's memory as it arrives. */
  static async fromResponse(response: Response, options?: LoadOptions): Promise<FilterBank> {
    return new FilterBank(Bank.open(await load(response, options)));
  }

  get #bank(): Bank {
    if (!this.#raw) throw new TypeError("the bank is freed");
    return this.#raw;
  }

  /** The slots whose filters possibly have the key, in order. All others definitely have not. */
  find(key: Key): number[] {
    return Array.from(this.#bank.find(staging, stage(key)));
  }

  /** The number of filters. */
  get slots(): number {
    return this.#bank.slots();
  }

  get k(): number {
    return this.#bank.k();
  }

  /** Blocks of each filter. */
  get blocks(): number {
    return this.#bank.blocks();
  }

  get byteLength(): number {
    return this.#bank.byte_len();
  }

  get seed(): bigint {
    return BigInt.asUintN(64, this.#bank.seed());
  }

  free(): void {
    this.#raw?.free();
    this.#raw = undefined;
  }

  [Symbol.dispose](): void {
    this.free();
  }
}
