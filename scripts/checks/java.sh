# Java:
## java                        the Java package and its documentation, left in target/java, built without Maven; its tests
java() {
    local target=${CARGO_TARGET_DIR:-$root/target}/java jars=/usr/share/java classes=$scratch/classes libraries name
    install javac openjdk-17-jdk-headless && { [ -e $jars/junit-jupiter-api.jar ] || install "" junit5 ||
        [ -e $jars/junit-jupiter-api.jar ]; } || { skip "Java" "a JDK or JUnit 5 could not be installed"; return; }
    for name in junit-jupiter-{api,engine} junit-platform-{commons,console,engine,launcher,reporting} \
        opentest4j{,-reporting-events,-reporting-schema} apiguardian-api picocli; do
        libraries+=:$jars/$name.jar
    done
    command_line
    cd bindings/java

    mkdir -p "$classes"/{main,test}
    [ -n "${SPARK_HOME:-}" ] || echo "skipped: functions for Spark, because SPARK_HOME names no folder with Spark's jars"
    step java_classes "$classes/main"
    step javac --release 17 -Xlint:all,-classfile,-path -Werror -cp "$classes/main$libraries" -d "$classes/test" \
        src/test/java/bloomline/*.java
    # Little memory, because no file may request more than it has.
    step command java -Xmx256m -cp "$classes/main:$classes/test$libraries" org.junit.platform.console.ConsoleLauncher \
        --disable-banner --details=tree --details-theme=ascii --scan-classpath "$classes/test" --fail-if-no-tests

    step java_jars
    step the_java_readme_runs
    if install mvn maven; then
        step mvn --offline --quiet --file pom.xml validate
    else
        skip "the pom" "Maven could not be installed"
    fi
}

# `java_classes FOLDER` compiles the package, and for Spark if its jars are in SPARK_HOME.
java_classes() {
    javac --release 17 -Xlint:all,-classfile,-path -Werror -cp "${SPARK_HOME:-}/jars/*" -d "$1" \
        src/main/java/bloomline/*.java ${SPARK_HOME:+src/main/java/bloomline/spark/*.java}
}

# As `mvn package` makes them.
java_jars() {
    local version
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml")
    grep -qF "<version>$version</version>" pom.xml
    rm -rf "$target"
    mkdir -p "$target"
    javadoc -quiet -Xdoclint:all,-missing -Werror -d "$classes/doc" src/main/java/bloomline/*.java
    mkdir "$classes/main/META-INF"
    cp ../../LICENSE-* "$classes/main/META-INF"
    jar --create --file "$target/bloomline-$version.jar" --manifest manifest.txt -C "$classes/main" .
    jar --create --file "$target/bloomline-$version-javadoc.jar" -C "$classes/doc" .
    jar --create --file "$target/bloomline-$version-sources.jar" -C src/main/java .
}

the_java_readme_runs() {
    sed -n '/^```java$/,/^```$/p' README.md | grep -v '^```' >"$scratch/Example.java"
    (cd "$scratch" && command java -cp "$(echo "$target"/bloomline-*[0-9].jar)" Example.java)
}
