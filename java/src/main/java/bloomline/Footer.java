package bloomline;

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
        if (at < 0) {
            throw new DecodeException("the bytes were cut, or are something else: there are %d, and at least %d are needed",
                    all.limit(), LENGTH + 8);
        }
        checkMagic(Lanes.get(all, at + 56), kind);
        int version = all.get(at + 40);
        if (version != VERSION) {
            throw new DecodeException("the bytes are of version %d, or damaged, and this release reads version %d: "
                    + "upgrade bloomline, or rebuild the filter", version & 0xff, VERSION);
        }
        long stored = Lanes.get(all, at + 48);
        long computed = Lanes.checksum(all, at, at + 48, 0);
        if (stored != computed) {
            throw new DecodeException("the footer is damaged: its checksum is %#018x, stored %#018x", computed, stored);
        }
        int modules = kind == Kind.MODULAR ? field("number of modules", all.get(at + 43) & 0xff, 1, 16) : 0;
        field("hash id", all.get(at + 42) & 0xff, HASH_ID, HASH_ID);
        long check = Lanes.get(all, at + 24);
        if (check != Hash.CHECK_VALUE) {
            throw new DecodeException("another hash function placed the keys (check value %#018x, ours %#018x): "
                    + "rebuild the filter", check, Hash.CHECK_VALUE);
        }
        field("reserved bytes", Lanes.get(all, at + 40) >>> (modules == 0 ? 24 : 32), 0, 0);
        int k = field("k", all.get(at + 41) & 0xff, 1, 16);
        return new Footer(all.slice(0, at), Lanes.get(all, at), Lanes.get(all, at + 8), Lanes.get(all, at + 16),
                Lanes.get(all, at + 32), k, modules, stored);
    }

    private static void checkMagic(long found, Kind expected) {
        for (Kind kind : Kind.values()) {
            if (found == kind.magic && kind != expected) {
                throw new DecodeException("these are the bytes of a %s, not of a %s", kind.title, expected.title);
            }
        }
        if (found != expected.magic) {
            throw new DecodeException("not a filter's standalone bytes, or cut short: they end in %#018x",
                    Long.reverseBytes(found));
        }
    }

    static int field(String name, long found, int least, int most) {
        if (found < least || found > most) {
            throw new DecodeException("the footer's %s cannot be %s: a faulty or newer program wrote the filter",
                    name, Long.toUnsignedString(found));
        }
        return (int) found;
    }

    DecodeException wrongSize(String unit) {
        return new DecodeException("the footer's size of %s %s does not match the %d bytes before it: the bytes were cut "
                + "or joined", Long.toUnsignedString(size), unit, body.limit());
    }

    /** Compares a range of a body with its checksum. */
    static void verify(ByteBuffer body, int start, int end, long seed, long stored) {
        long computed = Lanes.checksum(body, start, end, seed);
        if (computed != stored) {
            throw new DecodeException("the bytes are damaged: their checksum is %#018x, stored %#018x", computed, stored);
        }
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
