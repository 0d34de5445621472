#!/bin/sh
# Does what the README and the tutorials say, in bare roots of Debian: `make newcomer`. SUITES names
# them (bookworm, trixie and sid). Each has git, certificates and a clone of this tree's commit, and
# nothing else. scripts/setup.sh installs the rest, as `sh demo` does. PURLIN names the executable
# that is then installed there (target/dist/purlin, else target/release/purlin): it must have been
# built on the oldest of them. BUILD=1 runs `sh demo` and `make install` in the root in its place
# (an hour each). APT_OPTION is for the apt that makes the roots, as in scripts/deb.sh. Needs root.
set -u
cd "$(dirname "$0")/.." || exit 2
here=$PWD
[ "$(id -u)" = 0 ] || { echo "a root can only be made as root" >&2; exit 2; }
command -v mmdebstrap >/dev/null || { echo "install mmdebstrap" >&2; exit 2; }
for purlin in ${PURLIN:-} target/dist/purlin target/release/purlin; do [ -x "$purlin" ] && break; done
out=$here/target/newcomer
mkdir -p "$out"
root='' status=0
remove() {
  [ -n "$root" ] || return 0
  # What a command has left running, such as the port mapper.
  for p in /proc/[0-9]*; do
    [ "$(readlink "$p/root" 2>/dev/null)" != "$root" ] || kill -9 "${p#/proc/}" 2>/dev/null || :
  done
  umount "$root/proc" "$root/dev" "$root/sys" 2>/dev/null || :
  rm -rf --one-file-system "$root"
  root=
}
trap remove EXIT
trap 'exit 130' INT TERM
in_root() {
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    chroot "$root" sh -c "$1" </dev/null
}
# Runs a command in a folder of the root; its output must have a line that matches.
is() { # folder, pattern, command
  if in_root "cd $1 && timeout 600 sh -c '$3'" >"$out/printed" 2>&1; grep -qE -e "$2" "$out/printed"; then
    echo "ok: $suite: $3"
  else
    echo "FAILED: $suite: $3"
    tail -20 "$out/printed"
    status=1
  fi
}
for suite in ${SUITES:-bookworm trixie sid}; do
  base=$out/$suite.tar
  [ -e "$base" ] || { mmdebstrap --quiet --variant=minbase --include=git,ca-certificates \
    ${APT_OPTION:+--aptopt="$APT_OPTION"} "$suite" "$base-new.tar" \
    "deb ${MIRROR:-http://deb.debian.org/debian} $suite main" && mv "$base-new.tar" "$base"; } || exit 1
  root=$(mktemp -d)
  tar -x -C "$root" -f "$base"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # Certificates that this machine trusts beside Debian's.
  if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
    cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
    in_root update-ca-certificates >/dev/null 2>&1
  fi
  mount -t proc proc "$root/proc"
  mount -t sysfs sys "$root/sys"
  mount --bind /dev "$root/dev"
  git clone -q "$here" "$root/root/purlin"
  if [ -n "${BUILD:-}" ]; then
    in_root 'cd /root/purlin && sh demo && make install' || { echo "FAILED: $suite: sh demo"; status=1; remove; continue; }
  else
    in_root 'cd /root/purlin && sh scripts/setup.sh' >"$out/set-up" 2>&1 || {
      echo "FAILED: $suite: the set-up"
      tail -20 "$out/set-up"
      status=1
      remove
      continue
    }
    install -s -D "$purlin" "$root/usr/local/bin/purlin"
  fi
  clone=/root/purlin try=/root/try app=/root/my_app
  is $clone 'Erlang/OTP' 'purlin version'
  is $clone 'five tasks' 'purlin run examples/hello.exs'
  is $clone 'Eshell' 'echo "halt()." | purlin erl'
  is $clone 'cause|option' 'purlin help PURLIN-0003'
  # A project.
  in_root "cd /root && purlin mix new my_app" >/dev/null 2>&1
  is $app '0 failures|[12] passed' 'purlin mix test'
  is $app 'world' 'echo "IO.inspect MyApp.hello" | purlin iex -S mix'
  is $app 'purlin' 'purlin build . -o my_app && ./my_app --purlin-version'
  is $app 'own lines|Processes:' 'purlin explain exec -- mix test'
  # The tutorials, as their page has them.
  in_root "mkdir $try && cd $clone && cp -r examples examples/answers/*.sh tests/schedules/pool_test.exs $try"
  is $try '2.00 MiB binary, of which 100 bytes' 'sh ask.sh examples/answers/keep.erl -- binaries'
  is $try 'monitors .* 1,200 times' 'sh ask.sh examples/answers/lost.erl -- leaks'
  is $try 'http://127' 'purlin run examples/answers/lost.erl & sleep 3; timeout -s INT 3 purlin observe --no-open $!; kill $!'
  is $try '0 failures|1 passed' 'purlin run pool_test.exs'
  is $try 'Shrunk from' 'purlin schedules --seed 1 -- run pool_test.exs'
  is $try 'replayed: ' 'purlin replay purlin-schedule-1.psch'
  is $try 'none failed' 'sh mended.sh'
  is $try '^serves' 'sh limited.sh'
  is $try 'Hello, Bob!' 'sh one_file.sh'
  is $try 'copied' 'purlin explain run examples/answers/copied.erl'
  is $try 'wall|time' 'purlin measure --runs 3 -- true -- true'
  is $try 'stock' 'purlin bench --against stock --runs 2 examples/hello.exs'
  remove
done
exit $status
