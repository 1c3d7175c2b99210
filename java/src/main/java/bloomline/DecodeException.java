package bloomline;

/**
 * The bytes are not a filter that this release can read: cut, damaged, of another kind or of a newer version. Treat
 * every key as possibly present, or build the filter again.
 */
public final class DecodeException extends IllegalArgumentException {
    private static final long serialVersionUID = 1;

    DecodeException(String message, Object... numbers) {
        super(String.format(message, numbers));
    }
}
