package bloomline.spark;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeBlock;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** {@code bloomline_contains(filter, key)}: the filter is standalone bytes, or a literal broadcast of them. */
public final class Contains extends Expression implements Serializable {
    private static final long serialVersionUID = 1;

    private final Seq<Expression> children;
    private transient Opened last;

    public Contains(Seq<Expression> children) {
        this.children = children;
    }

    private Expression filter() {
        return children.head();
    }

    private Expression key() {
        return children.last();
    }

    @Override
    public TypeCheckResult checkInputDataTypes() {
        if (filter() instanceof Literal literal && literal.value() instanceof Broadcast<?> broadcast) {
            return Keys.check(key().dataType(), ((Opened.Shared) broadcast.value()).kinds);
        }
        DataType type = filter().dataType();
        return type instanceof BinaryType || type instanceof NullType
                ? Keys.check(key().dataType(), Keys.UNKNOWN)
                : Keys.failure("a filter is binary, not %s", type.simpleString());
    }

    @Override
    public Object eval(InternalRow row) {
        Object filter = filter().eval(row);
        Object key = filter == null ? null : key().eval(row);
        if (key == null) {
            return null;
        }
        Opened opened = Opened.of(last, filter);
        last = opened;
        if (key instanceof Number number) {
            return opened.filter().contains(number.longValue());
        }
        return opened.filter().contains(key instanceof UTF8String text ? text.getBytes() : (byte[]) key);
    }

    @Override
    public ExprCode doGenCode(CodegenContext context, ExprCode code) {
        ExprCode filter = filter().genCode(context);
        ExprCode key = key().genCode(context);
        DataType type = key().dataType();
        String bytes = Keys.areText(type) ? key.value() + ".getBytes()"
                : Keys.areIntegers(type) ? "(long) " + key.value() : "(byte[]) " + key.value();
        String text = """
                boolean %1$s = %2$s || %3$s;
                boolean %4$s = false;
                if (!%1$s) {
                    %5$s = %6$s.of(%5$s, %7$s);
                    %4$s = %5$s.filter().contains(%8$s);
                }
                """.formatted(code.isNull(), filter.isNull(), key.isNull(), code.value(),
                context.addMutableState(Opened.class.getName(), "opened", name -> "", false, true),
                Opened.class.getName(), filter.value(), bytes);
        CodeBlock block = new CodeBlock(Functions.seq(List.of(text)), Functions.seq(List.of()));
        return code.copy(filter.code().$plus(key.code()).$plus(block), code.isNull(), code.value());
    }

    @Override
    public boolean nullable() {
        return filter().nullable() || key().nullable();
    }

    @Override
    public DataType dataType() {
        return BooleanType$.MODULE$;
    }

    @Override
    public String prettyName() {
        return "bloomline_contains";
    }

    @Override
    public Seq<Expression> children() {
        return children;
    }

    @Override
    public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
        return new Contains(children);
    }

    // As a case class of Scala.

    @Override
    public int productArity() {
        return 1;
    }

    @Override
    public Object productElement(int i) {
        return children;
    }

    @Override
    public boolean canEqual(Object other) {
        return other instanceof Contains;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Contains that && children.equals(that.children);
    }
}
