package bloomline;

import java.io.Serializable;
import java.util.Arrays;
import java.util.Locale;
import java.util.function.IntToDoubleFunction;
import java.util.stream.IntStream;

/**
 * The size of a filter: its number of blocks of 64 bytes, its probes per key in each module, 1 to 16, and the number of
 * modules that the blocks are divided into, 1 to 16.
 *
 * <p>Modules are filters with hashes of their own that must all have a key. Low rates need fewer bits in several
 * modules, but a lookup of a present key reads a cache line of each. Computed sizes have one module for rates down to
 * about 0.05%, and two below, because a further module is made only where it saves at least 7% of the bits.
 *
 * <p>Sizes are computed by a model of the false-positive rate that is exact for random hashes, and are those of every
 * language.
 */
public record Sizing(int nBlocks, int k, int nModules) implements Serializable {
    static final int MOST_MODULES = 16;
    /** So that the standalone bytes fit into an array. */
    private static final int MOST_BLOCKS = (Integer.MAX_VALUE - 8 - Footer.MOST_LENGTH) / Lanes.BLOCK_BYTES;

    private static final double BLOCK_BITS = 512;
    private static final double MAX_BITS_PER_KEY = 64;
    /** The rates of one to four modules at the most bits per key. A fifth would hardly save anything. */
    private static final double[] LOWEST = {1.263e-8, 3.05e-11, 2.142e-12, 5.432e-13};

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
     * @throws IllegalArgumentException if {@code nBlocks} is not from 1 to 33,554,428, which is 2 GiB, or {@code k} or
     *     {@code nModules} not from 1 to 16, or {@code nModules} does not divide {@code nBlocks}
     */
    public Sizing {
        check(nBlocks >= 1 && nBlocks <= MOST_BLOCKS, "a filter has 1 to %d blocks, not %d", MOST_BLOCKS, nBlocks);
        check(k >= 1 && k <= 16, "probes per key must be 1 to 16, not %d", k);
        checkModules(nModules);
        check(nBlocks % nModules == 0, "%d blocks cannot be divided among %d modules: use a multiple of %2$d", nBlocks,
                nModules);
    }

    /** A size of one module. */
    public Sizing(int nBlocks, int k) {
        this(nBlocks, k, 1);
    }

    /**
     * The smallest filter whose false-positive rate is at most {@code fpr} once it holds {@code expectedKeys} distinct
     * keys. A further module is made only if it saves at least 7% of the bits.
     *
     * @throws IllegalArgumentException if {@code fpr} is not from 5.432e-13, plus {@code expectedKeys} ÷ 2^64, to below
     *     1, or the filter exceeds 2 GiB
     */
    public static Sizing forFpr(long expectedKeys, double fpr) {
        return forFpr(expectedKeys, fpr, LOWEST.length, true);
    }

    /**
     * As {@link #forFpr(long, double)}, but with at most {@code mostModules} modules, where each further one has to
     * save only 1% of the bits. Pass 1 if most lookups are of present keys, which read a cache line of each module, and
     * 4 if the last percent of the bits matters more than time. Computed sizes never have more than four.
     *
     * @throws IllegalArgumentException as {@link #forFpr(long, double)}, but the lowest rates of one to four modules
     *     are 1.263e-8, 3.05e-11, 2.142e-12 and 5.432e-13, or if {@code mostModules} is not from 1 to 16
     */
    public static Sizing forFpr(long expectedKeys, double fpr, int mostModules) {
        return forFpr(expectedKeys, fpr, checkModules(mostModules), false);
    }

    private static Sizing forFpr(long keys, double fpr, int most, boolean isRule) {
        check(fpr > 0 && fpr < 1, "a false-positive rate must be between 0 and 1, both excluded, not %s", fpr);
        // The probability that an absent key has a key's hash, which counts beside the low rates of several modules.
        double sameHash = (isRule ? byRule(fpr) : most) == 1 ? 0 : keys / 0x1p64;
        double lowest = LOWEST[most - 1];
        // The text has six digits, so it names a little more.
        double named = sameHash == 0 ? lowest : (lowest + sameHash) * (1 + 5e-6);
        check(fpr >= lowest + sameHash, "a false-positive rate of %s is out of reach: request at least %s, or use an "
                + "exact structure", digits(fpr), digits(named));
        double rest = Math.max(fpr - sameHash, lowest);
        most = isRule ? byRule(rest) : most;
        return best(keys, most, isRule ? 0.93 : 0.99, n -> leastBitsPerKey(n == 1 ? fpr : rest, n));
    }

    /** The number of modules of a rate. */
    private static int byRule(double fpr) {
        return fpr > 4.966e-4 ? 1 : fpr > 1.8e-8 ? 2 : fpr > LOWEST[2] ? 3 : 4;
    }

    /** A low rate in up to six digits, as in Rust. */
    private static String digits(double rate) {
        return String.format(Locale.ROOT, "%.5e", rate).replaceFirst("\\.?0*e-0?", "e-");
    }

    /**
     * A filter with {@code bitsPerKey} bits for each of {@code expectedKeys} distinct keys, rounded up to whole blocks,
     * with the best k, and as many modules as {@link #forFpr(long, double)} has for its rate.
     *
     * @throws IllegalArgumentException if {@code bitsPerKey} is not above 0 and at most 64, or the filter exceeds 2 GiB
     */
    public static Sizing forBitsPerKey(long expectedKeys, double bitsPerKey) {
        return ofBits(expectedKeys, bitsPerKey, bitsPerKey < 17.454_28 ? 1 : bitsPerKey < 42.421 ? 2 : 3);
    }

