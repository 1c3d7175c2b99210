// The page in Chromium, opened from its folder. Compares what it shows with the package in Node.
//
// With SCREENSHOTS, a folder, pictures of the page go there.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { BloomFilter, BloomView, FilterBank, sizing } from "../dist/bloomline.js";
import { launch, skip } from "./chromium.js";
import { ABSENT, CLI, golden, goldenFiles, goldenKeys, refused, scratch } from "./support.js";

const URL_OF_PAGE = pathToFileURL(join(import.meta.dirname, "../page/index.html")).href;

if (skip) {
  console.log(`skipped: ${skip}`);
  process.exit(0);
}

let browser, mask;
/** Of all pages of this file. */
const requests = [], complaints = [];

before(async () => {
  browser = await launch();
  const entry = join(import.meta.dirname, "../page/mask.ts");
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: "esm", write: false });
  mask = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
});

after(async () => {
  await browser?.close();
});

async function open(t, hash = "", options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  t.after(() => page.close());
  // Of a busy machine.
  page.setDefaultTimeout(120_000);
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(URL_OF_PAGE + hash);
  await page.waitForFunction(() => performance.getEntriesByName("drawn").length === 1);
  return page;
}

/** Shows the choice of another address on an open page. */
function navigate(page, hash) {
  return page.evaluate((hash) => new Promise((done) => {
    addEventListener("hashchange", () => done(), { once: true });
    location.hash = hash;
  }), hash);
}

const text = (page, selector) => page.locator(selector).evaluate((element) => element.textContent.trim());
const hasText = (page, selector, expected) => page.waitForFunction(
  ([selector, expected]) => document.querySelector(selector).textContent.includes(expected), [selector, expected]);

/** What "Size" shows, after each of these inputs: [id, text] pairs. */
function sizesAfter(page, inputs) {
  return page.evaluate(async (inputs) => {
    const shown = [];
    for (const pairs of inputs) {
      for (const [id, text] of pairs) {
        const input = document.getElementById(id);
        input.value = text;
        input.dispatchEvent(new Event("input"));
      }
      // The page's own callback runs before this one.
      await new Promise((done) => requestAnimationFrame(done));
      const facts = {};
      for (const fact of ["short", "bytes", "blocks", "modules", "k", "bits", "fpr"]) {
        facts[fact] = document.getElementById(`size-${fact}`).textContent;
      }
      facts.errors = ["keys", "fpr", "bits"].map((id) => document.getElementById(`${id}-error`).textContent);
      shown.push(facts);
    }
    return shown;
  }, inputs);
}

const grouped = (number) => number.toLocaleString("en-US");
const number = (text) => Number(text.replace(/[ ,%]|below|bytes/g, ""));

/** The shown sizes are these exact ones, or rounded to three digits. */
function assertShows(shown, size, what) {
  assert.deepEqual(shown.errors, ["", "", ""], what);
  assert.equal(number(shown.bytes || shown.short), size.byteLength, what);
  assert.equal(number(shown.blocks), size.blocks, what);
  assert.equal(number(shown.modules), size.nModules, what);
  assert.equal(number(shown.k), size.k, what);
  const bits = size.bitsPerKey >= 1000 ? Math.round(size.bitsPerKey) : Number(size.bitsPerKey.toPrecision(3));
  assert.equal(number(shown.bits), bits, what);
  if (size.fpr < 1e-10) assert.equal(shown.fpr, "below 0.00000001%", what);
  else assert.equal(Number(number(shown.fpr).toPrecision(3)), Number((size.fpr * 100).toPrecision(3)), what);
}

test("sizes are those of the package, for a grid of keys and rates", async (t) => {
  const page = await open(t);
  const keys = [0, 1, 7, 52, 999, 1_000, 65_537, 3_000_000, 123_456_789];
  const rates = [90, 50, 12.5, 3, 1, 0.1, 0.07, 0.004, 0.0002, 0.0000013];
  const grid = keys.flatMap((n) => rates.map((rate) => [n, rate]));
  const shown = await sizesAfter(page, grid.map(([n, rate]) => [["keys", grouped(n)], ["fpr", `${rate}`]]));
  grid.forEach(([n, rate], i) => {
    const fpr = Number((rate / 100).toPrecision(12));
    assertShows(shown[i], sizing({ expectedKeys: n, fpr }), `${n} keys, ${rate}%`);
  });

  await page.locator("input[value=bits]").focus();
  await page.keyboard.press("Space");
  const bits = [0.01, 1, 2.093, 5, 9.9335, 16, 27.8, 32, 33, 64];
  const second = keys.flatMap((n) => bits.map((bits) => [n, bits]));
  const then = await sizesAfter(page, second.map(([n, bits]) => [["keys", `${n}`], ["bits", `${bits}`]]));
  second.forEach(([expectedKeys, bitsPerKey], i) => {
    assertShows(then[i], sizing({ expectedKeys, bitsPerKey }), `${expectedKeys} keys of ${bitsPerKey} bits`);
  });
});

