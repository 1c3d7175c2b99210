// The same answers and bytes as Rust: through the bloomline command, whose path is in BLOOMLINE_CLI.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { BloomFilter, BloomView } from "bloomline";
import { SKIP, bloomline, lines, random, randomTexts, scratch } from "./support.js";

/** The lines of the keys that are possibly present, one by one and in batches, which must agree. */
function answers(filter, keys) {
  const found = filter.hasAll(keys);
  for (let i = 0; i < keys.length; i++) {
    if (filter.has(keys[i]) !== Boolean(found[i])) assert.fail(`has and hasAll differ for key ${i}`);
  }
  return keys.filter((_, i) => found[i]);
}

test("files of every rate and size open as a BloomFilter, and answer as their writer", { skip: SKIP }, (t) => {
  const path = join(scratch(t), "filter");
  const modules = new Set();
  for (const fpr of [0.01, 0.001, 0.0001, 1e-6]) {
    for (const count of [100, 100_000]) {
      const what = `${count} keys, ${fpr}`;
      const keys = Array.from({ length: count + 100_000 }, (_, i) => `key ${i}`), present = keys.slice(0, count);
      const check = (filter, expected) => {
        const found = answers(filter, keys);
        assert.deepEqual(found.slice(0, count), present, what);
        assert(found.length - count <= 150_000 * fpr + 5, `${what}: ${found.length - count} false positives`);
        assert(lines(found).equals(expected), what);
        modules.add(filter.nModules);
        filter.free();
      };
      const filter = new BloomFilter({ expectedKeys: count, fpr });
      filter.addAll(present);
      writeFileSync(path, filter.toBytes());
      const ours = bloomline(["check", path], lines(keys));
      check(BloomFilter.fromBytes(readFileSync(path)), ours);
      check(filter, ours);

      bloomline(["build", "-q", "--fpr", String(fpr), "-o", path], lines(present));
      check(BloomFilter.fromBytes(readFileSync(path)), bloomline(["check", path], lines(keys)));
    }
  }
  assert.deepEqual([...modules].sort(), [1, 2]);
});

test("a million texts of all planes", { skip: SKIP }, (t) => {
  const path = join(scratch(t), "theirs");
  const texts = randomTexts(1_000_000, 5);
  const present = texts.filter((_, i) => i % 2);
  // A high rate: every other absent key tells whether the bits are the same.
  bloomline(["build", "-q", "-o", path, "--keys", String(present.length), "--fpr", "30%"], lines(present));
  const view = new BloomView(readFileSync(path));
  const found = answers(view, texts);
  assert(found.length > 550_000 && found.length < 750_000, `${found.length} found`);
  assert(lines(found).equals(bloomline(["check", path], lines(texts))));

  const filter = new BloomFilter({ expectedKeys: present.length, fpr: 0.3 });
  filter.addAll(present);
  assert(Buffer.from(filter.toBytes()).equals(readFileSync(path)));
  filter.clear();
  for (const key of present) filter.add(key);
  assert(Buffer.from(filter.toBytes()).equals(readFileSync(path)));
});

test("a million integers of all widths", { skip: SKIP }, (t) => {
  const path = join(scratch(t), "theirs");
  const next = random(6);
  const integers = Array.from({ length: 1_000_000 }, () => {
    const bits = (BigInt(next()) << 32n) | BigInt(next());
    const integer = BigInt.asIntN((next() % 64) + 1, bits);
    if (integer >= -(2n ** 53n) + 1n && integer < 2n ** 53n && next() % 2) return Number(integer);
    return next() % 2 ? integer : BigInt.asUintN(64, integer);
  });
  const present = integers.filter((_, i) => i % 2);
  bloomline(["build", "-q", "--integers", "-o", path, "--keys", "500000", "--fpr", "30%"], lines(present));
  const expected = bloomline(["check", "--integers", path], lines(integers));
  const view = new BloomView(readFileSync(path));
  assert(lines(answers(view, integers)).equals(expected));

  const words = BigInt64Array.from(integers, (integer) => BigInt.asIntN(64, BigInt(integer)));
  const unsigned = new BigUint64Array(words.buffer);
  const found = view.hasAll(integers);
  assert(Buffer.from(view.hasAll(words)).equals(found) && Buffer.from(view.hasAll(unsigned)).equals(found));

  const filter = new BloomFilter({ expectedKeys: 500_000, fpr: 0.3 });
  filter.addAll(present);
  assert(Buffer.from(filter.toBytes()).equals(readFileSync(path)));
  filter.clear();
  filter.addAll(words.filter((_, i) => i % 2));
  assert(Buffer.from(filter.toBytes()).equals(readFileSync(path)));
});
