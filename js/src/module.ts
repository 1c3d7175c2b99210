// The WebAssembly module, instantiated when this file is imported.

import { initSync } from "../build/wasm.js";
import text from "../build/text.js";

/** `build.js` writes each byte as the character 32 above it: half as long, once compressed, as base64 would make it. */
const module = Uint8Array.from(text, (character) => character.charCodeAt(0) - 32);

export const { memory } = initSync({ module });
export { Bank, Bytes, Filter, Kind, Size, Staging } from "../build/wasm.js";
