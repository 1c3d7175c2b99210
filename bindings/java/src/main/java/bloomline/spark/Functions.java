package bloomline.spark;

import bloomline.Sizing;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.V2Aggregator;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StringType;
import scala.Function1;
import scala.Option;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/**
 * Registers {@code bloomline_contains} and {@code bloomline_filter}: name this class in {@code spark.sql.extensions}, or
 * call {@link #register}.
 */
public final class Functions implements Function1<SparkSessionExtensions, BoxedUnit> {
    private static final Map<String, Function1<Seq<Expression>, Expression>> FUNCTIONS = Map.of(
            "bloomline_contains", Functions::contains,
            "bloomline_filter", Functions::build);
    private static final List<DataType> INTEGERS =
            List.of(DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType);
    private static final DataType BROADCAST = ObjectType.apply(Broadcast.class);

    /** Python adds the kinds of the filter's keys, if it knows them: 1 for integers only, 2 for text only. */
    private static Expression contains(Seq<Expression> arguments) {
        boolean hasKinds = arguments.size() == 3;
        check(hasKinds || arguments.size() == 2, "write bloomline_contains(filter, key)");
        boolean isBroadcast = arguments.head().dataType().equals(BROADCAST);
        Expression filter = isBroadcast ? arguments.head() : filter(arguments.head());
        Expression key = key(arguments.apply(1), hasKinds ? (int) constant(arguments.last(), DataTypes.IntegerType) : 0);
        return new Invoke(Literal.fromObject(new Lookup()), "contains", DataTypes.BooleanType,
                seq(List.of(filter, key)), seq(List.of()), true, false, true);
    }

    private static Expression build(Seq<Expression> arguments) {
        check(arguments.size() == 3, "write bloomline_filter(key, expected_keys, fpr)");
        Expression key = key(arguments.head(), 0);
        long expectedKeys = (long) constant(arguments.apply(1), DataTypes.LongType);
        double fpr = (double) constant(arguments.last(), DataTypes.DoubleType);
        Build build = new Build(Sizing.forFpr(expectedKeys, fpr).roundedToFold(), 0, key.dataType());
        return new V2Aggregator<>(build, seq(List.of(key)), 0, 0);
    }

    private static void check(boolean isRight, String message) {
        if (!isRight) {
            throw new IllegalArgumentException(message);
        }
    }

    private static Object constant(Expression argument, DataType type) {
        Object value = argument.foldable() ? cast(argument, type).eval(null) : null;
        check(value != null, "a filter's size is a constant, not " + argument.sql());
        return value;
    }

    private static Expression filter(Expression filter) {
        DataType type = filter.dataType();
        check(type.equals(DataTypes.BinaryType) || type.equals(DataTypes.NullType),
                "a filter is binary, not " + type.simpleString());
        return cast(filter, DataTypes.BinaryType);
    }

    /** The key as a long or as bytes. */
    private static Expression key(Expression key, int kinds) {
        DataType type = key.dataType();
        boolean isInteger = INTEGERS.contains(type);
        // Under other collations, different bytes can be the same text.
        boolean isText = type instanceof StringType text && text.isUTF8BinaryCollation()
                || type.equals(DataTypes.BinaryType);
        check(isInteger || isText || type.equals(DataTypes.NullType), "keys are integers, binary, and text with the "
                + "collation UTF8_BINARY, not " + type.simpleString() + ": cast them to an integer or to text first");
        check(!(isInteger && kinds == 2 || isText && kinds == 1),
                "integers looked up in a filter of text, or the reverse: these never match, so convert one side");
        return cast(key, isInteger ? DataTypes.LongType : DataTypes.BinaryType);
    }

    private static Expression cast(Expression value, DataType type) {
        return value.dataType().equals(type) ? value : new Cast(value, type, Option.empty());
    }

    private static <T> Seq<T> seq(List<T> elements) {
        return CollectionConverters.asScala(elements).toList();
    }

    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        FUNCTIONS.forEach((name, function) -> extensions.injectFunction(new Tuple3<>(
                FunctionIdentifier.apply(name), new ExpressionInfo(Functions.class.getName(), name), function)));
        return BoxedUnit.UNIT;
    }

    /** Registers the functions in a session that runs, unless it has them. */
    public static void register(SparkSession session) {
        FunctionRegistry registry = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().functionRegistry();
        if (!registry.listFunction().exists(id -> FUNCTIONS.containsKey(id.funcName()))) {
            FUNCTIONS.forEach((name, function) -> registry.createOrReplaceTempFunction(name, function, "scala_udf"));
        }
    }

    /** For Python: standalone bytes in a file, broadcast as a filter for {@code bloomline_contains}. */
    public static Column broadcast(JavaSparkContext context, String file) throws IOException {
        return ExpressionUtils.column(Literal.fromObject(context.broadcast(Files.readAllBytes(Path.of(file))), BROADCAST));
    }

    /**
     * For Python: a filter of a column of longs or bytes, in a file, or no file without keys. The executors unite in two
     * steps, which SQL's aggregates do not, and copy a filter less often than SQL's rows.
     */
    public static void build(Dataset<Row> keys, long expectedKeys, double fpr, long seed, String file) throws IOException {
        Build build = new Build(Sizing.forFpr(expectedKeys, fpr).roundedToFold(), seed, keys.schema().apply(0).dataType());
        JavaRDD<InternalRow> rows = keys.queryExecution().toRdd().toJavaRDD();
        Serializable state = rows.treeAggregate(null, build::update, build::merge, 2, true);
        if (state != null) {
            Files.write(Path.of(file), build.produceResult(state));
        }
    }
}
