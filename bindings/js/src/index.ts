/** Bloom filters in WebAssembly, with the keys and files of bloomline for Rust, Python and SQL. */

export { FilterBank } from "./bank.js";
export type { LoadOptions, StandaloneBytes } from "./bytes.js";
export { BloomFilter, BloomView, sizing } from "./filter.js";
export type { FilterOptions, KeyEstimate, Size, Sizing } from "./filter.js";
export type { ByteStrings, IntegerArray, Key, Keys } from "./keys.js";

// For projects whose `lib` lacks them. Those that have them merge with these.
declare global {
  interface SymbolConstructor {
    readonly dispose: unique symbol;
  }
  interface Disposable {
    [Symbol.dispose](): void;
  }
  interface Response {}
}
