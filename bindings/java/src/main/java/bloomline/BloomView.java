package bloomline;

import static bloomline.Sizing.check;

import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * A filter read in place from its bytes, which must not change, or a {@link BloomFilter}.
 *
 * <pre>{@code
 * BloomView words = BloomView.fromStandalone(ByteBuffer.wrap(Files.readAllBytes(Path.of("words.bloom"))));
 * words.contains("ant"); // false: definitely absent
 * }</pre>
 */
public sealed class BloomView extends Filter permits BloomFilter {
    private static final long serialVersionUID = 1;

    /** Above it, a number of lanes is a multiple of 8. */
    static final int MOST_SHORT_LANES = 63;

    /** Number of blocks of each module. */
    final int moduleBlocks;
    long keys;

    BloomView(ByteBuffer blocks, int nModules, int k, long seed, long keys, Footer footer) {
        super(blocks, blocks.limit() / Lanes.BLOCK_BYTES, nModules, k, seed, footer);
        this.moduleBlocks = nBlocks / nModules;
        this.keys = keys;
    }

    /**
     * Opens standalone bytes, from a buffer's position to its limit, and compares all of them with their checksums.
     *
     * @throws DecodeException if the bytes are cut, damaged, or of another kind or version
     */
    public static BloomView fromStandalone(ByteBuffer bytes) {
        BloomView view = fromStandaloneUnverified(bytes);
        view.verify();
        return view;
    }

    /**
     * Opens standalone bytes without reading the filter's bits, for mapped files that are too large to read. Checks the
     * last 64 bytes.
     *
     * <p><b>Damaged bits lose keys.</b> Call {@link #verify} when there is time, or rely on a checksum of your own.
     *
     * @throws DecodeException if the bytes are cut, their last 64 are damaged, or they are of another kind or version
     */
    public static BloomView fromStandaloneUnverified(ByteBuffer bytes) {
        Footer footer = Footer.read(bytes, Footer.BLOCKED);
        int length = footer.body().limit();
        boolean isWhole = length % Lanes.BLOCK_BYTES == 0;
        boolean isOfLanes = isWhole || length / 8 <= MOST_SHORT_LANES && length % 8 == 0;
        footer.checkSize(isOfLanes && length > 0 && length / 8 == footer.size(), "lanes of 8 bytes");
        ByteBuffer blocks = isWhole ? footer.body() : wholeBlocks(footer.body());
        return new BloomView(blocks, footer.nModules(), footer.k(), footer.seed(), footer.keys(), footer);
    }

    /**
     * Compares the filter's bits with the checksum of its standalone bytes. Reads the whole filter.
     *
     * @throws DecodeException if the bits are damaged, so that lookups may lose keys
     * @throws IllegalStateException if this is a filter in memory, which has no checksum
     */
    public void verify() {
        if (footer == null) {
            throw new IllegalStateException("a filter in memory has no checksum to compare with");
        }
        int length = footer.body().limit() / nModules;
        for (int module = 0; module < nModules; module++) {
            long stored = Lanes.get(footer.checksums(), 8 * module);
            Footer.verify("filter", footer.body(), module * length, (module + 1) * length, module, stored);
        }
    }

    @Override
    public final boolean containsHash(long hash) {
        return nModules > 1 ? all(hash) : Lanes.contain(bytes, block(0, hash), hash, k);
    }

    /** For one module it would be 1.6 times as slow, by its branch on the answer, if half of the keys are present. */
    private boolean all(long hash) {
        boolean found = true;
        for (int module = 0; found && module < nBlocks; module += moduleBlocks) {
            found = Lanes.contain(bytes, block(module, hash), hash, k);
            hash = Hash.next(hash);
        }
        return found;
    }

    /** Where the block of a hash is in the module that begins with this block. */
    final int block(int module, long hash) {
        return Lanes.BLOCK_BYTES * (module + Hash.below(moduleBlocks, hash));
    }

    /** A copy of a short filter, whose blocks overlap, side by side: at most 4 kB. */
    static ByteBuffer wholeBlocks(ByteBuffer lanes) {
        int stride = Integer.lowestOneBit(lanes.limit());
        ByteBuffer blocks = ByteBuffer.allocate(lanes.limit() / stride * Lanes.BLOCK_BYTES);
        for (int at = 0; at < blocks.limit(); at += 8) {
            Lanes.set(blocks, at, Lanes.get(lanes, shared(at, lanes.limit())));
        }
        return blocks;
    }

    /** Where a lane of whole blocks is in a short filter of this length. Its blocks overlap, and wrap around. */
    static int shared(int at, int length) {
        return (at / Lanes.BLOCK_BYTES * Integer.lowestOneBit(length) + at % Lanes.BLOCK_BYTES) % length;
    }

