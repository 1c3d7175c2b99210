package bloomline;

import java.io.InvalidObjectException;
import java.io.ObjectInputStream;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Locale;

/**
 * What all filters answer: whether a key is possibly present, or definitely absent.
 *
 * <p>A key is text, a byte string or an integer. Filters hash its bytes, by one rule in every language: text as UTF-8,
 * an integer of any width as its value in eight bytes. So {@code 42}, {@code 42L} and Python's {@code 42} are one key,
 * and {@code "42"} is another. A {@code long} below 0 is the same key as the unsigned integer with its bits; pass an
 * unsigned {@code int} as {@link Integer#toUnsignedLong}. A {@code char} is the text of one character.
 *
 * <p>Methods whose names end in {@code Hash} accept a key's hash, from {@link #hashKey}. Do not pass
 * a hash to a method that accepts integer keys, which would hash it again.
 *
 * <p>Any number of threads can look up keys while no thread changes the filter.
 *
 * <p>Filters are serialized as their standalone bytes, and damaged ones are an {@link InvalidObjectException}.
 */
public abstract sealed class Filter implements Serializable permits BloomView, FilterBank {
    private static final long serialVersionUID = 1;

    /** Transient, because Kryo, unless told to use Java's streams, would send a mapped file's address. */
    final transient ByteBuffer bytes;
    final int nBlocks;
    final int nModules;
    final int k;
    private final long seed;
    private final long mixed;
    /** {@code null} for a filter in memory. */
    final transient Footer footer;

    Filter(ByteBuffer bytes, int nBlocks, int nModules, int k, long seed, Footer footer) {
        this.bytes = bytes;
        this.nBlocks = nBlocks;
        this.nModules = nModules;
        this.k = k;
        this.seed = seed;
        this.footer = footer;
        this.mixed = Hash.of(seed, 0x9E3779B97F4A7C15L);
    }

    /** Returns whether the key of a hash is possibly present. */
    public abstract boolean containsHash(long hash);

    /**
     * Returns whether a text is possibly present.
     *
     * @throws IllegalArgumentException if the text has a lone surrogate, which UTF-8 cannot encode
     */
    public final boolean contains(CharSequence key) {
        return containsHash(hashKey(key));
    }

    /** Returns whether a byte string is possibly present. */
    public final boolean contains(byte[] key) {
        return containsHash(hashKey(key));
    }

    /** Returns whether the bytes from a buffer's position to its limit, which both stay, are possibly present. */
    public final boolean contains(ByteBuffer key) {
        return containsHash(hashKey(key));
    }

    /** Returns whether the text of one character is possibly present. */
    public final boolean contains(char key) {
        return containsHash(hashKey(key));
    }

    /** Returns whether an integer is possibly present. */
    public final boolean contains(long key) {
        return containsHash(hashKey(key));
    }

    /** Looks up many integers. Returns for each whether it is possibly present. */
    public final boolean[] containsKeys(long[] keys) {
        boolean[] found = new boolean[keys.length];
        for (int i = 0; i < keys.length; i++) {
            found[i] = contains(keys[i]);
        }
        return found;
    }

    /**
     * The hash of a text under the filter's seed.
     *
     * @throws IllegalArgumentException if the text has a lone surrogate, which UTF-8 cannot encode
     */
    public final long hashKey(CharSequence key) {
        return Hash.of(key, mixed);
    }

    /** The hash of a byte string under the filter's seed. */
    public final long hashKey(byte[] key) {
        return Hash.of(key, mixed);
    }

    /** The hash of the bytes from a buffer's position to its limit, which both stay. */
    public final long hashKey(ByteBuffer key) {
        return Hash.of(key, mixed);
    }

    /** The hash of the text of one character under the filter's seed. */
    public final long hashKey(char key) {
        return hashKey(String.valueOf(key));
    }

    /** The hash of an integer under the filter's seed. */
    public final long hashKey(long key) {
        return Hash.of(key, mixed);
    }

    /** Number of blocks of 64 bytes, of all modules, or of each filter in a bank. */
    public final int nBlocks() {
        return nBlocks;
    }

    /** Number of {@linkplain Sizing modules}, 1 to 16. The filters in a bank have one. */
    public final int nModules() {
        return nModules;
    }

    /** Probes per key, 1 to 16, which are the bits that an insert sets and a lookup tests in each module. */
    public final int k() {
        return k;
    }

    /** The seed that keys are hashed with, 0 unless the filter was made with another. */
    public final long seed() {
        return seed;
    }

    @Override
    public String toString() {
        return String.format(Locale.ROOT, "%s[nBlocks=%d, k=%d, nModules=%d, seed=%#x]", getClass().getSimpleName(),
                nBlocks, k, nModules, seed);
    }

    /** The bytes that it was read from, with their checksums. */
    byte[] toStandalone() {
        byte[] standalone = new byte[footer.all().limit()];
        footer.all().get(0, standalone);
        return standalone;
    }

    final Object writeReplace() {
        return new Serialized(getClass().getSimpleName(), toStandalone());
    }

    private void readObject(ObjectInputStream in) throws InvalidObjectException {
        readObjectNoData();
    }

    private void readObjectNoData() throws InvalidObjectException {
        throw new InvalidObjectException("a filter is serialized as its standalone bytes");
    }

    private record Serialized(String type, byte[] standalone) implements Serializable {
        private Object readResolve() throws InvalidObjectException {
            try {
                ByteBuffer bytes = ByteBuffer.wrap(standalone);
                return switch (type) {
                    case "BloomFilter" -> BloomView.fromStandalone(bytes).toFilter();
                    case "BloomView" -> BloomView.fromStandalone(bytes);
                    default -> FilterBank.fromStandalone(bytes);
                };
            } catch (DecodeException | NullPointerException error) {
                InvalidObjectException invalid = new InvalidObjectException(error.getMessage());
                invalid.initCause(error);
                throw invalid;
            }
        }
    }
}
