#!/bin/sh
# Makes Debian packages of this tree in target/debian: `purlin`, and `purlin-erl`, which makes it
# the system's erl. lintian checks them. Each is installed, used and removed in a fresh root, and
# must leave nothing there: of this machine's Debian, or of those that SUITES names, each with its
# own OTP (SUITES="bookworm trixie sid"). APT_OPTION is for the apt that makes the roots (for a
# mirror that is behind: 'Acquire::Check-Valid-Until "false"'). SKIP_TEST=1 only makes them. PURLIN
# names the program (target/dist/purlin, which is built if it is missing).
set -eu
cd "$(dirname "$0")/.."
here=$PWD
program=${PURLIN:-$here/target/dist/purlin}
[ -x "$program" ] || sh scripts/dist.sh
out=$here/target/debian
need=""
for p in dpkg-shlibdeps:dpkg-dev lintian:lintian mmdebstrap:mmdebstrap strip:binutils fakeroot:fakeroot; do
  command -v "${p%%:*}" >/dev/null 2>&1 || need="$need ${p##*:}"
done
if [ -n "$need" ]; then
  sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  echo "installing:$need" >&2
  $sudo apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $need >/dev/null
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
arch=$(dpkg --print-architecture)
# The time of what is packaged, so that the same tree makes the same packages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1700000000)}
export SOURCE_DATE_EPOCH
rm -rf "$out/stage" && mkdir -p "$out/stage/debian"
cd "$out/stage"
cp "$here/packaging/debian/control" debian/control
main=$out/stage/purlin own=$out/stage/purlin-erl

# For each package: the field's lines of debian/control, with what is only known now.
control() { # package, architecture, tree, depends
  mkdir -p "$3/DEBIAN"
  awk -v package="$1" 'BEGIN { RS = ""; ORS = "\n" } $0 ~ "^Package: " package "\n" { print }' debian/control |
    sed -e "s/^Architecture: .*/Architecture: $2/" -e "s/\${shlibs:Depends}/$4/" -e "s/\${version}/$version/" >"$3/DEBIAN/body"
  {
    sed -n '1p' "$3/DEBIAN/body"
    echo "Version: $version"
    sed -n '/^\(Section\|Priority\|Maintainer\):/p' debian/control
    echo "Installed-Size: $(du -sk --exclude=DEBIAN "$3" | cut -f1)"
    sed '1d' "$3/DEBIAN/body"
  } >"$3/DEBIAN/control"
  rm "$3/DEBIAN/body"
  (cd "$3" && find usr -type f | LC_ALL=C sort | xargs -r md5sum >DEBIAN/md5sums)
}
documents() { # package, tree
  doc=$2/usr/share/doc/$1
  mkdir -p "$doc"
  cp "$here/packaging/debian/copyright" "$doc/copyright"
  printf 'purlin (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' "$version" \
    "$(sed -n 's/^Maintainer: //p' debian/control)" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")" |
    gzip -9n >"$doc/changelog.gz"
}

