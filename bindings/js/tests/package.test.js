// What `npm pack` takes, its types for strict users, and the README's programs.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import test from "node:test";
import { runInNewContext, runInThisContext } from "node:vm";
import { build, transformSync } from "esbuild";
import { BloomFilter, BloomView } from "bloomline";
import { serve, skip } from "./chromium.js";
import { scratch } from "./support.js";

const PACKAGE = dirname(import.meta.dirname);
const README = readFileSync(join(PACKAGE, "README.md"), "utf8");

function run(command, args, options) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8", ...options });
  assert.equal(status, 0, `${command} ${args.join(" ")}: ${error ?? ""}${stdout}${stderr}`);
  return stdout;
}

/** A project that has installed the package, without its repository. */
function project(t) {
  const folder = scratch(t), installed = join(folder, "node_modules/bloomline");
  mkdirSync(installed, { recursive: true });
  const [{ filename }] = JSON.parse(run("npm", ["pack", "--json", "--pack-destination", folder], { cwd: PACKAGE }));
  run("tar", ["-xzf", join(folder, filename), "-C", installed, "--strip-components=1"]);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  return folder;
}

/** The README's blocks of code under a heading. */
function blocks(heading) {
  const [section] = README.split(`## ${heading}\n`)[1].split("\n## ");
  const found = [...section.matchAll(/```(?:js|ts)\n(.*?)```/gs)].map(([, code]) => code);
  assert(found.length > 0, heading);
  return found;
}

test("npm pack takes what users need", () => {
  const [{ files }] = JSON.parse(run("npm", ["pack", "--dry-run", "--json"], { cwd: PACKAGE }));
  const names = files.map(({ path }) => path).sort();
  for (const name of [
    "LICENSE-APACHE", "LICENSE-MIT", "README.md", "dist/bloomline.cjs", "dist/bloomline.js", "dist/bloomline.wasm",
    "dist/edge.js", "dist/index.d.cts", "dist/index.d.ts", "package.json",
  ]) {
    assert(names.includes(name), name);
  }
  for (const name of names) {
    assert.match(name, /^(LICENSE-(APACHE|MIT|THIRD-PARTY)|README\.md|package\.json|dist\/\w+\.(c?js|wasm|d\.c?ts))$/);
  }
});

