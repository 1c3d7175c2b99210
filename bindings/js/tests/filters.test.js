// Sizes, options, and what a filter says of its keys.

import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import { BloomFilter, BloomView, FilterBank, sizing } from "bloomline";
import { ANIMALS, NUMBERS, golden, randomTexts } from "./support.js";

/** [size, blocks, nModules, k], as in Rust, with the size of `mostModules` from `for_fpr_within`. */
const SIZES = [
  [{ expectedKeys: 0, fpr: 0.5 }, 2, 1, 16], [{ expectedKeys: 12345, fpr: 1e-7, mostModules: 1 }, 1224, 1, 16],
  [{ expectedKeys: 10_000_000, fpr: 0.003 }, 250560, 1, 8], [{ expectedKeys: 1_000_000 }, 19440, 1, 6],
  [{ expectedKeys: 1_000_000, fpr: undefined }, 19440, 1, 6], [{ expectedKeys: 0, bitsPerKey: 64 }, 1, 1, 16],
  [{ expectedKeys: 12345, bitsPerKey: 9.6 }, 232, 1, 6], [{ expectedKeys: 10_000_000, bitsPerKey: 14.5 }, 283204, 1, 8],
  [{ expectedKeys: 12345, fpr: 1e-4 }, 480, 2, 6],
  [{ expectedKeys: 12345, fpr: 1e-4, mostModules: undefined }, 480, 2, 6],
  [{ expectedKeys: 12345, fpr: 1e-4, mostModules: 4 }, 474, 3, 4],
  [{ expectedKeys: 1_000_000, bitsPerKey: 20 }, 39064, 2, 6],
  [{ expectedKeys: 1_000_000, bitsPerKey: 20, mostModules: 1 }, 39063, 1, 11],
];

test("sizes are those of Rust", () => {
  for (const [size, blocks, nModules, k] of SIZES) {
    const message = JSON.stringify(size), planned = sizing(size), filter = new BloomFilter(size);
    for (const made of [planned, filter, new BloomFilter({ blocks, nModules, k })]) {
      const { byteLength } = made;
      assert.deepEqual([made.blocks, made.nModules, made.k, byteLength], [blocks, nModules, k, 64 * blocks], message);
    }
    assert.equal(planned.bitsPerKey, (512 * blocks) / Math.max(size.expectedKeys, 1), message);
    if (size.fpr) assert(planned.fpr <= size.fpr && planned.fpr > 0, message);
    filter.free();
  }
  // `bloomline plan --keys 1e6 --fpr 1% --json`
  assert.equal(sizing({ expectedKeys: 1_000_000, fpr: 0.01 }).fpr, 0.009917600498970763);
  assert.deepEqual(sizing({ blocks: 10, k: 3 }), { blocks: 10, nModules: 1, k: 3, byteLength: 640 });
});

