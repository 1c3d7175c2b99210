// One key has one hash, whatever holds it: docs/format.md, "Keys of other types".

import assert from "node:assert/strict";
import test from "node:test";
import vm from "node:vm";
import { BloomFilter } from "bloomline";
import { endToEnd, filled, random, randomTexts, same } from "./support.js";

const plain = new BloomFilter({ blocks: 1, k: 6 });
const ARRAYS = [Int8Array, Int16Array, Int32Array, BigInt64Array, Uint16Array, Uint32Array, BigUint64Array];

/** A filter in which bits show whether two batches are the same keys: few of them, in many blocks. */
const ROOMY = { blocks: 5000, k: 8 };

function oneByOne(keys) {
  const filter = new BloomFilter(ROOMY);
  for (const key of keys) filter.add(key);
  return filter;
}

/** A batch sets the bits of its keys, and is answered as its keys are. */
function checkBatch(batch, keys, message) {
  const filter = oneByOne(keys);
  const from = filled(ROOMY, batch);
  same(from.toBytes(), filter.toBytes(), message);
  const half = oneByOne(keys.filter((_, i) => i % 2));
  const answers = half.hasAll(batch);
  assert.equal(answers.length, keys.length, message);
  for (const [i, key] of keys.entries()) assert.equal(Boolean(answers[i]), half.has(key), `${message}: ${i}`);
  assert(filter.hasAll(batch).every((answer) => answer === 1), message);
  for (const made of [filter, from, half]) made.free();
}

test("integers of every kind are their value", () => {
  for (const value of [0, 1, -1, 2 ** 31, -(2 ** 31), 2 ** 32, -(2 ** 32) - 1, 2 ** 53 - 1, -(2 ** 53) + 1]) {
    assert.equal(plain.hash(value), plain.hash(BigInt(value)), value);
  }
  assert.equal(plain.hash(-0), plain.hash(0n));
  assert.equal(plain.hash(-1), plain.hash(2n ** 64n - 1n));
  assert.notEqual(plain.hash(42), plain.hash("42"));
  assert.equal(plain.hash("abc"), plain.hash(Buffer.from("abc")));
});

test("no key", () => {
  const other = /is no key: give a string, a Uint8Array, an integer or a bigint/;
  const refused = [
    [
      other, null, undefined, true, {}, [], ["a"], () => 1, Symbol("a"), new Date(0), new String("a"),
      new ArrayBuffer(8),
    ],
    [other, new Float64Array(2), new Uint16Array(1), new BigInt64Array(1), new Uint8ClampedArray(1)],
    [other, new DataView(new ArrayBuffer(8))],
    [/is no safe integer: give a bigint or text/, 1.5, NaN, Infinity, -Infinity, 2 ** 53, -(2 ** 53), 1e300, -0.5],
    [
      /has a lone surrogate/, "\ud800", "\udc00", "a\udfff", "\udc00\ud800", "x".repeat(40) + "\udbff",
      "é".repeat(9) + "\ud83d",
    ],
  ];
  for (const [message, ...keys] of refused) {
    for (const key of keys) {
      const expected = { name: "TypeError", message };
      assert.throws(() => plain.has(key), expected);
      assert.throws(() => plain.add(key), expected);
      assert.throws(() => plain.hash(key), expected);
      const named = { name: "TypeError", message: new RegExp(`^keys\\[2\\]: .*${message.source}`) };
      assert.throws(() => plain.hasAll(["a", 1n, key]), named);
      assert.throws(() => plain.addAll(new Set(["a", "b", key])), named);
    }
  }
  for (const key of [2n ** 64n, -(2n ** 63n) - 1n, 2n ** 200n]) {
    assert.throws(() => plain.has(key), { name: "RangeError", message: /is no integer of 64 bits/ });
    assert.throws(() => plain.hasAll(["a", key]), { name: "RangeError", message: /^keys\[1\]: .* is no integer/ });
  }
  assert.throws(() => plain.hasAll(["a", , "b"]), { name: "TypeError", message: /^keys\[1\]: Undefined is no key/ });
});

test("a lone surrogate in a batch is found, and named", () => {
  for (const [at, batch] of [
    [0, ["\ud83d", "\ude00"]],
    [1, ["a", "b\ud83d", "\ude00c"]],
    [2, ["😀", "\ud83d\ude00", "\ude00"]],
    [1500, Object.assign(Array(2000).fill("a"), { 1500: "\ud800" })],
    [1023, Object.assign(Array(2000).fill("a"), { 1023: "a\ud83d", 1024: "\ude00" })],
    [3, [1, "a", 2, "\udc00"]],
  ]) {
    const named = { name: "TypeError", message: new RegExp(`^keys\\[${at}\\]: the text has a lone surrogate`) };
    assert.throws(() => plain.hasAll(batch), named);
    assert.throws(() => new BloomFilter(ROOMY).addAll(batch), named);
    assert.throws(() => plain.hasAll(new Set(batch)), { name: "TypeError", message: /lone surrogate/ });
  }
});

test("no list of keys", () => {
  const lists = [
    "abc", new Uint8Array(4), Buffer.from("a"), new Uint8ClampedArray(4), new Float32Array(1), new Float64Array(4),
    new DataView(new ArrayBuffer(8)), new ArrayBuffer(8), null, undefined, 3, 3n, {}, { bytes: new Uint8Array(1) },
    () => [],
  ];
  for (const keys of lists) {
    const expected = { name: "TypeError", message: /is no list of keys: give an array or / };
    assert.throws(() => plain.hasAll(keys), expected);
    assert.throws(() => plain.addAll(keys), expected);
  }
});

