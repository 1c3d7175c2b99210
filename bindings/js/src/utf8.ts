// What audio worklets and Jest's jsdom lack. `build.js` replaces the globals of the same names.

const { TextDecoder = class {
  decode(bytes: Uint8Array = new Uint8Array()): string {
    return decodeURIComponent(escape(String.fromCharCode(...bytes)));
  }
}, TextEncoder = class {
  encodeInto(text: string, bytes: Uint8Array): { written: number } {
    const encoded = unescape(encodeURIComponent(text.toWellFormed()));
    for (let i = 0; i < encoded.length; i++) bytes[i] = encoded.charCodeAt(i);
    return { written: encoded.length };
  }
} } = globalThis;

export { TextDecoder, TextEncoder };