PREFIX=/usr DESTDIR=$main ZSH_FOLDER=vendor-completions PURLIN=$program sh "$here/scripts/install.sh" >/dev/null
rm "$main/usr/share/doc/purlin/LICENSE"
gzip -9n "$main/usr/share/man/man1/purlin.1"
mkdir -p "$main/usr/lib/purlin/bin"
for tool in erl erlc escript; do ln -s ../../../bin/purlin "$main/usr/lib/purlin/bin/$tool"; done
documents purlin "$main"
depends=$(dpkg-shlibdeps -O --ignore-missing-info -e"$main/usr/bin/purlin" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { echo "dpkg-shlibdeps knows no dependency" >&2; exit 1; }
control purlin "$arch" "$main" "$depends"

documents purlin-erl "$own"
install -D -m 644 "$here/packaging/debian/purlin-erl.lintian-overrides" "$own/usr/share/lintian/overrides/purlin-erl"
control purlin-erl all "$own" ""
for script in preinst postinst prerm postrm; do
  install -m 755 "$here/packaging/debian/purlin-erl.$script" "$own/DEBIAN/$script"
done
rm -f "$out"/*.deb
for tree in purlin purlin-erl; do
  find "$tree" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  chmod -R u+rwX,go+rX,go-w "$tree"
  dpkg-deb --root-owner-group --build -Zxz "$tree" "$out" >/dev/null
done
debs=$(ls "$out"/*.deb)
lintian --fail-on error $debs
ls -l $debs
[ -z "${SKIP_TEST:-}" ] || exit 0

# A fresh root of each release: the base system and erlang-base, kept packed for the next time.
[ "$(id -u)" = 0 ] || { echo "the test in a fresh root needs to be root" >&2; exit 1; }
. /etc/os-release
own=$VERSION_CODENAME
root=
remove() {
  [ -n "$root" ] || return 0
  umount "$root/proc" "$root/dev" 2>/dev/null || :
  rm -rf --one-file-system "$root"
  root=
}
trap remove EXIT
in_root() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
# Without what programs keep in the user's own cache: the folder of records of runs.
files() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./root/.cache -o -path ./dev -o -path ./tmp -o -path ./run -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache \) -prune -o -print | LC_ALL=C sort); }
is() { # name, expected, command...
  name=$1 expected=$2
  shift 2
  got=$("$@" 2>&1) || :
  if [ "$got" = "$expected" ]; then echo "ok: $suite: $name"; else echo "FAILED: $suite: $name: $got"; status=1; fi
}
base() { # suite, file
  sources=$(mktemp)
  if [ "$1" = "$own" ]; then
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do [ -s "$list" ] && cat "$list" >>"$sources"; done
  else
    echo "deb ${MIRROR:-http://deb.debian.org/debian} $1 main" >"$sources"
  fi
  mmdebstrap --quiet --variant=minbase --include=erlang-base ${APT_OPTION:+--aptopt="$APT_OPTION"} \
    "$1" "$2-new.tar" - <"$sources"
  mv "$2-new.tar" "$2"
  rm "$sources"
}
status=0
for suite in ${SUITES:-$own}; do
  [ -e "$out/base-$suite.tar" ] || base "$suite" "$out/base-$suite.tar"
  root=$(mktemp -d)
  tar -x -C "$root" -f "$out/base-$suite.tar"
  mount -t proc proc "$root/proc"
  mount --bind /dev "$root/dev"
  cp $debs "$root/tmp/"
  files >"$out/before"
  code='io:format("~p",[erlang:function_exported(purlin,sharing,0)]),halt().'
  in_root dpkg -i "/tmp/$(basename "$(ls "$out"/purlin_*.deb)")" >/dev/null
  echo "$suite: $(in_root purlin version | tail -1)"
  is "version" "purlin $version" in_root sh -c "purlin version | head -1"
  is "purlin runs Erlang" true in_root purlin erl -noshell -eval "$code"
  is "erl is stock" false in_root erl -noshell -eval "$code"
  is "Purlin's own erl" true in_root /usr/lib/purlin/bin/erl -noshell -eval "$code"
  in_root dpkg -i "/tmp/$(basename "$(ls "$out"/purlin-erl_*.deb)")" >/dev/null
  is "erl is Purlin" true in_root erl -noshell -eval "$code"
  is "stock has another name" false in_root erl.stock -noshell -eval "$code"
  in_root update-alternatives --quiet --set erl /usr/bin/erl.stock
  is "chosen: stock" false in_root erl -noshell -eval "$code"
  in_root update-alternatives --quiet --auto erl
  is "chosen: the best" true in_root erl -noshell -eval "$code"
  in_root dpkg -i "/tmp/$(basename "$(ls "$out"/purlin-erl_*.deb)")" >/dev/null
  is "installed again" true in_root erl -noshell -eval "$code"
  in_root dpkg --purge purlin-erl >/dev/null
  is "erl is stock again" false in_root erl -noshell -eval "$code"
  in_root dpkg --purge purlin >/dev/null
  files >"$out/after"
  is "nothing is left" "" diff "$out/before" "$out/after"
  remove
done
exit $status
