package bloomline;

import java.nio.ByteBuffer;

/**
 * A modular filter read in place from its bytes, which must not change: several filters, called modules, that must all
 * have a key. Other languages build them, because they need fewer bits for low false-positive rates.
 */
public final class ModularView extends Filter {
    private final int nModules;

    private ModularView(Footer footer, ByteBuffer modules) {
        super(modules, (int) footer.size(), footer.k(), footer.seed());
        this.nModules = footer.modules();
    }

    /**
     * Opens standalone bytes, from a buffer's position to its limit, and compares all of them with their checksums.
     *
     * @throws DecodeException if the bytes are cut, damaged, or of another kind or version
     */
    public static ModularView fromStandalone(ByteBuffer bytes) {
        Footer footer = Footer.read(bytes, Footer.Kind.MODULAR);
        int end = footer.body().limit() - 8 * footer.modules();
        int unit = Lanes.BLOCK_BYTES * footer.modules();
        footer.checkSize(end > 0 && end % unit == 0 && end / unit == footer.size(), "blocks per module");
        Footer.verify("list of checksums", footer.body(), end, footer.body().limit(), 0, footer.bodyChecksum());
        int length = end / footer.modules();
        for (int module = 0; module < footer.modules(); module++) {
            long stored = Lanes.get(footer.body(), end + 8 * module);
            Footer.verify("module", footer.body(), module * length, (module + 1) * length, module, stored);
        }
        return new ModularView(footer, footer.body().slice(0, end));
    }

    @Override
    public boolean containsHash(long hash) {
        for (int module = 0; module < nModules; module++) {
            int block = module * nBlocks + Hash.below(nBlocks, hash);
            if (!Lanes.contain(bytes, Lanes.BLOCK_BYTES * block, hash, k)) {
                return false;
            }
            hash = step(step(hash));
        }
        return true;
    }

    private static long step(long hash) {
        return (hash ^ hash >>> 32) * 0xC4CEB9FE1A85EC53L;
    }

    /** Number of modules, 1 to 16. */
    public int nModules() {
        return nModules;
    }
}
