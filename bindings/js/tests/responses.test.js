// fromResponse: bodies in odd chunks, headers that are wrong, and failures.

import assert from "node:assert/strict";
import test from "node:test";
import { BloomFilter, BloomView, FilterBank } from "bloomline";
import { NUMBERS, golden } from "./support.js";

const bytes = golden("standalone-100-blocks.bin");

/** A body of these bytes, in chunks of these lengths, over and over. */
function stream(bytes, ...lengths) {
  let at = 0, chunk = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      const length = lengths[chunk++ % lengths.length];
      controller.enqueue(bytes.slice(at, at + length));
      at += length;
    },
  });
}

function respond(body, headers = {}, options = {}) {
  return new Response(body, { ...options, headers });
}

async function check(response, options) {
  const view = await BloomView.fromResponse(response, options);
  assert.deepEqual(view.toBytes(), bytes);
  assert(view.hasAll(NUMBERS).every((found) => found === 1));
  view.free();
}

/** The error of `response`, which is no trap. */
async function refused(response, options) {
  for (const Class of [BloomView, BloomFilter, FilterBank]) {
    try {
      await Class.fromResponse(response.clone(), options);
    } catch (error) {
      assert(error instanceof Error && !(error instanceof WebAssembly.RuntimeError), String(error));
      if (Class === FilterBank) return error;
      continue;
    }
    assert.fail(`${Class.name}: no error`);
  }
}

test("chunks of every length", async () => {
  for (const lengths of [[1], [7], [64, 1, 1000], [bytes.length], [bytes.length - 1, 1], [1, 2, 3, 4000], [6400, 64]]) {
    await check(respond(stream(bytes, ...lengths)));
    await check(respond(stream(bytes, ...lengths), { "content-length": String(bytes.length) }));
  }
  await check(new Response(bytes));
  await check(new Response(new Blob([bytes])));
});

test("a wrong content-length is no harm", async () => {
  for (const length of [
    "0", "1", "63", String(bytes.length - 1), String(bytes.length + 1), "100000", "4000000000", "4294967296",
    "99999999999999999999", "-5", "abc", "1.5", "Infinity", "NaN", "", "1e9",
  ]) {
    await check(respond(stream(bytes, 1000), { "content-length": length }));
  }
});

test("a FilterBank, and BloomFilters of one and several modules", async () => {
  const bank = await FilterBank.fromResponse(respond(stream(golden("bank-3-slots.bin"), 100)));
  assert.deepEqual(bank.find("boa"), [1, 2]);
  const filter = await BloomFilter.fromResponse(respond(stream(bytes, 100)));
  assert(filter instanceof BloomFilter);
  filter.add("absent");
  assert(filter.has("absent") && filter.has("7"));
  const three = await BloomFilter.fromResponse(respond(stream(golden("standalone-3-modules.bin"), 100)));
  assert(three.nModules === 3 && three.hasAll(NUMBERS.slice(0, 500)).every((found) => found === 1));
});

test("progress", async () => {
  const progress = async (headers, ...lengths) => {
    const calls = [];
    await check(respond(stream(bytes, ...lengths), headers), { onProgress: (...call) => calls.push(call) });
    return calls;
  };
  const total = bytes.length;
  const lengths = { "content-length": String(total) };
  assert.deepEqual(await progress(lengths, 3000), [[3000, total], [6000, total], [total, total]]);
  assert.deepEqual(await progress({}, 6000), [[6000, undefined], [total, undefined]]);
  // The length of compressed bytes says nothing of the bytes that arrive.
  assert.deepEqual(
    await progress({ ...lengths, "content-encoding": "gzip" }, 6000), [[6000, undefined], [total, undefined]],
  );
  // A length that was passed was no total.
  assert.deepEqual(
    await progress({ "content-length": "4000" }, 3000), [[3000, 4000], [6000, undefined], [total, undefined]],
  );
});

test("an onProgress that throws ends the transfer", async () => {
  let cancelled;
  const body = new ReadableStream({
    pull: (controller) => controller.enqueue(bytes.slice(0, 10)),
    cancel: (reason) => (cancelled = reason),
  });
  const stop = new Error("enough");
  const onProgress = () => {
    throw stop;
  };
  await assert.rejects(BloomView.fromResponse(respond(body), { onProgress }), stop);
  assert.equal(cancelled, stop);
});

test("statuses and bodies that have no filter", async () => {
  for (const status of [404, 500, 403, 400]) {
    const error = await refused(respond(stream(bytes, 1000), {}, { status, statusText: "No" }));
    assert.match(error.message, new RegExp(`no filter in the response ${status} No`));
  }
  assert.match((await refused(respond(null, {}, { status: 204 }))).message, /no filter in the response 204/);
  assert.match((await refused(respond(null))).message, /no filter in the response/);
  assert.match((await refused(respond(""))).message, /there are 0,/);
  assert.match((await refused(respond("<!doctype html>".repeat(10)))).message, /not a filter's standalone bytes/);
});

test("bodies cut short, or damaged", async () => {
  for (const length of [1, 64, 6399, bytes.length - 1]) await refused(respond(stream(bytes.subarray(0, length), 1000)));
  const damaged = bytes.slice();
  damaged[100] ^= 1;
  await refused(respond(stream(damaged, 1000), { "content-length": String(bytes.length) }));
});

test("a stream that fails half-way", async () => {
  const broken = new Error("connection lost");
  let at = 0;
  const body = new ReadableStream({
    pull(controller) {
      if (at >= 3000) throw broken;
      controller.enqueue(bytes.slice(at, (at += 1000)));
    },
  });
  const calls = [];
  await assert.rejects(BloomView.fromResponse(respond(body), { onProgress: (loaded) => calls.push(loaded) }), broken);
  assert.deepEqual(calls, [1000, 2000, 3000]);
});

test("a chunk that is no bytes", async () => {
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue("text");
      controller.close();
    },
  });
  await assert.rejects(BloomView.fromResponse(new Response(body)), Error);
});

test("failures give the memory back", async () => {
  // Each reserves 60 MB: 6 GB in all, of which the module's memory holds at most 4.
  const headers = { "content-length": "60000000" };
  const stop = () => assert.fail("enough");
  for (let i = 0; i < 100; i++) {
    await assert.rejects(BloomView.fromResponse(respond(stream(bytes, 1000), headers), { onProgress: stop }), /enough/);
    await assert.rejects(BloomView.fromResponse(respond(stream(bytes.subarray(1), 1000), headers)), /cut short|damaged|not/);
  }
  assert(process.memoryUsage().rss < 1e9);
});
