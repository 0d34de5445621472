#!/bin/sh
# Makes a book of the pages in docs, in target/book. mdbook is installed in target/tools if the machine has none. Pages of the
# root that docs refer to become pages of the book; links to other files of the tree lead to the tree.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/target/tools/bin:$HOME/.cargo/bin:$PATH"
command -v mdbook >/dev/null || cargo install --quiet --locked --root target/tools mdbook
src=target/book-src
rm -rf "$src"
mkdir -p "$src"
cp docs/* "$src"
for page in ARCHITECTURE CHANGELOG COMPATIBILITY CONTRIBUTING SECURITY; do
  sed -E 's|\]\(docs/|](|g; s|\]\((tests/[^)]*)\)|](../../\1)|g' "$page.md" >"$src/$page.md"
done
sed -E 's|\]\(\.\./([A-Z]+\.md[^)]*)\)|](\1)|g; s|\]\(\.\./(tests/[^)]*)\)|](../../\1)|g' -i "$src"/*.md
cat >>"$src/SUMMARY.md" <<'END'

# The tree

- [Differences from stock](COMPATIBILITY.md)
- [Changes](CHANGELOG.md)
- [Security](SECURITY.md)
- [Architecture](ARCHITECTURE.md)
- [Contributing](CONTRIBUTING.md)
END
mdbook build
echo "target/book/index.html"