    /**
     * As {@link #forBitsPerKey(long, double)}, but with at most {@code mostModules} modules, where each further one has
     * to make room for only 1% more keys at the same rate.
     *
     * @throws IllegalArgumentException as {@link #forBitsPerKey(long, double)}, or if {@code mostModules} is not from 1
     *     to 16
     */
    public static Sizing forBitsPerKey(long expectedKeys, double bitsPerKey, int mostModules) {
        int nModules = 1;
        for (int n = 2; n <= checkModules(mostModules); n++) {
            boolean saves = rate(power(0.99, n - nModules) * bitsPerKey, n) <= rate(bitsPerKey, nModules);
            nModules = saves ? n : nModules;
        }
        return ofBits(expectedKeys, bitsPerKey, nModules);
    }

    private static Sizing ofBits(long keys, double bits, int nModules) {
        check(bits > 0 && bits <= MAX_BITS_PER_KEY, "bits per key must be above 0 and at most 64, not %s", bits);
        // Rounding to whole blocks of each module adds up to 1%.
        return best(keys, nModules, 1.01, n -> bits);
    }

    /** Returns the most modules of a computed size, if a caller allows as many as this valid number. */
    private static int checkModules(int nModules) {
        check(nModules >= 1 && nModules <= MOST_MODULES, "the number of modules must be 1 to 16, not %d", nModules);
        return Math.min(nModules, LOWEST.length);
    }

    /**
     * A size of one to {@code most} modules, each further one of which leaves at most this share of the blocks. Bits
     * per key are infinite where the rate is out of reach.
     */
    private static Sizing best(long keys, int most, double left, IntToDoubleFunction bitsPerKey) {
        double nBlocks = Double.POSITIVE_INFINITY;
        int nModules = 0;
        for (int n = 1; n <= most; n++) {
            double ofN = n * Math.max(Math.ceil(keys * (bitsPerKey.applyAsDouble(n) / n) / BLOCK_BITS), 1);
            if (ofN <= power(left, n - nModules) * nBlocks) {
                nBlocks = ofN;
                nModules = n;
            }
        }
        check(keys >= 0 && nBlocks <= MOST_BLOCKS, "a filter has 0 or more keys in 1 to %d blocks, not %d in %.0f: split "
                + "the keys over several filters", MOST_BLOCKS, keys, nBlocks);
        return new Sizing((int) nBlocks, bestK(nBlocks / nModules * BLOCK_BITS / Math.max(keys, 1)), nModules);
    }

    /**
     * This size with the number of blocks rounded up to one with many divisors, at most 1% more or one block of each
     * module, so that the filter {@linkplain BloomView#toFolded can be folded}.
     */
    public Sizing roundedToFold() {
        int ofEach = nBlocks / nModules;
        int step = IntStream.of(FOLDABLE).filter(next -> next - 1 <= ofEach / 100).max().orElse(2);
        return new Sizing(Math.min((ofEach + step - 1) / step * step, MOST_BLOCKS / nModules) * nModules, k, nModules);
    }

    /** Throws, with the numbers in the message, unless the condition holds. */
    static void check(boolean holds, String message, Object... numbers) {
        if (!holds) {
            throw new IllegalArgumentException(String.format(Locale.ROOT, message, numbers));
        }
    }

    private static int bestK(double bitsPerKey) {
        return 1 + (int) Arrays.stream(ONE_MORE_PROBE).filter(from -> bitsPerKey >= from).count();
    }

    /** By inclusion and exclusion over the probes that find their bit clear: see {@code src/sizing/model.rs}. */
    private static double model(double bitsPerKey, int k) {
        double keysPerBlock = Math.min(BLOCK_BITS / bitsPerKey, 1e6);
        int[] probes = IntStream.range(0, 8).map(lane -> (k + 7 - lane) / 8).toArray();
        int terms = IntStream.of(probes).reduce(1, (product, number) -> product * (1 + number));
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

    /** The rate of modules that share the bits. */
    private static double rate(double bitsPerKey, int nModules) {
        double ofEach = bitsPerKey / nModules;
        return ofEach > MAX_BITS_PER_KEY ? 0 : power(model(ofEach, bestK(ofEach)), nModules);
    }

    private static double power(double x, int n) {
        return n == 0 ? 1 : x * power(x, n - 1);
    }

    /** To one part in a million, by interpolation of the rate's logarithm (regula falsi, the "Illinois" variant). */
    private static double leastBitsPerKey(double fpr, int nModules) {
        if (fpr < LOWEST[nModules - 1]) {
            return Double.POSITIVE_INFINITY;
        }
        // No logarithm is known at 0 bits.
        double[] tooFew = {0, 1, Double.POSITIVE_INFINITY};
        double[] enough = at(1 / 64.0, fpr, nModules);
        while (enough[1] > fpr) {
            tooFew = enough;
            enough = at(2 * enough[0], fpr, nModules);
        }
        double[] stayed = null;
        while (enough[0] - tooFew[0] > 1e-6 * enough[0]) {
            double share = tooFew[2] / (tooFew[2] - enough[2]);
            share = Double.isNaN(share) ? 0.5 : Math.max(1e-3, Math.min(share, 1 - 1e-3));
            double[] middle = at(tooFew[0] + (enough[0] - tooFew[0]) * share, fpr, nModules);
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
    private static double[] at(double bitsPerKey, double fpr, int nModules) {
        double rate = rate(bitsPerKey, nModules);
        return new double[] {bitsPerKey, rate, ln(rate) - ln(fpr)};
    }

    // The platforms' own functions differ in the last bit, and sizes must be equal everywhere.

    /** e^(−x) for x ≥ 0. */
    static double expOfMinus(double x) {
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