test("options that are wrong", () => {
  const rate = /a false-positive rate must be between 0 and 1, both excluded/;
  const whole = /give a whole number from 0 to 4294967295/;
  for (const [options, message] of [
    [{ expectedKeys: 10, fpr: 0 }, rate], [{ expectedKeys: 10, fpr: 1 }, rate], [{ expectedKeys: 10, fpr: -1 }, rate],
    [{ expectedKeys: 10, fpr: NaN }, rate],
    [{ expectedKeys: 10, fpr: 1e-13 }, /a false-positive rate of 1e-13 is out of reach/],
    [{ expectedKeys: 10, fpr: 1e-9, mostModules: 1 }, /out of reach: request at least 1.263e-8/],
    [{ expectedKeys: 10, mostModules: 0 }, /the number of modules must be 1 to 16, not 0/],
    [{ expectedKeys: 10, bitsPerKey: 9, mostModules: 17 }, /the number of modules must be 1 to 16, not 17/],
    [{ expectedKeys: 10, mostModules: 1.5 }, /mostModules is 1.5: give a whole number/],
    [{ blocks: 5, nModules: 2, k: 1 }, /5 blocks cannot be divided among 2 modules/],
    [{ blocks: 0, nModules: 0, k: 1 }, /a filter has 1 to/], [{ blocks: 1, nModules: -1, k: 1 }, /nModules is -1: /],
    // These would be ignored.
    [{ expectedKeys: 10, nModules: 1 }, /there is no option nModules beside expectedKeys/],
    [{ blocks: 1, k: 1, fpr: 0.1 }, /there is no option fpr beside blocks/],
    [{ expectedKeys: 10, bitsPerKey: 0 }, /bits per key must be above 0 and at most 64, not 0/],
    [{ expectedKeys: 10, bitsPerKey: 65 }, /bits per key must be above 0 and at most 64, not 65/],
    [{ expectedKeys: 10, bitsPerKey: NaN }, /bits per key must be above 0/],
    [{ expectedKeys: -1 }, /expectedKeys is -1: /], [{ expectedKeys: 1.5 }, /expectedKeys is 1.5: /],
    [{ expectedKeys: 2 ** 32 }, whole], [{ expectedKeys: NaN }, whole], [{ expectedKeys: Infinity }, whole],
    [{}, /expectedKeys is undefined: give a whole number/], [{ blocks: 1 }, /k is undefined: give a whole number/],
    [{ expectedKeys: 10, bitsPerKey: undefined }, /bitsPerKey is undefined: give a number, such as 10/],
    [{ blocks: 0, k: 6 }, /a filter has 1 to \d+ blocks of 64 bytes/], [{ blocks: 1.5, k: 6 }, /blocks is 1.5: /],
    [{ blocks: 2 ** 31, k: 6 }, /a filter has 1 to \d+ blocks/], [{ blocks: 2 ** 32, k: 6 }, /blocks is 4294967296: /],
    [{ blocks: 1, k: 0 }, /probes per key must be 1 to 16, not 0/], [{ blocks: 1, k: 17 }, /1 to 16, not 17/],
    [{ expectedKeys: 2 ** 32 - 1, fpr: 1e-5 }, /exceed this machine's address space/],
  ]) {
    assert.throws(() => new BloomFilter(options), { name: /Error$/, message }, JSON.stringify(options));
    assert.throws(() => sizing(options), { name: /Error$/, message }, JSON.stringify(options));
  }
  for (const options of [undefined, null, 10, "10", { expectedKeys: 10, fpr: 0.1, bitsPerKey: 8 }]) {
    assert.throws(() => new BloomFilter(options), TypeError);
    assert.throws(() => sizing(options), TypeError);
  }
  for (const seed of [-1n, 2n ** 64n]) {
    assert.throws(
      () => new BloomFilter({ expectedKeys: 1, seed }), { name: "RangeError", message: /^seed is -?\d+n: give / },
    );
  }
  assert.throws(() => BloomFilter({ expectedKeys: 1 }), TypeError);
});

/** What is no number, but JavaScript would convert or take as 0, and how errors show it. */
const NO_NUMBERS = [
  ["1%", 'the text "1%"'], ["10", 'the text "10"'], ["250M", 'the text "250M"'], ["", 'the text ""'], [10n, "10n"],
  [null, "null"], [true, "true"], [[10], "an object"], [new Date(0), "an object"],
];

test("options of other types are errors that say what to write", () => {
  const whole = "a whole number from 0 to 4294967295";
  for (const [options, name, what] of [
    [{}, "expectedKeys", whole], [{ expectedKeys: 10 }, "fpr", "a number, such as 0.01 for 1%"],
    [{ expectedKeys: 10 }, "bitsPerKey", "a number, such as 10"], [{ expectedKeys: 10 }, "mostModules", whole],
    [{ k: 6 }, "blocks", whole], [{ blocks: 2 }, "k", whole], [{ blocks: 2, k: 6 }, "nModules", whole],
  ]) {
    for (const [value, shown] of NO_NUMBERS) {
      const wrong = { ...options, [name]: value };
      const error = { name: "TypeError", message: `${name} is ${shown}: give ${what}` };
      assert.throws(() => new BloomFilter(wrong), error);
      assert.throws(() => sizing(wrong), error);
    }
  }
  const filter = new BloomFilter({ blocks: 10, k: 6 });
  for (const [value, shown] of NO_NUMBERS) {
    assert.throws(() => filter.fold(value), { name: "TypeError", message: `factor is ${shown}: give ${whole}` });
  }
  const seeds = NO_NUMBERS.filter(([value]) => typeof value !== "bigint");
  for (const [value, shown] of [...seeds, [7, "7"], [7.5, "7.5"]]) {
    const message = `seed is ${shown}: give a bigint from 0n to 2n ** 64n - 1n`;
    assert.throws(() => new BloomFilter({ expectedKeys: 1, seed: value }), { name: "TypeError", message });
  }
});

test("consoles show what a filter is", () => {
  const shown = (made) => inspect(made, { breakLength: Infinity }).replace(/, raw: \w+ { __wbg_ptr: \d+ }/, "");
  const filter = new BloomFilter({ expectedKeys: 1_000_000, fpr: 1e-4, seed: 7n });
  assert.equal(shown(filter), "BloomFilter { blocks: 38880, nModules: 2, k: 6, byteLength: 2488320, seed: 7n }");
  assert.equal(shown(new BloomView(filter.toBytes())), shown(filter).replace("Filter", "View"));
  filter.fold(2);
  assert.equal(shown(filter), "BloomFilter { blocks: 19440, nModules: 2, k: 6, byteLength: 1244160, seed: 7n }");
  const bank = new FilterBank(golden("bank-3-slots.bin"));
  assert.equal(shown(bank), "FilterBank { slots: 3, blocks: 1, k: 6, byteLength: 664, seed: 0n }");
  assert.deepEqual([filter, bank].map(String), ["[object BloomFilter]", "[object FilterBank]"]);
  // What they show is not all that they are.
  const [one, two] = [1, 2].map((key) => (filter.add(key), filter.union(filter)));
  assert.notDeepEqual(one, two);
});

test("JSON refuses a filter, and says what to store", () => {
  const filter = new BloomFilter({ expectedKeys: 10 });
  for (const made of [filter, new BloomView(filter.toBytes()), new FilterBank(golden("bank-3-slots.bin"))]) {
    const message = `a ${made.constructor.name} is bytes, which JSON cannot hold: store toBytes(), or the file it is from`;
    assert.throws(() => JSON.stringify({ made }), { name: "TypeError", message });
  }
});

test("seeds", () => {
  for (const seed of [0n, 1n, 2n ** 64n - 1n]) {
    const filter = new BloomFilter({ expectedKeys: 10, seed });
    assert.equal(filter.seed, seed);
    assert.equal(new BloomView(filter.toBytes()).seed, seed);
    assert.equal(filter.hash("a") === new BloomFilter({ expectedKeys: 10 }).hash("a"), seed === 0n);
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
    [{ blocks: one.blocks, nModules: 2, k: one.k, seed: 7n }, /filters of 1 and 2 modules cannot be combined/],
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
  const large = new BloomFilter({ blocks: 96, k: 6 }), small = new BloomFilter({ blocks: 12, k: 6 });
  large.addAll(NUMBERS);
  small.addAll(NUMBERS);
  for (const [factor, message] of [
    [5, /96 blocks cannot be folded by 5: use a factor that divides 96/], [0, /cannot be folded by 0/],
    [1.5, /factor is 1.5: give a whole number/], [-2, /factor is -2: /], [NaN, /factor is NaN/],
  ]) assert.throws(() => large.fold(factor), { message });
  assert.equal(large.blocks, 96);
  large.fold(8);
  assert.equal(large.blocks, 12);
  assert.deepEqual(large.toBytes(), small.toBytes());

  // An opened filter is copied before its first change.
  const opened = BloomFilter.fromBytes(golden("standalone-100-blocks.bin"));
  opened.fold(4);
  assert.equal(opened.blocks, 25);
  assert(opened.hasAll(NUMBERS).every((found) => found === 1));
});

test("clear", () => {
  for (const filter of [
    new BloomFilter({ blocks: 1, k: 6 }), BloomFilter.fromBytes(golden("standalone-short-2.bin")),
    BloomFilter.fromBytes(golden("standalone-modules-empty.bin")),
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
  const about = ({ keys, standardError }, expected, error) => {
    assert(Math.abs(keys - expected) < 5 * standardError + 1 && standardError > 0 && standardError < error, `${keys}`);
  };
  const texts = [...new Set(randomTexts(30_000, 4))].slice(0, 20_000);
  const one = new BloomFilter({ expectedKeys: 20_000 }), two = new BloomFilter({ expectedKeys: 20_000 });
  about(one.estimatedKeys, 0, 2);
  assert.deepEqual([one.fillRatio, one.estimatedFpr], [0, 0]);
  one.addAll(texts.slice(0, 12_000));
  two.addAll(texts.slice(8_000));
  about(one.estimatedKeys, 12_000, 240);
  about(one.estimatedUnion(two), 20_000, 400);
  about(one.estimatedIntersection(two), 4_000, 400);
  assert(one.fillRatio > 0.2 && one.fillRatio < 0.5);

  const full = new BloomFilter({ blocks: 1, k: 6 });
  full.addAll(texts);
  assert.deepEqual([full.fillRatio, full.estimatedFpr], [1, 1]);
  assert.deepEqual([full.estimatedKeys, full.estimatedUnion(full)], [undefined, undefined]);
});
