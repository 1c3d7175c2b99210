// Files of the format: docs/format.md, sections 5 and 12. Damaged bytes are an error, never a trap or a lost key.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { BloomFilter, BloomView, FilterBank } from "bloomline";
import { ANIMALS, GOLDEN, NUMBERS, golden } from "./support.js";

const FILTERS = {
  "standalone-empty.bin": { blocks: 1, k: 6, seed: 0n, knownKeys: 0, keys: [] },
  "standalone-100-blocks.bin": { blocks: 100, k: 11, seed: 0x5eedn, knownKeys: undefined, keys: NUMBERS },
  "standalone-short-2.bin": { blocks: 1, k: 6, seed: 0n, knownKeys: 3, keys: ANIMALS },
  "standalone-short-9.bin": { blocks: 9, k: 11, seed: 0x5eedn, knownKeys: 50, keys: NUMBERS.slice(0, 50) },
  "standalone-keys.bin": { blocks: 2, k: 6, seed: 0n, knownKeys: undefined, keys: ["", "boa", 42, -1n, "日本語"] },
  "standalone-modules-empty.bin": { blocks: 1, k: 6, seed: 0n, knownKeys: 0, keys: [] },
  "standalone-2-modules.bin": { blocks: 2, nModules: 2, k: 3, seed: 0n, knownKeys: 2, keys: ["boa", "bee"] },
  "standalone-3-modules.bin": {
    blocks: 21, nModules: 3, k: 6, seed: 0x5eedn, knownKeys: undefined, keys: NUMBERS.slice(0, 500),
  },
  "standalone-16-modules.bin": {
    blocks: 32, nModules: 16, k: 16, seed: 2n ** 64n - 1n, knownKeys: 3, keys: ANIMALS,
  },
};
const FOOTER = 64;
const view = (bytes) => new BloomView(bytes), bank = (bytes) => new FilterBank(bytes);

/** An error that JavaScript can name, not a trap of WebAssembly. */
function refused(call, message) {
  try {
    call();
  } catch (error) {
    assert(error instanceof Error && !(error instanceof WebAssembly.RuntimeError), `${message}: ${error}`);
    return error;
  }
  assert.fail(`${message}: no error`);
}

test("every golden filter is listed here", () => {
  const names = readdirSync(GOLDEN).filter((name) => name.startsWith("standalone-"));
  assert.deepEqual(names.sort(), Object.keys(FILTERS).sort());
});

for (const [name, { keys, nModules = 1, ...facts }] of Object.entries(FILTERS)) {
  test(name, () => {
    const bytes = golden(name), checksums = name.includes("modules") ? 8 * nModules : 0;
    const absent = Array.from({ length: 1000 }, (_, i) => `absent ${i}`);
    for (const filter of [view(bytes), BloomFilter.fromBytes(bytes)]) {
      for (const [fact, value] of Object.entries({ nModules, ...facts })) assert.equal(filter[fact], value, fact);
      assert.equal(filter.byteLength, bytes.length - FOOTER - checksums);
      assert(filter.hasAll(keys).every((found) => found === 1) && keys.every((key) => filter.has(key)));
      assert.deepEqual(filter.toBytes(), bytes);
      const found = filter.hasAll(absent).filter(Boolean).length;
      assert(found <= 20, `${found} of 1,000 absent keys`);
    }
  });
}

test("a filter made here has the bytes of the golden", () => {
  for (const name of ["standalone-100-blocks.bin", "standalone-3-modules.bin"]) {
    const { blocks, nModules, k, seed, keys } = FILTERS[name];
    const filter = new BloomFilter({ blocks, nModules, k, seed });
    filter.addAll(keys);
    assert.deepEqual(filter.toBytes(), golden(name));
  }
});

test("bytes in every kind of buffer are copied", () => {
  const bytes = golden("standalone-short-2.bin");
  const room = new Uint8Array(bytes.length + 7);
  room.set(bytes, 3);
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  for (const source of [
    bytes, bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), Buffer.from(bytes),
    room.subarray(3, 3 + bytes.length), new DataView(room.buffer, 3, bytes.length), shared,
  ]) {
    const view = new BloomView(source), filter = BloomFilter.fromBytes(source);
    assert.deepEqual(view.toBytes(), bytes);
    assert.deepEqual(filter.toBytes(), bytes);
  }
  const filter = BloomFilter.fromBytes(room.subarray(3, 3 + bytes.length));
  room.fill(0);
  const view = new BloomView(filter.toBytes());
  filter.add("dog");
  assert(filter.has("dog") && filter.has("ant") && !view.has("dog") && view.has("ant"));
  assert(!("add" in view));
});

