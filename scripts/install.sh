#!/bin/sh
# Installs Purlin, or removes it: scripts/install.sh [--uninstall]. PREFIX (/usr/local) is where it
# goes. DESTDIR is put in front of that, for makers of packages. The program is stripped. It prints
# its manual page and its completions itself. PURLIN names the program to install
# (target/dist/purlin). CROSS names a Purlin that runs here, if that one does not.
set -eu
cd "$(dirname "$0")/.."
prefix=${PREFIX:-/usr/local}
case $prefix in
  /*) ;;
  *)
    echo "PREFIX must begin with /: $prefix" >&2
    exit 2
    ;;
esac
to=${DESTDIR:-}$prefix
program=${PURLIN:-target/dist/purlin}
runs=${CROSS:-$program}
bash=$to/share/bash-completion/completions/purlin
zsh=$to/share/zsh/${ZSH_FOLDER:-site-functions}/_purlin
fish=$to/share/fish/vendor_completions.d/purlin.fish
manual=$to/share/man/man1/purlin.1
texts=$to/share/doc/purlin
if [ "${1:-}" = --uninstall ]; then
  rm -f "$to/bin/purlin" "$bash" "$zsh" "$fish" "$manual" "$manual.gz"
  rm -rf "$texts"
  # Folders go if nobody else has anything in them.
  for file in "$bash" "$zsh" "$fish" "$manual" "$texts" "$to/bin/purlin"; do
    dir=$(dirname "$file")
    while [ "$dir" != "${DESTDIR:-}" ] && [ "$dir" != "$prefix" ] && [ "$dir" != / ] && [ "$dir" != . ]; do
      rmdir "$dir" 2>/dev/null || break
      dir=$(dirname "$dir")
    done
  done
  exit 0
fi
if [ $# -gt 0 ]; then
  echo "$1 is not understood: scripts/install.sh [--uninstall]" >&2
  exit 2
fi
[ -x "$program" ] || { echo "$program is not there: build it first (make)" >&2; exit 1; }
command -v strip >/dev/null || { echo "strip is missing: install binutils" >&2; exit 1; }
umask 022
for dir in "$to/bin" "$texts" "$(dirname "$bash")" "$(dirname "$zsh")" "$(dirname "$fish")" "$(dirname "$manual")"; do
  mkdir -p "$dir"
done
# Beside the old one and then in its place, so that nodes which run go on with theirs.
"${STRIP:-strip}" --strip-all -o "$to/bin/.purlin-$$" "$program"
chmod 755 "$to/bin/.purlin-$$"
mv -f "$to/bin/.purlin-$$" "$to/bin/purlin"
"$runs" help man >"$manual"
"$runs" help bash >"$bash"
"$runs" help zsh >"$zsh"
"$runs" help fish >"$fish"
cp README.md COMPATIBILITY.md CHANGELOG.md LICENSE "$texts"
mkdir -p "$texts/docs"
cp -R docs/. "$texts/docs"
chmod -R u+rwX,go+rX "$texts"
echo "$to/bin/purlin"
