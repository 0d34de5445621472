#!/bin/sh
# Builds the same commit twice, from nothing, and compares the executables:
# scripts/reproducible.sh [PACKAGE]. They must be the same, byte for byte. PACKAGE is purlin; xtask
# is a small one. FOLDER is where the sources are unpacked (target/reproducible/tree): two builds
# are the same if their folders have one name, since cargo's names of crates contain the flags,
# which contain the folder. PROFILE is release. PROFDATA names the counts of a build of `make dist`
# (target/counts/merged.profdata), which are then used for both, with PROFILE=dist. The executable
# is left in target/reproducible/PACKAGE.
set -eu
cd "$(dirname "$0")/.."
here=$PWD
package=${1:-purlin} profile=${PROFILE:-release}
PATH="$HOME/.cargo/bin:$PATH"
[ -z "$(git status --porcelain --untracked-files=no)" ] ||
  echo "reproducible: the commit is built, without the changes that are not committed" >&2
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
out=$here/target/reproducible
rm -rf "$out"
mkdir -p "$out"
tree=${FOLDER:-$out/tree}
[ ! -e "$tree" ] || { echo "reproducible: $tree is there already" >&2; exit 2; }
trap 'rm -rf "$tree"' EXIT
for build in first another; do
  rm -rf "$tree"
  mkdir -p "$tree"
  git archive HEAD | tar -x -C "$tree"
  # Names of folders get into debug information and into messages of panics.
  flags="--remap-path-prefix=$tree=/purlin --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
  [ -z "${PROFDATA:-}" ] || flags="$flags -Cprofile-use=$PROFDATA -Cllvm-args=-no-pgo-warn-mismatch"
  (cd "$tree" && CFLAGS="-ffile-prefix-map=$tree=/purlin" RUSTFLAGS=$flags CARGO_INCREMENTAL=0 \
    cargo build -q --locked --profile "$profile" -p "$package" --target-dir "$tree/target")
  cp "$tree/target/$profile/$package" "$out/$package.$build"
done
(cd "$out" && sha256sum "$package.first" "$package.another")
cmp "$out/$package.first" "$out/$package.another" || { echo "reproducible: the builds differ" >&2; exit 1; }
mv "$out/$package.first" "$out/$package"
rm "$out/$package.another"
echo "reproducible: two builds of $package are the same"
