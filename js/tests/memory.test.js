// Keys longer than the room for them, and memory that grows and is given back.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test from "node:test";
import { BloomFilter, BloomView, FilterBank } from "bloomline";
import { endToEnd, golden } from "./support.js";

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

test("a key of any length", () => {
  const filter = new BloomFilter({ blocks: 1, k: 6 });
  for (const length of [43_690, 43_691, 131_071, 131_072, 131_073, 200_000, 5_000_000]) {
    const text = "é".repeat(length / 2) + "a".repeat(length % 2);
    const bytes = Buffer.from(text);
    assert.equal(bytes.length, length);
    assert.equal(filter.hash(text), filter.hash(bytes), `${length} bytes`);
    assert.equal(filter.hash("a".repeat(length)), filter.hash(Buffer.alloc(length, "a")), `${length} letters`);
  }
});

test("batches longer than the room", () => {
  const texts = [];
  for (const length of [10, 100_000, 131_072, 7, 131_073, 43_691, 400_000, 0, 3, 131_000, 131_000, 1_000_000, 5]) {
    texts.push("x".repeat(length), "日".repeat(length / 3));
  }
  const bytes = texts.map((text) => Buffer.from(text));
  const expected = new BloomFilter({ blocks: 1000, k: 8 });
  for (const key of bytes) expected.add(key);
  for (const keys of [texts, bytes, endToEnd(bytes), texts.map((text, i) => (i % 3 ? text : bytes[i]))]) {
    const filter = new BloomFilter({ blocks: 1000, k: 8 });
    filter.addAll(keys);
    assert(Buffer.from(filter.toBytes()).equals(expected.toBytes()));
    assert(filter.hasAll(keys).every((answer) => answer === 1));
  }
});

for (const [name, grow] of [
  ["a large filter", "new BloomFilter({ blocks: 1_000_000, k: 6 })"],
  ["a long key", "filter.has('y'.repeat(3_000_000))"],
]) {
  test(`memory that grows by ${name}, before keys of every length`, () => {
    for (const [key, bytes] of [
      ["'a'", "Buffer.from('a')"], ["''", "Buffer.alloc(0)"], ["7", "Buffer.from([7, 0, 0, 0, 0, 0, 0, 0])"],
      ["'é'.repeat(100)", "Buffer.from('é'.repeat(100))"],
      ["'x'.repeat(200_000)", "Buffer.alloc(200_000, 'x')"],
      ["'é'.repeat(200_000)", "Buffer.from('é'.repeat(200_000))"],
      ["Buffer.alloc(200_000, 'x')", "Buffer.alloc(200_000, 'x')"],
    ]) {
      inNewNode(`
        const filter = new BloomFilter({ blocks: 100, k: 6 });
        filter.has("before");
        const kept = ${grow};
        const key = ${key}, bytes = ${bytes};
        filter.add(key);
        assert(filter.has(key) && filter.has(bytes) && filter.hasAll([key, bytes]).every((found) => found === 1));
        const expected = new BloomFilter({ blocks: 100, k: 6 });
        expected.add(bytes);
        assert(Buffer.from(filter.toBytes()).equals(expected.toBytes()));`);
      inNewNode(`
        const filter = new BloomFilter({ blocks: 100, k: 6 });
        filter.addAll(["before"]);
        filter.clear();
        const kept = ${grow};
        const key = ${key}, bytes = ${bytes};
        filter.addAll([key]);
        assert(filter.hasAll([bytes])[0] === 1 && filter.has(bytes));`);
    }
  });
}

test("free: later calls are errors, and a second call does nothing", () => {
  const filter = new BloomFilter({ expectedKeys: 10 }), other = new BloomFilter({ expectedKeys: 10 });
  const view = new BloomView(other.toBytes());
  const bank = new FilterBank(golden("bank-9-slots.bin"));
  for (const freed of [filter, view]) {
    freed.free();
    freed.free();
    const calls = {
      has: () => freed.has("a"), hasAll: () => freed.hasAll(["a"]), hash: () => freed.hash("a"),
      union: () => freed.union(other), "union with it": () => other.union(freed), toBytes: () => freed.toBytes(),
      k: () => freed.k, blocks: () => freed.blocks, byteLength: () => freed.byteLength, seed: () => freed.seed,
      knownKeys: () => freed.knownKeys, fillRatio: () => freed.fillRatio, estimatedFpr: () => freed.estimatedFpr,
      estimatedKeys: () => freed.estimatedKeys, estimatedUnion: () => freed.estimatedUnion(other),
      estimatedIntersection: () => other.estimatedIntersection(freed),
    };
    if (freed === filter) {
      Object.assign(calls, {
        add: () => freed.add("a"), addAll: () => freed.addAll(["a"]), fold: () => freed.fold(2),
        shrinkToFpr: () => freed.shrinkToFpr(0.5), clear: () => freed.clear(),
      });
    }
    for (const [name, call] of Object.entries(calls)) {
      assert.throws(call, { name: "TypeError", message: "the filter is freed" }, name);
    }
  }
  bank.free();
  bank.free();
  for (const call of [() => bank.find("a"), () => bank.slots, () => bank.k, () => bank.blocks, () => bank.seed]) {
    assert.throws(call, { name: "TypeError", message: "the bank is freed" });
  }
  assert(other.toBytes().length > 0);
});

test("Symbol.dispose frees", () => {
  for (const made of [new BloomFilter({ expectedKeys: 1 }), new BloomView(golden("standalone-empty.bin")),
    new FilterBank(golden("bank-9-slots.bin"))]) {
    made[Symbol.dispose]();
    assert.throws(() => made.k, { name: "TypeError", message: /is freed/ });
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

test("a filter beyond the memory is an error, and the next call works", () => {
  inNewNode(`
    const small = new BloomFilter({ blocks: 10, k: 6 });
    small.add("a");
    const kept = [];
    assert.throws(() => {
      for (let i = 0; i < 5; i++) kept.push(new BloomFilter({ blocks: 20_000_000, k: 6 }));
    }, Error);
    assert(kept.length >= 1 && small.has("a") && small.hasAll(["a"])[0] === 1);`);
});
