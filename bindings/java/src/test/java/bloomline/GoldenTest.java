package bloomline;

import static bloomline.Support.GOLDEN;
import static bloomline.Support.SEED;
import static bloomline.Support.golden;
import static bloomline.Support.hex;
import static bloomline.Support.numbers;
import static bloomline.Support.rows;
import static bloomline.Support.view;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The hashes, masks and bytes of docs/format.md, bit for bit, as tests/golden/make.py computes them. */
class GoldenTest {
    private record Golden(Sizing sizing, long seed, long keys, List<String> texts) {}

    private static final List<String> ANIMALS = List.of("ant", "bee", "cat");
    private static final Map<String, Golden> FILTERS = Map.of(
            "standalone-empty.bin", new Golden(new Sizing(1, 6), 0, 0, List.of()),
            "standalone-100-blocks.bin", new Golden(new Sizing(100, 11), SEED, -1, numbers(1000)),
            "standalone-short-2.bin", new Golden(new Sizing(1, 6), 0, 3, ANIMALS),
            "standalone-short-9.bin", new Golden(new Sizing(9, 11), SEED, 50, numbers(50)),
            "standalone-keys.bin", new Golden(new Sizing(2, 6), 0, -1, List.of("", "boa", "42", "日本語", "🐍")),
            "standalone-modules-empty.bin", new Golden(new Sizing(1, 6), 0, 0, List.of()),
            "standalone-2-modules.bin", new Golden(new Sizing(2, 3, 2), 0, 2, List.of("boa", "bee")),
            "standalone-3-modules.bin", new Golden(new Sizing(21, 6, 3), SEED, -1, numbers(500)),
            "standalone-16-modules.bin", new Golden(new Sizing(32, 16, 16), -1, 3, ANIMALS));

    private static BloomFilter filter(int nBlocks, int k, long seed) {
        return new BloomFilter(new Sizing(nBlocks, k), seed);
    }

    @Test
    void hashesOfEveryLength() throws IOException {
        List<Long> seeds = new ArrayList<>();
        for (String name : Files.readAllLines(GOLDEN.resolve("hashes.tsv")).get(0).split("\t")) {
            seeds.add(name.startsWith("hash, seed ") ? hex(name.substring(11)) : null);
        }
        assertEquals(5, seeds.size());
        for (String[] row : rows(GOLDEN.resolve("hashes.tsv"), 155)) {
            byte[] key = new byte[Integer.parseInt(row[0])];
            for (int i = 0; i < key.length; i++) {
                key[i] = (byte) (131 * i + key.length);
            }
            for (int column = 1; column < row.length; column++) {
                assertEquals(hex(row[column]), filter(1, 1, seeds.get(column)).hashKey(key), key.length + " bytes");
            }
        }
    }