test("an impossible size has its error beside the input, and the page goes on", async (t) => {
  const page = await open(t);
  const large = refused(() => sizing({ expectedKeys: 1e9, fpr: 1e-5 }), "1e9 keys").message;
  const shown = await sizesAfter(page, [
    [["fpr", "1e-12"]],
    [["fpr", "100"]],
    [["fpr", "0,1"]],
    [["fpr", "0.001"], ["keys", "1e9"]],
    [["keys", "1_000_000"], ["fpr", "1 %"]],
  ]);
  const errors = shown.map(({ errors }) => errors);
  const reach = "a false-positive rate of 1e-12% is out of reach: request at least 5.97413e-11%, or";
  assert.deepEqual(errors[0], ["", `${reach} use an exact structure`, ""]);
  const percentage = "Give a percentage between 0 and 100, such as 0.1.";
  assert.deepEqual(errors.slice(1, 3), [["", percentage, ""], ["", percentage, ""]]);
  assert.match(large, /address space/);
  assert.ok(errors[3][0].startsWith(large) && !errors[3][1], errors[3]);
  for (const wrong of shown.slice(0, -1)) assert.equal(wrong.blocks + wrong.short + wrong.fpr, "–––");
  assertShows(shown.at(-1), sizing({ expectedKeys: 1_000_000, fpr: 0.01 }), "afterwards");

  // Of an address, too: then the drawing has another filter.
  const second = await open(t, "#keys=1000000&fpr=7");
  assert.equal(await text(second, "#fpr-error"), percentage);
  assert.equal(await second.locator("#fpr").inputValue(), "700");
  assert.equal(await second.locator("#fpr").getAttribute("aria-invalid"), "true");
  assert.match(await text(second, "#verdict-text"), /definitely absent/);
});

test("a number of keys is read as on the command line", async (t) => {
  const page = await open(t, "#keys=250M&fpr=0.001");
  assert.equal(await page.locator("#keys").inputValue(), "250,000,000");
  const million = ["1000000", "1_000_000", "1,000,000", "1e6", "1M", "1.0M", "1000k", "1,000K"];
  const others = { "4.35M": 4_350_000, "0": 0, "0.1G": 1e8, "0.000001P": 1e9 };
  const wrong = ["", "-1", "1.5", "1e30", "nan", "inf", "ten", "1e6keys", "M", "1e3M", "1MB", "1m", "1,5", "1,0000",
    "1000,000", ",000", "1,", ",", "1,0e3", "1,000.5", "1%", "0x10"];
  const texts = [...million, ...Object.keys(others), ...wrong, "4294967295", "4294967296"];
  const shown = await sizesAfter(page, texts.map((text) => [["keys", text]]));
  const error = "Give a whole number up to 4,294,967,295, such as 1,000,000 or 250M.";
  texts.forEach((text, i) => {
    const keys = million.includes(text) ? 1_000_000 : others[text];
    if (keys !== undefined) assertShows(shown[i], sizing({ expectedKeys: keys, fpr: 0.001 }), text);
    else if (text !== "4294967295") assert.deepEqual(shown[i].errors, [error, "", ""], text);
    else assert.match(shown[i].errors[0], /address space/);
  });
});

test("a line for each language makes the size", async (t) => {
  const page = await open(t, "#keys=3000000000&bits=2");
  const lines = () => page.locator("#size-code > div").evaluateAll((rows) =>
    Object.fromEntries(rows.map((row) => [...row.children].map(({ textContent }) => textContent))));
  assert.equal((await lines()).Java, "new BloomFilter(Sizing.forBitsPerKey(3_000_000_000L, 2), 0)");
  for (const [address, expected] of [
    ["keys=30000&fpr=0.001", {
      "Rust": "BloomFilter::with_fpr(30_000, 0.001)?",
      "Python": "BloomFilter(30_000, 0.001)",
      "JavaScript": "new BloomFilter({ expectedKeys: 30_000, fpr: 0.001 })",
      "Java": "new BloomFilter(30_000, 0.001)",
      "C": "bloomline_filter_with_fpr(30000, 0.001)",
      "SQL": "bloom_filter(key, 30000, 0.001)",
      "Command line": "bloomline build --keys 30000 --fpr 0.001 -o keys.bloom keys.txt",
    }],
    // SQL has no bits per key.
    ["keys=30000&bits=20", {
      "Rust": "BloomFilter::with_bits_per_key(30_000, 20.0)?",
      "Python": "BloomFilter.with_bits_per_key(30_000, 20)",
      "JavaScript": "new BloomFilter({ expectedKeys: 30_000, bitsPerKey: 20 })",
      "Java": "new BloomFilter(Sizing.forBitsPerKey(30_000, 20), 0)",
      "C": "bloomline_filter_with_bits_per_key(30000, 20)",
      "Command line": "bloomline build --keys 30000 --bits-per-key 20 -o keys.bloom keys.txt",
    }],
  ]) {
    await navigate(page, `#${address}`);
    const shown = await lines(), { blocks, nModules } = sizing(sizeOf(address));
    assert.deepEqual(shown, expected);
    const made = new Function("BloomFilter", `return ${shown.JavaScript}`)(BloomFilter);
    assert.deepEqual([made.blocks, made.nModules], [blocks, nModules]);
    if (!CLI) continue;
    const folder = scratch(t);
    writeFileSync(join(folder, "keys.txt"), "ant\n");
    execFileSync(CLI, shown["Command line"].split(" ").slice(1), { cwd: folder, stdio: "ignore" });
    const built = new BloomView(readFileSync(join(folder, "keys.bloom"))), more = built.blocks / blocks;
    // Rounded up, so that it can be folded.
    assert.ok(built.nModules === nModules && more >= 1 && more <= 1.01, `${built.blocks}`);
  }
});

