// The same answers and bytes as Rust: through the bloomline command, whose path is in BLOOMLINE_CLI.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { BloomView } from "bloomline";
import { SKIP, bloomline, filled, lines, random, randomTexts, same, scratch } from "./support.js";

/** The lines of the keys that are possibly present, one by one and in batches, which must agree. */
function answers(filter, keys) {
  const found = filter.hasAll(keys);
  for (let i = 0; i < keys.length; i++) {
    if (filter.has(keys[i]) !== Boolean(found[i])) assert.fail(`has and hasAll differ for key ${i}`);
  }
  return keys.filter((_, i) => found[i]);
}

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

  const filter = filled({ expectedKeys: present.length, fpr: 0.3 }, present);
  same(filter.toBytes(), readFileSync(path));
  filter.clear();
  for (const key of present) filter.add(key);
  writeFileSync(path, filter.toBytes());
  same(view.toBytes(), filter.toBytes());
  assert(lines(found).equals(bloomline(["check", path], lines(texts))));
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

  for (const batch of [present, words.filter((_, i) => i % 2)]) {
    same(filled({ expectedKeys: 500_000, fpr: 0.3 }, batch).toBytes(), readFileSync(path));
  }
});
