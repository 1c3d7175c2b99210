package bloomline;

import java.io.Serializable;
import java.util.Arrays;

/**
 * The size of a filter: its number of blocks of 64 bytes, and its probes per key, 1 to 16.
 *
 * <p>Sizes are computed by a model of the false-positive rate that is exact for random hashes, and are those of every
 * language.
 */
public record Sizing(int nBlocks, int k) implements Serializable {
    /** So that the standalone bytes fit into an array. */
    private static final int MOST_BLOCKS = (Integer.MAX_VALUE - 8 - Footer.LENGTH) / Lanes.BLOCK_BYTES;

    private static final double BLOCK_BITS = 512;
    private static final double MAX_BITS_PER_KEY = 64;
    /** The rate at the most bits per key. */
    private static final double MIN_FPR = 1.263e-8;

    /** Entry i is the bits per key from which k = i + 2 has a lower rate than k = i + 1, or for k = 9 saves 1% of them. */
    private static final double[] ONE_MORE_PROBE = {
        2.093, 3.598, 5.086, 6.601, 8.316, 10.207, 12.231, 15.91, 16.088, 18.644, 21.384, 24.321, 27.828,
        31.969, 36.723
    };

    /** Each divides the next, so that a larger size never becomes the smaller one. */
    private static final int[] FOLDABLE = {4, 12, 24, 120, 720, 5040, 10080, 20160, 40320, 80640, 161280, 322560};

    /** Powers of 1, 63/64 and 62/64. */
    private static final double[][] POWERS = {{1, 1, 1}, {1, 63 / 64., 3969 / 4096.}, {1, 62 / 64., 3844 / 4096.}};
    private static final double[][] FACTORS = {{1}, {1, -1}, {1, -127 / 64.0, 63 / 64.0}};

    /**
     * @throws IllegalArgumentException if {@code nBlocks} is not from 1 to 33,554,430, which is 2 GiB, or {@code k} not
     *     from 1 to 16
     */
    public Sizing {
        if (nBlocks < 1 || nBlocks > MOST_BLOCKS) {
            throw new IllegalArgumentException("a filter has 1 to " + MOST_BLOCKS + " blocks, not " + nBlocks);
        }
        if (k < 1 || k > 16) {
            throw new IllegalArgumentException("probes per key must be 1 to 16, not " + k);
        }
    }

    /**
     * The smallest filter whose false-positive rate is at most {@code fpr} once it holds {@code expectedKeys} distinct
     * keys.
     *
     * @throws IllegalArgumentException if {@code fpr} is not from 1.263e-8 to below 1, or the filter exceeds 2 GiB
     */
    public static Sizing forFpr(long expectedKeys, double fpr) {
        if (!(fpr >= MIN_FPR && fpr < 1)) {
            throw new IllegalArgumentException("a false-positive rate must be " + MIN_FPR + " to below 1, not " + fpr);
        }
        return forBitsPerKey(expectedKeys, leastBitsPerKey(fpr));
    }

    /**
     * A filter with {@code bitsPerKey} bits for each of {@code expectedKeys} distinct keys, rounded up to whole blocks,
     * with the best k.
     *
     * @throws IllegalArgumentException if {@code bitsPerKey} is not above 0 and at most 64, or the filter exceeds 2 GiB
     */
    public static Sizing forBitsPerKey(long expectedKeys, double bitsPerKey) {
        if (!(bitsPerKey > 0 && bitsPerKey <= MAX_BITS_PER_KEY)) {
            throw new IllegalArgumentException("bits per key must be above 0 and at most 64, not " + bitsPerKey);
        }
        double nBlocks = Math.max(Math.ceil(expectedKeys * bitsPerKey / BLOCK_BITS), 1);
        if (expectedKeys < 0 || nBlocks > MOST_BLOCKS) {
            throw new IllegalArgumentException(expectedKeys + " keys of " + bitsPerKey
                    + " bits each are not 0 to 2 GiB: split the keys over several filters");
        }
        return new Sizing((int) nBlocks, bestK(nBlocks * BLOCK_BITS / Math.max(expectedKeys, 1)));
    }

    /**
     * This size with the number of blocks rounded up to one with many divisors, at most 1% more or one block, so that
     * the filter {@linkplain BloomView#toFolded can be folded}.
     */
    public Sizing foldable() {
        int step = 2;
        for (int next : FOLDABLE) {
            step = next - 1 <= nBlocks / 100 ? next : step;
        }
        return new Sizing(Math.min((nBlocks + step - 1) / step * step, MOST_BLOCKS), k);
    }

