# The command line:
## cli                         tests in release mode, where none is left out
cli() {
    # Its README's sessions use the examples.
    cargo build --release --quiet -p bloomline-examples --example lines --example archive --example corpus
    step cargo test -p bloomline-cli -p bloomline-chart -p bloomline-replace --release
}

## cli_bench                   compares time and memory of bloomline with those of awk, sort, Python and grep
# LINES lines (30 million) of about 60 bytes, three in ten of them repeats, for dedup; a third of them to be found among
# a million keys. All tools run in the C locale, where they are fastest, read from the page cache and write into a pipe.
# Writes the median of ROUNDS rounds (3; 1 for grep, which needs minutes) where the report draws it. Where dedup prints
# fewer lines than mawk, it has dropped new ones.
cli_bench() {
    install mawk mawk && install python3 python3 && install /usr/bin/time time ||
        { skip "comparing the command line" "mawk, Python or time could not be installed"; return; }
    cargo build --release --quiet -p bloomline-cli -p bloomline-examples --bin bloomline --example lines
    local built=${CARGO_TARGET_DIR:-$root/target}/release rounds=${ROUNDS:-3} lines=${LINES:-30000000} title
    title="$(date -u +%F), $(scripts/cpu)"
    local set='import sys; seen, write = set(), sys.stdout.buffer.write
for line in open("lines", "rb"): line in seen or (seen.add(line), write(line))'
    export LC_ALL=C PATH=$built:$built/examples:$PATH
    cd "$scratch"
    lines "$lines" >lines
    head -n $((lines / 3)) lines >found
    lines 1000000 keys >keys
    {
        timed "mawk" mawk '!seen[$0]++' lines
        timed "sort -u" sort -u lines
        timed "Python" python3 -c "$set"
        timed "bloomline dedup" bloomline dedup lines
        timed "bloomline dedup --keys" bloomline dedup --keys $((lines * 7 / 10)) lines
        rounds=1 timed "grep" grep -F -x -f keys found
        timed "bloomline build, check" \
            sh -c 'bloomline build -o keys.bloom --fpr 1e-6 keys && bloomline check keys.bloom found'
    } | sed -e "1i {\"title\":\"$title\",\"columns\":[\"CPU time, s\",\"memory, MB\",\"lines\"],\"rows\":[" \
        -e '$!s/$/,/; $s/$/]}/' | tee "$root/docs/plots/dedup.json"
}

# `timed NAME COMMAND...` prints a row: the round with the median CPU time, which compares better than elapsed time on a
# machine that is busy with other work.
timed() {
    local printed round
    rm -f time
    for ((round = 0; round < rounds; round++)); do
        printed=$(/usr/bin/time -q -a -o time -f "%U %S %M" "${@:2}" | wc -l)
    done
    awk '{ printf "%.2f,%.0f\n", $1 + $2, $3 * 1024 / 1e6 }' time | sort -n |
        sed -n "$((rounds / 2 + 1))s/.*/[\"$1\",[&,$printed]]/p"
}

## index_bench                 compares finding a word by an index with zgrep, ripgrep and ugrep
# FILES (10,000) compressed log files, with one address in five of them. Prints CPU and elapsed seconds, the fastest of 20
# runs for `find`, and how many files were found, all from the page cache.
index_bench() {
    install rg ripgrep && install zgrep gzip && install /usr/bin/time time ||
        { skip "comparing the index" "ripgrep, gzip or time could not be installed"; return; }
    cargo build --release --quiet -p bloomline-cli -p bloomline-examples --bin bloomline --example archive
    local built=${CARGO_TARGET_DIR:-$root/target}/release word=203.0.113.77 i
    export LC_ALL=C PATH=$built:$built/examples:$PATH
    scripts/cpu
    cd "$scratch"
    command archive logs "${FILES:-10000}"
    find logs -type f -exec touch -d '1 hour ago' {} +
    find logs -type f -print0 >list
    elapsed "zcat" xargs -0 -a list zcat | wc -c
    elapsed "index" bloomline index --words -o logs.index logs
    elapsed "index again" bloomline index --words -o logs.index logs
    elapsed "find nothing" bloomline find logs.index nobody
    for ((i = 0; i < 20; i++)); do
        elapsed "find" bloomline find logs.index $word 2>&1 >found
    done | sort -t, -k 2 -n | head -n 1
    wc -l <found
    du -b logs logs.index
    xargs -a found du -cb | tail -n 1
    elapsed "find, zgrep" sh -c "bloomline find logs.index $word | xargs -r zgrep -l -F $word" | wc -l
    elapsed "rg -z" rg -z -l -F $word logs | wc -l
    elapsed "zgrep" xargs -0 -a list zgrep -l -F $word | wc -l
    # Last, because it writes into each folder.
    if type ugrep-indexer >/dev/null 2>&1; then
        elapsed "ugrep-indexer" ugrep-indexer -q -z logs
        du -cb logs/._UG\#_Store | tail -n 1
        elapsed "ugrep" ugrep --index -z -r -l -F $word logs | wc -l
    fi
}

