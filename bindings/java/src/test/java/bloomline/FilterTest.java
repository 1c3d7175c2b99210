package bloomline;

import static bloomline.Support.SEED;
import static bloomline.Support.view;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.OptionalLong;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class FilterTest {
    @Test
    void noKeyIsLost() throws IOException {
        long seedOfTest = ThreadLocalRandom.current().nextLong();
        Random random = new Random(seedOfTest);
        for (int round = 0; round < 2_000; round++) {
            String message = "random seed " + seedOfTest + ", round " + round;
            int ofEach = 1 + random.nextInt(round % 2 == 0 ? 9 : 200);
            int nModules = 1 + random.nextInt(4);
            Sizing sizing = new Sizing(ofEach * nModules, 1 + random.nextInt(16), nModules);
            BloomFilter filter = new BloomFilter(sizing, random.nextLong());
            long[] keys = random.longs(random.nextInt(400)).toArray();
            long[] hashes = new long[keys.length];
            for (int i = 0; i < keys.length; i++) {
                hashes[i] = filter.hashKey(keys[i]);
                assertEquals(!filter.contains(keys[i]), filter.insert(keys[i]), message);
            }
            BloomView view = view(filter.toStandalone());
            BloomFilter folded = view.toFolded(divisor(random, ofEach));
            BloomFilter united = new BloomFilter(view.sizing(), filter.seed());
            united.insertKeys(random.longs(5).toArray());
            united.unionWith(view);
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            filter.writeStandalone(out);
            assertArrayEquals(filter.toStandalone(), out.toByteArray(), message);
            for (Filter each : new Filter[] {filter, view, view.toFilter(), folded, united}) {
                boolean[] found = each.containsKeys(keys);
                for (int i = 0; i < keys.length; i++) {
                    assertTrue(found[i] && each.contains(keys[i]) && each.containsHash(hashes[i]), message);
                }
            }
            // Most of these keys are absent, so the answers differ, and their order shows.
            long[] mixed = random.longs(20).toArray();
            System.arraycopy(keys, 0, mixed, 3, Math.min(5, keys.length));
            boolean[] answers = filter.containsKeys(mixed);
            for (int i = 0; i < mixed.length; i++) {
                assertEquals(filter.contains(mixed[i]), answers[i], message);
            }
            BloomFilter small = new BloomFilter(folded.sizing(), filter.seed());
            Arrays.stream(hashes).forEach(small::insertHash);
            assertArrayEquals(small.toStandalone(), folded.toStandalone(), message);
        }
    }

    static int divisor(Random random, int number) {
        int divisor = 1 + random.nextInt(number);
        while (number % divisor != 0) {
            divisor--;
        }
        return divisor;
    }

    @Test
    void keysOfEveryType() {
        BloomFilter filter = new BloomFilter(1_000, 0.0001);
        assertTrue(filter.insert("café") && filter.insert(new byte[] {1, 2}) && filter.insert(42));
        assertTrue(filter.insert(ByteBuffer.wrap(new byte[] {0, 7, 8, 0}, 1, 2)));
        assertFalse(filter.insert(42L));
        assertTrue(filter.contains(new StringBuilder("café")));
        assertTrue(filter.contains("café".getBytes(StandardCharsets.UTF_8)) && filter.contains((byte) 42));
        assertTrue(filter.contains(ByteBuffer.allocateDirect(2).put(0, new byte[] {1, 2})));
        assertTrue(filter.contains(new byte[] {7, 8}) && filter.contains(Integer.valueOf(42)));
        assertFalse(filter.contains("42") || filter.contains(43) || filter.contains(new byte[3]));
        ByteBuffer key = ByteBuffer.wrap(new byte[] {0, 7, 8, 0}, 1, 2);
        assertTrue(filter.contains(key));
        assertEquals(1, key.position());
    }

    @Test
    void aCharacterIsText() {
        BloomFilter filter = new BloomFilter(1_000, 0.0001);
        assertTrue(filter.insert('x') && filter.insert('日'));
        assertTrue(filter.contains("x") && filter.contains("日") && filter.contains(Character.valueOf('x')));
        assertEquals(filter.hashKey("x"), filter.hashKey('x'));
        assertFalse(filter.contains((int) 'x') || filter.contains('y'));
        assertThrows(IllegalArgumentException.class, () -> filter.insert('\ud800'));
    }

    @Test
    void loneSurrogatesAreErrors() {
        BloomFilter filter = new BloomFilter(1_000, 0.01);
        for (String text : new String[] {"\ud800", "a\udc00", "\udc00\ud800", "🐍?\ud83d", "?\ud83dx", "日\ud83d"}) {
            assertThrows(IllegalArgumentException.class, () -> filter.insert(text));
            String message = assertThrows(IllegalArgumentException.class, () -> filter.contains(text)).getMessage();
            int at = 0;
            while (Character.isSurrogatePair(text.charAt(at), at + 1 < text.length() ? text.charAt(at + 1) : 'x')
                    || !Character.isSurrogate(text.charAt(at))) {
                at += Character.charCount(text.codePointAt(at));
            }
            assertTrue(message.contains("lone surrogate at " + at + ","), message);
        }
        assertEquals(OptionalLong.of(0), filter.knownKeys());
        filter.insert("🐍? why");
        assertTrue(filter.contains("🐍? why"));
    }

    @Test
    void everyCharacterIsItsUtf8() {
        BloomFilter filter = new BloomFilter(1, 0.1);
        for (int code = 0; code < 0x110000; code += 1 + code / 0x3000 * 7) {
            if (code < 0xd800 || code >= 0xe000) {
                String text = "?" + Character.toString(code);
                assertEquals(filter.hashKey(text.getBytes(StandardCharsets.UTF_8)), filter.hashKey(text));
            }
        }
    }

    @Test
    void sizesThatCannotBe() {
        for (Runnable wrong : new Runnable[] {
            () -> new Sizing(0, 6), () -> new Sizing(-1, 6), () -> new Sizing(33_554_429, 6), () -> new Sizing(1, 0),
            () -> new Sizing(1, 17), () -> new Sizing(6, 6, 0), () -> new Sizing(34, 6, 17), () -> new Sizing(7, 6, 2),
            () -> Sizing.forFpr(-1, 0.01), () -> Sizing.forBitsPerKey(-1, 9), () -> new BloomFilter(1_000_000, 5.97e-13),
            () -> Sizing.forBitsPerKey(Long.MAX_VALUE, 64), () -> Sizing.forFpr(2_000_000_000, 0.01),
        }) {
            assertThrows(IllegalArgumentException.class, wrong::run);
        }
    }

    @Test
    void filtersThatCannotBeCombined() {
        BloomFilter filter = new BloomFilter(new Sizing(12, 6), 0);
        for (BloomFilter other : new BloomFilter[] {
            new BloomFilter(new Sizing(12, 7), 0), new BloomFilter(new Sizing(24, 6), 0),
            new BloomFilter(new Sizing(5, 6), 0), new BloomFilter(new Sizing(12, 6), SEED),
            new BloomFilter(new Sizing(12, 6, 2), 0), new BloomFilter(new Sizing(6, 6, 2), 0),
        }) {
            other.insert("ant");
            assertThrows(IllegalArgumentException.class, () -> filter.unionWith(other));
            boolean isOnlyLarger = other.nBlocks() == 24;
            if (!isOnlyLarger) {
                assertThrows(IllegalArgumentException.class, () -> BloomFilter.union(List.of(filter, other)));
            }
        }
        assertThrows(IllegalArgumentException.class, () -> BloomFilter.union(List.of()));
        for (int factor : new int[] {0, -1, 5, 24}) {
            assertThrows(IllegalArgumentException.class, () -> filter.toFolded(factor));
        }
        BloomFilter ofTwo = new BloomFilter(new Sizing(12, 6, 2), 0);
        String message = assertThrows(IllegalArgumentException.class, () -> ofTwo.toFolded(4)).getMessage();
        assertTrue(message.startsWith("6 blocks cannot be folded by 4"), message);
        assertFalse(filter.contains("ant"));
        assertEquals(OptionalLong.of(0), filter.knownKeys());
    }

    @Test
    void theNumberOfKeysIsKnownOrUnknown() {
        BloomFilter filter = new BloomFilter(new Sizing(12, 6), 0);
        assertEquals(OptionalLong.of(0), filter.toFolded(3).knownKeys());
        filter.insert("ant");
        assertTrue(filter.knownKeys().isEmpty());
        BloomFilter other = new BloomFilter(new Sizing(12, 6), 0);
        other.unionWith(filter);
        assertTrue(other.knownKeys().isEmpty());
    }

    @Test
    void filtersAreEqualByTheirBits() {
        BloomFilter filter = new BloomFilter(new Sizing(3, 6), 0);
        BloomFilter other = new BloomFilter(new Sizing(3, 6), 0);
        filter.insert("ant");
        assertNotEquals(filter, other);
        assertEquals(filter.hashCode(), other.hashCode());
        other.insert("ant");
        assertEquals(filter, other);
        assertEquals(filter, view(filter.toStandalone()));
        BloomFilter empty = new BloomFilter(new Sizing(6, 6), 0);
        assertNotEquals(empty, new BloomFilter(new Sizing(6, 6, 2), 0));
        assertNotEquals(empty, new BloomFilter(new Sizing(6, 5), 0));
        assertNotEquals(empty, new BloomFilter(new Sizing(6, 6), SEED));
    }

    @Test
    void aFullFilterSaysSo() {
        BloomFilter filter = new BloomFilter(1_000, 0.01);
        assertEquals(new KeyEstimate(0, Math.sqrt(1 / 12.0)), filter.estimatedKeys().get());
        assertTrue(filter.fillRatio() == 0 && filter.estimatedFpr() == 0);
        filter.insertKeys(LongStream.range(0, 5_000).toArray());
        KeyEstimate estimate = filter.estimatedKeys().get();
        assertEquals(5_000, estimate.keys(), 4 * estimate.standardError());
        assertTrue(filter.fillRatio() > 0.9 && filter.estimatedFpr() > 0.5);
        filter.insertKeys(LongStream.range(0, 20_000).toArray());
        assertTrue(filter.estimatedKeys().isEmpty());
    }

    @Test
    void keysOfASmallerFilterCountOnce() {
        BloomFilter filter = new BloomFilter(new Sizing(320, 6), 0);
        BloomFilter small = new BloomFilter(new Sizing(20, 6), 0);
        filter.insertKeys(LongStream.range(0, 1_000).toArray());
        small.insertKeys(LongStream.range(1_000, 1_500).toArray());
        KeyEstimate estimate = BloomFilter.union(List.of(small, filter)).estimatedKeys().get();
        assertEquals(1_500, estimate.keys(), 4 * estimate.standardError());
    }

    @Test
    void messagesHaveTheirDigitsInEveryLocale() {
        Locale locale = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("ar-EG"));
        try {
            assertEquals("BloomFilter[nBlocks=12, k=6, nModules=1, seed=0x5eed]",
                    new BloomFilter(new Sizing(12, 6), SEED).toString());
            for (Executable wrong : new Executable[] {() -> new Sizing(1, 17), () -> view(new byte[17])}) {
                String message = assertThrows(IllegalArgumentException.class, wrong).getMessage();
                assertTrue(message.contains("17"), message);
            }
        } finally {
            Locale.setDefault(locale);
        }
    }

    @Test
    void filtersAreRoundedToFold() {
        assertEquals(new Sizing(19_440, 6), new BloomFilter(1_000_000, 0.01).sizing());
        assertEquals(new Sizing(33_554_428, 6, 2), new Sizing(33_554_400, 6, 2).roundedToFold());
    }
}
