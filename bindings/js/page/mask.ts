// Sections 2, 3 and 5 of docs/format.md: which bits of which blocks a lookup probes, and where the bytes have them.

export interface Probe {
  /** 0 to 7. */
  lane: number;
  /** 0 to 63; 0 is the least significant bit of the lane. */
  bit: number;
}

/** What a lookup probes in one module. */
export interface Mask {
  /** The key's hash in this module. */
  hash: bigint;
  /** Counted from the module's first. */
  block: number;
  probes: Probe[];
}

const wrap = (product: bigint): bigint => BigInt.asUintN(64, product);

/** A key's mask in each module of a filter. */
export function masks(hash: bigint, { blocks, nModules, k }: { blocks: number; nModules: number; k: number }): Mask[] {
  return Array.from({ length: nModules }, (_, module) => {
    if (module > 0) hash = step(step(hash));
    return mask(hash, blocks / nModules, k);
  });
}

function step(hash: bigint): bigint {
  return wrap((hash ^ (hash >> 32n)) * 0xc4ceb9fe1a85ec53n);
}

/** Hash → block and bits. */
function mask(hash: bigint, blocks: number, k: number): Mask {
  const block = Number((hash * BigInt(blocks)) >> 64n);
  const x = wrap(hash * 0x9e3779b97f4a7c15n);
  const y = wrap((x ^ (x >> 32n)) * 0xd6e8feb86659fd93n);
  const rotation = Number(x >> 61n);
  const probes = Array.from({ length: k }, (_, j) => {
    const lane = (rotation + j) % 8;
    const bit = Number(((j < 8 ? x : y) >> BigInt(13 + 6 * lane)) & 63n);
    return { lane, bit };
  });
  return { hash, block, probes };
}

/** The bytes of all lanes, from standalone bytes. Several modules have a checksum each, before the footer. */
export function body(standalone: Uint8Array, nModules: number): Uint8Array {
  return standalone.subarray(0, -64 - (nModules > 1 ? 8 * nModules : 0));
}

/** The eight lanes of a block, counted from the first of all modules. The blocks of a short filter overlap and wrap. */
export function lanesOf(bytes: Uint8Array, block: number): bigint[] {
  const count = bytes.length / 8;
  const step = Math.min(count & -count, 8);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: 8 }, (_, i) => view.getBigUint64(((step * block + i) % count) * 8, true));
}

export function isSet(lanes: bigint[], { lane, bit }: Probe): boolean {
  return (((lanes[lane] ?? 0n) >> BigInt(bit)) & 1n) === 1n;
}