    /** Whether the other filter has the same size, seed and bits, so that it returns the same answers. */
    @Override
    public final boolean equals(Object other) {
        return other instanceof BloomView view && sizing().equals(view.sizing()) && seed() == view.seed()
                && bytes.equals(view.bytes);
    }

    /** Of what inserts do not change. */
    @Override
    public final int hashCode() {
        return Objects.hash(sizing(), seed());
    }

    /** The size, for a filter that can be united with this one. */
    public final Sizing sizing() {
        return new Sizing(nBlocks, k, nModules);
    }

    /** Number of distinct keys, if the bytes contain it. */
    public final OptionalLong knownKeys() {
        return keys == Footer.UNKNOWN_KEYS ? OptionalLong.empty() : OptionalLong.of(keys);
    }

    /** Fraction of bits that are set, 0 to 1. Reads the whole filter, as the estimates do. */
    public final double fillRatio() {
        long ones = 0;
        for (int at = 0; at < bytes.limit(); at += 8) {
            ones += Long.bitCount(Lanes.get(bytes, at));
        }
        return ones / (8.0 * bytes.limit());
    }

    /** The probability that an absent key is reported as possibly present, exact for the bits as they are. */
    public final double estimatedFpr() {
        double fpr = 1;
        for (int module = 0; module < nBlocks; module += moduleBlocks) {
            double sum = 0;
            for (int block = module; block < module + moduleBlocks; block++) {
                sum += fprOfRotations(Lanes.BLOCK_BYTES * block);
            }
            fpr *= sum / (8.0 * moduleBlocks);
        }
        return fpr;
    }

    /** For each rotation the product of the probed lanes' fill ratios, summed. */
    private double fprOfRotations(int block) {
        double[] fill = new double[8];
        for (int lane = 0; lane < 8; lane++) {
            fill[lane] = Long.bitCount(Lanes.get(bytes, block + 8 * lane)) / 64.0;
        }
        double sum = 0;
        for (int rotation = 0; rotation < 8; rotation++) {
            double product = 1;
            for (int lane = 0; lane < 8; lane++) {
                int probes = k + 7 - (lane + rotation) % 8 >> 3;
                product *= probes == 0 ? 1 : probes == 1 ? fill[lane] : fill[lane] * fill[lane];
            }
            sum += product;
        }
        return sum;
    }

    /**
     * An estimate of the number of distinct keys, or empty if the filter is too full, from about five times the keys
     * that it was sized for. After a union with a smaller filter, its error is larger, and the limit lower.
     */
    public final Optional<KeyEstimate> estimatedKeys() {
        ByteBuffer lanes = fewestLanes();
        // A short filter's blocks overlap, so none are neighbours.
        boolean isShort = lanes.limit() < bytes.limit();
        return KeyEstimate.of(lanes, isShort ? 8 : 8 * moduleBlocks, k, nModules);
    }

    /** The fewest lanes that represent the filter: those of a short one, if blocks that share a lane agree in it. */
    final ByteBuffer fewestLanes() {
        int most = nModules > 1 || nBlocks % 2 == 0 ? 0 : Math.min(MOST_SHORT_LANES, 4 * nBlocks);
        for (int count = nBlocks; count <= most; count *= 2) {
            ByteBuffer lanes = ByteBuffer.allocate(8 * count);
            for (int from = 0; from < bytes.limit(); from += 8) {
                Lanes.set(lanes, shared(from, lanes.limit()), Lanes.get(bytes, from));
            }
            if (wholeBlocks(lanes).equals(bytes)) {
                return lanes;
            }
        }
        return bytes.duplicate();
    }

    /** Copies the filter into one that you can change, of whole blocks. */
    public final BloomFilter toFilter() {
        return toFolded(1);
    }

    /**
     * Copies the filter, with its number of blocks divided by {@code factor}. Bit for bit, the copy is the filter that
     * would have been built with so many blocks. Its false-positive rate is higher.
     *
     * @throws IllegalArgumentException if {@code factor} does not divide the number of blocks of each module
     */
    public final BloomFilter toFolded(int factor) {
        check(factor >= 1 && moduleBlocks % factor == 0, "%1$d blocks cannot be folded by %2$d: use a factor that "
                + "divides %1$d", moduleBlocks, factor);
        BloomFilter folded = new BloomFilter(new Sizing(nBlocks / factor, k, nModules), seed());
        long all = folded.unite(this);
        // Forged bytes may say that there are no keys, beside bits that are set.
        folded.keys = keys == 0 && all != 0 ? Footer.UNKNOWN_KEYS : keys;
        return folded;
    }
}
