package bloomline.spark;

import bloomline.Sizing;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType$;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.ObjectType;
import scala.Function1;
import scala.Option;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/**
 * Registers {@code bloomline_contains}, {@code bloomline_filter} and {@code bloomline_filter_union}: name this class in
 * {@code spark.sql.extensions}, or call {@link #register}.
 */
public final class Functions implements Function1<SparkSessionExtensions, BoxedUnit> {
    private static final Map<String, Function1<Seq<Expression>, Expression>> FUNCTIONS = Map.of(
            "bloomline_contains", arguments -> {
                check(arguments, 2, 2, "bloomline_contains(filter, key)");
                return new Contains(arguments);
            },
            "bloomline_filter", arguments -> {
                check(arguments, 3, 4, "bloomline_filter(key, expected_keys, fpr[, seed])");
                long expectedKeys = constant(arguments.apply(1), LongType$.MODULE$).longValue();
                double fpr = constant(arguments.apply(2), DoubleType$.MODULE$).doubleValue();
                long seed = arguments.size() == 3 ? 0 : constant(arguments.last(), LongType$.MODULE$).longValue();
                return new Build(seq(List.of(arguments.head())), Sizing.forFpr(expectedKeys, fpr).foldable(), seed, 0, 0);
            },
            "bloomline_filter_union", arguments -> {
                check(arguments, 1, 1, "bloomline_filter_union(filter)");
                return new Build(arguments, null, 0, 0, 0);
            });

    private static void check(Seq<Expression> arguments, int least, int most, String usage) {
        if (arguments.size() < least || arguments.size() > most) {
            throw new IllegalArgumentException(arguments.size() + " arguments do not fit: write " + usage);
        }
    }

    private static Number constant(Expression argument, DataType type) {
        Object value = argument.foldable() ? new Cast(argument, type, Option.empty()).eval(null) : null;
        if (value == null) {
            throw new IllegalArgumentException("a filter's size and seed are constants, not " + argument.sql());
        }
        return (Number) value;
    }

    static <T> Seq<T> seq(List<T> elements) {
        return CollectionConverters.asScala(elements).toList();
    }

    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        FUNCTIONS.forEach((name, function) -> extensions.injectFunction(new Tuple3<>(
                FunctionIdentifier.apply(name), new ExpressionInfo(Functions.class.getName(), name), function)));
        return BoxedUnit.UNIT;
    }

    /** Registers the functions in a session that runs. */
    public static void register(SparkSession session) {
        FunctionRegistry registry = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().functionRegistry();
        FUNCTIONS.forEach((name, function) -> registry.createOrReplaceTempFunction(name, function, "scala_udf"));
    }

    /** For Python: broadcasts the standalone bytes in a file. */
    public static Broadcast<?> broadcast(JavaSparkContext context, String file, int kinds) throws IOException {
        return context.broadcast(new Opened.Shared(Files.readAllBytes(Path.of(file)), kinds));
    }

    /** For Python: whether a broadcast filter has the keys of a column. */
    public static Column contains(Broadcast<?> filter, Column key) {
        Literal literal = Literal.fromObject(filter, ObjectType.apply(Broadcast.class));
        return ExpressionUtils.column(new Contains(seq(List.of(literal, ExpressionUtils.expression(key)))));
    }
}