test("the legend and the table have the rates of three filters", async (t) => {
  const page = await open(t, "#keys=200000000&bits=10");
  const rows = await page.locator("#chart-legend tbody tr").evaluateAll((rows) =>
    rows.map((row) => [row.dataset.curve, ...[...row.querySelectorAll("td")].map((cell) => cell.textContent)]));
  // RocksDB's util/bloom_impl.h gives 0.9535 % as the best of a cache line with 10 bits per key.
  assert.deepEqual(rows, [
    ["bloomline", "6", "0.973%"], ["standard", "7", "0.819%"], ["rocksdb", "6", "0.953%"],
  ]);
  await page.waitForFunction(() => document.querySelector("#chart-table tbody").rows.length > 0);
  const table = await page.locator("#chart-table tbody tr").evaluateAll((rows) =>
    Object.fromEntries(rows.map((row) => [row.cells[0].textContent, row.cells[1].textContent])));
  // The table of Rust's `sizing` module.
  const ofRust = { 8: 2.343, 10: 0.973, 12: 0.419, 16: 0.0858, 20: 0.00946, 24: 0.00176 };
  for (const [bits, rate] of Object.entries(ofRust)) {
    assert.equal(number(table[bits]), Number(rate.toPrecision(3)), `${bits} bits per key`);
  }
  // The marker is where the axes say.
  const at = await page.locator("#chart .marker").evaluate((marker) => {
    const labels = [...document.querySelectorAll("#chart .labels text")];
    const x = (text) => Number(labels.find((label) => label.textContent === text).getAttribute("x"));
    const y = (text) => Number(labels.find((label) => label.textContent === text).getAttribute("y")) - 4;
    const part = (value, from, to) => (value - from) / (to - from);
    return [
      32 * part(Number(marker.getAttribute("cx")), x("0"), x("32")),
      100 * 0.01 ** part(Number(marker.getAttribute("cy")), y("100%"), y("1%")),
    ];
  });
  assert.ok(Math.abs(at[0] - 10) < 0.01 && Math.abs(at[1] - 0.9727) < 0.01, at);
});

test("dragging on the chart sets the bits per key, or the rate", async (t) => {
  const page = await open(t, "#keys=1000000&bits=10");
  const box = await page.locator("#chart .marker").boundingBox();
  const area = await page.locator("#plot rect").evaluate((rect) => Number(rect.getAttribute("width")));
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 + (area * 6) / 32, box.y, { steps: 4 });
  await page.mouse.up();
  assert.equal(await page.locator("#bits").inputValue(), "16");
  await page.mouse.move(box.x, box.y);
  assert.equal(await page.locator("#bits").inputValue(), "16", "after the button is up");
});

test("the address has the choice", async (t) => {
  const page = await open(t);
  assert.equal(new URL(page.url()).hash, "");
  await page.fill("#keys", "2,500");
  await page.waitForURL("**/index.html#keys=2500&fpr=0.01");
  await page.locator("input[value=bits]").focus();
  await page.keyboard.press("Space");
  await page.fill("#bits", "12.5");
  await page.waitForURL("**/index.html#keys=2500&bits=12.5");
  const blocks = await text(page, "#size-blocks");
  await page.reload();
  assert.equal(await page.locator("#bits").inputValue(), "12.5");
  assert.equal(await text(page, "#size-blocks"), blocks);
  await page.evaluate(() => (location.hash = "#keys=70000&fpr=0.002"));
  await hasText(page, "#size-blocks", grouped(sizing({ expectedKeys: 70_000, fpr: 0.002 }).blocks));
  assert.equal(await page.locator("#fpr").inputValue(), "0.2");
  // Nonsense is ignored.
  const nonsense = await open(t, "#keys=abc&fpr=&x=%E0%A4%A");
  assert.equal(await nonsense.locator("#keys").inputValue(), "1,000,000");
});

/** Every set bit of a filter, as block/lane/bit: section 3 of docs/format.md. */
function setBits(filter) {
  const { blocks, nModules } = filter, bytes = mask.body(filter.toBytes(), nModules), count = bytes.length / 8;
  let step = 1;
  while (step < 8 && count % (2 * step) === 0) step *= 2;
  assert.equal(count / step, blocks);
  const found = [];
  for (let block = 0; block < blocks; block++) {
    for (let lane = 0; lane < 8; lane++) {
      const at = 8 * ((step * block + lane) % count);
      for (let bit = 0; bit < 64; bit++) {
        if ((bytes[at + (bit >> 3)] >> (bit & 7)) & 1) found.push(`${block}/${lane}/${bit}`);
      }
    }
  }
  return found;
}

/**
 * Sizes, as in addresses, with each k from 1 to 16 in one module, the higher ones of few keys in one block, and of two,
 * three and four modules.
 */
const EVERY_K = [
  ...[0.9, 2.5, 4, 6, 8, 9.5, 11, 13, 16].map((bits) => `keys=1600&bits=${bits}`),
  ...[29, 25, 23, 20, 18, 16, 12].map((keys) => `keys=${keys}&bits=1`),
  "keys=1600&bits=23", "keys=1600&bits=60", "keys=1600&fpr=1e-12",
];

/** The size of an address, without "#". */
function sizeOf(address) {
  const [[, keys], [by, value]] = new URLSearchParams(address);
  return { expectedKeys: Number(keys), [by === "bits" ? "bitsPerKey" : "fpr"]: Number(value) };
}

