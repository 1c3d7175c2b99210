// The same answers and bytes as Rust: through the bloomline command, whose path is in BLOOMLINE_CLI.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { BloomFilter, BloomView, ModularBloomFilter } from "bloomline";
import { SKIP, bloomline, endToEnd, lines, random, randomTexts, scratch } from "./support.js";

/** The lines of the keys that are possibly present, one by one and in batches, which must agree. */
function answers(filter, keys) {
  const found = filter.hasAll(keys);
  for (let i = 0; i < keys.length; i++) {
    if (filter.has(keys[i]) !== Boolean(found[i])) assert.fail(`has and hasAll differ for key ${i}`);
  }
  return keys.filter((_, i) => found[i]);
}

test("a million texts of all planes", { skip: SKIP }, (t) => {
  const folder = scratch(t), path = join(folder, "theirs"), ours = join(folder, "ours");
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
  writeFileSync(ours, filter.toBytes());
  assert(readFileSync(ours).equals(readFileSync(path)));
  assert(lines(found).equals(bloomline(["check", ours], lines(texts))));
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

test("byte strings", { skip: SKIP }, (t) => {
  const path = join(scratch(t), "theirs");
  const next = random(7);
  for (const length of [1, 3, 8, 16, 17, 49, 200]) {
    const keys = Array.from({ length: 20_000 }, () => Buffer.from(Uint8Array.from({ length }, next)));
    const present = keys.filter((_, i) => i % 2);
    bloomline(
      ["build", "-q", "--length", `${length}`, "-o", path, "--keys", "10000", "--fpr", "30%"], Buffer.concat(present),
    );
    const view = new BloomView(readFileSync(path));
    const found = view.hasAll(endToEnd(keys));
    assert.deepEqual(view.hasAll(keys), found);
    const expected = bloomline(["check", "--length", `${length}`, path], Buffer.concat(keys));
    assert(Buffer.concat(keys.filter((_, i) => found[i])).equals(expected));

    const filter = new BloomFilter({ expectedKeys: 10_000, fpr: 0.3 });
    filter.addAll(endToEnd(present));
    assert(Buffer.from(filter.toBytes()).equals(readFileSync(path)));
  }
});

test("modular filters", { skip: SKIP }, (t) => {
  const path = join(scratch(t), "ours");
  const texts = randomTexts(300_000, 9);
  // A high rate: every other absent key tells whether the bits are the same.
  const filter = new ModularBloomFilter({ modules: 3, blocks: 600, k: 1 });
  filter.addAll(texts.filter((_, i) => i % 2));
  writeFileSync(path, filter.toBytes());
  const found = answers(filter, texts);
  assert(found.length > 160_000 && found.length < 290_000, `${found.length} found`);
  assert(lines(found).equals(bloomline(["check", path], lines(texts))));
});

test("sizes and facts", { skip: SKIP }, (t) => {
  const path = join(scratch(t), "ours");
  for (const expectedKeys of [1, 10, 333, 5_000, 77_777, 2_000_000]) {
    for (const fpr of [0.2, 0.01, 0.0001]) {
      const options = { expectedKeys, fpr };
      const filter = new BloomFilter(options);
      filter.add("a");
      writeFileSync(path, filter.toBytes());
      const facts = JSON.parse(bloomline(["info", "--json", path]));
      assert.deepEqual([facts.blocks, facts.k], [filter.blocks, filter.k], JSON.stringify(options));
      const planned = JSON.parse(bloomline(["plan", "--json", "--keys", `${expectedKeys}`, "--fpr", `${fpr}`]));
      assert.deepEqual([planned.blocks, planned.k], [filter.blocks, filter.k], JSON.stringify(options));
      filter.free();
    }
  }
});

test("merges and folds", { skip: SKIP }, (t) => {
  const folder = scratch(t);
  const path = (name) => join(folder, name);
  const texts = randomTexts(3000, 8);
  const parts = [0, 1, 2].map((part) => {
    const filter = new BloomFilter({ blocks: 96, k: 7 });
    filter.addAll(texts.filter((_, i) => i % 3 === part));
    writeFileSync(path(`${part}`), filter.toBytes());
    return filter;
  });
  bloomline(["merge", "-q", "-o", path("merged"), path("0"), path("1"), path("2")]);
  const union = parts[0].union(parts[1]).union(parts[2]);
  assert(readFileSync(path("merged")).equals(union.toBytes()));
  bloomline(["fold", "-q", "-o", path("folded"), "--factor", "8", path("merged")]);
  union.fold(8);
  assert(readFileSync(path("folded")).equals(union.toBytes()));
});
