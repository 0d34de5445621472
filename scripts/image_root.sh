#!/bin/sh
# Writes the files of an image to the folder ROOT: scripts/image_root.sh ROOT. They are a C library,
# a shell and small tools (busybox), OTP without its emulator, and Purlin as `purlin`, `erl`, `erlc`
# and `escript`. The packages come from the machine's own apt and are unpacked, not installed.
# OTP_PACKAGES names the parts of OTP, PURLIN the program (target/dist/purlin).
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
root=${1:?the folder of the image}
program=${PURLIN:-$here/target/dist/purlin}
otp=${OTP_PACKAGES:-erlang-base erlang-crypto erlang-asn1 erlang-public-key erlang-ssl erlang-inets erlang-syntax-tools
  erlang-runtime-tools erlang-mnesia erlang-tools erlang-xmerl}
# What the programs among them are linked with, and certificates for those who speak TLS.
linked="libc6 libgcc-s1 zlib1g busybox-static ca-certificates netbase tzdata"
mkdir -p "$root"
root=$(cd "$root" && pwd)
[ -z "$(ls -A "$root")" ] || { echo "$root isn't empty" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
for d in bin lib lib64 sbin; do mkdir -p "$root/usr/$d" && ln -s "usr/$d" "$root/$d"; done
mkdir -p "$root/tmp" "$root/etc" "$root/proc" "$root/dev" "$root/sys" "$root/run" "$root/app" "$root/var/tmp" "$root/root"
chmod 1777 "$root/tmp" "$root/var/tmp"
unpack() { # packages…
  mkdir -p "$work/debs"
  (cd "$work/debs" && rm -f ./*.deb && apt-get -o APT::Sandbox::User=root download -qq "$@" >&2)
  for deb in "$work/debs"/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$root" \
      --exclude './usr/share/doc/*' --exclude './usr/share/man/*' --exclude './usr/share/lintian*' \
      --exclude './usr/share/locale/*' --exclude './usr/share/zoneinfo/right/*' --exclude './usr/share/zoneinfo/posix/*' \
      --exclude './usr/lib/*/gconv/*' --exclude '*/beam.smp' --exclude '*/erl_call' --exclude '*/yielding_c_fun' \
      --exclude './usr/lib/erlang/man/*' --exclude './usr/lib/erlang/lib/*/src/*' --exclude './usr/lib/erlang/lib/*/examples/*' \
      --exclude '*/libmvec.so*' --exclude '*/libthread_db*' --exclude '*/libmemusage*' \
      --exclude '*/libc_malloc_debug*' --exclude '*/libpcprofile*' \
      --exclude './usr/lib/valgrind*' --exclude './usr/share/initramfs-tools*' --exclude './usr/share/bug*'
  done
}
# shellcheck disable=SC2086
unpack $linked $otp
# Libraries that programs of OTP need, in turn, until none is missing.
libraries() {
  find "$root" -xdev -type f \( -perm -100 -o -name '*.so*' \) -exec sh -c '
    for f; do [ "$(head -c4 "$f" | tail -c3)" = ELF ] && readelf -d "$f" 2>/dev/null; done' sh {} + |
    sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u
}
while :; do
  missing=""
  for library in $(libraries); do
    [ -n "$(find "$root" -xdev -name "$library" | head -1)" ] && continue
    # The package by the machine's own idea of where libraries are from.
    file=$(ldconfig -p | sed -n "s|^[[:space:]]*$library (.*x86-64.*) => ||p; s|^[[:space:]]*$library (.*AArch64.*) => ||p" | head -1)
    file=$(readlink -f "${file:-/nonexistent}")
    package=$(dpkg -S "$file" 2>/dev/null | head -1 | cut -d: -f1)
    [ -n "$package" ] || package=$(dpkg -S "${file#/usr}" 2>/dev/null | head -1 | cut -d: -f1)
    [ -n "$package" ] || { echo "no package has $library" >&2; exit 1; }
    case " $missing " in *" $package "*) ;; *) missing="$missing $package" ;; esac
  done
  [ -n "$missing" ] || break
  # shellcheck disable=SC2086
  unpack $missing
done
for tool in sh $("$root/bin/busybox" --list); do
  [ -e "$root/usr/bin/$tool" ] || [ -e "$root/usr/sbin/$tool" ] || ln -s busybox "$root/usr/bin/$tool"
done
cat "$root/usr/share/ca-certificates/mozilla/"*.crt >"$work/certificates"
mkdir -p "$root/etc/ssl/certs"
mv "$work/certificates" "$root/etc/ssl/certs/ca-certificates.crt"
rm -rf "$root/usr/share/ca-certificates"
printf 'root:x:0:0::/root:/bin/sh\napp:x:1000:1000::/app:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\napp:x:1000:\n' >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
mkdir -p "$work/stage"
PREFIX=/usr DESTDIR=$work/stage PURLIN=$program sh "$here/scripts/install.sh" >/dev/null
cp "$work/stage/usr/bin/purlin" "$root/usr/bin/purlin"
for tool in erl erlc escript; do ln -sf purlin "$root/usr/bin/$tool"; done
rm -f "$root"/var/lib/dpkg/* 2>/dev/null || :
chown 1000:1000 "$root/app"
