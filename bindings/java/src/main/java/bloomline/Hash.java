package bloomline;

import static bloomline.Sizing.check;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;

/** The hash of a key's bytes, wyhash final version 3. Section 1 of the format explains the names. */
final class Hash {
    /** Standalone bytes contain it, so that a filter by a writer with another hash is an error and loses no key. */
    static final long CHECK_VALUE = 0x6ff1536b5257c17eL;

    private static final long S0 = 0xa0761d6478bd642fL;
    private static final long S1 = 0xe7037ed1a0b428dbL;
    private static final long S2 = 0x8ebc6af09c88c6e3L;
    private static final long S3 = 0x589965cc75374cc3L;
    private static final long STEP = 0xC4CEB9FE1A85EC53L;
    private static final VarHandle LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

    /** Of an integer, whose key is its eight bytes. */
    static long of(long key, long s) {
        return finished(8, Long.rotateLeft(key, 32), key, s ^ S0);
    }

    static long of(CharSequence key, long s) {
        String text = key.toString();
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        for (byte one : bytes) {
            // What a lone surrogate has become. Few keys have one, so few are read a second time.
            if (one == '?') {
                int at = CharBuffer.wrap(text).mismatch(CharBuffer.wrap(new String(bytes, StandardCharsets.UTF_8)));
                check(at < 0, "the text has a lone surrogate at %d, which UTF-8 cannot encode: replace it, or pass "
                        + "bytes", at);
                break;
            }
        }
        return of(bytes, s);
    }

    static long of(ByteBuffer key, long s) {
        byte[] bytes = new byte[key.remaining()];
        key.get(key.position(), bytes);
        return of(bytes, s);
    }

    static long of(byte[] key, long s) {
        int length = key.length;
        s ^= S0;
        if (length > 16) {
            int i = 0;
            if (length > 48) {
                long t = s;
                long u = s;
                do {
                    s = round(key, i, S1, s);
                    t = round(key, i + 16, S2, t);
                    u = round(key, i + 32, S3, u);
                    i += 48;
                } while (length - i > 48);
                s ^= t ^ u;
            }
            for (; length - i > 16; i += 16) {
                s = round(key, i, S1, s);
            }
            return finished(length, (long) LONG.get(key, length - 16), (long) LONG.get(key, length - 8), s);
        }
        if (length > 3) {
            int m = length >> 3 << 2;
            return finished(length, pair(key, 0, m), pair(key, length - 4, length - 4 - m), s);
        }
        int a = length == 0 ? 0 : (key[0] & 0xff) << 16 | (key[length / 2] & 0xff) << 8 | key[length - 1] & 0xff;
        return finished(length, a, 0, s);
    }

    private static long pair(byte[] key, int high, int low) {
        return (long) (int) INT.get(key, high) << 32 | (int) INT.get(key, low) & 0xffffffffL;
    }

    private static long round(byte[] key, int i, long secret, long state) {
        return mum((long) LONG.get(key, i) ^ secret, (long) LONG.get(key, i + 8) ^ state);
    }

    private static long finished(int length, long a, long b, long s) {
        return mum(S1 ^ length, mum(a ^ S1, b ^ s));
    }

    private static long mum(long a, long b) {
        // Of the unsigned product. Java 18 has a method for the high word.
        long high = Math.multiplyHigh(a, b) + (a >> 63 & b) + (b >> 63 & a);
        return high ^ a * b;
    }

    /** A number below n: the high word of hash × n. */
    static int below(int n, long hash) {
        return (int) (Math.multiplyHigh(hash, n) + (hash >> 63 & n));
    }

    /** The hash of a key in the next module. */
    static long next(long hash) {
        long step = (hash ^ hash >>> 32) * STEP;
        return (step ^ step >>> 32) * STEP;
    }
}
