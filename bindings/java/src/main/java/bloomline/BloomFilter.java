package bloomline;

import static bloomline.Sizing.check;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Comparator;
import java.util.Optional;

/**
 * A set of keys that never loses one, and reports absent keys as possibly present at a rate that you choose.
 *
 * <pre>{@code
 * BloomFilter seen = new BloomFilter(1_000_000, 0.01); // 1.24 MB
 * seen.insert("user4291");
 * seen.contains("user4291"); // true: possibly present
 * seen.contains("user4292"); // false: definitely absent
 * Files.write(Path.of("seen.bloom"), seen.toStandalone());
 * }</pre>
 *
 * <p>A filter is as large as a Java array can be: 2 GiB, for 1.7 billion keys at 1%. It is not safe to change it while
 * another thread uses it: let each thread build a filter of one size, then unite them.
 */
public final class BloomFilter extends BloomView {
    private static final long serialVersionUID = 1;

    /** Before the first block. Large arrays mostly start at a cache line, of which their header needs 16 bytes. */
    private static final int PADDING = 48;

    private static ByteBuffer zeroed(int length) {
        return ByteBuffer.allocate(PADDING + length).slice(PADDING, length);
    }

    /**
     * An empty filter with a false-positive rate of at most {@code fpr} once it holds {@code expectedKeys} distinct
     * keys. Its size is one that {@linkplain Sizing#roundedToFold can be folded}.
     *
     * @throws IllegalArgumentException if {@code fpr} is not from 5.432e-13 to below 1, or the filter exceeds 2 GiB
     */
    public BloomFilter(long expectedKeys, double fpr) {
        this(Sizing.forFpr(expectedKeys, fpr).roundedToFold(), 0);
    }

    /** An empty filter of this size, whose keys are hashed with this seed. Filters of both alike can be united. */
    public BloomFilter(Sizing sizing, long seed) {
        super(zeroed(Lanes.BLOCK_BYTES * sizing.nBlocks()), sizing.nModules(), sizing.k(), seed, 0, null);
    }

    /**
     * Inserts a text. Returns {@code true} if it was surely new, and {@code false} if it was possibly present.
     *
     * @throws IllegalArgumentException if the text has a lone surrogate, which UTF-8 cannot encode
     */
    public boolean insert(CharSequence key) {
        return insertHash(hashKey(key));
    }

    /** Inserts a byte string. Returns {@code true} if it was surely new. */
    public boolean insert(byte[] key) {
        return insertHash(hashKey(key));
    }

    /** Inserts the bytes from a buffer's position to its limit, which both stay. Returns whether it was surely new. */
    public boolean insert(ByteBuffer key) {
        return insertHash(hashKey(key));
    }

    /** Inserts the text of one character. Returns {@code true} if it was surely new. */
    public boolean insert(char key) {
        return insertHash(hashKey(key));
    }

    /** Inserts an integer. Returns {@code true} if it was surely new. */
    public boolean insert(long key) {
        return insertHash(hashKey(key));
    }

    /** Inserts a key by its hash. Returns {@code true} if it was surely new. */
    public boolean insertHash(long hash) {
        keys = Footer.UNKNOWN_KEYS;
        boolean isNew = false;
        for (int module = 0; module < nBlocks; module += moduleBlocks) {
            isNew |= Lanes.insert(bytes, block(module, hash), hash, k);
            hash = Hash.next(hash);
        }
        return isNew;
    }

    /** Inserts many integers. */
    public void insertKeys(long[] keys) {
        for (long key : keys) {
            insert(key);
        }
    }

    /**
     * A new filter of the keys of all filters, in the size of the largest. As for {@link #unionWith}, but in any order.
     *
     * @throws IllegalArgumentException if there are no filters, the blocks of one do not divide the largest one's, or
     *     they differ in k, modules or seed
     */
    public static BloomFilter union(Collection<? extends BloomView> filters) {
        Optional<? extends BloomView> largest = filters.stream().max(Comparator.comparingInt(BloomView::nBlocks));
        check(largest.isPresent(), "a union needs at least one filter");
        BloomFilter union = new BloomFilter(largest.get().sizing(), largest.get().seed());
        filters.forEach(union::unionWith);
        return union;
    }

    /**
     * Inserts all keys of {@code other}. If both have as many blocks, the bits are the same as if each key had been
     * inserted here. If {@code other} has fewer, each of them is repeated, so its keys fill this filter as many times
     * as this filter is larger. To unite with a larger filter, call {@link #union}, or {@linkplain #toFolded fold} it.
     *
     * @throws IllegalArgumentException if the blocks of {@code other} do not divide this filter's, or they differ in k,
     *     modules or seed. Then nothing is changed
     */
    public void unionWith(BloomView other) {
        check(moduleBlocks % other.moduleBlocks == 0 && nModules == other.nModules && k == other.k
                && seed() == other.seed(), "%2$s cannot be united into %1$s: build both alike, or, if only the first "
                + "is larger, by a factor, call BloomFilter.union or fold it", this, other);
        keys = Footer.UNKNOWN_KEYS;
        unite(other);
    }

    /**
     * Sets the bits of a filter with as many blocks, with a divisor of them, which are repeated, or with a multiple,
     * which is folded. Returns all bits, united.
     */
    long unite(BloomView other) {
        int repeats = Math.max(nBlocks / other.nBlocks, 1);
        int folds = Math.max(other.nBlocks / nBlocks, 1);
        long all = 0;
        for (int at = 0; at < Math.max(bytes.limit(), other.bytes.limit()); at += 8) {
            long bits = Lanes.get(other.bytes, divided(at, repeats));
            int to = divided(at, folds);
            Lanes.set(bytes, to, Lanes.get(bytes, to) | bits);
            all |= bits;
        }
        return all;
    }

    /** Where a lane is after its block's number is divided by this factor. */
    private static int divided(int at, int factor) {
        return at / Lanes.BLOCK_BYTES / factor * Lanes.BLOCK_BYTES + at % Lanes.BLOCK_BYTES;
    }

    /** Returns the standalone bytes, with checksums: a file for every language. */
    @Override
    public byte[] toStandalone() {
        ByteBuffer lanes = fewestLanes();
        ByteBuffer tail = Footer.write(lanes, nModules, keys, seed(), k);
        return ByteBuffer.allocate(lanes.limit() + tail.limit()).put(lanes).put(tail).array();
    }

    /** Writes the standalone bytes to a file or another stream, without copying the filter. */
    public void writeStandalone(OutputStream out) throws IOException {
        ByteBuffer lanes = fewestLanes();
        out.write(lanes.array(), lanes.arrayOffset(), lanes.limit());
        out.write(Footer.write(lanes, nModules, keys, seed(), k).array());
    }
}
