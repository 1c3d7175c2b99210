package bloomline;

import static bloomline.Support.SEED;
import static bloomline.Support.golden;
import static bloomline.Support.hex;
import static bloomline.Support.number;
import static bloomline.Support.table;
import static bloomline.Support.view;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The tables of tests/golden, which every language reads. docs/testing.md says what they have. */
class GoldenTest {
    private static BloomFilter filter(int nBlocks, int k, long seed) {
        return new BloomFilter(new Sizing(nBlocks, k), seed);
    }

    @Test
    void hashesOfEveryLength() throws IOException {
        for (Map<String, String> row : table("hashes.tsv")) {
            byte[] key = new byte[number(row, "key length")];
            for (int i = 0; i < key.length; i++) {
                key[i] = (byte) (131 * i + key.length);
            }
            row.remove("key length");
            assertEquals(4, row.size());
            row.forEach((name, hash) -> {
                long seed = hex(name.substring("hash, seed ".length()));
                assertEquals(hex(hash), filter(1, 1, seed).hashKey(key), key.length + " bytes");
            });
        }
    }

    @Test
    void keysOfEveryType() throws IOException {
        BloomFilter all = filter(2, 6, 0);
        BloomView golden = view(golden("standalone-keys.bin"));
        for (Map<String, String> row : table("keys.tsv")) {
            byte[] bytes = HexFormat.of().parseHex(row.get("key"));
            String value = row.get("value").replace("\\0", "\0");
            String what = row.get("type") + " " + value;
            for (Function<BloomFilter, Long> hash : hashes(row.get("type"), value, bytes)) {
                assertEquals(hex(row.get("hash, seed 0")), hash.apply(all), what);
                assertEquals(hex(row.get("hash, seed 5eed")), hash.apply(filter(1, 6, SEED)), what);
                assertTrue(golden.containsHash(hash.apply(all)));
                all.insertHash(hash.apply(all));
            }
        }
        assertArrayEquals(golden("standalone-keys.bin"), all.toStandalone());
    }

    /** The hashes of all keys that a row is in Java. */
    private static List<Function<BloomFilter, Long>> hashes(String type, String value, byte[] bytes) {
        List<Function<BloomFilter, Long>> hashes = new ArrayList<>();
        ByteBuffer room = ByteBuffer.allocateDirect(bytes.length + 5).put(3, bytes).position(3).limit(3 + bytes.length);
        hashes.add(filter -> filter.hashKey(bytes));
        hashes.add(filter -> filter.hashKey(ByteBuffer.wrap(bytes)));
        hashes.add(filter -> filter.hashKey(room));
        switch (type) {
            case "text" -> {
                hashes.add(filter -> filter.hashKey(value));
                hashes.add(filter -> filter.hashKey(new StringBuilder(value)));
            }
            case "binary" -> assertEquals(value, HexFormat.of().formatHex(bytes));
            case "int8" -> hashes.add(filter -> filter.hashKey(Byte.parseByte(value)));
            case "int16" -> hashes.add(filter -> filter.hashKey(Short.parseShort(value)));
            case "int32" -> hashes.add(filter -> filter.hashKey(Integer.parseInt(value)));
            case "int64" -> hashes.add(filter -> filter.hashKey(Long.parseLong(value)));
            case "uint8", "uint16" -> hashes.add(filter -> filter.hashKey(Integer.parseInt(value)));
            case "uint32" -> hashes.add(filter -> filter.hashKey(Integer.parseUnsignedInt(value) & 0xffffffffL));
            case "uint64" -> hashes.add(filter -> filter.hashKey(Long.parseUnsignedLong(value)));
            // Beyond 64 bits, which no type of key has here.
            default -> assertThrows(NumberFormatException.class, () -> Long.parseLong(value));
        }
        return hashes;
    }

    @Test
    void masksAndBlocks() throws IOException {
        for (Map<String, String> row : table("masks.tsv")) {
            BloomFilter one = filter(1, number(row, "k"), 0);
            long hash = hex(row.get("hash"));
            String what = row.get("hash") + ", k = " + one.k();
            one.insertHash(hash);
            for (int lane = 0; lane < 8; lane++) {
                assertEquals(hex(row.get("lane " + lane)), Lanes.mask(hash, one.k(), lane), what);
                assertEquals(hex(row.get("lane " + lane)), Lanes.get(one.bytes, 8 * lane), what);
            }
            // Present with these bits, and absent without any one of them.
            assertTrue(one.containsHash(hash));
            for (int bit = 0; bit < 512; bit++) {
                long lane = Lanes.get(one.bytes, bit / 64 * 8);
                Lanes.set(one.bytes, bit / 64 * 8, lane & ~(1L << bit));
                boolean isUnset = Lanes.get(one.bytes, bit / 64 * 8) == lane;
                assertEquals(isUnset, one.containsHash(hash), what + ", bit " + bit);
                Lanes.set(one.bytes, bit / 64 * 8, lane);
            }
        }
        for (Map<String, String> row : table("blocks.tsv")) {
            for (int count : new int[] {1, 2, 3, 7, 100, 1000, 4097}) {
                assertEquals(number(row, "block of " + count), Hash.below(count, hex(row.get("hash"))));
            }
        }
    }

    /** Of the texts 1000 to 1999, how many are possibly present, or in how many slots. */
    private static int found(Filter filter) {
        IntStream hashes = IntStream.range(1000, 2000);
        return hashes.map(number -> filter instanceof FilterBank bank
                ? bank.findHash(bank.hashKey(String.valueOf(number))).cardinality()
                : filter.contains(String.valueOf(number)) ? 1 : 0).sum();
    }