/** What the drawing shows of each key, before and after it is inserted into an empty filter. */
function drawn(page, keys, type) {
  return page.evaluate(([keys, type]) => {
    document.querySelector(`input[name=key-type][value=${type}]`).click();
    const input = document.getElementById("key");
    const look = () => {
      const name = document.getElementById("drawing-name").textContent;
      // Counted from the first block of all modules.
      const blocks = [...name.replaceAll(",", "").matchAll(/block (\d+) of (\d+)/g)].map(
        ([, block, of], module) => module * Number(of) + Number(block));
      const bits = (kind) => [...document.querySelectorAll("#drawing .module")].flatMap((module, i) =>
        [...module.querySelectorAll(`.bit${kind}`)].map((bit) =>
          `${blocks[i]}/${bit.closest(".lane").dataset.lane}/${bit.dataset.bit}`));
      const verdict = [...document.querySelectorAll(".verdict.is")].map(({ id }) => id).join();
      const table = [...document.querySelectorAll("#probes tbody tr")].map((row) => {
        const [module, , lane, bit, state] = [...row.cells].map((cell) => cell.textContent);
        return `${blocks[module]}/${lane}/${bit}/${state}`;
      });
      return { probed: bits(".probed"), set: bits(".set"), verdict, name, table };
    };
    return keys.map((key) => {
      document.getElementById("clear").click();
      input.value = key;
      input.dispatchEvent(new Event("input"));
      const before = look();
      document.getElementById("insert").click();
      return { before, after: look() };
    });
  }, [keys, type]);
}

const TEXTS = ["", "boa", "user4291", "café", "日本語", "🐍", " 42", "a".repeat(100),
  ...Array.from({ length: 60 }, (_, i) => `key ${i * i}`)];
const INTEGERS = ["0", "-1", "42", "18446744073709551615", "-9223372036854775808",
  ...Array.from({ length: 20 }, (_, i) => String(7n ** BigInt(i)))];

test("the drawing's bits are those that an insert sets", async (t) => {
  const page = await open(t);
  const seen = new Set();
  for (const address of [
    "keys=10&bits=0.9", "keys=1&bits=1", "keys=7&fpr=0.4", "keys=200000&bits=12", "keys=200000&bits=24", ...EVERY_K,
  ]) {
    await navigate(page, `#${address}`);
    const size = sizeOf(address), { blocks, nModules, k } = sizing(size);
    seen.add(`k ${k}`).add(`${nModules} modules`);
    await page.waitForFunction(([blocks, probes]) => document.querySelectorAll("#probes tbody tr").length === probes
      && document.getElementById("drawing-name").textContent.includes(` of ${blocks},`),
    [grouped(blocks / nModules), nModules * k]);
    for (const [type, keys, parse] of [["text", TEXTS, String], ["integer", INTEGERS, BigInt]]) {
      // A fifth of the keys each time, but always the first.
      const some = keys.filter((_, i) => i === 0 || (i + seen.size) % 5 === 0);
      const shown = await drawn(page, some, type);
      for (const [i, key] of some.entries()) {
        const what = `${address}, ${type} ${key}`;
        const filter = new BloomFilter(size);
        filter.add(parse(key));
        const gained = setBits(filter).sort();
        const { before, after } = shown[i];
        assert.deepEqual(before.probed.sort(), gained, what);
        assert.deepEqual(before.set, [], what);
        assert.equal(before.verdict, "absent", what);
        assert.deepEqual(after.probed.sort(), gained, what);
        assert.deepEqual(after.set.sort(), gained, what);
        assert.equal(after.verdict, "present", what);
        assert.ok(after.name.includes(`0x${filter.hash(parse(key)).toString(16).padStart(16, "0")}`), what);
        const listed = new Set(after.table.map((row) => row.replace("/set", "")));
        assert.deepEqual([...listed].sort(), gained, what);
        filter.free();
      }
    }
  }
  assert.equal(seen.size, 16 + 4, [...seen].join());
});

function hasMask(bytes, hash, size) {
  return mask.masks(hash, size).every(({ block, probes }, module) => {
    const lanes = mask.lanesOf(bytes, (module * size.blocks) / size.nModules + block);
    return probes.every((probe) => mask.isSet(lanes, probe));
  });
}

test("the masks and the lanes of short filters and of several modules answer as the tables say", () => {
  for (const { file, kind, size, k, seed, keys, found, ...row } of goldenFiles()) {
    if (kind !== "standalone" && kind !== "compact") continue;
    const blocks = Number(size), nModules = Number(row.modules), bytes = golden(file);
    const length = kind === "compact" ? bytes.length - Math.min(nModules, 2) : new BloomView(bytes).byteLength;
    const hashes = new BloomFilter({ blocks: 1, k: 1, seed }), lanes = bytes.subarray(0, length);
    const has = (key) => hasMask(lanes, hashes.hash(key), { blocks, nModules, k: Number(k) });
    assert.ok(keys.every(has), file);
    assert.equal(ABSENT.filter(has).length, found, file);
  }
});

