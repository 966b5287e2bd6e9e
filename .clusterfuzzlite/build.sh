#!/usr/bin/env bash
# Every tests/fuzz/fuzz_*.c with the library, and its corpus. $CC, $CFLAGS, $LIB_FUZZING_ENGINE and
# $OUT are given.
set -eu
flags="$CFLAGS -std=c11 -pthread -Icsrc -Itests/c -DTFW_TEST_FAULTS"
mkdir -p build/clusterfuzz
objects=()
for source in csrc/*/*.c; do
    object=build/clusterfuzz/$(echo "${source#csrc/}" | tr / _).o
    $CC $flags -c "$source" -o "$object"
    objects+=("$object")
done
for source in tests/fuzz/fuzz_*.c; do
    target=$(basename "$source" .c)
    $CC $flags -c "$source" -o "build/clusterfuzz/$target.o"
    $CXX $CXXFLAGS -pthread "build/clusterfuzz/$target.o" "${objects[@]}" $LIB_FUZZING_ENGINE \
        -o "$OUT/$target"
    zip -qj "$OUT/${target}_seed_corpus.zip" "tests/fuzz/corpus/${target#fuzz_}"/*
done