    private static int bestK(double bitsPerKey) {
        return 1 + (int) Arrays.stream(ONE_MORE_PROBE).filter(from -> bitsPerKey >= from).count();
    }

    /** By inclusion and exclusion over the probes that find their bit clear: see {@code src/sizing/blocked.rs}. */
    private static double model(double bitsPerKey, int k) {
        double keysPerBlock = Math.min(BLOCK_BITS / bitsPerKey, 1e6);
        int[] probes = new int[8];
        int terms = 1;
        for (int lane = 0; lane < 8; lane++) {
            probes[lane] = (lane < k ? 1 : 0) + (lane + 8 < k ? 1 : 0);
            terms *= 1 + probes[lane];
        }
        double fpr = 0;
        for (int term = 0; term < terms; term++) {
            double coefficient = 1;
            double[] oneKey = {1, 1, 1, 1, 1, 1, 1, 1};
            int choices = term;
            for (int lane = 0; lane < 8; lane++) {
                int choice = choices % (1 + probes[lane]);
                choices /= 1 + probes[lane];
                coefficient *= FACTORS[probes[lane]][choice];
                for (int rotation = 0; rotation < 8; rotation++) {
                    oneKey[rotation] *= POWERS[choice][probes[(lane + rotation) % 8]];
                }
            }
            double sum = 0;
            for (double product : oneKey) {
                sum += product;
            }
            fpr += coefficient * expOfMinus(keysPerBlock * (1 - sum / 8));
        }
        return Math.max(0, Math.min(fpr, 1));
    }

    /** To one part in a million, by interpolation of the rate's logarithm (regula falsi, the "Illinois" variant). */
    private static double leastBitsPerKey(double fpr) {
        // No logarithm is known at 0 bits.
        double[] tooFew = {0, 1, Double.POSITIVE_INFINITY};
        double[] enough = at(1 / 64.0, fpr);
        while (enough[1] > fpr) {
            tooFew = enough;
            enough = at(2 * enough[0], fpr);
        }
        double[] stayed = null;
        while (enough[0] - tooFew[0] > 1e-6 * enough[0]) {
            double share = tooFew[2] / (tooFew[2] - enough[2]);
            share = Double.isNaN(share) ? 0.5 : Math.max(1e-3, Math.min(share, 1 - 1e-3));
            double[] middle = at(tooFew[0] + (enough[0] - tooFew[0]) * share, fpr);
            boolean reached = middle[1] <= fpr;
            double[] stays = reached ? tooFew : enough;
            // An end that stays a second time counts for half, so that it moves, too.
            stays[2] /= stays == stayed ? 2 : 1;
            stayed = stays;
            tooFew = reached ? tooFew : middle;
            enough = reached ? middle : enough;
        }
        return enough[0];
    }

    /** Bits per key, their rate, and how far its logarithm is above the requested rate's. */
    private static double[] at(double bitsPerKey, double fpr) {
        double rate = model(bitsPerKey, bestK(bitsPerKey));
        return new double[] {bitsPerKey, rate, ln(rate) - ln(fpr)};
    }

    // The platforms' own functions differ in the last bit, and sizes must be equal everywhere.

    /** e^(−x) for x ≥ 0. */
    private static double expOfMinus(double x) {
        if (x > 700) {
            return 0;
        }
        long halvings = (long) (x * 1.4426950408889634 + 0.5);
        // ln 2 in two parts, the first of which ends in zero bits.
        double rest = x - halvings * 6.931471803691238e-1 - halvings * 1.9082149292705877e-10;
        double series = 1;
        for (int i = 13; i >= 1; i--) {
            series = 1 - rest / i * series;
        }
        return series * Double.longBitsToDouble(1023 - halvings << 52);
    }

    /** The logarithm of a rate from 0 to 1, as other languages round it. */
    private static double ln(double rate) {
        double rest = 1 - (1 - Math.max(rate, 1e-15));
        int halvings = 0;
        while (rest < 1 / Math.sqrt(2)) {
            rest *= 2;
            halvings++;
        }
        // −ln((1 − s)/(1 + s)) = 2·(s + s³/3 + s⁵/5 + …), here for s ≤ 0.18.
        double s = (1 - rest) / (1 + rest);
        double sum = 0;
        for (int i = 11; i >= 0; i--) {
            sum = sum * s * s + 1.0 / (2 * i + 1);
        }
        return -(halvings * 0.6931471805599453 + 2 * s * sum);
    }
}