test("inserted keys stay, also in a filter of another size", async (t) => {
  const page = await open(t, "#keys=5000&bits=10");
  const has = async (key, type = "text") => {
    await page.evaluate((type) => document.querySelector(`input[name=key-type][value=${type}]`).click(), type);
    await page.fill("#key", key);
    return (await text(page, ".verdict.is strong")).endsWith("possibly present");
  };
  const insert = async (key) => {
    await page.fill("#key", key);
    await page.click("#insert");
  };
  for (const key of ["ant", "bee", "cat"]) await insert(key);
  await page.click("#insert-others");
  const filter = new BloomFilter({ expectedKeys: 5000, bitsPerKey: 10 });
  filter.addAll(["ant", "bee", "cat", ...Array.from({ length: 1000 }, (_, i) => i + 1)]);
  await hasText(page, "#filter-facts", "1,003 keys inserted, among them the integers 1 to 1,000");
  await hasText(page, "#filter-facts", `${(filter.fillRatio * 100).toPrecision(3)}%`);
  for (const key of ["ant", "bee", "cat"]) assert.ok(await has(key), key);
  for (const key of ["1", "500", "1000"]) assert.ok(await has(key, "integer"), key);
  let wrong = 0;
  for (let i = 0; i < 100; i++) {
    const found = await has(`absent ${i}`);
    assert.equal(found, filter.has(`absent ${i}`));
    wrong += found;
  }
  assert.ok(wrong < 5, wrong);

  await page.click("#fill");
  await hasText(page, "#filter-facts", "5,000 keys inserted");
  assert.ok(await page.locator("#fill").isDisabled());
  await page.fill("#keys", "7000");
  await hasText(page, "#fill", "7,000");
  for (const key of ["ant", "bee", "cat"]) assert.ok(await has(key), key);
  assert.ok(await has("4997", "integer"));
  // A button for each key shows it again.
  await page.click("#inserted button >> text=bee");
  assert.match(await text(page, "#verdict-text"), /^"bee" is possibly present/);

  await page.click("#clear");
  await hasText(page, "#filter-facts", "The filter is empty.");
  for (const key of ["ant", "bee", "cat"]) assert.ok(!(await has(key)), key);
  assert.equal(await page.locator("#drawing .bit.set").count(), 0);
});

test("a full block is drawn full, and a false positive is called so", async (t) => {
  const page = await open(t, "#keys=1&bits=1");
  await page.click("#insert-others");
  assert.equal(await page.locator("#drawing .bit.set").count(), 512);
  await page.fill("#key", "never inserted");
  assert.match(await text(page, "#verdict-text"), /possibly present.*false positive/);
});

test("a large filter is drawn smaller, with the same bits per key", async (t) => {
  const page = await open(t, "#keys=1000000000&fpr=0.01");
  await hasText(page, "#filter-note", "too large for this drawing");
  assert.match(await page.locator("#drawing-name").textContent(), /of 262,144, counted/);
  await page.click("#fill");
  const room = Math.round((262_144 * 512) / sizing({ expectedKeys: 1e9, fpr: 0.01 }).bitsPerKey);
  await hasText(page, "#filter-facts", `${grouped(room)} keys inserted`);
  assert.match(await text(page, "#filter-facts"), /is now 0\.9\d\d%/);
  // 262,144 blocks cannot be divided among three modules.
  await navigate(page, "#keys=200000000&fpr=1e-9");
  await hasText(page, "#drawing-name", "of 87,381, counted");
});

test("a key that is none has its error beside the input", async (t) => {
  const page = await open(t);
  await page.locator("input[name=key-type][value=integer]").focus();
  await page.keyboard.press("Space");
  assert.equal(await text(page, "#key-error"), '"user4291" is not an integer');
  await page.fill("#key", "18446744073709551616");
  assert.match(await text(page, "#key-error"), /is not from −2\^63 to 2\^64 − 1/);
  await page.keyboard.press("Enter");
  assert.equal(await text(page, "#filter-facts"), "The filter is empty.");
  await page.fill("#key", "-1");
  assert.equal(await text(page, "#key-error"), "");
  await page.evaluate(() => {
    document.querySelector("input[name=key-type][value=text]").click();
    document.getElementById("key").value = "a\ud800";
    document.getElementById("key").dispatchEvent(new Event("input"));
  });
  assert.match(await text(page, "#key-error"), /surrogate/);
});

async function drop(page, name, bytes) {
  const dataTransfer = await page.evaluateHandle(([name, text]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([Uint8Array.from(atob(text), (character) => character.charCodeAt(0))], name));
    return transfer;
  }, [name, Buffer.from(bytes).toString("base64")]);
  await page.dispatchEvent("#drop", "drop", { dataTransfer });
  await page.waitForFunction(() => !/^Reading/.test(document.getElementById("file-status").textContent));
}

/** The answers to these lines. */
async function ask(page, lines, type) {
  await page.locator(`input[name=ask-type][value=${type}]`).focus();
  await page.keyboard.press("Space");
  await page.fill("#ask", "");
  await hasText(page, "#ask-status", "No keys yet.");
  await page.fill("#ask", lines.join("\n"));
  await hasText(page, "#ask-status", lines.length === 1 ? "1 key:" : `${lines.length} keys:`);
  return page.locator("#answers li").evaluateAll((items) => items.map((item) => {
    const [key, answer] = [...item.children].map((child) => child.textContent);
    return { key, answer, kind: item.className };
  }));
}

function assertAnswers(answers, keys, found) {
  assert.equal(answers.length, keys.length);
  keys.forEach((key, i) => {
    const answer = found[i] ? "possibly present" : "definitely absent";
    assert.deepEqual(answers[i], {
      key: typeof key === "string" ? `"${key}"` : `${key}`, answer, kind: found[i] ? "present" : "absent",
    });
  });
}

