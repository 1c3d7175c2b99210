// The WebAssembly module, instantiated when this file is imported.

import { initSync } from "../build/wasm.js";
import text from "../build/text.js";

/** `text` starts with the characters that stand for the bytes 0 to 255. `build.js` chooses short ones for frequent bytes. */
const byteOf: number[] = [];
for (let byte = 0; byte < 256; byte++) byteOf[text.charCodeAt(byte)] = byte;
const module = Uint8Array.from(text.slice(256), (character) => byteOf[character.charCodeAt(0)]!);

export const { memory } = initSync({ module });
export {
  Bank, Bytes, Filter, Kind, fpr, size_for_bits_per_key, size_for_fpr, size_of_blocks, stage,
} from "../build/wasm.js";
