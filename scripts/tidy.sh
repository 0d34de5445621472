#!/bin/sh
# Compares the documents with the tree. Each file that ARCHITECTURE.md, CONTRIBUTING.md and docs
# name exists; ARCHITECTURE.md names each folder of sources; each dependency of a Cargo.toml is in
# its table; each constant that docs give a number of is in the file that they name; and no line of
# a document is longer than 100 columns. It prints what is wrong, and the status is then 1.
set -u
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Paths in prose: what stands in backquotes or in a link and has a slash or ends like a file. A path
# may be told from the root, or from the folder of the sources that the text is about; a word of
# more than a path (a command, a flag) is none.
find . -path ./target -prune -o -path ./.git -prune -o -print | sed 's|^\./||' >"$work/tree"
for doc in ARCHITECTURE.md CONTRIBUTING.md README.md llms.txt docs/*.md; do
  [ -e "$doc" ] || continue
  { grep -o '`[^`]*`' "$doc" | tr -d '`'
    grep -o '](\([^)#]*\)' "$doc" | sed 's/^](//' | grep -v '^http'; } |
    grep -E '^[A-Za-z0-9_./-]+$' |
    grep -E '\.(rs|md|sh|toml|erl|exs|hrl|txt)$|^(crates|tests|scripts|benches|examples|fuzz|docs)/' |
    grep -v '^target/' | sed 's|/$||; s|^\.\./||' | sort -u | while read -r path; do
    # Written in the sources' own places, or by name alone.
    grep -qE "(^|/)$(echo "$path" | sed 's/\./\\./g')\$" "$work/tree" || echo "$doc names $path, which doesn't exist"
  done
done >"$work/wrong"

# Code blocks may show wide output.
for doc in *.md docs/*.md $(find tests benches examples packaging training -name README.md); do
  LC_ALL=C.UTF-8 grep -nE '^.{101,}' "$doc" | grep -vE '^[0-9]+:    ' | cut -d: -f1 |
    sed "s|.*|$doc:&: more than 100 columns|"
done >>"$work/wrong"

for dir in $(find crates/*/src fuzz/src xtask/src -type d | sort); do
  grep -qF "\`$dir\`" ARCHITECTURE.md || echo "ARCHITECTURE.md doesn't name the folder $dir" >>"$work/wrong"
done

for page in docs/*.md; do
  [ "$page" = docs/SUMMARY.md ] || grep -qF "($(basename "$page"))" docs/SUMMARY.md ||
    echo "docs/SUMMARY.md doesn't name $page" >>"$work/wrong"
done

# Scripts have a target, or CONTRIBUTING.md says which others use them. It names each model, and
# each property of a native.
for script in scripts/*.*; do
  name=$(basename "$script")
  cat Makefile bench CONTRIBUTING.md | grep -qwF "$name" ||
    echo "neither make, sh bench nor CONTRIBUTING.md names $script" >>"$work/wrong"
done
{ basename -a crates/models/tests/*.rs
  sed -n '/^pub struct Traits/,/^}/s/^ *pub \([a-z_]*\):.*/\1/p' crates/native/src/bif.rs |
    sed 's/^touches$/reads/; s/^releases$/since/'; } | while read -r name; do
  grep -qE "^\| .*\`$name[\`(]" CONTRIBUTING.md ||
    echo "CONTRIBUTING.md has no row for $name" >>"$work/wrong"
done

# The figures that `make figures` compares are where docs/figures.txt says.
grep -v '^#' docs/figures.txt | while read -r _ name file _ pattern; do
  grep -q -e "$pattern" "$file" || echo "docs/figures.txt: $file has no figure $name"
done >>"$work/wrong"

# Rows of the table: the names in the first column.
sed -n '/^## Dependencies/,$p' ARCHITECTURE.md | grep '^| `' | cut -d'|' -f2 | grep -o '`[^`]*`' | tr -d '`' | sort -u >"$work/told"
for toml in crates/*/Cargo.toml fuzz/Cargo.toml; do
  awk '/^\[/ { on = /dependencies\]$/; next } on && /^[A-Za-z0-9_-]+/ { split($0, a, /[ .=]/); print a[1] }' "$toml"
done | grep -vE '^(purlin|xtask)' | sort -u >"$work/used"
comm -13 "$work/told" "$work/used" | sed 's/^/no row in the table of dependencies: /' >>"$work/wrong"
comm -23 "$work/told" "$work/used" | sed 's/^/in the table of dependencies, but not used: /' >>"$work/wrong"
# Who uses what: the second column.
for toml in crates/*/Cargo.toml fuzz/Cargo.toml; do
  crate=$(basename "$(dirname "$toml")")
  awk '/^\[/ { on = /dependencies\]$/; next } on && /^[A-Za-z0-9_-]+/ { split($0, a, /[ .=]/); print a[1] }' "$toml" |
    grep -vE '^(purlin|xtask)' | while read -r name; do
    grep -F "\`$name\`" ARCHITECTURE.md | grep '^|' | cut -d'|' -f3 | grep -qw "$crate" ||
      echo "the table of dependencies doesn't say that $crate uses $name"
  done
done >>"$work/wrong"

# Constants that the notes give numbers of, in the first column of their tables, are in one of the
# files that the third column names. Such a file may be told by the end of its path.
grep '^| `[A-Z]' docs/*.md | while IFS='|' read -r doc names _ files _; do
  for name in $(echo "$names" | grep -o '`[A-Z][A-Z_]*`' | tr -d '`'); do
    for file in $(echo "$files" | grep -o '`[a-z0-9_/.-]*\.rs`' | tr -d '`'); do
      grep -E "^crates/(.*/)?$file\$|^$file\$" "$work/tree"
    done | xargs -r grep -lqE "(const|static) $name\\b" 2>/dev/null ||
      echo "${doc%:} gives a number of $name, which is not in $files"
  done
done >>"$work/wrong"

[ -s "$work/wrong" ] || exit 0
cat "$work/wrong"
exit 1