test("a dropped file answers as the package", async (t) => {
  const page = await open(t);
  const made = new BloomFilter({ expectedKeys: 500, fpr: 0.05, seed: 77n });
  made.addAll(Array.from({ length: 500 }, (_, i) => `line ${i}`));
  const keys = Array.from({ length: 900 }, (_, i) => `line ${i}`);
  await drop(page, "made.bloom", made.toBytes());
  assert.match(await text(page, "#file-status"), /^Opened made\.bloom, /);
  const answers = await ask(page, keys, "text");
  assertAnswers(answers, keys, made.hasAll(keys));
  assert.ok(answers.slice(0, 500).every(({ kind }) => kind === "present"));
  const facts = await text(page, "#file-facts");
  for (const fact of ["Seed77", `Blocks${made.blocks}`, `(k)${made.k}`, `${(made.fillRatio * 100).toPrecision(3)}%`]) {
    assert.ok(facts.includes(fact), `${fact} in ${facts}`);
  }

  // The goldens: text and integers that were inserted, and others.
  const rows = goldenKeys();
  const texts = rows.filter(({ type, value }) => type === "text" && !value.includes("\0")).map(({ value }) => value);
  const integers = rows.filter(({ type }) => /^u?int\d/.test(type)).map(({ value }) => BigInt(value));
  assert.ok(texts.length >= 10 && integers.length >= 40, `${texts.length}, ${integers.length}`);
  await drop(page, "standalone-keys.bin", golden("standalone-keys.bin"));
  const view = new BloomView(golden("standalone-keys.bin"));
  for (const [inserted, more, type] of [
    [texts, ["dog", "eel", "fox", "gnu"], "text"], [integers, [1000n, 77n, -99n, 5n], "integer"],
  ]) {
    // Tab-separated values have no empty last column.
    const keys = [...inserted, ...more];
    const answers = await ask(page, keys, type);
    assertAnswers(answers, keys, view.hasAll(keys));
    assert.ok(answers.slice(0, inserted.length).every(({ kind }) => kind === "present"), type);
  }
  for (const name of ["standalone-short-9.bin", "standalone-16-modules.bin"]) {
    await drop(page, name, golden(name));
    const { blocks, nModules, k } = new BloomView(golden(name));
    const facts = `Blocks${grouped(blocks)}Modules${nModules}Probes per module (k)${k}`;
    assert.ok((await text(page, "#file-facts")).includes(facts), name);
  }
});

test("an estimate is rounded as by bloomline info", async (t) => {
  const filter = new BloomFilter({ expectedKeys: 100_000 });
  let added = 0;
  // An error that would otherwise be rounded down.
  for (let fraction = 1; fraction > 0.4 || fraction < 0.1; fraction = filter.estimatedKeys.standardError % 1) {
    filter.addAll(Int32Array.from({ length: 1000 }, () => added++));
  }
  const { keys, standardError } = filter.estimatedKeys, shown = `about ${grouped(keys)} ± ${grouped(Math.ceil(standardError))}`;
  const page = await open(t);
  await drop(page, "keys.bloom", filter.toBytes());
  assert.ok((await text(page, "#file-facts")).startsWith(`Distinct keys${shown}`), shown);
});

test("a dropped bank answers with slots", async (t) => {
  const page = await open(t);
  for (const name of ["bank-0-slots.bin", "bank-3-slots.bin", "bank-600-slots.bin"]) {
    const bank = new FilterBank(golden(name));
    await drop(page, name, golden(name));
    assert.equal(await text(page, "#file-error"), "");
    assert.match(await text(page, "#file-facts"), new RegExp(`slots\\)${bank.slots}Blocks per filter${bank.blocks}`));
    const keys = ["boa", "bee", ...Array.from({ length: 60 }, (_, i) => `${i % 20}-${i % 6}`)];
    const answers = await ask(page, keys, "text");
    keys.forEach((key, i) => {
      const slots = bank.find(key);
      const { answer } = answers[i];
      if (slots.length === 0) assert.equal(answer, "definitely absent from all slots", key);
      else if (slots.length > 20) assert.match(answer, new RegExp(`and ${slots.length - 20} more$`), key);
      else assert.ok(answer.endsWith(` ${slots.join(", ")}`), `${answer}: ${slots}`);
    });
  }
});

test("the drawn filter can be asked", async (t) => {
  const page = await open(t, "#keys=5000&bits=10");
  await page.fill("#key", "ant");
  await page.click("#insert");
  await page.click("#use-drawn");
  await hasText(page, "#file-status", "Opened the filter drawn above");
  const answers = await ask(page, ["ant", "bee"], "text");
  assert.deepEqual(answers.map(({ kind }) => kind), ["present", "absent"]);
});

test("damaged bytes and other kinds have the package's error", async (t) => {
  const page = await open(t);
  const bytes = golden("standalone-100-blocks.bin");
  const damaged = [
    [], Buffer.from("text\n".repeat(99)), bytes.subarray(1), bytes.with(3_000, 255), golden("frontier.bin"),
  ];
  await drop(page, "good.bloom", bytes);
  const message = (open) => refused(open, "no error").message;
  for (const [i, wrong] of damaged.entries()) {
    await drop(page, "wrong.bloom", wrong);
    const expected = message(() => new BloomView(Uint8Array.from(wrong)));
    assert.equal(await text(page, "#file-error"), `wrong.bloom: ${expected}`, `${i}`);
    assert.ok(await page.locator("#opened").isHidden(), `${i}`);
    assert.equal(await page.locator("#file").getAttribute("aria-invalid"), "true");
  }
  const bank = golden("bank-9-slots.bin");
  bank[bank.length - 100] ^= 1;
  await drop(page, "bank.bin", bank);
  assert.equal(await text(page, "#file-error"), `bank.bin: ${message(() => new FilterBank(bank))}`);
  // Afterwards an intact file opens.
  await drop(page, "good.bloom", bytes);
  assert.equal(await text(page, "#file-error"), "");
  assert.ok(await page.locator("#opened").isVisible());
});

