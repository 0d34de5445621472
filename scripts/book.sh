#!/bin/sh
# Makes a book of the pages in docs, in target/book. If the machine has no mdbook, it is built in
# target/tools, which takes minutes; from Debian 13 on it is a package. Pages of the root, and
# tables of results that pages refer to, become pages of the book. A link that leads nowhere is an
# error.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/target/tools/bin:$HOME/.cargo/bin:$PATH"
command -v mdbook >/dev/null || cargo install --quiet --locked --root target/tools mdbook
src=target/book-src
rm -rf "$src" target/book
mkdir -p "$src"
cp -R docs/. "$src"
for page in ARCHITECTURE CHANGELOG COMPATIBILITY CONTRIBUTING SECURITY; do
  cp "$page.md" "$src"
done
cp tests/otp/results.md "$src/suites.md"
cp tests/otp/natives.md "$src/natives.md"
cp tests/applications/results.md "$src/libraries.md"
cp tests/applications/servers.md "$src/servers.md"
cp tests/applications/list.txt "$src"
sed -E -i 's#\]\((\.\./)?README\.md#](index.md#g; s#\]\((\.\./)?tests/otp/results\.md#](suites.md#g
  s#\]\((\.\./)?tests/otp/natives\.md#](natives.md#g; s#\]\((\.\./)?tests/applications/results\.md#](libraries.md#g
  s#\]\((\.\./)?tests/applications/servers\.md#](servers.md#g
  s#\]\(docs/#](#g; s#\]\(\.\./([A-Z]+\.md)#](\1#g' "$src"/*.md
cat >>"$src/SUMMARY.md" <<'END'

# The tree

- [Differences from stock](COMPATIBILITY.md)
- [Native functions](natives.md)
- [Results of the suites](suites.md)
- [Results of libraries](libraries.md)
- [Servers and applications](servers.md)
- [Changes](CHANGELOG.md)
- [Security](SECURITY.md)
- [Architecture](ARCHITECTURE.md)
- [Contributing](CONTRIBUTING.md)
END
mdbook build
cp llms.txt target/book
status=0
cd target/book
for page in *.html; do
  for link in $(grep -o 'href="[^"#:]*[".#]' "$page" | sed 's/^href="//; s/["#]$//' | sort -u); do
    # Debian's mdbook leaves the fonts out.
    case $link in fonts/*) continue ;; esac
    [ -z "$link" ] || [ -e "$link" ] || { echo "$page: $link doesn't exist"; status=1; }
  done
done
[ "$status" != 0 ] || echo "target/book/index.html"
exit "$status"
