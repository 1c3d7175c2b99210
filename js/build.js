// `npm run build`: Rust → WebAssembly → dist/bloomline.js, with types, and page/page.js, a classic script, because a
// page that is opened from a folder may not load modules.
//
// Needs Rust with the target wasm32-unknown-unknown, and wasm-bindgen at the version of wasm/Cargo.lock.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { build } from "esbuild";

process.chdir(import.meta.dirname);
const run = (command, ...args) =>
  execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

const [, version] = /name = "wasm-bindgen"\nversion = "(.*)"/.exec(readFileSync("wasm/Cargo.lock", "utf8"));
let found = "no wasm-bindgen";
try {
  found = run("wasm-bindgen", "--version").trim();
} catch {}
if (found !== `wasm-bindgen ${version}`) {
  console.error(`found ${found}, but need ${version}: cargo install wasm-bindgen-cli --version ${version}`);
  process.exit(1);
}

const target = resolve(process.env.CARGO_TARGET_DIR ?? "../target", "js");
// Messages of panics would name the folders of this machine.
const folders = {
  [resolve("..")]: "bloomline",
  [process.env.CARGO_HOME ?? `${homedir()}/.cargo`]: "cargo",
  [run("rustc", "--print", "sysroot").trim()]: "rust",
};
const flags = Object.entries(folders).map(([from, to]) => `--remap-path-prefix=${from}=${to}`);
process.env.CARGO_ENCODED_RUSTFLAGS = ["-Ctarget-feature=+simd128", ...flags].join("\x1f");
const triple = "wasm32-unknown-unknown";
run("cargo", "build", "--quiet", "--release", "--locked", "--target", triple, "--target-dir", target,
  "--manifest-path", "wasm/Cargo.toml");
run("wasm-bindgen", "--target", "web", "--remove-name-section", "--remove-producers-section", "--out-dir", "build",
  "--out-name", "wasm", `${target}/${triple}/release/bloomline_js.wasm`);

// Compressed, this is 3 % longer than the bytes; base64 would be 40 %.
const bytes = readFileSync("build/wasm_bg.wasm");
const counts = new Array(256).fill(0);
for (const byte of bytes) counts[byte]++;
const characters = Array.from({ length: 512 }, (_, unit) => String.fromCharCode(unit)).join("").match(/[ -~À-ȿ]/g);
const shortest = characters.filter((character) => !'"\\'.includes(character));
const alphabet = [];
const byCount = Array.from(counts.keys()).sort((a, b) => counts[b] - counts[a]);
byCount.forEach((byte, rank) => (alphabet[byte] = shortest[rank]));
const text = alphabet.join("") + Array.from(bytes, (byte) => alphabet[byte]).join("");
mkdirSync("build", { recursive: true });
writeFileSync("build/text.js", `export default ${JSON.stringify(text)};\n`);
writeFileSync("build/text.d.ts", "declare const text: string;\nexport default text;\n");

const shared = {
  absWorkingDir: import.meta.dirname,
  bundle: true, minifyWhitespace: true, minifySyntax: true, target: "es2022", charset: "utf8", legalComments: "none", logLevel: "warning",
  // wasm-bindgen's function to fetch the module, which is not used.
  logOverride: { "empty-import-meta": "silent" },
};
await build({
  ...shared, minifyIdentifiers: true, entryPoints: ["src/index.ts"], format: "esm", outfile: "dist/bloomline.js",
});
// With the names of the sources: short ones would depend on the text of the WebAssembly, which compilers and folders
// change, and `scripts/check js` compares the rest.
await build({ ...shared, entryPoints: ["page/main.ts"], format: "iife", outfile: "page/page.js" });
types(".");
types("page");

// npm leaves out links.
for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) copyFileSync(`../${name}`, name);

function types(project) {
  try {
    run("node_modules/.bin/tsc", "--project", project);
  } catch (error) {
    console.error(error.stdout);
    process.exit(1);
  }
}
