import type { LoadOptions, StandaloneBytes } from "./bytes.js";
import { load, place } from "./bytes.js";
import { Handle, named } from "./handle.js";
import type { Key } from "./keys.js";
import { stage } from "./keys.js";
import { Bank } from "./module.js";

/**
 * Many filters of one size, stored side by side, so that one lookup finds which of them possibly have a key. Build
 * banks in Rust or Python.
 */
export class FilterBank extends Handle {
  static {
    named(this, "FilterBank");
  }

  /**
   * Copies a bank's standalone bytes into the module's memory and verifies them.
   *
   * @throws if the bytes are damaged, cut, or not a bank.
   */
  constructor(bytes: StandaloneBytes);
  /** @internal */
  constructor(bytes: StandaloneBytes | Bank);
  constructor(bytes: StandaloneBytes | Bank) {
    super(bytes instanceof Bank ? bytes : Bank.open(place(bytes)));
  }

  /** Number of filters. */
  declare readonly slots: number;
  /** @internal */
  declare raw: Bank;

  /** Opens the body of a response. Copies it into the module's memory as it arrives. */
  static async fromResponse(response: Response, options?: LoadOptions): Promise<FilterBank> {
    return new FilterBank(Bank.open(await load(response, options)));
  }

  /** The slots whose filters possibly have the key, in ascending order. Every other filter definitely lacks it. */
  find(key: Key): number[] {
    return Array.from(this.raw.find(stage(key)));
  }
}
