// Copies the bytes of files into the module's memory, once.

import { Bytes, memory, type, whole } from "./module.js";

/** Bytes from `toBytes()`, or a file that bloomline wrote in any language. */
export type StandaloneBytes = ArrayBuffer | ArrayBufferView;

export interface LoadOptions {
  /** Called after each part, with the number of bytes so far, and of all bytes if the server states it. */
  onProgress?(loaded: number, total?: number): void;
}

/** The most bytes that are allocated because a header announces them. */
const MOST_BELIEVED = 1 << 26;

/** Copies bytes into the module. @internal */
export function place(source: StandaloneBytes): Bytes {
  if (!ArrayBuffer.isView(source) && type(source) !== "ArrayBuffer") {
    throw new TypeError(`${type(source)} has no bytes: give an ArrayBuffer or a Uint8Array`);
  }
  const bytes = ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source);
  const placed = new Bytes(whole("byteLength", bytes.length));
  append(placed, bytes);
  return placed;
}

function append(placed: Bytes, part: Uint8Array): void {
  placed.reserve(part.length);
  new Uint8Array(memory.buffer, placed.start() + placed.byte_len(), part.length).set(part);
  placed.advance(part.length);
}

/** Copies the body of a response into the module, as it arrives. @internal */
export async function load(response: Response, { onProgress }: LoadOptions = {}): Promise<Bytes> {
  if (type(response) !== "Response") throw new TypeError(`${type(response)} is no Response: give await fetch(url)`);
  if (!response.ok || !response.body) {
    const { status, statusText, url } = response;
    throw new Error(`no filter in the response ${[status, statusText, url].filter(Boolean).join(" ")}`);
  }
  // For a compressed body, the header has the compressed length.
  const length = response.headers.has("content-encoding") ? 0 : Number(response.headers.get("content-length"));
  const total = length > 0 ? length : undefined;
  const reader = response.body.getReader();
  const placed = new Bytes(Math.min(total ?? 0, MOST_BELIEVED));
  let loaded = 0;
  try {
    for (let read; !(read = await reader.read()).done;) {
      append(placed, read.value);
      loaded += read.value.length;
      onProgress?.(loaded, total !== undefined && loaded <= total ? total : undefined);
    }
  } catch (error) {
    placed.free();
    await reader.cancel(error).catch(() => {});
    throw error;
  }
  return placed;
}
