package bloomline;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * A number of distinct keys, estimated from a filter's bits.
 *
 * @param keys the estimate, in whole keys
 * @param standardError the standard error, in keys. The estimate is off by less than this two times in three, and
 *     almost never by more than four times this
 */
public record KeyEstimate(long keys, double standardError) implements Serializable {
    /** By the estimators that {@code src/estimate.rs} explains, of modules with this many lanes each. */
    static Optional<KeyEstimate> of(ByteBuffer lanes, int moduleLanes, int k, int nModules) {
        int nLanes = lanes.limit() / 8;
        // Only one module of an odd number of blocks can be a copy of a short filter.
        boolean isCopy = moduleLanes == nLanes && nLanes % 16 == 8 && nLanes <= 8 * BloomView.MOST_SHORT_LANES;
        return IntStream.of(isCopy ? new int[] {0, 1, 2, 4} : new int[1])
                .mapToObj(shift -> new Counts(lanes, moduleLanes, shift))
                .max(Comparator.comparingLong(counts -> counts.excess))
                .flatMap(counts -> counts.probes(k))
                .map(found -> {
                    double scale = found.bits / (k * nModules);
                    double variance = Math.max(found.variance, 0) * scale * scale;
                    return new KeyEstimate(
                            (long) Math.max(found.perBit * scale + 0.5, 0), Math.sqrt(variance + 1 / 12.0));
                });
    }

    /** Lanes, counted by their set bits. The neighbours of a lane are in the blocks before and after. */
    private static final class Counts {
        final long[] all = new long[65];
        /** Of lanes without a neighbour before them, and of lanes without a neighbour after them. */
        final long[] ends = new long[65];
        /** Of the unions of neighbours. */
        final long[] unions = new long[65];
        long excess;
        long varianceOfExcess;

        Counts(ByteBuffer lanes, int moduleLanes, int shift) {
            for (int i = 0; i < lanes.limit() / 8; i++) {
                int inModule = i % moduleLanes;
                boolean isFirst = shift == 0 && inModule < 8 || inModule % 8 + shift >= 8;
                boolean isLast = shift == 0 && inModule + 8 >= moduleLanes || inModule % 8 < shift;
                long lane = Lanes.get(lanes, 8 * i);
                int b = Long.bitCount(lane);
                all[b]++;
                ends[b] += (isFirst ? 1 : 0) + (isLast ? 1 : 0);
                if (!isFirst) {
                    // The block before the first one is the last one.
                    int from = i + shift - 8 + (inModule + shift < 8 ? moduleLanes : 0);
                    long before = Lanes.get(lanes, 8 * from);
                    int a = Long.bitCount(before);
                    int union = Long.bitCount(before | lane);
                    unions[union]++;
                    excess += 64 * (a + b - union) - a * b;
                    varianceOfExcess += a * b * (64 - a) * (64 - b);
                }
            }
        }

        /** The probes of all keys. If blocks are repeated, a key counts once in all neighbours that have it. */
        Optional<Probes> probes(int k) {
            Optional<Probes> probes = KeyEstimate.probes(all, k, 4);
            double bits = excess / 64.0;
            if (bits <= 0 || bits * bits <= 28 * (varianceOfExcess / (63.0 * 64 * 64) + bits / 3)) {
                return probes;
            }
            long[] pairs = IntStream.range(0, 65).mapToLong(i -> 2 * all[i] - ends[i]).toArray();
            return probes.flatMap(a -> KeyEstimate.probes(pairs, k, 4)
                    .flatMap(b -> KeyEstimate.probes(unions, k, 128).map(c -> {
                        double share = c.bits / a.bits;
                        return new Probes(a.perBit - share * (2 * b.perBit - c.perBit),
                                a.variance - share * share * (4 * b.variance - c.variance), a.bits);
                    })));
        }
    }

    private record Probes(double perBit, double variance, double bits) {}

    /** Empty if too few bits are clear, or more than one in {@code lanesPerFull} lanes is full. */
    private static Optional<Probes> probes(long[] occupancy, int k, int lanesPerFull) {
        long nLanes = LongStream.of(occupancy).sum();
        long ones = 0;
        double probes = 0;
        double variance = 0;
        double probesOfLane = 0;
        double varianceOfLane = 0;
        for (int set = 0; set <= 64; set++) {
            ones += occupancy[set] * set;
            probes += occupancy[set] * probesOfLane;
            variance += occupancy[set] * varianceOfLane;
            double clear = Math.max(64 - set, 1);
            probesOfLane += 64 / clear;
            varianceOfLane += 64 * set / (clear * clear);
        }
        boolean isTooFull = ones > 0 && 64 * nLanes - ones < 64 * nLanes / 50 + 4;
        if (isTooFull || occupancy[64] > nLanes / lanesPerFull) {
            return Optional.empty();
        }
        double bits = 64.0 * nLanes;
        return Optional.of(new Probes(probesPerBit(probes / bits, k), variance / (bits * bits), bits));
    }

    /** Adds the probes that full lanes did not notice, by Newton's method. */
    private static double probesPerBit(double noticed, int k) {
        double inPairs = (double) Math.max(k - 8, 0) / k;
        double rho = noticed;
        for (int step = 0; step < 8; step++) {
            double clear = Sizing.expOfMinus(rho);
            double sum = 0;
            double power = 1;
            for (int i = 1; i <= 64; i++) {
                power *= 1 - clear;
                sum += power / i;
            }
            sum -= rho * inPairs * clear * power;
            rho += (noticed - sum) / (1 - power);
        }
        return rho;
    }
}
