package bloomline;

import java.nio.ByteBuffer;
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
    /** Above it, a number of lanes is a multiple of 8. */
    static final int MOST_SHORT_LANES = 63;

    long keys;
    /** From the start of one block to the start of the next: less than a block in a short filter. */
    private final int stride;
    /** {@code null} for compact bytes and filters in memory. */
    private Footer footer;

    // A short filter has an odd number of blocks, of fewer bytes than a whole one.
    BloomView(ByteBuffer lanes, int k, long seed, long keys) {
        super(lanes, Math.max(lanes.limit() / Integer.lowestOneBit(lanes.limit()), lanes.limit() / 64), k, seed);
        this.keys = keys;
        this.stride = lanes.limit() / nBlocks;
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
        Footer footer = Footer.read(bytes, Footer.Kind.BLOCKED);
        int length = footer.body().limit();
        boolean isOfBlocks = length % Lanes.BLOCK_BYTES == 0 || length / 8 <= MOST_SHORT_LANES && length % 8 == 0;
        footer.checkSize(isOfBlocks && length > 0 && length / 8 == footer.size(), "lanes of 8 bytes");
        BloomView view = new BloomView(footer.body(), footer.k(), footer.seed(), footer.keys());
        view.footer = footer;
        return view;
    }

    /**
     * Compares the filter's bits with the checksum of its standalone bytes. Reads the whole filter.
     *
     * @throws DecodeException if the bits are damaged, so that lookups may lose keys
     * @throws IllegalStateException if there is no checksum, because these are compact bytes or a filter in memory
     */
    public void verify() {
        if (footer == null) {
            throw new IllegalStateException("compact bytes and filters in memory have no checksum to compare with");
        }
        Footer.verify("filter", bytes, 0, bytes.limit(), 0, footer.bodyChecksum());
    }

    @Override
    public final boolean containsHash(long hash) {
        int block = Hash.below(nBlocks, hash);
        if (stride == Lanes.BLOCK_BYTES) {
            return Lanes.contain(bytes, Lanes.BLOCK_BYTES * block, hash, k);
        }
        long missing = 0;
        for (int lane = 0; lane < 8; lane++) {
            missing |= Lanes.mask(hash, k, lane) & ~Lanes.get(bytes, offset(block, lane));
        }
        return missing == 0;
    }

    /** Where a lane of a block is, both counted from 0. The blocks of a short filter overlap, and wrap around. */
    private int offset(int block, int lane) {
        int at = stride * block + 8 * lane;
        return stride == Lanes.BLOCK_BYTES ? at : at % bytes.limit();
    }

    /** Sets the bits of a filter with as many blocks, or a multiple, which is then folded. Returns all bits, united. */
    final long unite(BloomView other) {
        int factor = other.nBlocks / nBlocks;
        long all = 0;
        for (int block = 0; block < other.nBlocks; block++) {
            for (int lane = 0; lane < 8; lane++) {
                long bits = Lanes.get(other.bytes, other.offset(block, lane));
                int at = offset(block / factor, lane);
                Lanes.set(bytes, at, Lanes.get(bytes, at) | bits);
                all |= bits;
            }
        }
        return all;
    }

    /** Number of distinct keys, if the bytes contain it. */
    public final OptionalLong knownKeys() {
        return keys == Footer.UNKNOWN_KEYS ? OptionalLong.empty() : OptionalLong.of(keys);
    }

    /** Copies the filter into one that you can change, of whole blocks. */
    public final BloomFilter toFilter() {
        return toFolded(1);
    }

    /**
     * Copies the filter, with its number of blocks divided by {@code factor}. Bit for bit, the copy is the filter that
     * would have been built with so many blocks. Its false-positive rate is higher.
     *
     * @throws IllegalArgumentException if {@code factor} does not divide the number of blocks
     */
    public final BloomFilter toFolded(int factor) {
        if (factor < 1 || nBlocks % factor != 0) {
            throw new IllegalArgumentException(String.format(
                    "%1$d blocks cannot be folded by %2$d: use a factor that divides %1$d", nBlocks, factor));
        }
        BloomFilter folded = new BloomFilter(new Sizing(nBlocks / factor, k), seed());
        long all = folded.unite(this);
        // Forged bytes may say that there are no keys, beside bits that are set.
        folded.keys = keys == 0 && all != 0 ? Footer.UNKNOWN_KEYS : keys;
        return folded;
    }
}
