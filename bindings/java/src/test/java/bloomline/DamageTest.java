package bloomline;

import static bloomline.Support.golden;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/** Damaged bytes are a {@link DecodeException}, wherever they are damaged. GoldenTest has forged bytes. */
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

    @Test
    void everyCut() throws IOException {
        for (Map<String, String> row : Support.files("standalone", "bank")) {
            String name = row.get("file");
            byte[] bytes = golden(name);
            List<Function<ByteBuffer, Filter>> openers = Support.openers(row.get("kind"));
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
        for (Map<String, String> row : Support.files("standalone", "bank")) {
            String name = row.get("file");
            byte[] bytes = golden(name);
            for (int at = 0; at < bytes.length; at++) {
                bytes[at] ^= (byte) (1 << at % 8);
                refused(Support.openers(row.get("kind")), bytes, 0, bytes.length, name + ", byte " + at);
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
