//! `bloomline-bindgen MODULE.wasm FOLDER` is `wasm-bindgen --target bundler`, as a library: at the version of the lock file,
//! and with a sixth of the command's dependencies.

use anyhow::Context;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let module = arguments.next().context("which module?")?;
    let folder = arguments.next().context("which folder to write to?")?;
    wasm_bindgen_cli_support::Bindgen::new()
        .input_path(module)
        .bundler(true)?
        .typescript(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .out_name("wasm")
        .generate(folder)
}
