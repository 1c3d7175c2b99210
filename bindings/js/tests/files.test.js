// Bytes in every kind of buffer, and what is no bytes. What files hold is in goldens.test.js.

import assert from "node:assert/strict";
import test from "node:test";
import { BloomFilter, BloomView, FilterBank } from "bloomline";
import { golden } from "./support.js";

test("bytes in every kind of buffer are copied", () => {
  const bytes = golden("standalone-short-2.bin");
  const room = new Uint8Array(bytes.length + 7);
  room.set(bytes, 3);
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  for (const source of [
    bytes, bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), Buffer.from(bytes),
    room.subarray(3, 3 + bytes.length), new DataView(room.buffer, 3, bytes.length), shared,
  ]) {
    const view = new BloomView(source), filter = BloomFilter.fromBytes(source);
    assert.deepEqual(view.toBytes(), bytes);
    assert.deepEqual(filter.toBytes(), bytes);
  }
  const filter = BloomFilter.fromBytes(room.subarray(3, 3 + bytes.length));
  room.fill(0);
  const view = new BloomView(filter.toBytes());
  filter.add("dog");
  assert(filter.has("dog") && filter.has("ant") && !view.has("dog") && view.has("ant"));
  assert(!("add" in view));
});

test("wrong arguments are TypeErrors", () => {
  for (const source of [undefined, null, "abc", 5, 5n, {}, [1, 2], true]) {
    for (const open of [
      () => new BloomView(source), () => BloomFilter.fromBytes(source), () => new FilterBank(source),
    ]) {
      assert.throws(open, { name: "TypeError" }, `${typeof source} ${source}`);
    }
  }
});

test("what is no key is an error of find", () => {
  const bank = new FilterBank(golden("bank-3-slots.bin"));
  assert.deepEqual([bank.find("boa"), bank.find(7), bank.find(-1n)], [[1, 2], [], []]);
  assert.throws(() => bank.find(1.5), { name: "TypeError", message: /1.5 is no safe integer/ });
  assert.throws(() => bank.find("\ud800"), { name: "TypeError", message: /lone surrogate/ });
});
