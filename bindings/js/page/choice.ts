// What the reader chose in "Size", and its form in the page's address.

import type { Size } from "../src/index.js";
import { parse } from "./numbers.js";

export interface Choice {
  keys: number;
  /** Which of the two counts: the false-positive rate, or the bits per key. */
  by: "fpr" | "bits";
  fpr: number;
  bits: number;
}

export const FIRST: Choice = { keys: 1_000_000, by: "fpr", fpr: 0.01, bits: 10 };

export function sizeOf({ keys, by, fpr, bits }: Choice, expectedKeys = keys): Size {
  return by === "fpr" ? { expectedKeys, fpr } : { expectedKeys, bitsPerKey: bits };
}

/** `#keys=1000000&fpr=0.01` or `#keys=1000000&bits=10`. */
export function toHash({ keys, by, fpr, bits }: Choice): string {
  return `#keys=${keys}&${by}=${by === "fpr" ? fpr : bits}`;
}

/** The choice of an address. Parts that are missing or are no numbers are those of `FIRST`. */
export function fromHash(hash: string): Choice {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name: "keys" | "fpr" | "bits") => {
    const text = parameters.get(name)?.trim();
    const value = text ? parse(text) : NaN;
    return Number.isFinite(value) ? value : FIRST[name];
  };
  const by = parameters.has("bits") ? "bits" : "fpr";
  return { keys: number("keys"), by, fpr: number("fpr"), bits: number("bits") };
}
