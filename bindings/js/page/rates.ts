// False-positive rates of other filters, by their published formulas. bloomline's own come from `sizing`.

/** A number of probes and the rate it gives. */
export interface Rate {
  k: number;
  fpr: number;
}

/** The textbook formula: (1 − e^(−k/b))^k, with b bits per key. */
function textbook(bits: number, k: number): number {
  return (1 - Math.exp(-k / bits)) ** k;
}

/** A standard filter, whose probes go to any bit, with the best k: one of the two beside b · ln 2. */
export function standard(bits: number): Rate {
  const below = Math.max(1, Math.floor(bits * Math.LN2));
  const [few, many] = [textbook(bits, below), textbook(bits, below + 1)];
  return few <= many ? { k: below, fpr: few } : { k: below + 1, fpr: many };
}

/** Entry i is the most millibits per key for which RocksDB makes i + 1 probes. */
const ROCKSDB_PROBES = [2080, 3580, 5100, 6640, 8300, 10070, 11720, 14001, 16050, 18300, 22001, 25501];

/** RocksDB's choice of k: `FastLocalBloomImpl::ChooseNumProbes` in its util/bloom_impl.h. */
function rocksdbProbes(bits: number): number {
  const millibits = Math.round(bits * 1000);
  if (millibits > 50_000) return 24;
  const i = ROCKSDB_PROBES.findIndex((most) => millibits <= most);
  return i < 0 ? Math.floor((millibits - 1) / 2000) - 1 : i + 1;
}

/**
 * RocksDB's estimate for its filter: `BloomMath::CacheLocalFpRate` in its util/bloom_impl.h, for 512-bit cache lines.
 * It is the mean of the textbook's rates of lines with one standard deviation more and fewer keys than the average.
 * Up to 64 bits per key, as RocksDB's own settings.
 */
export function rocksdb(bits: number): Rate {
  const k = rocksdbProbes(bits);
  const keys = 512 / bits;
  const deviation = Math.sqrt(keys);
  return { k, fpr: (textbook(512 / (keys + deviation), k) + textbook(512 / (keys - deviation), k)) / 2 };
}