test("wrong arguments are TypeErrors", () => {
  for (const source of [undefined, null, "abc", 5, 5n, {}, [1, 2], true]) {
    for (const open of [
      () => new BloomView(source), () => BloomFilter.fromBytes(source), () => new FilterBank(source),
    ]) {
      assert.throws(open, { name: "TypeError" }, `${typeof source} ${source}`);
    }
  }
});

test("banks", () => {
  const rows = [...readFileSync(join(GOLDEN, "banks.rs"), "utf8").matchAll(
    /\(include_bytes!\("(.*?)"\), (\d+), (\d+), (\d+), (\w+)\)/g,
  )];
  assert.equal(rows.length, readdirSync(GOLDEN).filter((name) => name.startsWith("bank-")).length - 1);
  for (const [, name, slots, blocks, k, seed] of rows) {
    const bytes = golden(name), bank = new FilterBank(bytes);
    assert.deepEqual([bank.slots, bank.blocks, bank.k], [+slots, +blocks, +k], name);
    assert.equal(bank.seed, BigInt(seed.replaceAll("_", "")), name);
    assert.equal(bank.byteLength, bytes.length, name);
    // The slots that have a key are those of filters with its bits.
    const filters = Array.from({ length: +slots }, (_, slot) => {
      const filter = new BloomFilter({ blocks: +blocks, k: +k, seed: bank.seed });
      filter.addAll(Array.from({ length: slot % 7 }, (_, i) => `${slot}-${i}`));
      return filter;
    });
    for (const key of ["0-0", "1-0", "6-5", "599-3", "absent", 7, -1n, Buffer.from("8-0")]) {
      const expected = [...filters.keys()].filter((slot) => filters[slot].has(key));
      assert.deepEqual(bank.find(key), expected, `${name}: ${key}`);
    }
    for (let slot = 0; slot < slots; slot++) {
      for (let i = 0; i < slot % 7; i++) assert(bank.find(`${slot}-${i}`).includes(slot), `${name}: ${slot}-${i}`);
    }
    for (const made of [bank, ...filters]) made.free();
  }
  const bank = new FilterBank(golden("bank-3-slots.bin"));
  assert.deepEqual([bank.find("boa"), bank.find("bee"), bank.find("cow")], [[1, 2], [2], []]);
  assert.throws(() => bank.find(1.5), { name: "TypeError", message: /1.5 is no safe integer/ });
  assert.throws(() => bank.find("\ud800"), { name: "TypeError", message: /lone surrogate/ });
});

test("files of other kinds are errors that name the kind", () => {
  for (const name of readdirSync(GOLDEN).filter((name) => name.endsWith(".bin"))) {
    const kind = name.split("-")[0].replace(".bin", "");
    const named = {
      compact: /not a filter's standalone bytes|the bytes were cut/, counting: /counting filter/,
      scalable: /scalable filter/,
      standard: /standard filter/, frontier: /frontier/, bank: /filter bank/, standalone: /blocked filter/,
    }[kind];
    assert(named, name);
    if (kind !== "standalone") {
      assert.match(refused(() => new BloomView(golden(name)), name).message, named);
      assert.match(refused(() => BloomFilter.fromBytes(golden(name)), name).message, named);
    }
    if (kind !== "bank") assert.match(refused(() => new FilterBank(golden(name)), name).message, named);
  }
});

const SMALL = [
  ["standalone-short-9.bin", view], ["standalone-keys.bin", view], ["bank-3-slots.bin", bank], ["bank-9-slots.bin", bank],
  ["standalone-3-modules.bin", view],
];

test("damaged and cut bytes are errors", () => {
  for (const [name, open] of SMALL) {
    const bytes = golden(name);
    for (let at = 0; at < bytes.length; at++) {
      const damaged = bytes.slice();
      damaged[at] ^= 0x80;
      refused(() => open(damaged), `${name}: byte ${at}`);
      refused(() => open(bytes.subarray(0, at)), `${name}: the first ${at} bytes`);
      refused(() => open(bytes.subarray(bytes.length - at)), `${name}: the last ${at} bytes`);
    }
    refused(() => open(Buffer.concat([bytes, Buffer.of(0)])), name);
    refused(() => open(Buffer.concat([Buffer.of(0), bytes])), name);
  }
});
