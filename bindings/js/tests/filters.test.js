// Sizes, options, and what a filter says of its keys.

import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import { BloomFilter, BloomView, FilterBank, sizing } from "bloomline";
import { ANIMALS, NUMBERS, filled, golden } from "./support.js";

test("a size says what its filter will be", () => {
  for (const size of [
    { expectedKeys: 0 }, { expectedKeys: 12_345, fpr: 1e-4, mostModules: 4 }, { expectedKeys: 9, bitsPerKey: 20 },
  ]) {
    const planned = sizing(size), { blocks, nModules, k } = planned;
    assert.equal(planned.bitsPerKey, (512 * blocks) / Math.max(size.expectedKeys, 1));
    if (size.fpr) assert(planned.fpr <= size.fpr && planned.fpr > 0);
    assert.deepEqual(sizing({ blocks, nModules, k }), { blocks, nModules, k, byteLength: 64 * blocks });
  }
  const defaults = { expectedKeys: 12_345, fpr: undefined, mostModules: undefined };
  assert.deepEqual(sizing(defaults), sizing({ expectedKeys: 12_345, fpr: 0.01 }));
  // `bloomline plan --keys 1e6 --fpr 1% --as-json`
  assert.equal(sizing({ expectedKeys: 1_000_000, fpr: 0.01 }).fpr, 0.009917600498970763);
});

test("options that are wrong", () => {
  const whole = /give a whole number from 0 to 4294967295/;
  for (const [options, message] of [
    [{ expectedKeys: 10, mostModules: 1.5 }, /mostModules is 1.5: give a whole number/],
    [{ blocks: 5, nModules: 2, k: 1 }, /5 blocks cannot be divided among 2 modules/],
    [{ blocks: 0, nModules: 0, k: 1 }, /a filter has 1 to/], [{ blocks: 1, nModules: -1, k: 1 }, /nModules is -1: /],
    // These would be ignored.
    [{ expectedKeys: 10, nModules: 1 }, /there is no option nModules beside expectedKeys/],
    [{ blocks: 1, k: 1, fpr: 0.1 }, /there is no option fpr beside blocks/],
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

test("estimates are passed on", () => {
  const size = { blocks: 1000, k: 6 };
  const [one, two, both] = [NUMBERS.slice(0, 600), NUMBERS.slice(400), NUMBERS].map((keys) => filled(size, keys));
  for (const [{ keys, standardError }, expected] of [
    [one.estimatedKeys, 600], [one.estimatedUnion(two), 1000], [one.estimatedIntersection(two), 200],
  ]) assert(Math.abs(keys - expected) < 5 * standardError && standardError > 0 && standardError < 40, `${keys}`);
  assert.deepEqual(one.estimatedUnion(two), both.estimatedKeys);
  assert(one.fillRatio > 0.006 && one.fillRatio < 0.008 && one.estimatedFpr < 1e-6 && one.estimatedFpr > 0);
  const full = filled({ blocks: 1, k: 6 }, NUMBERS);
  assert.deepEqual([full.fillRatio, full.estimatedFpr], [1, 1]);
  assert.deepEqual([full.estimatedKeys, full.estimatedUnion(full)], [undefined, undefined]);
});
