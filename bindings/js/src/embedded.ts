// The WebAssembly, from the text in the bundle. The build for edge runtimes imports `bloomline.wasm` instead.

import text from "../build/text.js";

/** `text` starts with the codes of the bytes 0 to 255: one character below `}`, or two. */
const byteOf = new Uint8Array(3 * 128);
const bytes = new Uint8Array(text.length);
let at = 0, length = 0;
for (let byte = 0; byte < 256; byte++) byteOf[code()] = byte;
while (at < text.length) bytes[length++] = byteOf[code()]!;

function code(): number {
  const unit = text.charCodeAt(at++);
  return unit < 125 ? unit : (unit - 124) * 128 + text.charCodeAt(at++);
}

export default new WebAssembly.Module(bytes.subarray(0, length));
