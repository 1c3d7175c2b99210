// run.cjs MODULE: calls the module of lib.rs, in which the portable kernel and the reference are.
const wasm = new WebAssembly.Module(require("fs").readFileSync(process.argv[2]));
const passed = new WebAssembly.Instance(wasm, {}).exports.passed();
console.log(`${passed} checks passed`);
process.exit(passed === 2000 ? 0 : 1);
