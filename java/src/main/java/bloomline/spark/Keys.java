package bloomline.spark;

import org.apache.spark.sql.catalyst.analysis.TypeCheckResult;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;

/** Which types are keys, by the format's rule. */
final class Keys {
    /** Kinds of keys in a filter, as in Python, if they are known. Binary keys can match both. */
    private static final int INTEGERS = 1;
    private static final int TEXT = 2;
    static final int UNKNOWN = 4;

    static boolean areIntegers(DataType type) {
        return type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType
                || type instanceof LongType;
    }

    /** Under another collation, different bytes can be the same text. */
    static boolean areText(DataType type) {
        return type instanceof StringType text && text.isUTF8BinaryCollation();
    }

    /** Whether keys of a type can be looked up in a filter with keys of some kinds, or be inserted. */
    static TypeCheckResult check(DataType type, int kinds) {
        boolean isInteger = areIntegers(type);
        boolean isText = areText(type);
        if (!(isInteger || isText || type instanceof BinaryType || type instanceof NullType)) {
            return failure("keys are integers, binary, and text with the collation UTF8_BINARY, not %s: cast them to an "
                    + "integer or to text first", type.simpleString());
        }
        if (isInteger && kinds == TEXT || isText && kinds == INTEGERS) {
            return failure("%s looked up in a filter of %s: integers and text never match, so convert one side",
                    isText ? "text" : "integers", isText ? "integers" : "text");
        }
        return TypeCheckResult.TypeCheckSuccess$.MODULE$;
    }

    static TypeCheckResult failure(String message, Object... values) {
        return new TypeCheckResult.TypeCheckFailure(String.format(message, values));
    }
}
