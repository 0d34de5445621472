#!/bin/sh
# Makes a release in target/release-VERSION, `make release`: checks and tests, the executable with a
# profile, its Debian packages and its image, the changes of the version, the bill of materials, the
# source, and the checksums of all. It publishes nothing. The order:
#
#   1. the tree is committed, and CHANGELOG.md has a part of the version with a date
#   2. `make check` and `sh test`                            SKIP_TESTS=1 leaves them out
#   3. two builds of the commit, by scripts/reproducible.sh, are the same; the counts that the first
#      one used are part of the release, so that others can repeat it     PLAIN=1 builds without
#   4. `make deb` and `make image` package that executable    SKIP_PACKAGES=1 leaves them out
#   5. purlin-VERSION.tar.gz, CHANGES.md, purlin.cdx.json, SHA256SUMS; with BASE_URL, the address
#      where the source will be, the formula for Homebrew
#
# DRY_RUN=1 does 1 (as warnings), and 5 with xtask in place of the executable.
set -eu
cd "$(dirname "$0")/.."
here=$PWD
PATH="$HOME/.cargo/bin:$PATH"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
out=$here/target/release-$version
stop() {
  echo "release: $1" >&2
  [ -n "${DRY_RUN:-}" ] || exit 1
}
[ -z "$(git status --porcelain)" ] || stop "the tree has changes that are not committed"
heading=$(grep -m1 "^## $version" CHANGELOG.md) || stop "CHANGELOG.md has no part of $version"
case ${heading:-} in *unreleased*) stop "CHANGELOG.md calls $version unreleased: give it its date" ;; esac

rm -rf "$out"
mkdir -p "$out"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
if [ -z "${DRY_RUN:-}" ] && [ -z "${SKIP_TESTS:-}" ]; then
  sh scripts/check.sh
  sh test
fi
if [ -n "${DRY_RUN:-}" ]; then
  sh scripts/reproducible.sh xtask
  cp target/reproducible/xtask "$out/"
else
  if [ -n "${PLAIN:-}" ]; then
    sh scripts/reproducible.sh purlin
  else
    # Counts of this very tree.
    sh scripts/dist.sh
    cp target/counts/merged.profdata "$out/purlin.profdata"
    PROFDATA=$out/purlin.profdata PROFILE=dist sh scripts/reproducible.sh purlin
  fi
  strip -o "$out/purlin" target/reproducible/purlin
  if [ -z "${SKIP_PACKAGES:-}" ]; then
    PURLIN=$out/purlin sh scripts/deb.sh
    cp target/debian/*.deb "$out/"
    PURLIN=$out/purlin sh scripts/image.sh
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
      -C target/image -cf "$out/purlin-image.tar" .
  fi
fi
git archive --prefix="purlin-$version/" HEAD | gzip -9n >"$out/purlin-$version.tar.gz"
awk -v version="$version" '/^## / { on = index($2, version) == 1 } on' CHANGELOG.md >"$out/CHANGES.md"
cargo xtask sbom >"$out/purlin.cdx.json"
sum=$(sha256sum "$out/purlin-$version.tar.gz" | cut -d' ' -f1)
[ -z "${BASE_URL:-}" ] ||
  sed "s|@URL@|$BASE_URL|g; s|@VERSION@|$version|; s|@SHA256@|$sum|" packaging/homebrew/purlin.rb.in >"$out/purlin.rb"
(cd "$out" && LC_ALL=C && sha256sum * >"../SHA256SUMS-$version" && mv "../SHA256SUMS-$version" SHA256SUMS)
cat "$out/SHA256SUMS"
echo "release: $out"