    @Test
    void keysOfEveryType() throws IOException {
        BloomFilter all = filter(2, 6, 0);
        BloomView golden = view(golden("standalone-keys.bin"));
        for (String[] row : rows(GOLDEN.resolve("keys.tsv"), 70)) {
            byte[] bytes = HexFormat.of().parseHex(row[2]);
            for (Function<BloomFilter, Long> hash : hashes(row[0], row[1].replace("\\0", "\0"), bytes)) {
                assertEquals(hex(row[3]), hash.apply(all), row[0] + " " + row[1]);
                assertEquals(hex(row[4]), hash.apply(filter(1, 6, SEED)), row[0] + " " + row[1]);
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
        for (String[] row : rows(GOLDEN.resolve("masks.tsv"), 192)) {
            BloomFilter one = filter(1, Integer.parseInt(row[1]), 0);
            one.insertHash(hex(row[0]));
            for (int lane = 0; lane < 8; lane++) {
                assertEquals(hex(row[2 + lane]), Lanes.mask(hex(row[0]), one.k(), lane), row[0] + ", k = " + row[1]);
                assertEquals(hex(row[2 + lane]), Lanes.get(one.bytes, 8 * lane), row[0] + ", k = " + row[1]);
            }
            // Present with these bits, and absent without any one of them.
            assertTrue(one.containsHash(hex(row[0])));
            for (int bit = 0; bit < 512; bit++) {
                long lane = Lanes.get(one.bytes, bit / 64 * 8);
                Lanes.set(one.bytes, bit / 64 * 8, lane & ~(1L << bit));
                boolean isUnset = Lanes.get(one.bytes, bit / 64 * 8) == lane;
                assertEquals(isUnset, one.containsHash(hex(row[0])), row[0] + ", k = " + row[1] + ", bit " + bit);
                Lanes.set(one.bytes, bit / 64 * 8, lane);
            }
        }
        int[] counts = {1, 2, 3, 7, 100, 1000, 4097};
        for (String[] row : rows(GOLDEN.resolve("blocks.tsv"), 14)) {
            for (int i = 0; i < counts.length; i++) {
                assertEquals(Integer.parseInt(row[1 + i]), Hash.below(counts[i], hex(row[0])), row[0]);
            }
        }
    }

    /** By {@code xxh64} of tests/golden/make.py. No golden has exactly 32 bytes, from which the algorithm changes. */
    @Test
    void checksumsOfEveryLength() {
        ByteBuffer bytes = ByteBuffer.allocate(72);
        for (int i = 0; i < 72; i++) {
            bytes.put(i, (byte) i);
        }
        assertEquals(0x3072f8c5cba43e9aL, Lanes.checksum(bytes, 0, 8, 7));
        assertEquals(0x46d150e031cbf1e7L, Lanes.checksum(bytes, 0, 24, 7));
        assertEquals(0xa5972d57c4aea230L, Lanes.checksum(bytes, 0, 32, 7));
        assertEquals(0xfc9f7a1b24012cb5L, Lanes.checksum(bytes, 0, 40, 7));
        assertEquals(0x3c65d1809a38a9bfL, Lanes.checksum(bytes, 0, 64, 7));
        assertEquals(0x087fbfc4e5268acaL, Lanes.checksum(bytes, 0, 72, 7));
    }

    @Test
    void everyFilterIsListed() throws IOException {
        assertEquals(Support.names("standalone-"), List.copyOf(new TreeMap<>(FILTERS).keySet()));
    }

    @Test
    void filters() throws IOException {
        for (Map.Entry<String, Golden> entry : FILTERS.entrySet()) {
            String name = entry.getKey();
            Golden facts = entry.getValue();
            BloomView view = BloomView.fromStandalone(Support.map(GOLDEN.resolve(name)));
            BloomFilter copy = view.toFilter();
            // One module is written in its own form.
            byte[] bytes = golden(name.equals("standalone-modules-empty.bin") ? "standalone-empty.bin" : name);
            assertArrayEquals(bytes, copy.toStandalone(), name);
            OptionalLong keys = facts.keys < 0 ? OptionalLong.empty() : OptionalLong.of(facts.keys);
            for (BloomView filter : List.of(view, copy)) {
                assertEquals(facts.sizing, filter.sizing(), name);
                assertEquals(List.of(facts.seed, keys), List.of(filter.seed(), filter.knownKeys()), name);
                facts.texts.forEach(text -> assertTrue(filter.contains(text), name + ": " + text));
                long found = numbers(1000).stream().filter(number -> filter.contains("absent " + number)).count();
                assertTrue(found <= 20, name + ": " + found + " of 1,000 absent keys");
            }
        }
    }

    @Test
    void filtersMadeHere() throws IOException {
        for (String name : List.of("100-blocks", "empty", "2-modules", "3-modules", "16-modules")) {
            Golden facts = FILTERS.get("standalone-" + name + ".bin");
            BloomFilter filter = new BloomFilter(facts.sizing, facts.seed);
            facts.texts.forEach(filter::insert);
            filter.keys = facts.keys;
            assertArrayEquals(golden("standalone-" + name + ".bin"), filter.toStandalone(), name);
        }
    }

    @Test
    void banks() throws IOException {
        String table = Files.readString(GOLDEN.resolve("banks.rs"));
        Pattern row = Pattern.compile("\\(include_bytes!\\(\"(.*?)\"\\), (\\d+), (\\d+), (\\d+), 0x(\\w+)\\)");
        List<MatchResult> banks = row.matcher(table).results().toList();
        assertEquals(Support.names("bank-").size() - 1, banks.size());
        for (MatchResult facts : banks) {
            String name = facts.group(1);
            FilterBank bank = FilterBank.fromStandalone(ByteBuffer.wrap(golden(name)));
            assertEquals(Integer.parseInt(facts.group(2)), bank.nSlots(), name);
            assertEquals(Integer.parseInt(facts.group(3)), bank.nBlocks(), name);
            assertEquals(Integer.parseInt(facts.group(4)), bank.k(), name);
            assertEquals(hex(facts.group(5).replace("_", "")), bank.seed(), name);
            List<BloomFilter> filters = new ArrayList<>();
            for (int slot = 0; slot < bank.nSlots(); slot++) {
                filters.add(filter(bank.nBlocks(), bank.k(), bank.seed()));
                for (int i = 0; i < slot % 7; i++) {
                    filters.get(slot).insert(slot + "-" + i);
                    assertTrue(bank.findHash(bank.hashKey(slot + "-" + i)).get(slot), name + ": slot " + slot);
                }
            }
            for (String key : List.of("0-0", "1-0", "6-5", "599-3", "8-0", "absent", "7")) {
                List<Integer> expected = new ArrayList<>();
                for (int slot = 0; slot < bank.nSlots(); slot++) {
                    if (filters.get(slot).contains(key)) {
                        expected.add(slot);
                    }
                }
                assertEquals(expected, bank.findHash(bank.hashKey(key)).stream().boxed().toList(), name + ": " + key);
                assertEquals(!expected.isEmpty(), bank.contains(key), name + ": " + key);
            }
        }
        FilterBank bank = FilterBank.fromStandalone(ByteBuffer.wrap(golden("bank-3-slots.bin")));
        assertEquals("{1, 2}", bank.findHash(bank.hashKey("boa")).toString());
        assertEquals("{2}", bank.findHash(bank.hashKey("bee")).toString());
        assertEquals("FilterBank[nSlots=3, nBlocks=1, k=6, nModules=1, seed=0x0]", bank.toString());
    }

    @Test
    void otherKindsAreErrorsThatNameTheKind() throws IOException {
        Map<String, String> kinds = Map.of("bank", "of a filter bank,", "counting", "of a counting filter,", "frontier",
                "of a frontier,", "scalable", "of a scalable filter,", "standalone", "of a blocked filter,", "standard",
                "of a standard filter,", "compact", "not a filter's|were cut");
        List<String> readable = List.of("standalone", "bank");
        for (String name : Support.names("")) {
            String kind = name.split("[-.]")[0];
            Pattern text = Pattern.compile(kinds.get(kind));
            for (int i = 0; i < readable.size(); i++) {
                if (!readable.get(i).equals(kind)) {
                    Function<ByteBuffer, Filter> opener = Support.OPENERS.get(i);
                    ByteBuffer bytes = ByteBuffer.wrap(golden(name));
                    String message = assertThrows(DecodeException.class, () -> opener.apply(bytes), name).getMessage();
                    assertTrue(text.matcher(message).find(), name + ": " + message);
                }
            }
        }
    }
}