elapsed() { /usr/bin/time -f "$1: %U + %S s of CPU, %e s elapsed, %M KB" "${@:2}"; }

## corpus_bench                compares dropping the repeats of a corpus with dolma, datatrove and text-dedup
# DOCUMENTS (200,000) of 1.2 KB, as compressed JSON Lines. Prints time and memory, then what is kept beside the new texts
# in a set. All read from the page cache and aim at a false-positive rate of one in a million. dolma writes no documents,
# but which of them it has seen. With `RIVALS=`, only bloomline runs, because datatrove needs half an hour.
corpus_bench() {
    install zcat gzip && install python3 python3 && install /usr/bin/time time ||
        { skip "comparing corpora" "gzip, Python or time could not be installed"; return; }
    cargo build --release --quiet -p bloomline-cli -p bloomline-examples --bin bloomline --example corpus
    local built=${CARGO_TARGET_DIR:-$root/target}/release documents=${DOCUMENTS:-200000} rivals=${RIVALS-yes} unit bytes
    export LC_ALL=C PATH=$built:$built/examples:$PATH
    scripts/cpu
    cd "$scratch"
    command corpus documents 50 "$documents"
    elapsed "zcat" zcat documents/* | wc -c
    elapsed "bloomline, documents" bloomline dedup --json text documents/* >kept
    python3 "$root/scripts/corpus.py" judge documents
    elapsed "bloomline, paragraphs" bloomline dedup --json text --paragraphs documents/* >kept
    python3 "$root/scripts/corpus.py" judge paragraphs
    elapsed "bloomline, n-grams" bloomline dedup --json text --ngrams 13 --overlap 80% documents/* >kept
    python3 "$root/scripts/corpus.py" judge documents
    [ "$rivals" ] || return 0
    # Each without the dependencies that do not run here, such as Spark and PyTorch.
    if new_venv && pip --no-deps dolma==1.2.1; then
        for unit in documents paragraphs; do
            rival "dolma, $unit" dolma $unit $((4 * documents))
        done
    else
        skip "dolma" "pip could not install it"
    fi
    if pip datatrove==0.10.1 nltk orjson regex spacy tokenizers 'xxhash<4'; then
        # Its hashes are masked by the size, which leaves two values of a power of two. Near-copies count as dropped.
        for bytes in $((1 << 26)) $(((1 << 28) - 1)); do
            rival "datatrove, n-grams, $bytes bytes" datatrove documents $bytes
        done
    else
        skip "datatrove" "pip could not install it"
    fi
    if pip --no-deps text-dedup==0.4.0 &&
        pip bitarray click click-option-group datasets ftfy pybloom-live regex rich scipy tqdm xxhash; then
        rival "text-dedup, documents" text_dedup documents "$documents"
    else
        skip "text-dedup" "pip could not install it"
    fi
}

# Complains of the dependencies that were left out.
pip() { "$scratch/venv/bin/pip" install --quiet "$@" 2>/dev/null; }

# `rival NAME FUNCTION UNIT SIZE` runs functions of scripts/corpus.py. Their output is printed if they fail.
rival() {
    local python=(venv/bin/python "$root/scripts/corpus.py")
    elapsed "$1" sh -c '"$@" >log 2>&1 || { tail log; false; }' sh "${python[@]}" "${@:2}"
    "${python[@]}" "$2_kept" "$3"
    "${python[@]}" judge "$3"
}
