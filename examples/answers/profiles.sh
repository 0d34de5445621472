#!/bin/sh
# Profiles of two versions of a program, and their difference.
for version in 1.4 1.5; do
  timeout -k 1 120 sh ask.sh slow.erl $version -- profile --for "${1:-4s}" --to $version.pprof
done
purlin explain diff 1.4.pprof 1.5.pprof --top 2
