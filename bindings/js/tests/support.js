// What several test files need.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BloomFilter } from "bloomline";

const GOLDEN = join(import.meta.dirname, "../../../tests/golden");

export const ANIMALS = ["ant", "bee", "cat"];
/** In no golden file, but possibly present in some. */
export const ABSENT = Array.from({ length: 1000 }, (_, i) => String(1000 + i));
export const NUMBERS = Array.from({ length: 1000 }, (_, i) => String(i));

export function golden(name) {
  return new Uint8Array(readFileSync(join(GOLDEN, name)));
}

/** The rows of a golden table, by the names of its columns. */
export function table(name) {
  const lines = readFileSync(join(GOLDEN, name), "utf8").split("\n").slice(0, -1).map((line) => line.split("\t"));
  return lines.slice(1).map((fields) => Object.fromEntries(lines[0].map((name, i) => [name, fields[i]])));
}

/** The keys of keys.tsv: type, value, bytes in hexadecimal, and hashes under the seeds 0 and 0x5eed. */
export const goldenKeys = () => table("keys.tsv").map((row) => ({
  type: row.type, value: row.value.replaceAll("\\0", "\0"), bytes: row.key,
  hash: BigInt(`0x${row["hash, seed 0"]}`), seeded: BigInt(`0x${row["hash, seed 5eed"]}`),
}));

/** Texts, of which `a..b` stands for the numbers from a to b - 1, or all keys of keys.tsv. */
function keysOf(texts) {
  if (texts === "keys.tsv") return goldenKeys().map(({ bytes }) => Buffer.from(bytes, "hex"));
  return texts.split(" ").filter(Boolean).flatMap((text) => {
    const [from, to] = text.split("..").map(Number);
    return to === undefined ? [text] : Array.from({ length: to - from }, (_, i) => String(from + i));
  });
}

/** The rows of files.tsv, of one kind or of all, with the keys of each slot, and of all. */
export function goldenFiles(kind) {
  return table("files.tsv").filter((row) => !kind || row.kind === kind).map((row) => {
    const slots = row.keys.split("|").map(keysOf);
    return { ...row, seed: BigInt(`0x${row.seed}`), found: Number(row.found), slots, keys: slots.flat() };
  });
}

/** A new filter with these keys. */
export function filled(options, keys) {
  const filter = new BloomFilter(options);
  filter.addAll(keys);
  return filter;
}

/** Without a comparison of each byte in the message, which would be long. */
export function same(bytes, expected, message = "bytes differ") {
  assert(Buffer.from(bytes).equals(expected), message);
}

/** An error that JavaScript can name, not a trap of WebAssembly. */
export function refused(call, message) {
  try {
    call();
  } catch (error) {
    assert(error instanceof Error && !(error instanceof WebAssembly.RuntimeError), `${message}: ${error}`);
    return error;
  }
  assert.fail(`${message}: no error`);
}

/** Random 32-bit words, the same ones for the same seed (xorshift32). */
export function random(seed) {
  let state = seed >>> 0 || 1;
  const next = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
  for (let i = 0; i < 20; i++) next();
  return next;
}

/** A character of any plane but a newline, and no surrogate. Each length of UTF-8 is as frequent. */
function character(next) {
  const [from, to] = [[0, 0x80], [0x80, 0x800], [0x800, 0x10000], [0x10000, 0x110000]][next() % 4];
  const code = from + (next() % (to - from));
  return code === 10 || (code >= 0xd800 && code < 0xe000) ? "é" : String.fromCodePoint(code);
}

/** Texts of 0 to 40 characters without newlines: half of them ASCII. */
export function randomTexts(count, seed) {
  const next = random(seed);
  return Array.from({ length: count }, () => {
    const length = next() % 41;
    if (next() % 2) return (next() * 2 ** 20 + next() % 2 ** 20).toString(36).repeat(4).slice(0, length);
    let text = "";
    for (let i = 0; i < length; i++) text += character(next);
    return text;
  });
}

const LIB = import.meta.resolve("bloomline");
let instances = 0;
/** Another instance of the package, with memory and room for keys of its first size, which a failure may break. */
export const fresh = () => import(`${LIB}?${instances++}`);

/** The path of the command line, if there is one. */
export const CLI = process.env.BLOOMLINE_CLI;


/** A folder that is removed after the test. */
export function scratch(test) {
  const folder = mkdtempSync(join(tmpdir(), "bloomline-"));
  test.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Byte strings as Apache Arrow has them. */
export function endToEnd(keys) {
  const offsets = new Uint32Array(keys.length + 1);
  keys.forEach((key, i) => (offsets[i + 1] = offsets[i] + key.length));
  return { bytes: new Uint8Array(Buffer.concat(keys)), offsets };
}