test("the package has no dependencies, and the code of one file is ASCII, and imports nothing", () => {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8"));
  assert.equal(dependencies ?? peerDependencies, undefined);
  const code = readFileSync(join(PACKAGE, "dist/bloomline.js"), "latin1");
  assert(!/\bimport\s*[{*"']|\bfrom\s*["']|\brequire\(/.test(code));
  // Bundles are read in any encoding, stand in HTML, and go through `replace`.
  assert.deepEqual(code.match(/[^\n -~]|<\/script|<!--|\$[$&`']/g), null);
});

const ANSWERS = `({ BloomFilter, BloomView }) => {
  const filter = new BloomFilter({ expectedKeys: 10 }), refused = [];
  filter.addAll(["ant", "é🐜".repeat(20)]);
  for (const call of [() => filter.add("\\ud800"), () => new BloomView(new Uint8Array(3))]) {
    try {
      call();
    } catch ({ message }) {
      refused.push(message);
    }
  }
  return [...refused, filter.toBytes()].join();
}`;

function Module() {
  throw new WebAssembly.CompileError("Wasm code generation disallowed by embedder");
}

const EDGE = {
  WebAssembly: Object.create(WebAssembly, { Module: { value: Module } }),
  require: () => new WebAssembly.Module(readFileSync(join(PACKAGE, "dist/bloomline.wasm"))),
};

test("Jest's jsdom and edge runtimes, which have few globals", async (t) => {
  const folder = project(t), expected = runInThisContext(ANSWERS)({ BloomFilter, BloomView });
  assert.match(expected, /lone surrogate.*the bytes were cut/);
  for (const [condition, file, globals] of [
    ["node", "bloomline.cjs", {}], ["workerd", "edge.js", { ...EDGE }], ["edge-light", "edge.js", { ...EDGE }],
  ]) {
    const { outputFiles, metafile } = await build({
      stdin: { contents: `globalThis.answers = (${ANSWERS})(require("bloomline"))`, resolveDir: folder },
      bundle: true, format: "cjs", conditions: [condition], external: ["*.wasm?module"], write: false,
      metafile: true,
    });
    assert(Object.keys(metafile.inputs).some((name) => name.endsWith(`/dist/${file}`)), condition);
    runInNewContext(outputFiles[0].text, globals);
    assert.equal(globals.answers, expected, condition);
  }
});

const USER = `
import { BloomFilter, BloomView, FilterBank, sizing } from "bloomline";
import type {
  ByteStrings, FilterOptions, IntegerArray, Key, KeyEstimate, Keys, LoadOptions, Size, Sizing, StandaloneBytes,
} from "bloomline";

const size: Size = { expectedKeys: 10, fpr: 0.01 };
const sizes: Size[] = [
  size, { expectedKeys: 10, mostModules: 1 }, { expectedKeys: 10, bitsPerKey: 12, mostModules: 4 }, { blocks: 3, k: 4 },
  { blocks: 4, nModules: 2, k: 4 },
];
const options: FilterOptions = { ...size, seed: 5n };
const planned: Sizing = sizing(size);
const rate: number | undefined = planned.fpr ?? planned.bitsPerKey;
const filter = new BloomFilter(options);
const keys: Key[] = ["a", new Uint8Array(1), 1, 1n];
const strings: ByteStrings = { bytes: new Uint8Array(3), offsets: new Int32Array([0, 3]) };
const integers: IntegerArray = new BigUint64Array(3);
const many: Keys[] = [keys, new Set(["a"]), strings, integers, new Int8Array(2)];
for (const batch of many) filter.addAll(batch);
const isNew: boolean = filter.add("a"), found: boolean = filter.has(1n), answers: Uint8Array = filter.hasAll(keys);
const source: StandaloneBytes = filter.toBytes();
const view: BloomView = new BloomView(source);
const again: BloomFilter = BloomFilter.fromBytes(new ArrayBuffer(3)).union(view);
const estimates: (KeyEstimate | undefined)[] = [
  view.estimatedKeys, view.estimatedUnion(filter), filter.estimatedIntersection(view),
];
const error: number | undefined = estimates[0]?.standardError;
const facts: number[] = [
  view.k, view.blocks, view.nModules, planned.nModules, view.byteLength, view.fillRatio, view.estimatedFpr,
  view.knownKeys ?? 0,
];
const wide: bigint[] = [view.seed, view.hash("a")];
const load: LoadOptions = { onProgress: (loaded: number, total?: number) => void [loaded, total] };
const opened: Promise<BloomView> = BloomView.fromResponse(new Response(), load);
const owned: Promise<BloomFilter> = BloomFilter.fromResponse(new Response());
const banks: Promise<FilterBank> = FilterBank.fromResponse(new Response());
const bank = new FilterBank(new Uint8Array(3));
const slots: number[] = bank.find("a");
filter.fold(2); filter.clear(); filter.free();
{ using scoped = again; void scoped; }
void [sizes, rate, isNew, found, answers, error, facts, wide, opened, owned, banks, slots, bank.slots, bank.seed];

// @ts-expect-error: read-only
view.add("a");
// @ts-expect-error: no key
filter.add(null);
// @ts-expect-error: k is missing
new BloomFilter({ blocks: 3 });
// @ts-expect-error: seeds are bigints
new BloomFilter({ expectedKeys: 3, seed: 3 });
// @ts-expect-error: read-only
filter.k = 3;
`;

test("types, for strict users", (t) => {
  const folder = project(t);
  mkdirSync(join(folder, "plain"));
  writeFileSync(join(folder, "user.ts"), USER);
  for (const [i, code] of [...blocks("Example"), ...blocks("Browser"), ...blocks("Memory")].entries()) {
    writeFileSync(join(folder, `readme${i}.ts`), code);
  }
  writeFileSync(join(folder, "user.cts"), 'import { sizing } from "bloomline";\nsizing({ expectedKeys: 10 });\n');
  // By its path, a folder is found as by resolvers that do not read `exports`.
  writeFileSync(join(folder, "plain/plain.ts"), 'export { BloomFilter } from "../node_modules/bloomline";\n');
  assert(createRequire(join(folder, "main.js")).resolve("./node_modules/bloomline").endsWith("dist/bloomline.js"));
  const lib = ["ES2022", "ESNext.Disposable", "DOM", "DOM.Iterable"];
  for (const options of [
    { include: ["*"], module: "Node16", moduleResolution: "Node16", lib },
    { include: ["*"], module: "ESNext", moduleResolution: "Bundler", lib },
    { include: ["plain"], module: "ESNext", moduleResolution: "Bundler", lib: ["ES2022"] },
  ]) {
    const { include, ...compilerOptions } = options;
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({
      include,
      compilerOptions: {
        ...compilerOptions, target: "ES2022", types: [], strict: true, exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true, skipLibCheck: false, noEmit: true,
      },
    }));
    run(join(PACKAGE, "node_modules/.bin/tsc"), [], { cwd: folder });
  }
});

test("the README's first example", (t) => {
  const folder = project(t);
  const [code] = blocks("Example");
  const checked = code.replace(/^(\w.*); \/\/ (true|false|Uint8Array (\[.*\])).*$/gm, (_, call, value, array) =>
    `assert.deepEqual(${call}, ${array ? `Uint8Array.from(${array})` : value});`);
  assert.equal(checked.match(/assert\./g).length, 3);
  writeFileSync(join(folder, "example.js"), `import assert from "node:assert/strict";\n${checked}
    assert.equal((seen.byteLength / 1e6).toFixed(2), ${JSON.stringify(/\/\/ ([\d.]+) MB/.exec(code)[1])});`);
  run(process.execPath, ["example.js"], { cwd: folder });
  const { code: lowered } = transformSync(blocks("Memory")[0], { loader: "ts", target: "es2022" });
  writeFileSync(join(folder, "memory.js"), lowered);
  run(process.execPath, ["memory.js"], { cwd: folder });
});

/** The bytes of a filter of the words of the README. */
function words() {
  const filter = new BloomFilter({ expectedKeys: 10 });
  filter.addAll(["ant", "bee"]);
  return filter.toBytes();
}

async function free() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test("the README's Node server", { timeout: 60_000 }, async (t) => {
  const folder = project(t), port = await free();
  writeFileSync(join(folder, "words.bloom"), words());
  writeFileSync(join(folder, "server.js"), blocks("Node server")[0]);
  const server = spawn(
    process.execPath, ["server.js"], { cwd: folder, env: { ...process.env, PORT: port }, stdio: "inherit" },
  );
  t.after(() => server.kill());
  const ask = async (query) => (await fetch(`http://127.0.0.1:${port}/?${query}`)).text();
  for (let tries = 0; tries < 200 && server.exitCode === null; tries++) {
    if (await ask("").then(() => true, () => false)) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.deepEqual([await ask("word=bee"), await ask("word=cow"), await ask("")], ["true", "false", "false"]);
});

test("the README's browser and service worker", { skip, timeout: 120_000 }, async (t) => {
  const page = `<!doctype html><meta charset="utf-8">
    <script type="importmap">{ "imports": { "bloomline": "/bloomline.js" } }</script>`;
  const files = {
    "/": ["text/html", page],
    "/browser": ["text/html", `${page}<script type="module">${blocks("Browser")[0]}</script>`],
    "/service.js": ["text/javascript", blocks("Service worker")[0]],
    "/bloomline.js": ["text/javascript", readFileSync(join(PACKAGE, "dist/bloomline.js"))],
    "/words.bloom": ["application/octet-stream", Buffer.from(words())],
    "/favicon.ico": ["image/x-icon", ""],
  };
  const asked = [];
  const { address, context } = await serve(t, (request, response) => {
    asked.push(request.url);
    const [type, body] = files[request.url] ?? [];
    response.writeHead(
      type ? 200 : 404, { "content-type": type ?? "text/plain", ...(body && { "content-length": body.length }) },
    );
    response.end(body);
  });
  const tab = await context.newPage();

  for (const visit of ["first", "second"]) {
    const logged = [];
    const done = new Promise((resolve) => tab.on("console", (message) => {
      logged.push(message.text());
      if (/^(true|false)$/.test(message.text())) resolve();
    }));
    await tab.goto(`${address}/browser`);
    await done;
    tab.removeAllListeners("console");
    assert.equal(logged.at(-1), "true", visit);
    assert.match(logged[0], /^\d+ of (\d+|unknown) bytes$/);
  }
  assert.equal(asked.filter((url) => url === "/words.bloom").length, 1);

  await tab.goto(address);
  const register = README.match(/`(navigator\.serviceWorker\.register\(.*?\))`/)[1];
  await tab.evaluate(`${register}.then(() => navigator.serviceWorker.ready).then(() => undefined)`);
  await tab.reload();
  const answers = await tab.evaluate(async () => {
    const ask = async (word) => (await fetch(`/has?word=${word}`)).json();
    return [await ask("bee"), await ask("cow")];
  });
  assert.deepEqual(answers, [true, false]);
  assert(!asked.some((url) => url.startsWith("/has")));
});
