// Sections 2 and 3 of docs/format.md: which bits of which block a lookup probes, and where the bytes have them.

/** Bytes of the footer behind the lanes. */
const FOOTER = 64;

export interface Probe {
  /** 0 to 7. */
  lane: number;
  /** 0 to 63; 0 is the least significant bit of the lane. */
  bit: number;
}

export interface Mask {
  block: number;
  probes: Probe[];
}

const wrap = (product: bigint): bigint => BigInt.asUintN(64, product);

/** Hash → block and bits. */
export function mask(hash: bigint, blocks: number, k: number): Mask {
  const block = Number((hash * BigInt(blocks)) >> 64n);
  const x = wrap(hash * 0x9e3779b97f4a7c15n);
  const y = wrap((x ^ (x >> 32n)) * 0xd6e8feb86659fd93n);
  const rotation = Number(x >> 61n);
  const probes = Array.from({ length: k }, (_, j) => {
    const lane = (rotation + j) % 8;
    const bit = Number(((j < 8 ? x : y) >> BigInt(13 + 6 * lane)) & 63n);
    return { lane, bit };
  });
  return { block, probes };
}

/** The eight lanes of a block, from a filter's standalone bytes. The blocks of a short filter overlap and wrap. */
export function lanesOf(bytes: Uint8Array, block: number): bigint[] {
  const count = (bytes.length - FOOTER) / 8;
  const step = Math.min(count & -count, 8);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: 8 }, (_, i) => view.getBigUint64(((step * block + i) % count) * 8, true));
}

export function isSet(lanes: bigint[], { lane, bit }: Probe): boolean {
  return (((lanes[lane] ?? 0n) >> BigInt(bit)) & 1n) === 1n;
}
