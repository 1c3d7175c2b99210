package bloomline;

import static bloomline.DecodeException.check;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** The 64 bytes that end all standalone bytes, the body before them, and the checksum of each of its modules. */
record Footer(ByteBuffer all, ByteBuffer body, long size, long keys, long seed, ByteBuffer checksums, int nModules,
        int k, long checksum) {
    static final int LENGTH = 64;
    /** With the checksums of the most modules. */
    static final int MOST_LENGTH = LENGTH + 8 * Sizing.MOST_MODULES;
    static final long UNKNOWN_KEYS = -1;

    private static final int VERSION = 2;
    private static final int HASH_ID = 2;

    /** The kinds that Java reads. */
    static final String BLOCKED = "blocked filter";
    static final String BANK = "filter bank";
    private static final long ONE_MODULE = magic("bloom");
    private static final long MODULES = magic("blmod");
    /** By the last eight bytes, so that errors can name the other kinds. */
    private static final Map<Long, String> KINDS = Map.of(ONE_MODULE, BLOCKED, MODULES, BLOCKED, magic("blbnk"), BANK,
            magic("blstd"), "standard filter", magic("blcnt"), "counting filter", magic("blscl"), "scalable filter",
            magic("blsiv"), "frontier", magic("blidx"), "file index");

    /** The last eight bytes, read as a number. */
    private static long magic(String name) {
        return Lanes.get(ByteBuffer.wrap(("\u0089" + name + "\r\n").getBytes(StandardCharsets.ISO_8859_1)), 0);
    }

    /** Reads and checks the footer at the end of the bytes. */
    static Footer read(ByteBuffer bytes, String kind) {
        ByteBuffer all = bytes.slice();
        int at = all.limit() - LENGTH;
        check(at >= 0, "the bytes were cut, or are no filter: there are %d, and %d are needed", all.limit(), 72);
        long magic = Lanes.get(all, at + 56);
        String found = KINDS.get(magic);
        check(found != null, "not a filter's standalone bytes, or cut short: they end in %#018x",
                Long.reverseBytes(magic));
        check(found.equals(kind), "these are bytes of a %s, not a %s", found, kind);
        check(all.get(at + 40) == VERSION, "the bytes are of version %d, or damaged, and this release reads %d: "
                + "upgrade bloomline, or rebuild the filter", all.get(at + 40) & 0xff, VERSION);
        long stored = Lanes.get(all, at + 48);
        verify("footer", all, at, at + 48, 0, stored);
        field("hash id", all.get(at + 42) & 0xff, HASH_ID, HASH_ID);
        long hash = Lanes.get(all, at + 24);
        check(hash == Hash.CHECK_VALUE, "another hash function placed the keys (check value %#018x, ours %#018x): "
                + "rebuild the filter", hash, Hash.CHECK_VALUE);
        int k = field("k", all.get(at + 41) & 0xff, 1, 16);
        long size = Lanes.get(all, at);
        // Several modules have a list of their checksums before the footer. One has its checksum in the footer.
        boolean hasList = magic == MODULES;
        long last = Lanes.get(all, at + 40) >>> 24;
        field("reserved bytes", hasList ? 0 : last, 0, 0);
        int nModules = hasList ? field("number of modules", last, 1, Sizing.MOST_MODULES) : 1;
        int end = hasList ? at - 8 * nModules : at;
        check(end >= 0, "the bytes were cut: there are %d, and %d are needed", all.limit(), LENGTH + 72 * nModules);
        ByteBuffer checksums = hasList ? all.slice(end, at - end) : all.slice(at + 32, 8);
        if (hasList) {
            verify("list of checksums", checksums, 0, at - end, 0, Lanes.get(all, at + 32));
            // In lanes, as for one module. The limit keeps the product from overflowing.
            size = 8L * nModules * field("number of blocks", size, 1, Integer.MAX_VALUE);
        }
        return new Footer(all, all.slice(0, end), size, Lanes.get(all, at + 8), Lanes.get(all, at + 16), checksums,
                nModules, k, stored);
    }

    static int field(String name, long found, int least, int most) {
        check(found >= least && found <= most, "the footer's %s cannot be %s: a faulty or newer program wrote it", name,
                Long.toUnsignedString(found));
        return (int) found;
    }

    /** Whether the stored size is that of the body. */
    void checkSize(boolean fits, String unit) {
        check(fits, "the footer's size of %s %s does not match the %d bytes before it: the bytes were cut or joined",
                Long.toUnsignedString(size), unit, body.limit());
    }

    /** Compares a part of the bytes with its checksum. */
    static void verify(String part, ByteBuffer bytes, int start, int end, long seed, long stored) {
        long computed = Lanes.checksum(bytes, start, end, seed);
        check(computed == stored, "the %s is damaged: its checksum is %#018x, stored %#018x", part, computed, stored);
    }

    /** What follows the lanes of a filter, which is a footer, and before it the checksums of several modules. */
    static ByteBuffer write(ByteBuffer lanes, int nModules, long keys, long seed, int k) {
        boolean hasList = nModules > 1;
        int length = lanes.limit() / nModules;
        int at = hasList ? 8 * nModules : 0;
        ByteBuffer tail = ByteBuffer.allocate(at + LENGTH);
        for (int module = 0; 8 * module < at; module++) {
            Lanes.set(tail, 8 * module, Lanes.checksum(lanes, module * length, (module + 1) * length, module));
        }
        long size = length / (hasList ? Lanes.BLOCK_BYTES : 8);
        long checksum = hasList ? Lanes.checksum(tail, 0, at, 0) : Lanes.checksum(lanes, 0, length, 0);
        long last = VERSION | k << 8 | HASH_ID << 16 | (hasList ? nModules << 24 : 0);
        long magic = hasList ? MODULES : ONE_MODULE;
        long[] fields = {size, keys, seed, Hash.CHECK_VALUE, checksum, last, 0, magic};
        for (int i = 0; i < fields.length; i++) {
            Lanes.set(tail, at + 8 * i, fields[i]);
        }
        Lanes.set(tail, at + 48, Lanes.checksum(tail, at, at + 48, 0));
        return tail;
    }
}
