// Keys longer than the room for them, and memory that grows and is given back.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test from "node:test";
import { BloomFilter, BloomView, FilterBank } from "bloomline";
import { endToEnd, fresh, golden } from "./support.js";

const LIB = import.meta.resolve("bloomline");

/** Runs a program with the package's names in a Node of its own, whose module has its first size. */
function inNewNode(program, ...flags) {
  const code = `
    import assert from "node:assert/strict";
    import { BloomFilter, BloomView, FilterBank } from ${JSON.stringify(LIB)};
    ${program}
    console.log("done");`;
  const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, "--input-type=module", "-e", code], {
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
  assert.equal(stdout, "done\n");
}

const FORMS = {
  letters: (length) => "a".repeat(length),
  "letters of two bytes": (length) => "é".repeat(length / 2) + "a".repeat(length % 2),
  "letters of three bytes": (length) => "日".repeat(length / 3) + "a".repeat(length % 3),
  bytes: (length) => Buffer.alloc(length, "é"),
};

for (const [name, form] of Object.entries(FORMS)) {
  // Room for keys, which grows with them, has a first size of 128 KiB.
  test(`single keys of any length: ${name}`, async () => {
    const { BloomFilter } = await fresh();
    const filter = new BloomFilter({ blocks: 1, k: 6 });
    const lengths = [43_690, 43_691, 65_536, 65_537, 131_070, 131_071, 131_072, 131_073, 131_074, 200_000, 5_000_000];
    const hashes = lengths.map((length) => filter.hash(form(length)));
    for (const [i, length] of lengths.entries()) {
      const bytes = Buffer.from(form(length));
      assert.equal(bytes.length, length);
      assert.equal(hashes[i], filter.hash(bytes), `${length} bytes`);
    }
  });

  test(`batches of long keys: ${name}`, async () => {
    for (const lengths of [
      [10, 43_690, 7, 43_691, 5], [43_691, 43_691, 43_691], [65_536, 65_537, 1], [131_071, 1, 1], [131_072, 0, 3],
      [131_073, 5],
      [131_000, 73], [100, 131_000], [9, 131_072], Array(40).fill(9_000), [1_000_000, 2, 200_000],
    ]) {
      const keys = lengths.map(form);
      const bytes = keys.map((key) => Buffer.from(key));
      const expected = new BloomFilter({ blocks: 1000, k: 8 });
      for (const key of bytes) expected.add(key);
      const some = keys.map((key, i) => (i % 2 ? bytes[i] : key));
      for (const batch of [keys, bytes, endToEnd(bytes), some, [some[0], ...some]]) {
        const { BloomFilter } = await fresh();
        const filter = new BloomFilter({ blocks: 1000, k: 8 });
        filter.addAll(batch);
        assert(filter.hasAll(batch).every((found) => found === 1), `${lengths}`);
        assert(Buffer.from(filter.toBytes()).equals(expected.toBytes()), `${lengths}`);
      }
    }
  });
}

const KEYS = [
  "a", "", 7, 2n ** 60n, "é".repeat(100), "x".repeat(200_000), "é".repeat(200_000), Buffer.alloc(200_000, "x"),
];

for (const [name, grow] of [
  ["a large filter", ({ BloomFilter }) => new BloomFilter({ blocks: 100_000, k: 6 })],
  ["a long key", ({ BloomFilter }) => new BloomFilter({ blocks: 1, k: 6 }).has("y".repeat(3_000_000))],
  ["a large file", ({ BloomView }) => assert.throws(() => new BloomView(new Uint8Array(5e6)))],
]) {
  test(`memory that grows by ${name}, before keys of every length`, async () => {
    for (const key of KEYS) {
      for (const call of [
        (filter) => filter.add(key), (filter) => filter.addAll([key]), (filter) => filter.addAll(["a", key]),
        (filter) => filter.addAll([key, 7n]),
      ]) {
        const module = await fresh();
        const filter = new module.BloomFilter({ blocks: 100, k: 6 }), expected = new BloomFilter({ blocks: 100, k: 6 });
        filter.has("before");
        filter.hasAll(["before"]);
        grow(module);
        call(filter);
        call(expected);
        assert(Buffer.from(filter.toBytes()).equals(expected.toBytes()), String(call));
        grow(module);
        assert(filter.has(key));
        grow(module);
        assert.deepEqual(filter.hasAll([key, key]), Uint8Array.of(1, 1));
      }
    }
  });
}

test("free: later calls are errors, and a second call does nothing", () => {
  const filter = new BloomFilter({ expectedKeys: 10 }), other = new BloomFilter({ expectedKeys: 10 });
  const view = new BloomView(other.toBytes()), bank = new FilterBank(golden("bank-9-slots.bin"));
  const reads = (freed) => [
    () => freed.has("a"), () => freed.hasAll(["a"]), () => freed.hash("a"), () => freed.union(other),
    () => other.union(freed), () => freed.toBytes(), () => freed.knownKeys, () => freed.fillRatio,
    () => freed.estimatedFpr, () => freed.estimatedKeys, () => freed.estimatedUnion(other),
    () => other.estimatedIntersection(freed),
  ];
  for (const [freed, calls] of [
    [filter, [
      ...reads(filter), () => filter.add("a"), () => filter.addAll(["a"]), () => filter.fold(2), () => filter.clear(),
    ]],
    [view, reads(view)],
    [bank, [() => bank.find("a")]],
  ]) {
    freed.free();
    freed.free();
    for (const call of calls) assert.throws(call, { name: "TypeError", message: /is freed/ }, String(call));
  }
  assert(other.toBytes().length > 0);
});

test("Symbol.dispose frees", () => {
  for (const made of [new BloomFilter({ expectedKeys: 1 }), new BloomView(golden("standalone-empty.bin")),
    new FilterBank(golden("bank-9-slots.bin"))]) {
    made[Symbol.dispose]();
    assert.throws(() => (made.has ?? made.find).call(made, "a"), { name: "TypeError", message: /is freed/ });
  }
});

// 10 GB in all, of which the module's memory holds at most 4.
test("free gives the memory back", () => {
  inNewNode(`
    for (let i = 0; i < 1000; i++) {
      const filter = new BloomFilter({ blocks: 163_840, k: 6 });
      filter.add("a");
      filter.free();
    }
    assert(process.memoryUsage().rss < 500e6);`);
});

test("errors while opening give the memory back", () => {
  inNewNode(`
    const damaged = new Uint8Array(100e6);
    for (let i = 0; i < 100; i++) {
      assert.throws(() => new BloomView(damaged), Error);
      assert.throws(() => new FilterBank(damaged), Error);
      assert.throws(() => new BloomFilter({ blocks: 100_000, k: 6, seed: -1n }), RangeError);
    }
    assert(process.memoryUsage().rss < 1e9);`);
});

test("garbage collection gives the memory back", () => {
  inNewNode(`
    for (let i = 0; i < 1000; i++) {
      new BloomFilter({ blocks: 163_840, k: 6 }).add("a");
      if (i % 20 === 19) {
        gc();
        await new Promise(setImmediate);
      }
    }
    assert(process.memoryUsage().rss < 1e9);`, "--expose-gc");
});
