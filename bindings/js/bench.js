// `npm run bench`: bloomline beside two other packages, with filters of equal size. Prints a Markdown table.
//
// Each time is the best of many rounds over the same strings, and each round runs all packages.

import { readFileSync } from "node:fs";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { BloomFilter, BloomView, sizing } from "bloomline";
import BloomFilters from "bloom-filters";
import { BloomFilter as Bloomfilter } from "bloomfilter";

const KEYS = 1_000_000, LOOKUPS = 100_000, ROUNDS = 25;
// `bloom-filters` takes 50 µs per key.
const FEW = 2_000;

const { byteLength } = sizing({ expectedKeys: KEYS, fpr: 0.01 });
const BITS = 8 * byteLength, K = Math.round((BITS / KEYS) * Math.LN2);

// Flat strings: V8 would else build each one up when it is first read.
const flat = (text) => Buffer.from(text).toString();
const SHAPES = {
  "10 characters": (i) => flat(Math.imul(i, 0x9e3779b1).toString(16).padStart(10, "key-user-0")),
  "URLs of 40": (i) => flat(`https://example.org/articles/${String(i).padStart(11, "0")}`),
};

/** The best of ROUNDS times of each function, in nanoseconds per unit. All functions run in every round. */
function best(runs) {
  const times = runs.map(() => Infinity);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, { units, run }] of runs.entries()) {
      const start = process.hrtime.bigint();
      run();
      times[i] = Math.min(times[i], Number(process.hrtime.bigint() - start) / units);
    }
  }
  return times;
}

function each(keys, call) {
  let count = 0;
  for (let i = 0; i < keys.length; i++) if (call(keys[i])) count++;
  return count;
}

const table = [];
const time = (ns) => (ns < 1000 ? `${ns < 10 ? ns.toFixed(1) : ns.toFixed(0)} ns` : `${(ns / 1000).toFixed(1)} µs`);
const size = (bytes) => (bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(2)} MB`);

for (const [shape, make] of Object.entries(SHAPES)) {
  const ours = new BloomFilter({ expectedKeys: KEYS, fpr: 0.01 });
  const one = new Bloomfilter(BITS, K), two = new BloomFilters.BloomFilter(BITS, K);
  const keys = Array.from({ length: LOOKUPS }, (_, i) => make(i % 2 ? i : KEYS * 2 + i));
  for (let i = 1; i < 2 * KEYS; i += 2) {
    const key = make(i);
    ours.add(key);
    one.add(key);
    if (i < FEW) two.add(key);
  }
  // The other keys of `bloom-filters`, which it would take a minute to add: as many bits.
  const { array } = two._filter;
  array.set(new Uint8Array(one.buckets.buffer).subarray(0, array.length).map((byte, i) => byte | array[i]));

  const few = keys.slice(0, FEW);
  const found = [each(keys, (key) => ours.has(key)), each(keys, (key) => one.test(key))];
  const batch = ours.hasAll(keys).reduce((sum, found) => sum + found, 0);
  if (batch !== found[0] || found.some((count) => count < LOOKUPS / 2 || count > 0.51 * LOOKUPS)) {
    throw new Error(`found ${found}`);
  }
  if (each(few, (key) => two.has(key)) < FEW / 2) throw new Error("bloom-filters lost keys");

  const [has, oneTest, twoHas, hasAll] = best([
    { units: LOOKUPS, run: () => each(keys, (key) => ours.has(key)) },
    { units: LOOKUPS, run: () => each(keys, (key) => one.test(key)) },
    { units: FEW / 10, run: () => each(few.slice(0, FEW / 10), (key) => two.has(key)) },
    { units: LOOKUPS, run: () => ours.hasAll(keys) },
  ]);
  table.push([`\`has\`, ${shape}`, time(has), time(oneTest), time(twoHas)]);
  table.push([`\`hasAll\` of 100,000, ${shape}`, time(hasAll), "", ""]);
  if (shape === Object.keys(SHAPES)[0]) {
    const jsons = [JSON.stringify(Array.from(one.buckets)), JSON.stringify(two.saveAsJSON())];
    const sizes = jsons.map((json) => `${size(json.length)}, JSON`);
    table.push(["file of 1 million keys, 1%", size(ours.toBytes().length), ...sizes]);
  }
}

const large = new BloomFilter({ blocks: Math.ceil(10e6 / 64), k: K });
large.addAll(BigUint64Array.from({ length: KEYS * 8 }, (_, i) => BigInt(i)));
const bytes = large.toBytes();
const one = new Bloomfilter(8 * large.byteLength, K), two = new BloomFilters.BloomFilter(8 * large.byteLength, K);
one.buckets.set(new Uint32Array(bytes.buffer, 0, one.buckets.length));
two._filter.array.set(bytes.subarray(0, two._filter.array.length));
const jsons = [JSON.stringify(Array.from(one.buckets)), JSON.stringify(two.saveAsJSON())];
const opened = best([
  { units: 1e6, run: () => new BloomView(bytes).free() },
  { units: 1e6, run: () => new Bloomfilter(JSON.parse(jsons[0]), K) },
  { units: 1e6, run: () => BloomFilters.BloomFilter.fromJSON(JSON.parse(jsons[1])) },
]);
table.push(["open 10 MB", ...opened.map((ms) => `${ms.toFixed(1)} ms`)]);

const code = readFileSync(fileURLToPath(import.meta.resolve("bloomline")));
table.push(["code, gzipped", size(gzipSync(code, { level: 9 }).length), "", ""]);

console.log("| | bloomline | `bloomfilter` 1.1.0 | `bloom-filters` 3.0.4 |\n|---|---:|---:|---:|");
for (const row of table) console.log(`| ${row.join(" | ")} |`);
console.log(`\n${cpus()[0].model.trim()}, Node ${process.versions.node}, ${new Date().toISOString().slice(0, 7)}`);