test("a line that is no integer is named", async (t) => {
  const page = await open(t);
  await drop(page, "keys.bin", golden("standalone-keys.bin"));
  await page.locator("input[name=ask-type][value=integer]").focus();
  await page.keyboard.press("Space");
  await page.fill("#ask", "42\n 43\nforty\n44\n");
  await hasText(page, "#ask-error", 'Line 3: "forty" is not an integer');
  assert.equal(await page.locator("#answers li").count(), 0);
  await page.fill("#ask", "42\n18446744073709551616");
  await hasText(page, "#ask-error", "Line 2: 18446744073709551616 is not from");
  // A lone surrogate can only come from a script.
  await page.evaluate(() => {
    document.querySelector("input[name=ask-type][value=text]").click();
    const input = document.getElementById("ask");
    input.value = "boa\n\ud800";
    input.dispatchEvent(new Event("input"));
  });
  await hasText(page, "#ask-error", "surrogate");
  assert.equal(await page.locator("#answers li").count(), 0);
  await page.locator("input[name=ask-type][value=integer]").focus();
  await page.keyboard.press("Space");
  await page.fill("#ask", "42\n");
  await hasText(page, "#ask-status", "1 key: 1 possibly present, 0 definitely absent.");
  assert.equal(await text(page, "#ask-error"), "");
});

test("everything works by keyboard", async (t) => {
  const page = await open(t);
  const focused = () => page.evaluate(() => {
    const { id, name, value, tagName } = document.activeElement;
    return id || (name ? `${name}=${value}` : tagName.toLowerCase());
  });
  await page.focus("#keys");
  const order = [];
  for (let i = 0; i < 16; i++) {
    order.push(await focused());
    await page.keyboard.press("Tab");
  }
  assert.deepEqual(order, ["keys", "keys-slider", "by=fpr", "fpr", "fpr-slider", "summary", "key", "key-type=text",
    "insert", "insert-others", "fill", "summary", "file", "use-drawn", "body", "keys"]);

  await page.focus("#keys-slider");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("#keys").inputValue(), "1,100,000");
  assert.equal(await page.locator("#keys-slider").getAttribute("aria-valuetext"), "1,100,000");
  await page.keyboard.press("Home");
  assert.equal(await page.locator("#keys").inputValue(), "10");
  await page.keyboard.press("End");
  assert.equal(await page.locator("#keys").inputValue(), "1,000,000,000");
  await page.focus("#fpr-slider");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("#fpr").inputValue(), "0.9");
  assert.equal(await page.locator("#fpr-slider").getAttribute("aria-valuetext"), "0.9%");
  await page.focus("input[name=by][value=fpr]");
  await page.keyboard.press("ArrowRight");
  await page.locator("#bits-slider").waitFor();
  await page.focus("#bits-slider");
  const before = Number(await page.locator("#bits").inputValue());
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("#bits").inputValue(), (before + 0.1).toFixed(1));
  await page.fill("#keys", "12345");
  await page.keyboard.press("Tab");
  assert.equal(await page.locator("#keys").inputValue(), "12,345");

  await page.fill("#key", "typed");
  await page.keyboard.press("Enter");
  await hasText(page, "#verdict-text", '"typed" is possibly present');
  await page.focus("#insert-others");
  await page.keyboard.press("Space");
  await hasText(page, "#filter-facts", "1,001 keys");
  await page.focus("#clear");
  await page.keyboard.press("Enter");
  await hasText(page, "#filter-facts", "empty");
  // Of the screen reader's texts, only the last of a burst is said.
  await hasText(page, "#lookup-status", '"typed" is definitely absent');
  await hasText(page, "#size-status", "bits per key, false-positive rate");
});

/** [width, colour scheme] */
const LOOKS = [[1280, "light"], [1280, "dark"], [700, "light"], [360, "light"], [360, "dark"], [320, "light"]];

test("no overflow and enough contrast, at each width, in the light and in the dark", async (t) => {
  for (const [width, colorScheme] of LOOKS) {
    const page = await open(t, "#keys=100000000&bits=40", { viewport: { width, height: 800 }, colorScheme });
    const what = `${width} px, ${colorScheme}`;
    const check = async (state) => {
      assert.deepEqual(await page.evaluate(overflowing), [], `${what}, ${state}`);
      assert.deepEqual(await page.evaluate(lowContrast), [], `${what}, ${state}`);
      if (process.env.SCREENSHOTS) {
        const path = join(process.env.SCREENSHOTS, `${width}-${colorScheme}-${state}.png`);
        await page.screenshot({ path, fullPage: true });
      }
    };
    await check("first");
    await page.fill("#key", "W".repeat(200));
    await page.click("#insert");
    await page.click("#insert-others");
    await page.locator("summary").first().click();
    await page.locator("summary").last().click();
    await drop(page, `${"long".repeat(40)}.bloom`, golden("bank-600-slots.bin"));
    await ask(page, ["5-1", "x".repeat(300), "<b>bold</b>"], "text");
    await check("used");
    await page.fill("#bits", "1e99");
    await page.fill("#keys", "");
    await page.fill("#ask", "");
    await drop(page, `${"long".repeat(40)}.bloom`, [1, 2, 3]);
    await page.fill("#key", "seven");
    await page.evaluate(() => document.querySelector("input[name=key-type][value=integer]").click());
    await page.waitForTimeout(300);
    await check("errors");
    await page.close();
  }
});

