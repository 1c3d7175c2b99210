package bloomline;

import static bloomline.Support.golden;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Random;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/** Damaged and forged bytes are a {@link DecodeException}. They lose no key, and request no memory. */
class DamageTest {
    private static final int FOOTER = 64;

    private static void refused(
            List<Function<ByteBuffer, Filter>> openers, byte[] bytes, int start, int end, String what) {
        // Not a copy, because copies of each part of each file would be most of the test.
        ByteBuffer part = ByteBuffer.wrap(bytes, start, end - start);
        for (Function<ByteBuffer, Filter> opener : openers) {
            assertThrows(DecodeException.class, () -> opener.apply(part), what);
        }
    }

    /** Of the kind of a golden file, or all if Java does not know the kind. */
    private static List<Function<ByteBuffer, Filter>> openers(String name) {
        int kind = List.of("standalone", "bank").indexOf(name.split("-")[0]);
        return kind < 0 ? Support.OPENERS : List.of(Support.OPENERS.get(kind));
    }

    @Test
    void everyCut() throws IOException {
        for (String name : Support.names("")) {
            if (name.startsWith("scalable")) {
                continue; // its first filter is a filter
            }
            byte[] bytes = golden(name);
            List<Function<ByteBuffer, Filter>> openers = openers(name);
            for (int length = 0; length < bytes.length; length++) {
                refused(openers, bytes, 0, length, name + ", first " + length + " bytes");
                refused(openers, bytes, bytes.length - length, bytes.length, name + ", last " + length + " bytes");
            }
            byte[] more = new byte[bytes.length + FOOTER];
            System.arraycopy(bytes, 0, more, FOOTER, bytes.length);
            for (int start = 0; start < FOOTER; start++) {
                refused(openers, more, start, more.length, name + ", " + (FOOTER - start) + " bytes more");
            }
        }
    }

    @Test
    void everyFlippedByte() throws IOException {
        for (String name : Support.names("")) {
            byte[] bytes = golden(name);
            for (int at = 0; at < bytes.length; at++) {
                bytes[at] ^= (byte) (1 << at % 8);
                refused(openers(name), bytes, 0, bytes.length, name + ", byte " + at);
                bytes[at] ^= (byte) (1 << at % 8);
            }
        }
    }

    @Test
    void anUnverifiedViewChecksTheFooterAndVerifiesLater() throws IOException {
        byte[] bytes = golden("standalone-100-blocks.bin");
        for (int at = 0; at < bytes.length; at++) {
            bytes[at] ^= 1;
            ByteBuffer buffer = ByteBuffer.wrap(bytes);
            if (at < bytes.length - FOOTER) {
                BloomView view = BloomView.fromStandaloneUnverified(buffer);
                assertThrows(DecodeException.class, view::verify);
            } else {
                assertThrows(DecodeException.class, () -> BloomView.fromStandaloneUnverified(buffer), "byte " + at);
            }
            bytes[at] ^= 1;
        }
        BloomView view = BloomView.fromStandaloneUnverified(ByteBuffer.wrap(bytes));
        view.verify();
        assertThrows(IllegalStateException.class, () -> view.toFilter().verify());
    }

    /** Forged numbers, with the checksums that match them. */
    @Test
    void forgedFooters() throws IOException {
        List<Long> numbers = List.of(0L, 1L, 2L, 7L, 8L, 63L, 64L, 65L, 1L << 24, (1L << 24) + 1, 1L << 29, 1L << 31,
                1L << 32, 1L << 58, 1L << 60, 1L << 61, Long.MAX_VALUE, Long.MIN_VALUE, -8L, -1L);
        int opened = 0;
        for (String kind : List.of("standalone", "bank")) {
            for (String name : Support.names(kind)) {
                byte[] bytes = golden(name);
                int at = bytes.length - FOOTER;
                ByteBuffer buffer = ByteBuffer.wrap(bytes);
                for (int field = 0; field < 16; field++) {
                    for (long number : numbers) {
                        long added = Lanes.get(buffer, at);
                        byte[] forged = bytes.clone();
                        ByteBuffer of = ByteBuffer.wrap(forged);
                        if (field < 8) {
                            Lanes.set(of, at + 8 * (field % 5), field < 5 ? number : added + number);
                        } else {
                            forged[at + 40 + field - 8] = (byte) number;
                        }
                        Lanes.set(of, at + 48, Lanes.checksum(of, at, at + 48, 0));
                        for (Function<ByteBuffer, Filter> opener : Support.OPENERS) {
                            opened += check(opener, of, buffer, field, name);
                        }
                    }
                }
            }
        }
        assertTrue(opened > 100, opened + " opened");
    }

