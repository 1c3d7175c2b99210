package bloomline;

import java.util.Locale;

/**
 * The bytes are not a filter that this release can read: cut, damaged, of another kind or of a newer version. Treat
 * every key as possibly present, or build the filter again.
 */
public final class DecodeException extends IllegalArgumentException {
    private static final long serialVersionUID = 1;

    private DecodeException(String message) {
        super(message);
    }

    /** Throws, with the numbers in the message, unless the condition holds. */
    static void check(boolean holds, String message, Object... numbers) {
        if (!holds) {
            throw new DecodeException(String.format(Locale.ROOT, message, numbers));
        }
    }
}
