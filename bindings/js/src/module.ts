// The WebAssembly module, instantiated when this file is imported.

import * as glue from "../build/wasm_bg.js";
import module from "./embedded.js";

// WebAssembly's memory is little-endian, but typed arrays have the CPU's byte order.
if (new Uint8Array(new Uint16Array([1]).buffer)[0] !== 1) throw new Error("bloomline needs a little-endian CPU");

// wasm-bindgen's own start takes a module of another realm, as Next.js gives, for bytes.
const { exports } = new WebAssembly.Instance(module, { "./wasm_bg.js": glue as {} });
glue.__wbg_set_wasm(exports);
(exports.__wbindgen_start as () => void)();

export const memory = exports.memory as WebAssembly.Memory;
export {
  Bank, Bytes, Filter, Kind, fpr, size_for_bits_per_key, size_for_fpr, size_of_blocks, stage,
} from "../build/wasm_bg.js";

/** Checks a number, because WebAssembly would accept any number, modulo 2^32. */
export function whole(name: string, value: number): number {
  if (Number.isInteger(value) && value >= 0 && value < 2 ** 32) return value;
  throw refusal(name, value, "number", `a whole number from 0 to ${2 ** 32 - 1}`);
}

/** Checks a type, because WebAssembly would convert texts and lists to numbers. */
export function number(name: string, value: number, example: string): number {
  if (typeof value === "number") return value;
  throw refusal(name, value, "number", `a number, such as ${example}`);
}

/** The error of an option that is not of this type, or out of range. */
export function refusal(name: string, value: unknown, type: "number" | "bigint", give: string): Error {
  const shown = typeof value === "string" ? `the text "${value}"`
    : typeof value === "bigint" ? `${value}n`
    : typeof value === "object" && value ? "an object" : String(value);
  return new (typeof value === type ? RangeError : TypeError)(`${name} is ${shown}: give ${give}`);
}

const { prototype } = Object.getPrototypeOf(Uint8Array);
const tagOf = getter(Symbol.toStringTag), lengthGetter = getter("length");

function getter(name: string | symbol): () => unknown {
  return Object.getOwnPropertyDescriptor(prototype, name)!.get!;
}

/** The name of a value's type. For typed arrays, of any realm, no getter of a subclass can change it. */
export function type(value: unknown): string {
  return (tagOf.call(value) as string | undefined) ?? Object.prototype.toString.call(value).slice(8, -1);
}

/** The true length of a typed array. Throws if the array's buffer was transferred, which leaves a length of 0. */
export function lengthOf(array: { buffer: ArrayBufferLike }): number {
  const length = lengthGetter.call(array) as number;
  if (length === 0) new Uint8Array(array.buffer);
  return length;
}
