// The package in Chromium: on the main thread, in a worker and in a service worker.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { BloomFilter } from "bloomline";
import { serve, skip } from "./chromium.js";
import { NUMBERS, golden, goldenKeys } from "./support.js";

// What runs in each place: hashes and answers, as text.
const PROGRAM = `
import { BloomFilter, BloomView, FilterBank } from "/bloomline.js";

export async function answers() {
  const rows = await (await fetch("/keys.json")).json();
  const made = { text: String, binary: (hex) => Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16)) };
  const keys = rows.map(([type, value]) => (made[type] ?? BigInt)(value));
  const hashes = [0n, 0x5eedn].map((seed) => {
    const filter = new BloomFilter({ blocks: 1, k: 6, seed });
    return keys.map((key) => String(filter.hash(key)));
  });

  const filter = new BloomFilter({ expectedKeys: 1000 });
  filter.addAll(keys);
  const calls = [];
  const options = { onProgress: (...call) => calls.push(call) };
  const view = await BloomView.fromResponse(await fetch("/numbers.bloom"), options);
  const zipped = await BloomView.fromResponse(await fetch("/zipped.bloom"), options);
  const bank = await FilterBank.fromResponse(await fetch("/animals.bank"));
  const numbers = Array.from({ length: 2000 }, (_, i) => String(i));
  let missing;
  try {
    missing = await BloomView.fromResponse(await fetch("/missing.bloom"));
  } catch (error) {
    missing = error.message;
  }
  return JSON.stringify({
    hashes, missing, found: [...filter.hasAll(keys)], bytes: [...filter.toBytes()], numbers: [...view.hasAll(numbers)],
    zipped: [...zipped.hasAll(numbers)], bank: bank.find("boa"), loaded: calls.at(-1),
  });
}
`;

const PLACES = {
  "the main thread": `import { answers } from "/program.js"; globalThis.result = answers();`,
  "a worker": `
    const worker = new Worker("/worker.js", { type: "module" });
    globalThis.result = new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = reject;
    });`,
  "a service worker": `
    await navigator.serviceWorker.register("/service.js", { type: "module" });
    await navigator.serviceWorker.ready;
    if (!navigator.serviceWorker.controller) {
      await new Promise(
        (resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }),
      );
    }
    globalThis.result = fetch("/answers").then((response) => response.text());`,
  "a classic script of a page that does not state its encoding": `location = "/classic.html";`,
};

const FILES = {
  "/program.js": ["text/javascript", PROGRAM],
  "/worker.js": ["text/javascript", `import { answers } from "/program.js"; postMessage(await answers());`],
  "/service.js": ["text/javascript", `
    import { answers } from "/program.js";
    addEventListener("activate", (event) => event.waitUntil(clients.claim()));
    addEventListener("fetch", (event) => {
      if (event.request.url.endsWith("/answers")) event.respondWith(answers().then((text) => new Response(text)));
    });`],
  "/numbers.bloom": ["application/octet-stream", golden("standalone-100-blocks.bin")],
  "/zipped.bloom": [
    "application/octet-stream", gzipSync(golden("standalone-100-blocks.bin")), { "content-encoding": "gzip" },
  ],
  "/animals.bank": ["application/octet-stream", golden("bank-3-slots.bin")],
  "/favicon.ico": ["image/x-icon", ""],
  "/classic.html": ["text/html", `<!doctype html><script src="/classic.js"></script>`],
};

const rows = goldenKeys().filter(({ type }) => type !== "int");

