// Sizes, options, and what a filter says of its keys.

import assert from "node:assert/strict";
import test from "node:test";
import { BloomFilter, BloomView, ModularBloomFilter, sizing } from "bloomline";
import { ANIMALS, NUMBERS, golden, randomTexts } from "./support.js";

// [rate or bits per key, blocks, k] for each number of keys: `BloomFilter::with_fpr` and `with_bits_per_key` in Rust.
const BY_RATE = {
  0: [[0.5, 2, 16], [1e-7, 2, 16]],
  1: [[0.5, 2, 16], [1e-7, 2, 16]],
  100: [[0.5, 2, 4], [0.1, 2, 4], [0.01, 2, 7], [0.003, 4, 9], [1e-5, 6, 14], [1e-7, 10, 16]],
  12345: [[0.5, 36, 1], [0.1, 118, 3], [0.01, 240, 6], [0.003, 312, 8], [1e-5, 720, 14], [1e-7, 1224, 16]],
  1000000: [[0.5, 2832, 1], [0.1, 9504, 3], [0.01, 19440, 6], [0.003, 25080, 8], [1e-5, 58200, 14], [1e-7, 99360, 16]],
  10000000: [
    [0.5, 28200, 1], [0.1, 95040, 3], [0.01, 194400, 6], [0.003, 250560, 8], [1e-5, 584640, 14], [1e-7, 992880, 16],
  ],
};
const BY_BITS = {
  0: [[0.5, 1, 16], [64, 1, 16]],
  1: [[0.5, 1, 16], [64, 1, 16]],
  100: [[0.5, 1, 4], [4, 1, 4], [8, 2, 7], [9.6, 2, 7], [14.5, 3, 9], [24, 5, 13], [64, 13, 16]],
  12345: [[0.5, 13, 1], [4, 97, 3], [8, 193, 5], [9.6, 232, 6], [14.5, 350, 9], [24, 579, 12], [64, 1544, 16]],
  1000000: [
    [0.5, 977, 1], [4, 7813, 3], [8, 15625, 5], [9.6, 18750, 6], [14.5, 28321, 9], [24, 46875, 12], [64, 125000, 16],
  ],
  10000000: [
    [0.5, 9766, 1], [4, 78125, 3], [8, 156250, 5], [9.6, 187500, 6], [14.5, 283204, 9], [24, 468750, 12],
    [64, 1250000, 16],
  ],
};

function checkSize(size, blocks, k) {
  const message = JSON.stringify(size);
  const planned = sizing(size);
  assert.deepEqual([planned.blocks, planned.k, planned.byteLength], [blocks, k, 64 * blocks], message);
  const filter = new BloomFilter(size);
  assert.deepEqual([filter.blocks, filter.k, filter.byteLength], [blocks, k, 64 * blocks], message);
  filter.free();
  return planned;
}

test("sizes are those of Rust", () => {
  for (const [keys, rows] of Object.entries(BY_RATE)) {
    const expectedKeys = Number(keys);
    for (const [fpr, blocks, k] of rows) {
      const planned = checkSize({ expectedKeys, fpr }, blocks, k);
      assert(planned.fpr <= fpr && planned.fpr > 0);
      assert.equal(planned.bitsPerKey, (512 * blocks) / Math.max(expectedKeys, 1));
    }
  }
  for (const [keys, rows] of Object.entries(BY_BITS)) {
    for (const [bitsPerKey, blocks, k] of rows) checkSize({ expectedKeys: Number(keys), bitsPerKey }, blocks, k);
  }
  checkSize({ expectedKeys: 1_000_000 }, 19440, 6);
  checkSize({ expectedKeys: 1_000_000, fpr: undefined }, 19440, 6);
  // `bloomline plan --keys 1e6 --fpr 1% --json`
  assert.equal(sizing({ expectedKeys: 1_000_000, fpr: 0.01 }).fpr, 0.009917600498970763);
  assert.deepEqual(sizing({ blocks: 10, k: 3 }), { blocks: 10, k: 3, byteLength: 640 });
});

