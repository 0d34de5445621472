#!/bin/sh
# Rewrites the table of natives in COMPATIBILITY.md, between its two markers: what the installed OTP's emulator has
# built in (and its preloaded modules load as native functions) against the tables of this runtime.
set -eu
cd "$(dirname "$0")/.."

list=$(mktemp)
table=$(mktemp)
page=$(mktemp)
trap 'rm -f "$list" "$table" "$page"' EXIT

erl -noshell -eval '
    Nifs = [{M, F, A} || {M, preloaded} <- code:all_loaded(), {F, A} <- M:module_info(nifs)],
    [io:format("~ts\t~ts\t~b~n", [M, F, A]) || {M, F, A} <- lists:usort(erlang:system_info(snifs) ++ Nifs)],
    halt().' >"$list"
cargo run -q -p purlin-runtime --example natives <"$list" >"$table"

awk -v table="$table" '
    /<!-- natives: end -->/ { skip = 0 }
    !skip
    /<!-- natives: begin -->/ { print ""; while ((getline line < table) > 0) print line; print ""; skip = 1 }
' COMPATIBILITY.md >"$page"
cat "$page" >COMPATIBILITY.md