test("offsets that do not fit are errors", () => {
  const bytes = new Uint8Array(10);
  for (const offsets of [[0, 11], [0, 5, 4], [-1, 4], [3, 2], [0, 4, 2 ** 31 - 1], [11, 11], [-5, -1], [0, 3, -1]]) {
    const keys = { bytes, offsets: Int32Array.from(offsets) };
    assert.throws(
      () => plain.hasAll(keys), { name: "RangeError", message: /^offsets\[\d\] is -?\d+: offsets must grow/ },
    );
    assert.throws(() => new BloomFilter(ROOMY).addAll(keys), RangeError);
  }
  for (const offsets of [[], [0], [7]]) {
    assert.equal(plain.hasAll({ bytes, offsets: Uint32Array.from(offsets) }).length, 0);
  }
});

test("batches of every kind agree with single keys", () => {
  const next = random(1);
  const texts = randomTexts(5000, 2);
  checkBatch(texts, texts, "texts");
  checkBatch(new Set(texts), [...new Set(texts)], "a set");
  checkBatch({ *[Symbol.iterator]() { yield* texts; } }, texts, "a generator");
  assert.equal(plain.hasAll([]).length, 0);
  assert.equal(plain.hasAll(new Set()).length, 0);

  const mixed = texts.map((text, i) => [text, text, Buffer.from(text), i, BigInt(i) << 40n, -i][next() % 6]);
  checkBatch(mixed, mixed, "mixed");
  checkBatch([...texts, 1], [...texts, 1], "texts, then an integer");
  checkBatch([1, ...texts], [1, ...texts], "an integer, then texts");

  const strings = texts.map((text) => Buffer.from(text));
  checkBatch(endToEnd(strings), strings, "byte strings");
  for (const Type of ARRAYS) {
    const words = new Type(Uint32Array.from({ length: 5000 * (Type.BYTES_PER_ELEMENT / 4) }, next).buffer);
    checkBatch(words, Array.from(words), Type.name);
    checkBatch(words.subarray(3, 2003), Array.from(words.subarray(3, 2003)), `part of ${Type.name}`);
  }
});

test("sizes around the limits of a batch", () => {
  for (const count of [1, 2, 1022, 1023, 1024, 1025, 2047, 2048, 2049]) {
    const texts = Array.from({ length: count }, (_, i) => `${i}`);
    checkBatch(texts, texts, `${count} texts`);
    checkBatch(Int32Array.from({ length: count }, (_, i) => -i), texts.map((_, i) => -i), `${count} integers`);
    const strings = texts.map((text) => Buffer.from(text));
    checkBatch(endToEnd(strings), strings, `${count} byte strings`);
    checkBatch([...texts.slice(1), 7n], [...texts.slice(1), 7n], `${count} keys`);
  }
});

test("texts around the lengths that are copied in another way", () => {
  for (const letter of ["a", "\x7f", "\x80", "é", "߿", "ࠀ", "日", "\uffff", "😀", "\u{10ffff}"]) {
    const texts = Array.from({ length: 70 }, (_, length) => letter.repeat(length));
    for (let length = 0; length < 20; length++) texts.push("a".repeat(length) + letter, letter + "a".repeat(length));
    for (const text of texts) assert.equal(plain.hash(text), plain.hash(Buffer.from(text)));
    checkBatch(texts, texts.map((text) => Buffer.from(text)), letter);
  }
});

test("every character is its UTF-8", () => {
  const characters = [];
  for (let code = 0; code < 0x110000; code += code < 0x3000 || code > 0xd7f0 && code < 0xe010 ? 1 : 97) {
    if (code < 0xd800 || code >= 0xe000) characters.push(String.fromCodePoint(code));
  }
  checkBatch(characters, characters.map((character) => Buffer.from(character)), "characters");
});

test("typed arrays, buffers and iterables of another realm", () => {
  const other = vm.runInNewContext(`({
    key: new Uint8Array([97, 98, 99]),
    integers: [
      new Int8Array([-1, 2]), new Uint16Array([1, 65535]), new Int32Array([-1, 2]), new Uint32Array([1, 2 ** 32 - 1]),
      new BigInt64Array([-1n, 2n]), new BigUint64Array([1n, 2n ** 64n - 1n]),
    ],
    texts: ["a", "b", "é"],
    set: new Set(["a", 1, 2n]),
    strings: { bytes: new Uint8Array([97, 98, 99]), offsets: new Uint32Array([0, 1, 3]) },
    floats: new Float64Array(2),
    error: [null],
  })`);
  assert(!(other.key instanceof Uint8Array));
  assert.equal(plain.hash(other.key), plain.hash("abc"));
  for (const integers of other.integers) checkBatch(integers, Array.from(integers), "integers");
  checkBatch(other.texts, ["a", "b", "é"], "texts");
  checkBatch(other.set, ["a", 1, 2n], "set");
  checkBatch(other.strings, ["a", "bc"], "byte strings");
  checkBatch([other.key, "a"], ["abc", "a"], "array");
  assert.throws(() => plain.hasAll(other.floats), /Float64Array is no list of keys/);
  assert.throws(() => plain.hasAll(other.error), /^TypeError: keys\[0\]: Null is no key/);
});
