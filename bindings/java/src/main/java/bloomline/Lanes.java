package bloomline;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Lanes of 64 bits in bytes, the bits that a hash has in them (section 2 of the format), and their checksum. */
final class Lanes {
    static final int BLOCK_BYTES = 64;

    private static final long FIRST = 0x9E3779B97F4A7C15L;
    /** Faster than {@code ByteBuffer.getLong}, which is a virtual call if a program has buffers of several kinds. */
    private static final VarHandle LONG =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    static long get(ByteBuffer bytes, int at) {
        return (long) LONG.get(bytes, at);
    }

    static void set(ByteBuffer bytes, int at, long lane) {
        LONG.set(bytes, at, lane);
    }

    /** The bits of a hash in one lane of its block. */
    static long mask(long hash, int k, int lane) {
        long first = hash * FIRST;
        int probe = lane - (int) (first >>> 61) & 7;
        int shift = 13 + 6 * lane;
        long bits = (long) (probe - k >>> 31) << (first >>> shift);
        return k <= 8 ? bits : bits | (long) (probe + 8 - k >>> 31) << (second(first) >>> shift);
    }

    private static long second(long first) {
        return (first ^ first >>> 32) * 0xD6E8FEB86659FD93L;
    }

    /** Returns whether the block at an offset has all bits of a hash. */
    static boolean contain(ByteBuffer bytes, int block, long hash, int k) {
        long first = hash * FIRST;
        int rotation = (int) (first >>> 61);
        return contain(bytes, block, first, rotation, Math.min(k, 8))
                && (k <= 8 || contain(bytes, block, second(first), rotation, k - 8));
    }

    /**
     * The bits that a word places in the k lanes from the rotation on. Without a branch on the rotation, which no CPU
     * could predict, and without a loop, which HotSpot does not unroll: lookups took 1.4 times as long.
     */
    private static boolean contain(ByteBuffer bytes, int block, long word, int rotation, int k) {
        long others = ~(((1L << k) - 1) * 0x101 << rotation >>> 8);
        long found = (get(bytes, block) >>> (word >>> 13) | others)
                & (get(bytes, block + 8) >>> (word >>> 19) | others >>> 1)
                & (get(bytes, block + 16) >>> (word >>> 25) | others >>> 2)
                & (get(bytes, block + 24) >>> (word >>> 31) | others >>> 3)
                & (get(bytes, block + 32) >>> (word >>> 37) | others >>> 4)
                & (get(bytes, block + 40) >>> (word >>> 43) | others >>> 5)
                & (get(bytes, block + 48) >>> (word >>> 49) | others >>> 6)
                & (get(bytes, block + 56) >>> (word >>> 55) | others >>> 7);
        return (found & 1) != 0;
    }

    /** Sets all bits of a hash in the block at an offset. Returns whether one was not set. */
    static boolean insert(ByteBuffer bytes, int block, long hash, int k) {
        long missing = 0;
        for (int lane = 0; lane < 8; lane++) {
            long bits = mask(hash, k, lane);
            long old = get(bytes, block + 8 * lane);
            missing |= bits & ~old;
            set(bytes, block + 8 * lane, old | bits);
        }
        return missing != 0;
    }

    private static final long P1 = 0x9E3779B185EBCA87L;
    private static final long P2 = 0xC2B2AE3D27D4EB4FL;
    private static final long P3 = 0x165667B19E3779F9L;
    private static final long P4 = 0x85EBCA77C2B2AE63L;
    private static final long P5 = 0x27D4EB2F165667C5L;

    /** The XXH64 of a range, whose length is a multiple of 8. */
    static long checksum(ByteBuffer bytes, int start, int end, long seed) {
        long h = seed + P5;
        int at = start;
        if (end - start >= 32) {
            long a = seed + P1 + P2;
            long b = seed + P2;
            long c = seed;
            long d = seed - P1;
            for (; end - at >= 32; at += 32) {
                a = round(a, get(bytes, at));
                b = round(b, get(bytes, at + 8));
                c = round(c, get(bytes, at + 16));
                d = round(d, get(bytes, at + 24));
            }
            h = Long.rotateLeft(a, 1) + Long.rotateLeft(b, 7) + Long.rotateLeft(c, 12) + Long.rotateLeft(d, 18);
            for (long accumulator : new long[] {a, b, c, d}) {
                h = (h ^ round(0, accumulator)) * P1 + P4;
            }
        }
        h += end - start;
        for (; at < end; at += 8) {
            h = Long.rotateLeft(h ^ round(0, get(bytes, at)), 27) * P1 + P4;
        }
        h = (h ^ h >>> 33) * P2;
        h = (h ^ h >>> 29) * P3;
        return h ^ h >>> 32;
    }

    private static long round(long accumulator, long lane) {
        return Long.rotateLeft(accumulator + lane * P2, 31) * P1;
    }
}
