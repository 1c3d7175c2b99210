// `npm run build`: Rust → WebAssembly → dist/bloomline.js, with types, and page/page.js, a classic script, because a
// page that is opened from a folder may not load modules.
//
// Needs Rust with the target wasm32-unknown-unknown.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { build } from "esbuild";

process.chdir(import.meta.dirname);
const run = (command, args, env = {}) =>
  execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } });

const target = resolve(process.env.CARGO_TARGET_DIR ?? "../../target", "js");
// Messages of panics would name the folders of this machine.
const folders = {
  [resolve("../..")]: "bloomline",
  [process.env.CARGO_HOME ?? `${homedir()}/.cargo`]: "cargo",
  [run("rustc", ["--print", "sysroot"]).trim()]: "rust",
};
const flags = ["-Ctarget-feature=+simd128", ...Object.entries(folders).map(([from, to]) => `--remap-path-prefix=${from}=${to}`)];
const triple = "wasm32-unknown-unknown";
const cargo = (command, args, env) =>
  run("cargo", [command, "--quiet", "--locked", "--manifest-path", "wasm/Cargo.toml", "--target-dir", target, ...args], env);
cargo("build", ["--release", "--target", triple], { CARGO_ENCODED_RUSTFLAGS: flags.join("\x1f") });
cargo("run", ["--package", "bloomline-bindgen", "--", `${target}/${triple}/release/bloomline_js.wasm`, "build"]);

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
await build({
  ...shared, minifyIdentifiers: true, entryPoints: ["page/main.ts"], format: "iife", outfile: "page/page.js",
});
types(".");
types("page");

// npm leaves out links.
for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) copyFileSync(`../../${name}`, name);

function types(project) {
  try {
    run("node_modules/.bin/tsc", ["--project", project]);
  } catch (error) {
    console.error(error.stdout);
    process.exit(1);
  }
}
