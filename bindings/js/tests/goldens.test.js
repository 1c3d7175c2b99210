// The tables of tests/golden, which every language reads: docs/testing.md, "A reader or writer in a new language".

import assert from "node:assert/strict";
import test from "node:test";
import { BloomFilter, BloomView, FilterBank, sizing } from "bloomline";
import { ABSENT, endToEnd, filled, golden, goldenFiles, goldenKeys, refused, same, table } from "./support.js";

const FOOTER = 64;
const READERS = {
  standalone: [(bytes) => new BloomView(bytes), (bytes) => BloomFilter.fromBytes(bytes)],
  bank: [(bytes) => new FilterBank(bytes)],
};
const sum = (numbers) => numbers.reduce((all, number) => all + number, 0);

for (const { file, size, k, seed, keys, found, ...row } of goldenFiles("standalone")) {
  test(file, () => {
    const bytes = golden(file), nModules = Number(row.modules), checksums = file.includes("modules") ? 8 * nModules : 0;
    const knownKeys = row["known keys"] === "unknown" ? undefined : Number(row["known keys"]);
    const shape = { blocks: Number(size), nModules, k: Number(k), seed };
    const facts = { ...shape, knownKeys, byteLength: bytes.length - FOOTER - checksums };
    for (const open of READERS.standalone) {
      const filter = open(bytes);
      for (const [fact, value] of Object.entries(facts)) assert.equal(filter[fact], value, fact);
      assert(filter.hasAll(keys).every((found) => found === 1) && keys.every((key) => filter.has(key)));
      assert.deepEqual([sum(filter.hasAll(ABSENT)), ABSENT.filter((key) => filter.has(key)).length], [found, found]);
      same(filter.toBytes(), bytes);
    }
    if (row.inserts === "no") return;
    const end = knownKeys ? -FOOTER : undefined;
    same(filled(shape, keys).toBytes().subarray(0, end), golden(row.rewritten).subarray(0, end));
  });
}

for (const { file, size, k, seed, slots, found, ...row } of goldenFiles("bank")) {
  test(file, () => {
    const bytes = golden(file), bank = new FilterBank(bytes), known = row["known keys"].split(" ").filter(Boolean);
    assert.deepEqual([bank.slots, bank.blocks, bank.k, bank.seed], [known.length, Number(size), Number(k), seed]);
    assert.equal(bank.byteLength, bytes.length);
    for (const [slot, keys] of slots.entries()) {
      for (const key of keys) {
        const slots = bank.find(key);
        assert(slots.includes(slot) && slots.every((slot, i) => i === 0 || slots[i - 1] < slot), `${key}: ${slots}`);
      }
    }
    assert.equal(sum(ABSENT.map((key) => bank.find(key).length)), found);
  });
}

test("damaged files", () => {
  const files = Object.fromEntries(goldenFiles().map((row) => [row.file, row]));
  for (const { case: damage, reader, file, from, to, bytes, error, says } of table("damaged.tsv")) {
    for (const open of READERS[reader] ?? []) {
      const what = `${file}: ${damage}`, whole = golden(file);
      const damaged = Buffer.concat([whole.subarray(0, from), Buffer.from(bytes, "hex"), whole.subarray(to)]);
      if (error !== "accepted") {
        const { message } = refused(() => open(damaged), what);
        assert(message.includes(says), `${what}: ${message}`);
        continue;
      }
      const opened = open(damaged);
      for (const key of files[file].keys) assert(reader === "bank" ? opened.find(key).length : opened.has(key), what);
    }
  }
});

test("sizes", () => {
  for (const { request, value, keys, modules, blocks, k, foldable, says, ...row } of table("sizes.tsv")) {
    const most = row["most modules"], byRate = request === "rate";
    const size = { expectedKeys: Number(keys), [byRate ? "fpr" : "bitsPerKey"]: Number(value) };
    if (most) size.mostModules = Number(most);
    const what = JSON.stringify(size);
    if (row.error) {
      assert(refused(() => sizing(size), what).message.includes(says), what);
      assert(refused(() => new BloomFilter(size), what).message.includes(says), what);
      continue;
    }
    const expected = [byRate ? foldable : blocks, modules, k].map(Number);
    const planned = sizing(size);
    assert.deepEqual([planned.blocks, planned.nModules, planned.k, planned.byteLength / 64],
      [...expected, expected[0]], what);
    if (expected[0] > 10_000) continue;
    const filter = new BloomFilter(size);
    assert.deepEqual([filter.blocks, filter.nModules, filter.k], expected, what);
    filter.free();
  }
});

const ARRAYS = {
  int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
};

/** All keys that a row of keys.tsv is in JavaScript. */
function keysOfType({ type, value, bytes }) {
  const binary = [Buffer.from(bytes, "hex"), new Uint8Array(Buffer.from(bytes, "hex"))];
  if (type === "text") return [value, ...binary];
  if (type === "binary") return binary;
  return Number.isSafeInteger(Number(value)) ? [BigInt(value), Number(value), ...binary] : [BigInt(value), ...binary];
}

test("keys of every type", () => {
  const filters = [0n, 0x5eedn].map((seed) => new BloomFilter({ blocks: 1, k: 6, seed }));
  const [large, rows] = [true, false].map((isLarge) => goldenKeys().filter(({ type }) => (type === "int") === isLarge));
  for (const row of rows) {
    for (const key of keysOfType(row)) {
      assert.deepEqual(filters.map((filter) => filter.hash(key)), [row.hash, row.seeded], `${row.type} ${row.value}`);
    }
  }
  const all = filled({ blocks: 2, k: 6 }, rows.flatMap(keysOfType));
  for (const { value, bytes } of large) {
    assert.throws(() => filters[0].hash(BigInt(value)), { name: "RangeError", message: /is no integer of 64 bits/ });
    assert.throws(() => filters[0].hash(Number(value)), { name: "TypeError", message: /is no safe integer/ });
    // The file has the keys beyond 64 bits too, which other versions accepted.
    all.add(Buffer.from(bytes, "hex"));
  }
  same(all.toBytes(), golden("standalone-keys.bin"));
});

test("keys of every type in arrays", () => {
  const shape = { blocks: 5000, k: 8 };
  const check = (batch, rows, what) => {
    const expected = filled(shape, rows.map(({ bytes }) => Buffer.from(bytes, "hex")));
    same(filled(shape, batch).toBytes(), expected.toBytes(), what);
  };
  for (const [type, Type] of Object.entries(ARRAYS)) {
    const rows = goldenKeys().filter((row) => row.type === type);
    assert(rows.length >= 4);
    check(Type.from(rows, ({ value }) => (type.endsWith("64") ? BigInt(value) : Number(value))), rows, type);
  }
  const rows = goldenKeys(), { bytes, offsets } = endToEnd(rows.map((row) => Buffer.from(row.bytes, "hex")));
  check({ bytes, offsets }, rows, "byte strings");
  check({ bytes, offsets: Int32Array.from(offsets) }, rows, "offsets of Int32Array");
  check({ bytes, offsets: offsets.subarray(10, 21) }, rows.slice(10, 20), "a part of the byte strings");
});
