package bloomline;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Optional;

/**
 * A number of distinct keys, estimated from a filter's bits.
 *
 * @param keys the estimate, in whole keys
 * @param standardError the standard error, in keys. The estimate is off by less than this two times in three, and
 *     almost never by more than four times this
 */
public record KeyEstimate(long keys, double standardError) implements Serializable {
    /** Of lanes that {@code probes} probes of each key fall in, by the estimator that {@code src/estimate.rs} explains. */
    static Optional<KeyEstimate> of(ByteBuffer lanes, int k, int nModules) {
        long[] occupancy = new long[65];
        for (int at = 0; at < lanes.limit(); at += 8) {
            occupancy[Long.bitCount(Lanes.get(lanes, at))]++;
        }
        long nLanes = lanes.limit() / 8;
        double bits = 64.0 * nLanes;
        long ones = 0;
        double noticed = 0;
        double variance = 0;
        double noticedByLane = 0;
        double varianceOfLane = 0;
        for (int set = 0; set <= 64; set++) {
            ones += occupancy[set] * set;
            noticed += occupancy[set] * noticedByLane;
            variance += occupancy[set] * varianceOfLane;
            double clear = 64 - set;
            noticedByLane += set < 64 ? 64 / clear : 0;
            varianceOfLane += set < 64 ? 64 * set / (clear * clear) : 0;
        }
        boolean isTooFull = ones > 0 && 64 * nLanes - ones < 64 * nLanes / 50 + 4;
        if (isTooFull || occupancy[64] > nLanes / 4) {
            return Optional.empty();
        }
        double scale = bits / (k * nModules);
        double keys = probesPerBit(noticed / bits, k) * scale + 0.5;
        double ofKeys = variance / (bits * bits) * scale * scale;
        return Optional.of(new KeyEstimate((long) keys, Math.sqrt(ofKeys + 1 / 12.0)));
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