test("the drawing's texts fit, for each k, for modules and a long key", async (t) => {
  for (const width of [360, 1280]) {
    const page = await open(t, "", { viewport: { width, height: 800 } });
    await page.fill("#key", "long ".repeat(20));
    for (const address of EVERY_K) {
      await navigate(page, `#${address}`);
      const { nModules, k } = sizing(sizeOf(address));
      await page.waitForFunction((n) => document.querySelectorAll("#probes tbody tr").length === n, nModules * k);
      assert.deepEqual(await page.evaluate(overflowing), [], `${width} px, ${address}`);
    }
    const outside = await page.evaluate(() => {
      const [box, label] = ["rect.box", "text.mono"].map((name) => document.querySelector(name).getBoundingClientRect());
      return label.left < box.left || label.right > box.right;
    });
    assert.ok(!outside, `${width} px: the key is wider than its box`);
  }
});

/**
 * In the page: what is wider than the window or its box, or above or below its drawing. Text fields scroll, and long
 * names end in an ellipsis.
 */
function overflowing() {
  return [...document.querySelectorAll("html, body *:not(.hidden, input, textarea, #inserted button)")]
    .filter((element) => element.checkVisibility() && (!element.ownerSVGElement || element.tagName === "text"))
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1
      || element.getBoundingClientRect().left < 0
      || element.getBoundingClientRect().top < element.ownerSVGElement?.getBoundingClientRect().top
      || element.getBoundingClientRect().bottom > element.ownerSVGElement?.getBoundingClientRect().bottom
      || (element instanceof HTMLElement && element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0))
    .map((element) => `${element.tagName} ${element.id} ${element.className}`);
}

/** In the page: texts whose contrast with their background is below 4.5 to 1. */
function lowContrast() {
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = (colour) => channels(colour).slice(0, 3)
    .map((value) => (value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const { backgroundColor } = getComputedStyle(at);
      if (channels(backgroundColor)[3] !== 0) return backgroundColor;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility() || element.closest(".hidden, :disabled, .invalid")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [
      luminance(element instanceof SVGElement ? style.fill : style.color), luminance(background(element)),
    ].sort((a, b) => a - b);
    const contrast = (b + 0.05) / (a + 0.05);
    if (!(contrast >= 4.5)) found.push(`${element.textContent.trim().slice(0, 40)}: ${contrast}`);
  }
  return found;
}

test("the dark page is dark, and nothing moves where motion is reduced", async (t) => {
  const page = await open(t, "", { colorScheme: "dark", reducedMotion: "reduce" });
  const [colour, transition] = await page.evaluate(() => [
    getComputedStyle(document.body).backgroundColor,
    getComputedStyle(document.querySelector(".bit")).transitionDuration,
  ]);
  assert.ok(colour.match(/\d+/g).every((channel) => Number(channel) < 64), colour);
  assert.equal(transition, "0s");
});

test("inputs have names, and errors belong to them", async (t) => {
  const page = await open(t);
  await drop(page, "keys.bin", golden("standalone-keys.bin"));
  const nameless = await page.evaluate(() => [...document.querySelectorAll("input, textarea, button")].filter((input) =>
    !input.labels?.length && !input.getAttribute("aria-label") && !(input.tagName === "BUTTON" && input.textContent))
    .map(({ id }) => id));
  assert.deepEqual(nameless, []);
  for (const id of ["keys", "fpr", "bits", "key", "file", "ask"]) {
    assert.equal(await page.locator(`#${id}`).getAttribute("aria-describedby"), `${id}-error`);
  }
});

test("no page complained, and nothing left the folder", () => {
  assert.deepEqual(complaints, []);
  const folder = URL_OF_PAGE.replace("index.html", "");
  assert.ok(requests.length > 10);
  assert.deepEqual(requests.filter((url) => !url.startsWith(folder)), []);
});

test("a browser that lacks a feature is told so", async (t) => {
  const page = await browser.newPage();
  t.after(() => page.close());
  // As Chrome before 115.
  await page.addInitScript(() => {
    WebAssembly.Module = function () {
      throw new RangeError("WebAssembly.Compile is disallowed on the main thread");
    };
  });
  await page.goto(URL_OF_PAGE);
  assert.ok(await page.getByText("This page needs Chrome or Edge 115").isVisible());
  assert.ok(!(await page.locator("main").isVisible()));
});

test("an unbuilt page names the command that builds it", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "page-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const name of ["index.html", "page.css"]) copyFileSync(join(import.meta.dirname, "../page", name), join(folder, name));
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.goto(pathToFileURL(join(folder, "index.html")).href);
  assert.ok(await page.getByText("npm --prefix bindings/js run page").isVisible());
  assert.ok(!(await page.locator("main").isVisible()));
});
