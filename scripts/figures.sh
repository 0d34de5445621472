#!/bin/sh
# Checks whether figures in README and docs agree with what commands print now:
# scripts/figures.sh [GROUP…]. docs/figures.txt has a line for each figure: its group of commands,
# its place, and its tolerance. The groups are sizes, idle (the default), image and ladder (minutes,
# gigabytes). PURLIN names the program (target/dist/purlin). The status is 1 if one disagrees.
set -u
cd "$(dirname "$0")/.." || exit 2
here=$PWD
PURLIN=${PURLIN:-$here/target/dist/purlin}
export PURLIN
[ -x "$PURLIN" ] || sh scripts/dist.sh || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- sizes idle

# Each prints lines of a name and a number.
sizes() {
  PREFIX=/usr DESTDIR=$work/stage sh scripts/install.sh >/dev/null
  bytes() { wc -c <"$1"; }
  echo "installed-mib $(($(bytes "$work/stage/usr/bin/purlin") / 1048576))"
  printf -- '-module(hello).\n-export([main/1]).\nmain(_) -> io:format("hello~~n").\n' >"$work/hello.erl"
  "$PURLIN" build "$work/hello.erl" -o "$work/hello" && echo "hello-mib $(($(bytes "$work/hello") / 1048576))"
}
idle() {
  sh scripts/idle.sh | awk -F'|' 'NR > 1 { split($2, mib, " "); n = NR == 2 ? "idle" : NR == 3 ? "idle-q" : "idle-qp"
    print n "-mib", mib[1]; print n "-own-mib", mib[2]; print n "-stock-mib", mib[3]; print n "-stock-own-mib", mib[4] }'
}
image() {
  sh scripts/image.sh | sed -n 's/.*beside OTP \([0-9]*\) MiB.*/image-beside-otp-mib \1/p'
}
ladder() {
  SIZES=1000000 sh scripts/ladder.sh task spawn count | awk -F'|' '$1 ~ /1000000/ { split($1, step, " "); split($2, mib, " ")
    print step[1] "-mib", mib[1]; print step[1] "-stock-mib", mib[2] }'
}
status=0
for group; do
  case $group in sizes | idle | image | ladder) ;; *) echo "there is no group $group" >&2; exit 2 ;; esac
  $group >"$work/now"
  grep "^$group " docs/figures.txt >"$work/rows"
  while read -r _ name file percent pattern; do
    told=$(sed -n "s/.*$(printf %s "$pattern" | sed 's|/|\\/|g; s/^\^//').*/\1/p" "$file" | head -1 | tr -d ,)
    now=$(sed -n "s/^$name //p" "$work/now" | tr -d ,)
    if [ -z "$told" ]; then
      echo "$file has no figure $name any more: $pattern"
    elif [ -z "$now" ]; then
      echo "no command has printed $name"
    elif awk "BEGIN { d = $told - $now; if (d < 0) d = -d; exit !(d * 100 > $told * $percent && d > 1) }"; then
      echo "$file says $told for $name; it is $now now"
    else
      echo "ok: $name: $now, told $told" >&2
    fi
  done <"$work/rows" >>"$work/wrong"
done
[ -s "$work/wrong" ] || exit 0
cat "$work/wrong"
exit 1
