// `npm run build`: Rust → WebAssembly → dist/bloomline.js, with types, and page/page.js, a classic script, because a
// page that is opened from a folder may not load modules.
//
// Needs Rust with the target wasm32-unknown-unknown.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
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

// As text of ASCII alone, because bundles may be read in any encoding, without what HTML, quotes and the patterns of
// `replace` would change. Frequent bytes are one character, the others two. Compressed, it is 1% longer than the bytes.
const bytes = readFileSync("build/wasm_bg.wasm");
const counts = new Array(256).fill(0);
for (const byte of bytes) counts[byte]++;
const characters = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join("").match(/[^"$<\\]/g);
const pairs = ["}", "~"].flatMap((first) => characters.map((second) => first + second));
const codes = [...characters.slice(0, -2), ...pairs];
const codeOf = [];
const byCount = Array.from(counts.keys()).sort((a, b) => counts[b] - counts[a]);
byCount.forEach((byte, rank) => (codeOf[byte] = codes[rank]));
const text = codeOf.join("") + Array.from(bytes, (byte) => codeOf[byte]).join("");
mkdirSync("build", { recursive: true });
writeFileSync("build/text.js", `export default ${JSON.stringify(text)};\n`);
writeFileSync("build/text.d.ts", "declare const text: string;\nexport default text;\n");
const declared = readFileSync("build/wasm.d.ts", "utf8");
writeFileSync("build/wasm_bg.d.ts", `${declared}export function __wbg_set_wasm(exports: object): void;\n`);

const shared = {
  absWorkingDir: import.meta.dirname,
  bundle: true, minify: true, target: "es2022", legalComments: "none", logLevel: "warning",
  inject: ["src/utf8.ts"],
};
await build({ ...shared, entryPoints: ["src/index.ts"], format: "esm", outfile: "dist/bloomline.js" });
// For Jest, and Node before 20.19. Others have one instance for `import` and `require`.
await build({ ...shared, entryPoints: ["src/index.ts"], format: "cjs", outfile: "dist/bloomline.cjs" });
await build({ ...shared, entryPoints: ["page/main.ts"], format: "iife", outfile: "page/page.js" });

// Edge runtimes compile no bytes, but import a module. Next.js and Vercel need `?module`, which Wrangler accepts, too.
const imported = {
  name: "imported",
  setup({ onResolve }) {
    onResolve({ filter: /embedded\.js$/ }, () => ({ path: "./bloomline.wasm?module", external: true }));
  },
};
await build({
  ...shared, entryPoints: ["src/index.ts"], format: "esm", outfile: "dist/edge.js", plugins: [imported],
});
copyFileSync("build/wasm_bg.wasm", "dist/bloomline.wasm");
types(".");
types("page");
for (const name of readdirSync("dist").filter((name) => name.endsWith(".d.ts"))) {
  writeFileSync(`dist/${name.replace(/ts$/, "cts")}`, readFileSync(`dist/${name}`, "utf8").replaceAll('.js"', '.cjs"'));
}

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
