// Arguments that run code while their keys are staged, that lie, or that are of another type.

import assert from "node:assert/strict";
import test from "node:test";
import { BloomFilter } from "bloomline";
import { fresh } from "./support.js";

const large = () => new BloomFilter({ blocks: 1000, k: 6 });

/** An array whose second element is read by code that uses another filter. */
function computed(keys, use) {
  return Object.defineProperty([...keys], 1, { get: () => (use(), keys[1]) });
}

const other = large();
const USES = {
  "a batch": () => other.hasAll(["1", "22", "333"]),
  "a key": () => other.has("another key"),
  "a filter that makes the memory grow": () => new BloomFilter({ blocks: 4_000_000, k: 6 }),
};

for (const [name, use] of Object.entries(USES)) {
  for (const keys of [["aaaa", "bbbb", "cccc"], [1, 2, 3]]) {
    test(`an array with a computed element, which uses ${name}: ${typeof keys[0]}s`, async () => {
      const filter = large();
      filter.addAll(computed(keys, use));
      assert.deepEqual(keys.map((key) => filter.has(key)), [true, true, true]);
      assert.deepEqual([...filter.hasAll(computed(keys, use))], [1, 1, 1]);
    });
  }
}

test("typed arrays of a detached buffer are errors, as single keys are", () => {
  const detached = (array) => (structuredClone(array.buffer, { transfer: [array.buffer] }), array);
  const filter = large();
  assert.throws(() => filter.add(detached(new Uint8Array(8))), TypeError);
  assert.throws(() => filter.addAll(detached(Int32Array.of(1, 2))), TypeError);
  assert.throws(() => filter.addAll({ bytes: new Uint8Array(2), offsets: detached(Uint32Array.of(0, 1, 2)) }), TypeError);
});

test("byte strings of other types are TypeErrors", () => {
  const filter = large();
  const bytes = Uint8Array.of(1, 2, 3), offsets = Uint32Array.of(0, 1, 3);
  for (const wrong of [
    { bytes: Uint16Array.of(1, 2, 300), offsets },
    { bytes: Float64Array.of(1, 2, 3), offsets },
    { bytes: bytes.buffer, offsets },
    { bytes, offsets: Float64Array.of(0, 1.5, 3) },
  ]) {
    assert.throws(() => filter.addAll(wrong), TypeError);
  }
  assert.equal(filter.fillRatio, 0);
});

test("what is no key takes no memory", async () => {
  const { BloomFilter } = await fresh();
  const filter = new BloomFilter({ blocks: 1, k: 1 });
  const before = process.memoryUsage().rss;
  assert.throws(() => filter.has(new Array(5e8)), TypeError);
  assert(process.memoryUsage().rss - before < 100e6);
});

test("a length that lies is no trap, and no other key", async () => {
  const { BloomFilter } = await fresh();
  const filter = new BloomFilter({ blocks: 100, k: 6 });
  let reads = 0;
  class Grows extends Uint8Array {
    get length() {
      return reads++ ? 1e9 : 3;
    }
  }
  try {
    filter.has(new Grows(3));
  } catch (error) {
    assert(!(error instanceof WebAssembly.RuntimeError), String(error));
  }
  class Short extends Uint8Array {
    get length() {
      return 1;
    }
  }
  try {
    filter.add(new Short([1, 2, 3]));
  } catch {
    return;
  }
  assert(filter.has(Uint8Array.of(1, 2, 3)));
});

test("responses that were read already take no memory", async () => {
  const { BloomView, BloomFilter } = await fresh();
  for (let i = 0; i < 100; i++) {
    const response = new Response("", { headers: { "content-length": "60000000" } });
    await response.arrayBuffer();
    await assert.rejects(BloomView.fromResponse(response), TypeError);
  }
  new BloomFilter({ blocks: 1_000_000, k: 6 });
});

test("filters that fill the memory end in an error that is no trap", async () => {
  const { BloomFilter } = await fresh();
  const small = new BloomFilter({ blocks: 3, k: 6 });
  small.add("x");
  function filled(blocks) {
    const kept = [];
    try {
      for (;;) kept.push(new BloomFilter({ blocks, k: 1 }));
    } catch (error) {
      assert(!(error instanceof WebAssembly.RuntimeError), `${blocks} blocks: ${error}`);
    }
    return kept;
  }
  const large = [2 ** 24, 2 ** 22, 2 ** 20, 2 ** 17].map(filled);
  for (const blocks of [1, 3, 8]) for (const filter of filled(blocks)) filter.free();
  assert(small.has("x") && large.length === 4);
});

test("a toBytes for whose copy JavaScript has no memory gives back its own", async () => {
  const { BloomFilter } = await fresh();
  const filter = new BloomFilter({ blocks: 1_500_000, k: 6 });
  const { slice } = Uint8Array.prototype;
  Uint8Array.prototype.slice = () => {
    throw new RangeError("Array buffer allocation failed");
  };
  try {
    for (let i = 0; i < 50; i++) assert.throws(() => filter.toBytes(), RangeError);
  } finally {
    Uint8Array.prototype.slice = slice;
  }
});

test("an array that shrinks while it is read comes to an end", () => {
  let lengths = 0;
  const keys = new Proxy([1, 2, 3], {
    get(array, name) {
      if (name === "0") array.length = 1;
      if (name === "length" && lengths++ > 100) throw new Error("an endless loop");
      return array[name];
    },
  });
  try {
    large().hasAll(keys);
  } catch (error) {
    assert.notEqual(error.message, "an endless loop");
  }
});

test("an array that shrinks by more than a batch is an error", () => {
  const keys = Array.from({ length: 5000 }, (_, i) => `key ${i}`);
  Object.defineProperty(keys, 5, { get: () => (keys.length = 1000) });
  assert.throws(() => large().addAll(keys), { name: "TypeError", message: /shorter while it was read/ });
});
