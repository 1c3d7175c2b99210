package bloomline;

import static bloomline.Support.golden;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InvalidObjectException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamConstants;
import java.nio.ByteBuffer;
import java.util.ArrayList;
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

    private static Object read(byte[] stream) throws IOException, ClassNotFoundException {
        return new ObjectInputStream(new ByteArrayInputStream(stream)).readObject();
    }

    @Test
    void aSerializedFilterIsTheSameOrRefused() throws Exception {
        BloomFilter made = new BloomFilter(100, 0.01);
        made.insert("ant");
        List<byte[]> all = new ArrayList<>(List.of(made.toStandalone()));
        List<Filter> filters = new ArrayList<>(List.of(made));
        for (Map<String, String> row : Support.files("standalone", "bank")) {
            byte[] bytes = golden(row.get("file"));
            for (Function<ByteBuffer, Filter> opener : Support.openers(row.get("kind"))) {
                all.add(bytes);
                filters.add(opener.apply(ByteBuffer.wrap(bytes)));
            }
        }
        for (int i = 0; i < all.size(); i++) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            new ObjectOutputStream(out).writeObject(filters.get(i));
            byte[] stream = out.toByteArray();
            Filter filter = (Filter) read(stream);
            assertEquals(filters.get(i).getClass(), filter.getClass());
            assertArrayEquals(all.get(i), filter.toStandalone());
            assertEquals(filter.containsHash(7), filters.get(i).containsHash(7));
            // The name of its type is last.
            int end = stream.length - 3 - filter.getClass().getSimpleName().length();
            for (int at = end - all.get(i).length; at < end; at += 1 + all.get(i).length / 100) {
                stream[at] ^= 1;
                assertThrows(InvalidObjectException.class, () -> read(stream), filter + ", byte " + at);
                stream[at] ^= 1;
            }
        }
    }

    /** As a forged stream can have it. */
    @Test
    void aFilterIsNotReadByItsFields() throws IOException {
        for (Class<?>[] classes : new Class<?>[][] {
            {BloomFilter.class, BloomView.class, Filter.class}, {FilterBank.class},
        }) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            DataOutputStream stream = new DataOutputStream(out);
            stream.writeInt(ObjectStreamConstants.STREAM_MAGIC << 16 | ObjectStreamConstants.STREAM_VERSION);
            stream.writeByte(ObjectStreamConstants.TC_OBJECT);
            for (Class<?> each : classes) {
                stream.writeByte(ObjectStreamConstants.TC_CLASSDESC);
                stream.writeUTF(each.getName());
                stream.writeLong(1);
                stream.writeByte(ObjectStreamConstants.SC_SERIALIZABLE);
                stream.writeShort(0);
                stream.writeByte(ObjectStreamConstants.TC_ENDBLOCKDATA);
            }
            stream.writeByte(ObjectStreamConstants.TC_NULL);
            assertThrows(InvalidObjectException.class, () -> read(out.toByteArray()));
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
