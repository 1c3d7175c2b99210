package bloomline;

import static bloomline.DecodeException.check;

import java.nio.ByteBuffer;
import java.util.BitSet;

/**
 * Many filters of one size, side by side, read in place from their bytes, which must not change: one lookup finds which
 * of them possibly have a key. Rust and Python build banks.
 *
 * <p>{@code contains} says whether any of them possibly has it.
 */
public final class FilterBank extends Filter {
    private static final long serialVersionUID = 1;
    private static final int ROWS = 512;
    /** The checksum and the zeros behind a region's rows. */
    private static final int TRAILER = 64;
    /** The most of the format, so that no footer requests a large answer. */
    private static final int MOST_SLOTS = 1 << 24;

    private final int nSlots;
    private final int rowLength;

    private FilterBank(Footer footer, int nSlots) {
        super(footer.body(), (int) footer.size(), 1, footer.k(), footer.seed(), footer);
        this.nSlots = nSlots;
        this.rowLength = rowLength(nSlots);
    }

    private static int rowLength(int nSlots) {
        return nSlots > 32 ? (nSlots + 63) / 64 * 8 : nSlots > 16 ? 4 : (nSlots + 7) / 8;
    }

    /**
     * Opens a bank's standalone bytes, from a buffer's position to its limit, and compares all of them with their
     * checksums.
     *
     * @throws DecodeException if the bytes are cut, damaged, or of another kind or version
     */
    public static FilterBank fromStandalone(ByteBuffer bytes) {
        Footer footer = Footer.read(bytes, Footer.BANK);
        // Stored where a single filter has its number of keys.
        int nSlots = Footer.field("number of slots", footer.keys(), 0, MOST_SLOTS);
        ByteBuffer body = footer.body();
        int rows = ROWS * rowLength(nSlots);
        int regions = body.limit() - 8 * nSlots;
        int stride = rows + TRAILER;
        footer.checkSize(regions > 0 && regions % stride == 0 && regions / stride == footer.size(), "blocks of a bank");
        ByteBuffer zeros = ByteBuffer.allocate(TRAILER - 8);
        long sum = 0;
        for (int block = 0; block < regions / stride; block++) {
            int start = block * stride;
            long hash = Lanes.checksum(body, start, start + rows, block);
            long computed = hash + footer.checksum();
            long stored = Lanes.get(body, start + rows);
            check(computed == stored && body.slice(start + rows + 8, TRAILER - 8).equals(zeros),
                    "the bank's region %d is damaged: its checksum is %#018x, stored %#018x", block, computed, stored);
            sum += hash;
        }
        Footer.verify("list of known keys", body, regions, body.limit(), sum, Lanes.get(footer.checksums(), 0));
        return new FilterBank(footer, nSlots);
    }

    /** The slots whose filters possibly have the key of a hash. */
    public BitSet findHash(long hash) {
        int region = Hash.below(nBlocks, hash) * (ROWS * rowLength + TRAILER);
        BitSet slots = new BitSet();
        // Not more, because forged bytes may have bits of no slot.
        slots.set(0, nSlots);
        for (int lane = 0; lane < 8; lane++) {
            for (long bits = Lanes.mask(hash, k, lane); bits != 0; bits &= bits - 1) {
                int row = 64 * lane + Long.numberOfTrailingZeros(bits);
                slots.and(BitSet.valueOf(bytes.slice(region + rowLength * row, rowLength)));
            }
        }
        return slots;
    }

    @Override
    public boolean containsHash(long hash) {
        return !findHash(hash).isEmpty();
    }

    /** Number of slots, each with a filter. */
    public int nSlots() {
        return nSlots;
    }

    @Override
    public String toString() {
        return super.toString().replace("[", "[nSlots=" + nSlots + ", ");
    }
}
