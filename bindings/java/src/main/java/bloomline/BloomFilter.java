package bloomline;

import static bloomline.Sizing.check;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;

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
     * Inserts all keys of {@code other}. The bits are the same as if each key had been inserted here.
     *
     * @throws IllegalArgumentException if the filters differ in size or seed
     */
    public void unionWith(BloomView other) {
        check(other.sizing().equals(sizing()) && other.seed() == seed(), "filters of another size or seed cannot be "
                + "united: this is %s, the other %s: build both alike, or fold the larger one", this, other);
        keys = Footer.UNKNOWN_KEYS;
        unite(other);
    }

    /** Sets the bits of a filter with as many blocks, or a multiple, which is then folded. Returns all bits, united. */
    long unite(BloomView other) {
        int factor = other.nBlocks / nBlocks;
        long all = 0;
        for (int from = 0; from < other.bytes.limit(); from += 8) {
            long bits = Lanes.get(other.bytes, from);
            int at = from / Lanes.BLOCK_BYTES / factor * Lanes.BLOCK_BYTES + from % Lanes.BLOCK_BYTES;
            Lanes.set(bytes, at, Lanes.get(bytes, at) | bits);
            all |= bits;
        }
        return all;
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
