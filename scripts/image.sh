#!/bin/sh
# The image of the Containerfile's second stage, as an OCI layout in target/image, made without a
# daemon, a registry or a builder:
# the files by scripts/image_root.sh, the rest by umoci. It is then unpacked in a fresh folder and
# started there: Erlang, TLS, the compiler, as another user, with the root read-only. What there is
# beside OTP may take MOST_MB (36).
# BUILDER=buildah has the Containerfile itself built, both stages, without a registry: its base is
# made here of Debian's packages, with the certificates that this machine trusts beside Debian's;
# BASE names a tar with that base, made if it isn't there. BUILD_ARGS: more for `buildah bud`, for
# instance `--build-arg CARGO_PROFILE_DIST_LTO=off`.
set -eu
cd "$(dirname "$0")/.."
here=$PWD
[ "$(id -u)" = 0 ] || { echo "files of an image have owners: run this as root" >&2; exit 1; }
out=$here/target/image
most=${MOST_MB:-36}
builder=${BUILDER:-umoci}
need=""
case $builder in
  umoci) programs="readelf:binutils curl:curl" ;;
  buildah) programs="buildah:buildah crun:crun mmdebstrap:mmdebstrap" ;;
  *) echo "BUILDER is umoci or buildah: $builder" >&2; exit 2 ;;
esac
for p in umoci:umoci $programs; do command -v "${p%%:*}" >/dev/null 2>&1 || need="$need ${p##*:}"; done
if [ -n "$need" ]; then
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $need >/dev/null
fi
work=$(mktemp -d)
trap 'umount "$work/run/rootfs/proc" "$work/run/rootfs/dev" "$work/run/rootfs" 2>/dev/null || :; rm -rf --one-file-system "$work"' EXIT
chmod 755 "$work"
rm -rf "$out"
by_umoci() {
  [ -x "${PURLIN:-target/dist/purlin}" ] || sh scripts/dist.sh
  sh scripts/image_root.sh "$work/files"
  umoci init --layout "$out"
  umoci new --image "$out:latest"
  umoci unpack --image "$out:latest" "$work/bundle"
  cp -a "$work/files/." "$work/bundle/rootfs/"
  umoci repack --image "$out:latest" "$work/bundle"
  set --
  for variable in PATH=/usr/sbin:/usr/bin LANG=C.UTF-8; do set -- "$@" --config.env "$variable"; done
  umoci config --image "$out:latest" "$@" --config.workingdir /app --config.user 1000 --config.cmd purlin --config.cmd erl \
    --architecture "$(dpkg --print-architecture)" --os linux
}
# What buildah keeps lies here, and goes with it. A chroot isolates enough: this is our own
# Containerfile.
store() {
  buildah --root "$work/store" --runroot "$work/runroot" --storage-driver vfs "$@"
}
by_buildah() {
  name=$(sed -n 's/^FROM \(.*\) AS build$/\1/p' Containerfile)
  tar=${BASE:-$work/base.tar}
  [ -e "$tar" ] || mmdebstrap --quiet --variant=apt --include=ca-certificates "${name##*:}" "$tar" >&2
  base=$(store from scratch)
  store add -q "$base" "$tar" / >/dev/null
  if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
    store copy -q "$base" /usr/local/share/ca-certificates /usr/local/share/ca-certificates >/dev/null
    store run --isolation chroot "$base" update-ca-certificates >/dev/null 2>&1
  fi
  store commit -q --rm "$base" "$name" >/dev/null
  # shellcheck disable=SC2086
  store bud --isolation chroot --pull-never --format oci --layers=false -t purlin ${BUILD_ARGS:-} -f Containerfile . >&2
  store push -q purlin "oci:$out:latest"
  rm -rf --one-file-system "$work/store" "$work/runroot"
}
"by_$builder"

umoci unpack --image "$out:latest" "$work/run"
root=$work/run/rootfs
total=$(du -sk --apparent-size "$root" | cut -f1)
otp=$(du -sk --apparent-size "$root/usr/lib/erlang" | cut -f1)
packed=$(du -sk "$out" | cut -f1)
beside=$(((total - otp) / 1024))
echo "image: $((total / 1024)) MiB, of which OTP $((otp / 1024)) MiB; beside OTP $beside MiB; packed $((packed / 1024)) MiB"

mount --bind "$root" "$root"
mkdir -p "$root/proc" "$root/dev"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -o remount,bind,ro "$root"
status=0
is() { # name, expected, command...
  name=$1 expected=$2
  shift 2
  got=$(env -i PATH=/usr/sbin:/usr/bin LANG=C.UTF-8 HOME=/app chroot --userspec=1000:1000 "$root" "$@" 2>&1) || :
  if [ "$got" = "$expected" ]; then echo "ok: $name"; else echo "FAILED: $name: $got"; status=1; fi
}
told=$(tr -d ' \n\t' <"$work/run/config.json")
for part in '"uid":1000,' '"args":["purlin","erl"]' '"cwd":"/app"' '"PATH=/usr/sbin:/usr/bin"' '"LANG=C.UTF-8"'; do
  case $told in *"$part"*) ;; *) echo "FAILED: the image doesn't say $part"; status=1 ;; esac
done
is "Purlin runs" true erl -noshell -eval 'io:format("~p",[erlang:function_exported(purlin,sharing,0)]),halt().'
is "as the user of the image" 1000 sh -c 'id -u'
is "the root is read-only" enoent erl -noshell -eval 'io:format("~p",[element(2,file:read_file("/nothing"))]),halt().'
is "crypto and ssl" ok erl -noshell -eval '{ok,_}=application:ensure_all_started(ssl),<<_:256>> =crypto:hash(sha256,"a"),io:format("ok"),halt().'
is "the compiler" "{ok,m}" erl -noshell -eval '{ok,m,B}=compile:forms([{attribute,1,module,m}]),{module,m}=code:load_binary(m,"m",B),io:format("~p",[{ok,m}]),halt().'
is "an exit status" 7 sh -c 'erl -noshell -eval "halt(7)."; echo $?'
is "nodes" n@localhost erl -sname n@localhost -setcookie c -noshell -eval 'io:format("~p",[node()]),halt().'
# The port mapper that the node has started, which lives in that root.
for p in /proc/[0-9]*; do
  [ "$(readlink "$p/root" 2>/dev/null)" != "$root" ] || kill "${p#/proc/}" || :
done
if [ "$beside" -gt "$most" ]; then
  echo "FAILED: beside OTP there are $beside MiB; $most is the most"
  status=1
fi
exit $status
