#!/bin/sh
# Runs scripts/containers.sh, scripts/memory_limit.sh and scripts/quota.sh in control groups of v2,
# for machines that have v1: in a virtual machine with Debian's kernel. Its file system is that of
# the image (scripts/image_root.sh), with stock's emulator added. It needs qemu-system-x86_64 and
# changes nothing on the machine. The processor is emulated, so it takes minutes.
#
#   scripts/containers_vm.sh [COMMAND]     COMMAND runs in /purlin in place of the scripts; PURLIN: the executable;
#                                          PROCESSORS (4), MEMORY_MB (2048): of the virtual machine; ACCEL (tcg,thread=multi): of qemu
set -eu
cd "$(dirname "$0")/.."
[ "$(uname -m)" = x86_64 ] || { echo "only on x86-64" >&2; exit 2; }
PURLIN=${PURLIN:-$PWD/target/release/purlin}
[ -x "$PURLIN" ] || { echo "$PURLIN is not there: build it first (make)" >&2; exit 2; }
need=""
for p in qemu-system-x86_64:qemu-system-x86 cpio:cpio readelf:binutils erlc:erlang-base; do
  command -v "${p%%:*}" >/dev/null 2>&1 || need="$need ${p##*:}"
done
if [ -n "$need" ]; then
  echo "installing:$need" >&2
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $need >/dev/null
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

# The kernel of the machine's own release, unpacked, not installed.
package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
(cd "$work" && apt-get -o APT::Sandbox::User=root download -qq "$package" >&2 && dpkg -x "$package"*.deb kernel)

root=$work/root
PURLIN=$PURLIN sh scripts/image_root.sh "$root" >/dev/null
erts=$(ls -d /usr/lib/erlang/erts-*/bin)
cp "$erts/beam.smp" "$root$erts/"
ldd "$erts/beam.smp" | awk '$3 ~ "^/" { print $3 }' | while read -r library; do
  [ -e "$root$library" ] || cp -L "$library" "$root/usr/lib/x86_64-linux-gnu/"
done
mkdir -p "$root/purlin/ebin" "$root/purlin/examples" "$root/purlin/target/release" "$root/sys/fs/cgroup"
cp -r scripts "$root/purlin/"
cp -r examples/limits "$root/purlin/examples/"
ln -s /usr/bin/purlin "$root/purlin/target/release/purlin"
cat >"$root/init" <<'INIT'
#!/bin/sh
export PATH=/usr/lib/erlang/bin:/usr/sbin:/usr/bin HOME=/root LANG=C.UTF-8 PURLIN=/usr/bin/purlin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /dev/shm /dev/pts
mount -t devpts none /dev/pts
mount -t tmpfs none /tmp
ifconfig lo 127.0.0.1 up
cd /purlin
echo "Linux $(uname -r), control groups of v2: $(cat /sys/fs/cgroup/cgroup.controllers)"
sh -c "$(cat /command)"
echo "status $?"
poweroff -f
INIT
chmod 755 "$root/init"
# What grows has long to do so, since the processor is emulated. On stock it does so as long as it
# is let, where nobody is killed.
all='
  bad=0
  export SECONDS_MOST=600
  sh scripts/quota.sh || bad=1
  sh scripts/memory_limit.sh || bad=1
  sh scripts/containers.sh || bad=1
  SIDES=purlin LIMITED_BY=memory.high sh scripts/containers.sh || bad=1
  SIDES=stock SECONDS_MOST=30 LIMITED_BY=memory.high sh scripts/containers.sh heap
  exit $bad'
printf '%s\n' "${1:-$all}" >"$root/command"
(cd "$root" && find . -xdev | cpio -o -H newc 2>/dev/null) | gzip -1 >"$work/root.gz"
# Its console is a file: a pipe that is full for a moment may stop what writes to it for good.
# no_timer_check: where the machine has other work, an emulated processor may get no time for so
# long that the kernel takes its timer for broken and panics.
: >"$work/console"
# shellcheck disable=SC2086
qemu-system-x86_64 -accel "${ACCEL:-tcg,thread=multi}" -cpu max -smp "${PROCESSORS:-4}" -m "${MEMORY_MB:-2048}" -display none \
  -serial "file:$work/console" -monitor none -nic none -no-reboot -kernel "$work"/kernel/boot/vmlinuz-* -initrd "$work/root.gz" \
  -append "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check" </dev/null &
machine=$!
trap 'kill $machine 2>/dev/null || :; rm -rf "$work"' EXIT
tail -n +1 -s 0.5 --pid=$machine -f "$work/console" | stdbuf -oL tr -d '\r' | sed -u '0,/^.*Linux [0-9.]*-/{/Linux [0-9.]*-/!d;}'
wait $machine
grep -q '^status [0-9]' "$work/console" || { echo "the machine went before the command had ended:" >&2; tail -20 "$work/console" >&2; }
tr -d '\r' <"$work/console" | grep -q '^status 0$'
