// Writes keys as bytes to the module's memory.

import { Kind, lengthOf, memory, stage as room, type } from "./module.js";

/** Text, bytes or an integer. A `number` must be a safe integer, and a `bigint` from -2^63 to 2^64 - 1. */
export type Key = string | Uint8Array | number | bigint;

/** Byte strings end to end, as in Apache Arrow. String i is `bytes.subarray(offsets[i], offsets[i + 1])`. */
export interface ByteStrings {
  bytes: Uint8Array;
  offsets: Uint32Array | Int32Array;
}

/** Integers of one type. A `Uint8Array` is a single key. */
export type IntegerArray =
  Int8Array | Int16Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array | BigUint64Array;

/** Many keys. Typed arrays and arrays of strings are the fastest. */
export type Keys = Iterable<Key> | IntegerArray | ByteStrings;

/** Stages its keys from `start` on, as many as fit. */
interface Source {
  count: number;
  stage(start: number): Batch;
}

interface Batch {
  kind: Kind;
  count: number;
  /** Bytes of all keys. */
  length: number;
}

/** `charCodeAt` copies strings of up to this length faster than `encodeInto` (Node 20 and 24, Zen 5, 2026-11). */
const SHORT = 16;

const encoder = new TextEncoder();
let bytes: Uint8Array, data: DataView, lengths: Uint32Array, found: Uint8Array, most: number;
view(1 << 17);

/** Makes room for `length` bytes of keys, and renews the views of the module's memory. */
function view(length: number): void {
  const [start, lengthsAt, foundAt, count] = room(length) as unknown as [number, number, number, number];
  const { buffer } = memory;
  most = count;
  bytes = new Uint8Array(buffer, start, length);
  data = new DataView(buffer, start, length);
  lengths = new Uint32Array(buffer, lengthsAt, most);
  found = new Uint8Array(buffer, foundAt, most);
}

/** Makes room for more than `length` bytes, or renews the views: when the memory grows, `bytes.length` becomes 0. */
function reserve(length: number): void {
  if (length >= bytes.length) view(Math.max(length, 1 << 17));
}

/** Stages one key, and returns its length in bytes. @internal */
export function stage(key: Key): number {
  reserve(bound(key));
  return put(key, 0);
}

/** At least the length of the key in bytes. */
function bound(key: Key): number {
  if (typeof key === "string") return 3 * key.length;
  return type(key) === "Uint8Array" ? lengthOf(key as Uint8Array) : 8;
}

/** Writes a key to `bytes`, which has room for it, and returns its length in bytes. */
function put(key: Key, at: number): number {
  switch (typeof key) {
    case "string":
      return putText(key, at);
    case "number":
      if (!Number.isSafeInteger(key)) throw new TypeError(`${key} is no safe integer: give a bigint or text`);
      data.setInt32(at, key, true);
      data.setInt32(at + 4, Math.floor(key / 2 ** 32), true);
      return 8;
    case "bigint":
      if (BigInt.asIntN(64, key) !== key && BigInt.asUintN(64, key) !== key) {
        throw new RangeError(`${key} is no integer of 64 bits: give one from -2^63 to 2^64 - 1, or text`);
      }
      data.setBigInt64(at, key, true);
      return 8;
  }
  if (type(key) !== "Uint8Array") {
    throw new TypeError(`${type(key)} is no key: give a string, a Uint8Array, an integer or a bigint`);
  }
  bytes.set(key, at);
  return lengthOf(key);
}

function putText(key: string, at: number): number {
  const { length } = key;
  if (length <= SHORT) {
    let i = 0;
    for (; i < length; i++) {
      const unit = key.charCodeAt(i);
      if (unit > 127) break;
      bytes[at + i] = unit;
    }
    if (i === length) return length;
  }
  const { written } = encoder.encodeInto(key, at === 0 ? bytes : bytes.subarray(at));
  // `encodeInto` replaces lone surrogates by three bytes.
  if (written !== length) checkText(key);
  return written;
}

function checkText(key: string): void {
  if (key.isWellFormed()) return;
  throw new TypeError("the text has a lone surrogate, which UTF-8 cannot encode: replace it, as `toWellFormed()` does");
}

/** The answers to a batch. @internal */
export function answers(count: number): Uint8Array {
  reserve(0);
  return found.subarray(0, count);
}

/** Stages keys in batches, and calls `use` with each. @internal */
export function inBatches(source: Source, use: (batch: Batch, start: number) => void): void {
  for (let start = 0; start < source.count;) {
    reserve(0);
    const batch = source.stage(start);
    if (batch.count === 0) throw new TypeError("the list of keys became shorter while it was read");
    use(batch, start);
    start += batch.count;
  }
}