    @Test
    void filters() throws IOException {
        for (Map<String, String> row : Support.files("standalone")) {
            String name = row.get("file");
            List<byte[]> keys = Support.slots(row).get(0);
            Sizing sizing = new Sizing(number(row, "size"), number(row, "k"), number(row, "modules"));
            boolean isKnown = !row.get("known keys").equals("unknown");
            OptionalLong known = isKnown ? OptionalLong.of(number(row, "known keys")) : OptionalLong.empty();
            BloomView view = BloomView.fromStandalone(Support.map(Support.GOLDEN.resolve(name)));
            BloomFilter copy = view.toFilter();
            byte[] written = golden(row.get("rewritten"));
            assertArrayEquals(written, copy.toStandalone(), name);
            for (BloomView filter : List.of(view, copy)) {
                assertEquals(sizing, filter.sizing(), name);
                assertEquals(List.of(hex(row.get("seed")), known), List.of(filter.seed(), filter.knownKeys()), name);
                keys.forEach(key -> assertTrue(filter.contains(key), name));
                assertEquals(number(row, "found"), found(filter), name);
            }
            if (row.get("inserts").equals("yes")) {
                BloomFilter made = new BloomFilter(sizing, hex(row.get("seed")));
                keys.forEach(made::insert);
                made.keys = known.orElse(Footer.UNKNOWN_KEYS);
                assertArrayEquals(written, made.toStandalone(), name);
            }
        }
    }

    @Test
    void banks() throws IOException {
        for (Map<String, String> row : Support.files("bank")) {
            String name = row.get("file");
            FilterBank bank = FilterBank.fromStandalone(ByteBuffer.wrap(golden(name)));
            String known = row.get("known keys");
            int nSlots = known.isEmpty() ? 0 : known.split(" ").length;
            assertEquals(List.of(nSlots, number(row, "size"), number(row, "k"), hex(row.get("seed"))),
                    List.of(bank.nSlots(), bank.nBlocks(), bank.k(), bank.seed()), name);
            List<List<byte[]>> slots = Support.slots(row);
            for (int slot = 0; slot < nSlots; slot++) {
                for (byte[] key : slots.get(slot)) {
                    assertTrue(bank.findHash(bank.hashKey(key)).get(slot) && bank.contains(key), name + ": " + slot);
                }
            }
            assertEquals(number(row, "found"), found(bank), name);
        }
        FilterBank bank = FilterBank.fromStandalone(ByteBuffer.wrap(golden("bank-3-slots.bin")));
        assertTrue(!bank.contains("cow"));
        assertEquals("FilterBank[nSlots=3, nBlocks=1, k=6, nModules=1, seed=0x0]", bank.toString());
    }

    @Test
    void damagedFiles() throws IOException {
        Map<String, Map<String, String>> files = new HashMap<>();
        Support.files("standalone", "bank").forEach(row -> files.put(row.get("file"), row));
        for (Map<String, String> row : table("damaged.tsv")) {
            byte[] whole = golden(row.get("file"));
            byte[] changed = HexFormat.of().parseHex(row.get("bytes"));
            int end = number(row, "to");
            ByteBuffer bytes = ByteBuffer.allocate(number(row, "from") + changed.length + whole.length - end);
            bytes.put(whole, 0, number(row, "from")).put(changed).put(whole, end, whole.length - end).flip();
            String what = row.get("file") + ": " + row.get("case");
            for (Function<ByteBuffer, Filter> opener : Support.openers(row.get("reader"))) {
                if (!row.get("error").equals("accepted")) {
                    String message = assertThrows(DecodeException.class, () -> opener.apply(bytes), what).getMessage();
                    assertTrue(message.contains(row.get("says")), what + ": " + message);
                    continue;
                }
                Filter filter = opener.apply(bytes);
                Support.slots(files.get(row.get("file"))).stream().flatMap(List::stream)
                        .forEach(key -> assertTrue(filter.contains(key), what));
                if (filter instanceof FilterBank bank) {
                    assertEquals("{1, 2}", bank.findHash(bank.hashKey("boa")).toString());
                } else {
                    // A forged number of keys empties no filter.
                    assertNotEquals(OptionalLong.of(0), ((BloomView) filter).toFilter().knownKeys(), what);
                }
            }
        }
    }

    @Test
    void sizes() throws IOException {
        for (Map<String, String> row : table("sizes.tsv")) {
            long keys = Long.parseLong(row.get("keys"));
            double value = Double.parseDouble(row.get("value"));
            boolean isRate = row.get("request").equals("rate");
            if (!row.get("error").isEmpty()) {
                String message = assertThrows(IllegalArgumentException.class,
                        () -> sizing(isRate, keys, value, row.get("most modules")), row::toString).getMessage();
                assertTrue(message.contains(row.get("says")), row + ": " + message);
                continue;
            }
            Sizing sizing = sizing(isRate, keys, value, row.get("most modules"));
            Sizing expected = new Sizing(number(row, "blocks"), number(row, "k"), number(row, "modules"));
            assertEquals(expected, sizing, row::toString);
            assertEquals(number(row, "foldable"), sizing.roundedToFold().nBlocks(), row::toString);
        }
    }

    private static Sizing sizing(boolean isRate, long keys, double value, String most) {
        if (isRate) {
            return most.isEmpty() ? Sizing.forFpr(keys, value) : Sizing.forFpr(keys, value, Integer.parseInt(most));
        }
        return most.isEmpty()
                ? Sizing.forBitsPerKey(keys, value)
                : Sizing.forBitsPerKey(keys, value, Integer.parseInt(most));
    }
}