/** A server of the package and of FILES. The address of a page has its script, and its Content-Security-Policy. */
async function pages(t) {
  const contents = `${PROGRAM.replace("/bloomline.js", "bloomline")} globalThis.result = answers();`;
  const { outputFiles: [{ text }] } = await build({
    stdin: { contents, resolveDir: import.meta.dirname }, bundle: true, format: "iife", charset: "utf8", write: false,
  });
  const files = {
    ...FILES,
    "/classic.js": ["text/javascript", text],
    "/bloomline.js": ["text/javascript", readFileSync(fileURLToPath(import.meta.resolve("bloomline")))],
    "/keys.json": ["application/json", JSON.stringify(rows.map(({ type, value }) => [type, value]))],
  };
  const { address, context } = await serve(t, (request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://localhost");
    if (pathname === "/page") {
      const policy = searchParams.get("policy");
      response.writeHead(200, { "content-type": "text/html", ...(policy && { "content-security-policy": policy }) });
      return response.end(`<!doctype html><meta charset="utf-8"><script type="module" src="/script.js"></script>`);
    }
    const [type, body, headers] = files[pathname] ?? [];
    response.writeHead(type ? 200 : 404, { "content-type": type ?? "text/plain", ...headers });
    response.end(body);
  });
  return async (script, policy = "") => {
    files["/script.js"] = ["text/javascript", script];
    const page = await context.newPage();
    await page.goto(`${address}/page?policy=${encodeURIComponent(policy)}`);
    return page;
  };
}

test("keys, files and answers in Chromium", { skip, timeout: 120_000 }, async (t) => {
  const open = await pages(t);
  const filter = new BloomFilter({ expectedKeys: 1000 });
  const keys = rows.map(({ bytes }) => Buffer.from(bytes, "hex"));
  filter.addAll(keys);
  for (const [place, script] of Object.entries(PLACES)) {
    await t.test(place, async () => {
      const page = await open(script);
      await page.waitForFunction(() => globalThis.result, undefined, { timeout: 30_000 });
      const answers = JSON.parse(await page.evaluate(() => globalThis.result));
      assert.deepEqual(answers.hashes, [rows.map((row) => String(row.hash)), rows.map((row) => String(row.seeded))]);
      assert(answers.found.length === rows.length && answers.found.every((found) => found === 1));
      assert.deepEqual(answers.bytes, [...filter.toBytes()]);
      assert(answers.numbers.slice(0, NUMBERS.length).every((found) => found === 1));
      assert(answers.numbers.slice(NUMBERS.length).filter(Boolean).length < 10);
      assert.deepEqual(answers.zipped, answers.numbers);
      assert.deepEqual(answers.bank, [1, 2]);
      // JSON has null for undefined.
      assert.deepEqual(answers.loaded, [golden("standalone-100-blocks.bin").length, null]);
      assert.match(answers.missing, /no filter in the response 404 .*\/missing\.bloom/);
      await page.close();
    });
  }
});

test("a Content-Security-Policy needs 'wasm-unsafe-eval'", { skip, timeout: 120_000 }, async (t) => {
  const open = await pages(t);
  const script = `globalThis.result = import("/bloomline.js").then(() => "imported", (error) => error.name);`;
  for (const [policy, expected] of [
    ["script-src 'self' 'wasm-unsafe-eval'", "imported"], ["script-src 'self'", "CompileError"],
  ]) {
    const page = await open(script, policy);
    await page.waitForFunction(() => globalThis.result, undefined, { timeout: 30_000 });
    assert.equal(await page.evaluate(() => globalThis.result), expected, policy);
  }
});

test("the console shows what a filter is", { skip, timeout: 120_000 }, async (t) => {
  const open = await pages(t);
  const page = await open("");
  const session = await page.context().newCDPSession(page);
  const logged = new Promise((resolve) => session.on("Runtime.consoleAPICalled", ({ args }) => resolve(args[0])));
  await session.send("Runtime.enable");
  await page.evaluate(async () => {
    const { BloomFilter } = await import("/bloomline.js");
    console.log(new BloomFilter({ expectedKeys: 1_000_000, seed: 7n }));
  });
  const { description, preview } = await logged;
  assert.equal(description, "BloomFilter");
  assert.equal(preview.properties.map(({ name, value }) => `${name}: ${value}`).join(),
    "blocks: 19440,nModules: 1,k: 6,byteLength: 1244160,seed: 7n");
});