    /** The size is never believed, and seed and k are those of the bytes. */
    private static int check(
            Function<ByteBuffer, Filter> opener, ByteBuffer forged, ByteBuffer golden, int field, String name) {
        Filter filter;
        try {
            filter = opener.apply(forged);
        } catch (DecodeException error) {
            return 0;
        }
        boolean isHarmless = forged.equals(golden) || List.of(1, 2, 6, 7, 9).contains(field);
        assertTrue(isHarmless, name + ", field " + field + ": " + filter);
        filter.contains("ant");
        return 1;
    }

    @Test
    void messagesHaveTheNumbers() throws IOException {
        byte[] bytes = golden("standalone-short-9.bin");
        assertMessage("there are 63, and 72 are needed", ByteBuffer.wrap(bytes, 0, 63));
        assertMessage("size of 9 lanes of 8 bytes does not match the 71 bytes", ByteBuffer.wrap(bytes, 1, 135));
        bytes[112] = 3;
        assertMessage("of version 3, or damaged, and this release reads 2", ByteBuffer.wrap(bytes));
        bytes[112] = 2;
        bytes[113] = 17;
        assertMessage("the footer is damaged: its checksum is 0x", ByteBuffer.wrap(bytes));
        Lanes.set(ByteBuffer.wrap(bytes), 120, Lanes.checksum(ByteBuffer.wrap(bytes), 72, 120, 0));
        assertMessage("the footer's k cannot be 17", ByteBuffer.wrap(bytes));
        assertMessage("they end in 0x0000000000000000", ByteBuffer.allocate(200));
        bytes = golden("standalone-16-modules.bin");
        assertMessage("there are 191, and 1216 are needed", ByteBuffer.wrap(bytes, bytes.length - 191, 191));
        assertMessage("size of 256 lanes of 8 bytes does not match", ByteBuffer.wrap(bytes, 1, bytes.length - 1));
        bytes[bytes.length - 65] ^= 1;
        assertMessage("the list of checksums is damaged: its checksum is 0x", ByteBuffer.wrap(bytes));
    }

    private static void assertMessage(String expected, ByteBuffer bytes) {
        String message = assertThrows(DecodeException.class, () -> BloomView.fromStandalone(bytes)).getMessage();
        assertTrue(message.contains(expected), message);
    }

    @Test
    void forgedNumbersOfKeysEmptyNoFilter() throws IOException {
        byte[] bytes = golden("standalone-short-2.bin");
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        int at = bytes.length - FOOTER;
        Lanes.set(buffer, at + 8, 0);
        Lanes.set(buffer, at + 48, Lanes.checksum(buffer, at, at + 48, 0));
        BloomView view = BloomView.fromStandalone(buffer);
        assertTrue(view.contains("ant") && view.toFilter().contains("ant"));
        assertTrue(view.toFilter().knownKeys().isEmpty());
    }

    @Test
    void bitsOfNoSlotAreIgnored() throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(golden("bank-3-slots.bin"));
        int at = bytes.limit() - FOOTER;
        for (int row = 0; row < 512; row++) {
            bytes.put(row, (byte) (bytes.get(row) | 0x80));
        }
        long hash = Lanes.checksum(bytes, 0, 512, 0);
        Lanes.set(bytes, at + 32, Lanes.checksum(bytes, 576, at, hash));
        Lanes.set(bytes, at + 48, Lanes.checksum(bytes, at, at + 48, 0));
        Lanes.set(bytes, 512, hash + Lanes.get(bytes, at + 48));
        FilterBank bank = FilterBank.fromStandalone(bytes);
        assertEquals("{1, 2}", bank.findHash(bank.hashKey("boa")).toString());
    }

    @Test
    void randomBytes() {
        Random random = new Random(3);
        for (int i = 0; i < 20_000; i++) {
            byte[] bytes = new byte[random.nextInt(700)];
            random.nextBytes(bytes);
            refused(Support.OPENERS, bytes, 0, bytes.length, "random bytes " + i);
        }
    }

    @Test
    void bytesKeepTheirPosition() throws IOException {
        byte[] bytes = golden("standalone-short-9.bin");
        ByteBuffer room = ByteBuffer.allocateDirect(bytes.length + 20).put(13, bytes).position(13);
        room.limit(13 + bytes.length);
        BloomView view = BloomView.fromStandalone(room.asReadOnlyBuffer());
        assertEquals(13, room.position());
        assertArrayEquals(bytes, view.toFilter().toStandalone());
    }
}