test("options that are wrong", () => {
  const rate = /a false-positive rate must be between 0 and 1, both excluded/;
  const whole = /give a whole number from 0 to 4294967295/;
  for (const [options, message] of [
    [{ expectedKeys: 10, fpr: 0 }, rate], [{ expectedKeys: 10, fpr: 1 }, rate], [{ expectedKeys: 10, fpr: -1 }, rate],
    [{ expectedKeys: 10, fpr: NaN }, rate],
    [{ expectedKeys: 10, fpr: 1e-9 }, /a false-positive rate of 1e-9 is out of reach/],
    [{ expectedKeys: 10, bitsPerKey: 0 }, /bits per key must be above 0 and at most 64, not 0/],
    [{ expectedKeys: 10, bitsPerKey: 65 }, /bits per key must be above 0 and at most 64, not 65/],
    [{ expectedKeys: 10, bitsPerKey: NaN }, /bits per key must be above 0/],
    [{ expectedKeys: -1 }, /expectedKeys is -1; /], [{ expectedKeys: 1.5 }, /expectedKeys is 1.5; /],
    [{ expectedKeys: 2 ** 32 }, whole], [{ expectedKeys: NaN }, whole], [{ expectedKeys: Infinity }, whole],
    [{}, /expectedKeys must be a number, not undefined/], [{ blocks: 1 }, /k must be a number, not undefined/],
    [{ blocks: 0, k: 6 }, /a filter has 1 to \d+ blocks of 64 bytes/], [{ blocks: 1.5, k: 6 }, /blocks is 1.5; /],
    [{ blocks: 2 ** 31, k: 6 }, /a filter has 1 to \d+ blocks/], [{ blocks: 2 ** 32, k: 6 }, /blocks is 4294967296; /],
    [{ blocks: 1, k: 0 }, /probes per key must be 1 to 16, not 0/], [{ blocks: 1, k: 17 }, /1 to 16, not 17/],
    [{ expectedKeys: 2 ** 32 - 1, fpr: 1e-5 }, /exceed this machine's address space/],
  ]) {
    assert.throws(() => new BloomFilter(options), { name: /Error$/, message }, JSON.stringify(options));
    assert.throws(() => sizing(options), { name: /Error$/, message }, JSON.stringify(options));
  }
  for (const options of [
    undefined, null, 10, "10", { expectedKeys: 10, fpr: 0.1, bitsPerKey: 8 }, { expectedKeys: 10n },
  ]) {
    assert.throws(() => new BloomFilter(options), TypeError);
    assert.throws(() => sizing(options), TypeError);
  }
  for (const seed of [-1n, 2n ** 64n]) {
    assert.throws(
      () => new BloomFilter({ expectedKeys: 1, seed }), { name: "RangeError", message: /the seed is -?\d+: give / },
    );
  }
  assert.throws(() => new BloomFilter({ expectedKeys: 1, seed: 5 }), TypeError);
  assert.throws(() => BloomFilter({ expectedKeys: 1 }), TypeError);
});

test("seeds", () => {
  for (const seed of [0n, 1n, 0x5eedn, 2n ** 63n, 2n ** 64n - 1n]) {
    const filter = new BloomFilter({ expectedKeys: 10, seed });
    assert.equal(filter.seed, seed);
    assert.equal(new BloomView(filter.toBytes()).seed, seed);
    const hash = filter.hash("a");
    assert(hash >= 0n && hash < 2n ** 64n);
    assert.equal(hash === new BloomFilter({ expectedKeys: 10 }).hash("a"), seed === 0n);
  }
});

test("add says whether the key was new, and has and hasAll find it", () => {
  const filter = new BloomFilter({ expectedKeys: 1000, fpr: 1e-6 });
  assert.deepEqual(ANIMALS.map((key) => filter.add(key)), [true, true, true]);
  assert.deepEqual(ANIMALS.map((key) => filter.add(key)), [false, false, false]);
  assert.deepEqual([filter.has("ant"), filter.has("dog")], [true, false]);
  assert.deepEqual(filter.hasAll(["ant", "dog", "cat"]), Uint8Array.of(1, 0, 1));
  assert.equal(filter.addAll(["dog"]), undefined);
  assert(filter.has("dog"));
});

test("the rate is the one asked for", () => {
  for (const fpr of [0.2, 0.05, 0.01, 0.001]) {
    const filter = new BloomFilter({ expectedKeys: 100_000, fpr });
    filter.addAll(Array.from({ length: 100_000 }, (_, i) => `present ${i}`));
    const found = filter.hasAll(Int32Array.from({ length: 200_000 }, (_, i) => i)).reduce((sum, one) => sum + one, 0);
    assert(found > 0.8 * fpr * 200_000 && found < 1.1 * fpr * 200_000, `${found} of 200,000 at ${fpr}`);
    assert(Math.abs(filter.estimatedFpr / fpr - 1) < 0.1, `${filter.estimatedFpr} for ${fpr}`);
  }
});

test("union", () => {
  const size = { expectedKeys: 100, seed: 7n };
  const one = new BloomFilter(size), two = new BloomFilter(size), both = new BloomFilter(size);
  one.addAll(["a", "b"]);
  two.addAll(["b", "c"]);
  both.addAll(["a", "b", "c"]);
  const before = one.toBytes();
  for (const union of [one.union(two), two.union(one), new BloomView(before).union(new BloomView(two.toBytes()))]) {
    assert(union instanceof BloomFilter);
    assert.deepEqual(union.toBytes(), both.toBytes());
    union.add("d");
  }
  assert.deepEqual(one.toBytes(), before);
  assert.deepEqual(one.union(one).toBytes(), before);
  for (const [other, message] of [
    [{ expectedKeys: 100 }, /seed/], [{ blocks: 3, k: one.k, seed: 7n }, /blocks cannot be combined/],
    [{ blocks: one.blocks, k: 1, seed: 7n }, /cannot be combined/],
  ]) {
    const filter = new BloomFilter(other);
    assert.throws(() => one.union(filter), { message });
    assert.throws(() => one.estimatedUnion(filter), { message });
    assert.throws(() => one.estimatedIntersection(filter), { message });
  }
  for (const other of [undefined, null, {}, [], "a", new Uint8Array(3)]) {
    assert.throws(() => one.union(other), TypeError, String(other));
    assert.throws(() => one.estimatedUnion(other), TypeError);
  }
});

test("fold", () => {
  for (const factor of [1, 2, 3, 4, 8, 16, 48]) {
    const large = new BloomFilter({ blocks: 96, k: 6 }), small = new BloomFilter({ blocks: 96 / factor, k: 6 });
    large.addAll(NUMBERS);
    small.addAll(NUMBERS);
    large.fold(factor);
    assert.equal(large.blocks, 96 / factor);
    assert.deepEqual(large.toBytes(), small.toBytes());
  }
  const filter = new BloomFilter({ blocks: 96, k: 6 });
  filter.addAll(NUMBERS);
  for (const [factor, message] of [
    [5, /96 blocks cannot be folded by 5: use a factor that divides 96/], [0, /cannot be folded by 0/],
    [192, /cannot be folded by 192/], [1.5, /factor is 1.5; give a whole number/], [-2, /factor is -2; /],
    [NaN, /factor is NaN/],
  ]) assert.throws(() => filter.fold(factor), { message });
  assert.equal(filter.blocks, 96);

  // An opened filter is copied before its first change.
  const opened = BloomFilter.fromBytes(golden("standalone-100-blocks.bin"));
  opened.fold(4);
  assert.equal(opened.blocks, 25);
  assert(opened.hasAll(NUMBERS).every((found) => found === 1));
});

test("clear", () => {
  for (const filter of [
    new BloomFilter({ blocks: 1, k: 6 }), BloomFilter.fromBytes(golden("standalone-short-2.bin")),
  ]) {
    filter.addAll(ANIMALS);
    filter.clear();
    assert.deepEqual(ANIMALS.map((key) => filter.has(key)), [false, false, false]);
    assert.equal(filter.knownKeys, 0);
    assert.equal(filter.fillRatio, 0);
    assert.deepEqual(filter.toBytes(), golden("standalone-empty.bin"));
  }
});

test("known keys", () => {
  const filter = new BloomFilter({ expectedKeys: 10 });
  assert.equal(filter.knownKeys, 0);
  filter.add("a");
  assert.equal(filter.knownKeys, undefined);
  const opened = BloomFilter.fromBytes(golden("standalone-short-9.bin"));
  assert.equal(opened.knownKeys, 50);
  opened.fold(3);
  assert.equal(opened.knownKeys, 50);
  opened.add("absent");
  assert.equal(opened.knownKeys, undefined);
});

test("estimates", () => {
  const about = (estimate, keys) => {
    assert(
      estimate.standardError > 0 && estimate.standardError < Math.max(2, 0.02 * keys), `± ${estimate.standardError}`,
    );
    assert(Math.abs(estimate.keys - keys) < 4 * estimate.standardError + 1, `${estimate.keys} for ${keys}`);
  };
  const texts = [...new Set(randomTexts(30_000, 4))].slice(0, 20_000);
  const one = new BloomFilter({ expectedKeys: 20_000 }), two = new BloomFilter({ expectedKeys: 20_000 });
  about(one.estimatedKeys, 0);
  assert.equal(one.fillRatio, 0);
  assert.equal(one.estimatedFpr, 0);
  one.addAll(texts.slice(0, 12_000));
  two.addAll(texts.slice(8_000));
  about(one.estimatedKeys, 12_000);
  about(two.estimatedKeys, 12_000);
  about(one.estimatedUnion(two), 20_000);
  about(one.union(two).estimatedKeys, 20_000);
  const both = one.estimatedIntersection(two);
  assert(Math.abs(both.keys - 4_000) < 5 * both.standardError && both.standardError < 400, JSON.stringify(both));
  assert(one.fillRatio > 0.2 && one.fillRatio < 0.5);

  const full = new BloomFilter({ blocks: 1, k: 6 });
  full.addAll(texts);
  assert.equal(full.fillRatio, 1);
  assert.equal(full.estimatedFpr, 1);
  assert.equal(full.estimatedKeys, undefined);
  assert.equal(full.estimatedUnion(full), undefined);
});

// [rate or bits per key, most modules, modules, blocks, k], as in Rust.
const MODULAR_BY_RATE = {
  0: [[0.5, 4, 1, 2, 16], [1e-7, 4, 1, 2, 16]],
  100: [[0.01, 4, 1, 2, 7], [0.001, 4, 3, 2, 4], [1e-4, 4, 2, 2, 7], [1e-7, 4, 2, 4, 11]],
  12345: [
    [0.5, 4, 1, 36, 1], [0.01, 4, 2, 118, 3], [0.001, 4, 2, 178, 5], [1e-4, 4, 3, 158, 4], [1e-4, 2, 2, 240, 6],
    [1e-4, 1, 1, 536, 12], [1e-7, 4, 4, 208, 6],
  ],
  1000000: [
    [0.5, 4, 1, 2832, 1], [0.01, 4, 2, 9504, 3], [0.001, 4, 2, 14400, 5], [1e-4, 4, 3, 12840, 4],
    [1e-4, 2, 2, 19440, 6], [1e-4, 1, 1, 43200, 12], [1e-7, 4, 4, 16920, 6],
  ],
};
const MODULAR_BY_BITS = {
  0: [[0.5, 4, 1, 1, 16], [64, 3, 1, 1, 16]],
  100: [[0.5, 4, 1, 1, 4], [12, 4, 3, 1, 4], [20, 4, 4, 1, 4], [20, 2, 2, 2, 7], [64, 3, 1, 13, 16]],
  12345: [[0.5, 4, 1, 13, 1], [12, 4, 2, 145, 4], [20, 4, 3, 161, 5], [20, 2, 2, 242, 6], [64, 3, 3, 515, 11]],
  1000000: [
    [0.5, 4, 1, 977, 1], [12, 4, 2, 11719, 4], [20, 4, 3, 13021, 5], [20, 2, 2, 19532, 6], [64, 3, 3, 41667, 11],
  ],
};

test("sizes of modular filters are those of Rust", () => {
  for (const [name, table] of [["fpr", MODULAR_BY_RATE], ["bitsPerKey", MODULAR_BY_BITS]]) {
    for (const [keys, rows] of Object.entries(table)) {
      for (const [size, maxModules, modules, blocks, k] of rows) {
        const options = { expectedKeys: Number(keys), [name]: size, maxModules };
        const message = JSON.stringify(options);
        for (const made of [options, { modules, blocks, k }]) {
          const filter = new ModularBloomFilter(made);
          assert.deepEqual([filter.modules, filter.blocks, filter.k], [modules, blocks, k], message);
          assert.equal(filter.byteLength, 64 * modules * blocks, message);
          filter.free();
        }
        if (maxModules === 4) assert.equal(new ModularBloomFilter({ ...options, maxModules: undefined }).modules, modules);
      }
    }
  }
  const { modules, blocks, k, seed } = new ModularBloomFilter({ expectedKeys: 12345 });
  const [, most, ...sizes] = MODULAR_BY_RATE[12345][1];
  assert.deepEqual([4, modules, blocks, k, 0n], [most, ...sizes, seed]);
});

test("options of modular filters that are wrong", () => {
  for (const [options, message] of [
    [{ expectedKeys: 10, maxModules: 0 }, /the number of modules must be 1 to 4, not 0/],
    [{ expectedKeys: 10, bitsPerKey: 9, maxModules: 5 }, /the number of modules must be 1 to 4, not 5/],
    [{ expectedKeys: 10, maxModules: 1.5 }, /maxModules is 1.5; give a whole number/],
    [{ modules: 0, blocks: 1, k: 1 }, /the number of modules must be 1 to 16, not 0/],
    [{ modules: 17, blocks: 1, k: 1 }, /the number of modules must be 1 to 16, not 17/],
    [{ modules: 2, blocks: 0, k: 1 }, /a filter has 1 to \d+ blocks of 64 bytes/],
    [{ modules: 2, blocks: 1, k: 17 }, /1 to 16, not 17/], [{ modules: 2, k: 1 }, /blocks must be a number/],
    [{ blocks: 2, k: 1 }, /expectedKeys must be a number/], [{ expectedKeys: 10, fpr: 0 }, /a false-positive rate/],
    [{ expectedKeys: 10, fpr: 1e-13 }, /out of reach/], [{ expectedKeys: 10, bitsPerKey: 65 }, /at most 64, not 65/],
    [{ expectedKeys: 10, fpr: 0.1, bitsPerKey: 9 }, /give fpr or bitsPerKey, not both/],
    [{ expectedKeys: 10, rate: 0.1 }, /there is no option rate/], [null, /or \{ modules, blocks, k \}/],
    [{ expectedKeys: 1, seed: -1n }, /the seed is -1: give /],
  ]) {
    assert.throws(() => new ModularBloomFilter(options), { name: /Error$/, message }, JSON.stringify(options?.modules));
  }
  assert.throws(() => new ModularBloomFilter({ expectedKeys: 1, seed: 5 }), TypeError);
  assert.throws(() => new BloomFilter({ expectedKeys: 10, maxModules: 2 }), { message: /there is no option maxModules/ });
});

test("modular filters", () => {
  const texts = [...new Set(randomTexts(150_000, 4))].slice(0, 100_000);
  const size = { expectedKeys: 100_000, fpr: 0.001, seed: 7n };
  const filter = new ModularBloomFilter(size), one = new ModularBloomFilter(size), two = new ModularBloomFilter(size);
  assert(filter.modules > 1 && filter.byteLength < 0.95 * new BloomFilter(size).byteLength);
  assert.deepEqual([filter.add("ant"), filter.add("ant"), filter.has("ant"), filter.has("bee")], [true, false, true, false]);
  assert.deepEqual([filter.knownKeys, filter.seed, filter.hash("ant")], [undefined, 7n, new BloomFilter(size).hash("ant")]);
  filter.clear();
  assert.deepEqual([filter.knownKeys, filter.has("ant"), filter.estimatedFpr], [0, false, 0]);

  filter.addAll(texts);
  assert(filter.hasAll(texts).every((found) => found === 1));
  const found = filter.hasAll(Int32Array.from({ length: 400_000 }, (_, i) => i)).reduce((sum, one) => sum + one, 0);
  assert(found > 320 && found < 480, `${found} of 400,000 at 0.001`);
  assert(Math.abs(filter.estimatedFpr / 0.001 - 1) < 0.1, `${filter.estimatedFpr}`);
  const { keys, standardError } = filter.estimatedKeys;
  assert(Math.abs(keys - texts.length) < 5 * standardError && standardError < 500, `${keys} ± ${standardError}`);

  one.addAll(texts.slice(0, 60_000));
  two.addAll(texts.slice(40_000));
  const before = one.toBytes();
  assert.deepEqual(one.union(two).toBytes(), filter.toBytes());
  assert.deepEqual(one.union(one).toBytes(), before);
  assert.deepEqual(one.toBytes(), before);
  for (const [other, message] of [
    [{ ...size, seed: 0n }, /seed/], [{ modules: filter.modules, blocks: 3, k: filter.k, seed: 7n }, /blocks/],
    [{ modules: filter.modules + 1, blocks: filter.blocks, k: filter.k, seed: 7n }, /modules/],
  ]) assert.throws(() => one.union(new ModularBloomFilter(other)), { message });
  for (const other of [undefined, {}, new BloomFilter(size)]) {
    assert.throws(() => one.union(other), TypeError);
    assert.throws(() => new BloomFilter(size).union(one), TypeError);
  }

  const cold = filter.truncated(1);
  assert(cold.hasAll(texts).every((found) => found === 1) && cold.modules === 1 && cold.blocks === filter.blocks);
  assert(cold.estimatedFpr > 5 * filter.estimatedFpr);
  for (const modules of [0, filter.modules + 1]) {
    assert.throws(() => filter.truncated(modules), { message: /the number of modules must be 1 to \d, not \d/ });
  }
  assert.throws(() => filter.truncated(1.5), { message: /modules is 1.5; give a whole number/ });

  const large = new ModularBloomFilter({ modules: 3, blocks: 96, k: 4 });
  const small = new ModularBloomFilter({ modules: 3, blocks: 12, k: 4 });
  large.addAll(NUMBERS);
  small.addAll(NUMBERS);
  assert.throws(() => large.fold(5), { message: /96 blocks cannot be folded by 5/ });
  large.fold(8);
  assert.deepEqual(large.toBytes(), small.toBytes());
});
