#!/bin/sh
# What tests/hadoop needs beside Spark, into .hadoop: the classes of a small HDFS and YARN (Maven), and Hadoop's
# native client, compiled from the C sources that the crate hdfs-sys brings. Wants mvn, cargo, a C compiler, a JDK.
set -eu

cd "$(dirname "$0")/.."
folder=$PWD/.hadoop
jars=$(.venv/bin/python -c 'import pyspark; print(pyspark.__path__[0] + "/jars")')
version=$(ls "$jars" | sed -n 's/^hadoop-client-api-\(.*\)\.jar$/\1/p')
home=${JAVA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")}
[ -f "$home/include/jni.h" ] || { echo "error: no JDK with include/jni.h; set JAVA_HOME" >&2; exit 1; }
mkdir -p "$folder"

# The YARN among these classes asserts with JUnit, and makes certificates.
for artifact in "org.apache.hadoop:hadoop-client-minicluster:$version" org.junit.jupiter:junit-jupiter-api:5.13.4 \
    org.junit.platform:junit-platform-commons:1.13.4 org.opentest4j:opentest4j:1.3.0 \
    org.bouncycastle:bcprov-jdk18on:1.80 org.bouncycastle:bcpkix-jdk18on:1.80 org.bouncycastle:bcutil-jdk18on:1.80; do
    name=${artifact#*:}
    [ -f "$folder/${name%:*}-${name#*:}.jar" ] ||
        mvn -q -B dependency:copy -Dartifact="$artifact" -DoutputDirectory="$folder"
done
if [ ! -f "$folder/libhdfs.so" ]; then
    crate=$(mktemp -d)
    trap 'rm -rf "$crate"' EXIT
    printf '[package]\nname="x"\nversion="0.1.0"\nedition="2021"\n[lib]\npath="x.rs"\n[dependencies]\nhdfs-sys="=0.3.1"\n' \
        > "$crate/Cargo.toml"
    touch "$crate/x.rs"
    (cd "$crate" && cargo vendor -q vendor > /dev/null)
    sources=$crate/vendor/hdfs-sys/libhdfs
    newest=$sources/hdfs_3_3
    cc -shared -fPIC -O2 -w -fcommon -I"$home/include" -I"$home/include/linux" -I"$sources" -I"$newest" \
        -I"$newest/include" -I"$newest/os" -I"$newest/os/posix" "$newest"/*.c "$newest"/os/posix/*.c \
        -L"$home/lib/server" -ljvm -Wl,-rpath,"$home/lib/server" -o "$folder/libhdfs.so"
fi
