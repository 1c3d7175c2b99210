package bloomline;

import static bloomline.DecodeException.check;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** The 64 bytes that end all standalone bytes, and the body before them. */
record Footer(
        ByteBuffer body, long size, long keys, long seed, long bodyChecksum, int k, int modules, long checksum) {
    static final int LENGTH = 64;
    static final long UNKNOWN_KEYS = -1;

    private static final int VERSION = 2;
    private static final int HASH_ID = 2;

    /** As in the last eight bytes, read as a number. Java reads three kinds, and names the others. */
    enum Kind {
        BLOCKED("bloom", "blocked filter"),
        STANDARD("blstd", "standard filter"),
        COUNTING("blcnt", "counting filter"),
        SCALABLE("blscl", "scalable filter"),
        FRONTIER("blsiv", "frontier"),
        BANK("blbnk", "filter bank"),
        MODULAR("blmod", "modular filter");

        private final long magic;
        private final String title;

        Kind(String name, String title) {
            byte[] bytes = ("\u0089" + name + "\r\n").getBytes(StandardCharsets.ISO_8859_1);
            this.magic = Lanes.get(ByteBuffer.wrap(bytes), 0);
            this.title = title;
        }
    }

    /** Reads and checks the footer at the end of the bytes. */
    static Footer read(ByteBuffer bytes, Kind kind) {
        ByteBuffer all = bytes.slice();
        int at = all.limit() - LENGTH;
        check(at >= 0, "the bytes were cut, or are no filter: there are %d, and %d are needed", all.limit(), 72);
        long magic = Lanes.get(all, at + 56);
        for (Kind other : Kind.values()) {
            check(magic != other.magic || other == kind, "these are bytes of a %s, not a %s", other.title, kind.title);
        }
        check(magic == kind.magic, "not a filter's standalone bytes, or cut short: they end in %#018x",
                Long.reverseBytes(magic));
        check(all.get(at + 40) == VERSION, "the bytes are of version %d, or damaged, and this release reads %d: "
                + "upgrade bloomline, or rebuild the filter", all.get(at + 40) & 0xff, VERSION);
        long stored = Lanes.get(all, at + 48);
        verify("footer", all, at, at + 48, 0, stored);
        field("hash id", all.get(at + 42) & 0xff, HASH_ID, HASH_ID);
        long hash = Lanes.get(all, at + 24);
        check(hash == Hash.CHECK_VALUE, "another hash function placed the keys (check value %#018x, ours %#018x): "
                + "rebuild the filter", hash, Hash.CHECK_VALUE);
        int modules = kind == Kind.MODULAR ? field("number of modules", all.get(at + 43) & 0xff, 1, 16) : 0;
        field("reserved bytes", Lanes.get(all, at + 40) >>> (modules == 0 ? 24 : 32), 0, 0);
        int k = field("k", all.get(at + 41) & 0xff, 1, 16);
        return new Footer(all.slice(0, at), Lanes.get(all, at), Lanes.get(all, at + 8), Lanes.get(all, at + 16),
                Lanes.get(all, at + 32), k, modules, stored);
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

    /** The footer of a blocked filter with these lanes. */
    static ByteBuffer write(ByteBuffer lanes, long keys, long seed, int k) {
        ByteBuffer footer = ByteBuffer.allocate(LENGTH);
        long last = VERSION | k << 8 | HASH_ID << 16;
        long checksum = Lanes.checksum(lanes, 0, lanes.limit(), 0);
        long[] fields = {lanes.limit() / 8, keys, seed, Hash.CHECK_VALUE, checksum, last, 0, Kind.BLOCKED.magic};
        for (int i = 0; i < fields.length; i++) {
            Lanes.set(footer, 8 * i, fields[i]);
        }
        Lanes.set(footer, 48, Lanes.checksum(footer, 0, 48, 0));
        return footer;
    }
}