/** @internal */
export function sourceOf(keys: Keys): Source {
  const name = type(keys);
  switch (name) {
    case "Int8Array":
    case "Int16Array":
    case "Uint16Array":
    case "Int32Array":
      return integers(keys as Int32Array, Int32Array, Kind.Int32);
    case "Uint32Array":
      return integers(keys as Uint32Array, Uint32Array, Kind.Uint32);
    case "BigInt64Array":
    case "BigUint64Array":
      return integers(keys as BigInt64Array, BigInt64Array, Kind.Int64);
  }
  if (typeof keys === "object" && keys !== null && !ArrayBuffer.isView(keys)) {
    if (Symbol.iterator in keys) return list(Array.isArray(keys) ? keys : [...(keys as Iterable<Key>)]);
    if ("bytes" in keys && "offsets" in keys) return byteStrings(keys);
  }
  throw new TypeError(`${name} is no list of keys: give an array or { bytes, offsets }, or one key to add or has`);
}

function integers<A extends Int32Array | Uint32Array | BigInt64Array>(
  keys: A, Array: new (buffer: ArrayBufferLike, at: number, length: number) => A, kind: Kind,
): Source {
  const length = lengthOf(keys);
  return {
    count: length,
    stage(start) {
      const count = Math.min(most, length - start);
      const staged = new Array(bytes.buffer, bytes.byteOffset, count);
      // Narrower integers are converted.
      (staged as Int32Array).set(keys.subarray(start, start + count) as Int32Array);
      return { kind, count, length: staged.byteLength };
    },
  };
}

function byteStrings({ bytes: all, offsets }: ByteStrings): Source {
  if (type(all) !== "Uint8Array" || !["Uint32Array", "Int32Array"].includes(type(offsets))) {
    throw new TypeError(`bytes must be a Uint8Array, and offsets a Uint32Array, not ${type(all)} and ${type(offsets)}`);
  }
  const length = lengthOf(all), total = lengthOf(offsets) - 1;
  return {
    count: Math.max(total, 0),
    stage(start) {
      const from = offsets[start]!;
      let count = 0, to = from;
      for (; count < most && start + count < total; count++) {
        const end = offsets[start + count + 1]!;
        if (!(from >= 0 && end >= to && end <= length)) {
          throw new RangeError(`offsets[${start + count + 1}] is ${end}: offsets must grow, from 0 to ${length}`);
        }
        if (end - from > bytes.length) {
          if (count > 0) break;
          reserve(end - from);
        }
        lengths[count] = end - to;
        to = end;
      }
      bytes.set(all.subarray(from, to));
      return { kind: Kind.Bytes, count, length: to - from };
    },
  };
}

function list(keys: readonly Key[]): Source {
  const { length } = keys;
  return {
    count: length,
    stage(start) {
      // A copy, because reading an element may run code, which may stage keys itself.
      const part = Array.prototype.slice.call(keys, start, Math.min(start + most, length)) as Key[];
      reserve(0);
      return texts(part, start) ?? mixed(part, start);
    },
  };
}

/** Stages the texts at the start of a part of a list, of which `start` is the first index. */
function texts(part: readonly Key[], start: number): Batch | undefined {
  let count = 0, text = "";
  for (let key; typeof (key = part[count]) === "string"; count++) {
    const { length } = key;
    if (3 * (text.length + length) > bytes.length) {
      if (count > 0) break;
      reserve(3 * length);
    }
    lengths[count] = length;
    text += key;
  }
  if (count === 0) return undefined;
  // One call for all texts, because a call costs more than copying most texts.
  const { written } = encoder.encodeInto(text, bytes);
  if (written === text.length) return { kind: Kind.Bytes, count, length: written };
  for (let i = 0; i < count; i++) named(start + i, () => checkText(part[i] as string));
  return { kind: Kind.Text, count, length: written };
}

/** Stages a part's keys of any types. */
function mixed(part: readonly Key[], start: number): Batch {
  let count = 0, end = 0;
  for (; count < part.length; count++) {
    const key = part[count] as Key;
    if (end + bound(key) > bytes.length) {
      if (count > 0) break;
      reserve(bound(key));
    }
    lengths[count] = named(start + count, () => put(key, end));
    end += lengths[count]!;
  }
  return { kind: Kind.Bytes, count, length: end };
}

/** Runs `write`, whose errors then name the key. */
function named<T>(index: number, write: () => T): T {
  try {
    return write();
  } catch (error) {
    if (error instanceof Error) error.message = `keys[${index}]: ${error.message}`;
    throw error;
  }
}
