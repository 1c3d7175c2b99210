// Keys, as typed.

import type { Key } from "../src/index.js";

const LEAST = -(2n ** 63n);
const MOST = 2n ** 64n - 1n;

/** An integer in the range of keys. The error is a phrase that follows the name of the place. */
export function integer(text: string): bigint {
  const digits = text.trim();
  if (!/^[+-]?\d+$/.test(digits)) throw new Error(`${quoted(digits)} is not an integer`);
  const value = BigInt(digits.replace(/^\+/, ""));
  if (value < LEAST || value > MOST) throw new Error(`${digits} is not from −2^63 to 2^64 − 1`);
  return value;
}

/** The keys of a text with one per line. The last line may end or not. */
export function keysOf(text: string, type: string): Key[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  if (type === "text") return lines;
  return lines.flatMap((line, i) => {
    try {
      return line.trim() === "" ? [] : integer(line);
    } catch (error) {
      throw new Error(`Line ${i + 1}: ${error instanceof Error ? error.message : error}`);
    }
  });
}

/** A key for people. Only text has quotation marks. */
export function shown(key: Key): string {
  return typeof key === "string" ? quoted(key) : String(key);
}

function quoted(text: string): string {
  return `"${text}"`;
}
