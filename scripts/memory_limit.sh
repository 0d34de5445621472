#!/bin/sh
# Changes the memory limit of a control group while a node runs in it. Prints
# `erlang:system_info(memory_limit)` after each change, and whether the alarm
# `system_memory_high_watermark` is set. The node holds 100 MiB, and the limit is lowered until that
# is more than four fifths of it. Then a sleeping process holds as much garbage, which is collected
# when the limit is lowered. Stock runs beside it and refuses the question. It needs root, and the
# memory controller of v1 or v2.
#
#   scripts/memory_limit.sh     PURLIN: the executable; SECONDS_MOST (20): so long an answer may take to come true
set -u
cd "$(dirname "$0")/.." || exit 2
PURLIN=${PURLIN:-$PWD/target/release/purlin}
export SECONDS_MOST="${SECONDS_MOST:-20}"
[ -x "$PURLIN" ] || { echo "$PURLIN is not there: build it first (make)" >&2; exit 2; }
if [ -f /sys/fs/cgroup/cgroup.controllers ] && grep -qw memory /sys/fs/cgroup/cgroup.controllers; then
  version=2 group=/sys/fs/cgroup/purlin-limit-$$ files="memory.max memory.high"
  echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null
else
  version=1 group=/sys/fs/cgroup/memory/purlin-limit-$$ files=memory.limit_in_bytes
fi
mkdir "$group" 2>/dev/null || { echo "no control group can be made here: $group" >&2; exit 2; }
dir=$(mktemp -d)
pid=
trap 'kill -9 $pid 2>/dev/null; sleep 1; rmdir "$group" 2>/dev/null; rm -rf "$dir"' EXIT
# A limit and its file. None is a word in v2.
limit() { # file bytes|none
  if [ "$2" != none ]; then echo "$2"; elif [ "$version" = 2 ]; then echo max; else echo -1; fi >"$group/$1" || bad=1
}
stat() { awk -v name="$1" '$1 == name { print $2 }' "$group/memory.stat"; }
# What the group is charged for, without the pages of files: a limit of which this is the given part
# in hundredths, in whole pages.
tight() { # hundredths
  case $version in
    2) used=$(($(cat "$group/memory.current") - $(stat inactive_file) - $(stat active_file) + $(stat file_mapped) - $(stat slab_reclaimable))) ;;
    *) used=$(($(cat "$group/memory.usage_in_bytes") - $(stat total_inactive_file) - $(stat total_active_file) + $(stat total_mapped_file))) ;;
  esac
  echo $((used / $1 * 100 / 4096 * 4096))
}
# Lines that come in: `limit WANTED`, `alarm WANTED` and `holds WANTED` are answered by `true` as
# soon as that is so, or by what is so instead; `hold` and `garbage` have one process hold 100 MiB,
# or make them and sleep; `drop` ends it.
cat >"$dir/limited.escript" <<'LIMITED'
#!/usr/bin/env escript
-mode(compile).
main([]) ->
    logger:update_primary_config(#{level => error}),
    {ok, _} = application:ensure_all_started(sasl),
    loop(none).

loop(Pid) ->
    case io:get_line("") of
        eof -> ok;
        Line ->
            case string:lexemes(Line, " \n") of
                ["limit", "none"] -> until(fun limit/0, undefined), loop(Pid);
                ["limit", Bytes] -> until(fun limit/0, list_to_integer(Bytes)), loop(Pid);
                ["alarm", Is] -> until(fun alarm/0, Is =:= "true"), loop(Pid);
                ["lives"] -> until(fun() -> is_process_alive(Pid) end, true), loop(Pid);
                ["small"] -> until(fun() -> element(2, process_info(Pid, memory)) < 10000000 end, true), loop(Pid);
                ["drop"] -> exit(Pid, kill), io:format("true~n"), loop(none);
                [What] ->
                    Me = self(),
                    New = spawn(fun() -> hold(What, Me) end),
                    receive {New, ready} -> io:format("true~n") end,
                    loop(New)
            end
    end.

hold("hold", Who) -> L = [binary:copy(<<N>>, 1 bsl 20) || N <- lists:seq(1, 100)], Who ! {self(), ready}, receive never -> L end;
hold("garbage", Who) -> lists:seq(1, 100 bsl 16), Who ! {self(), ready}, receive never -> ok end.

limit() -> try erlang:system_info(memory_limit) catch error:badarg -> badarg end.
alarm() -> lists:keymember(system_memory_high_watermark, 1, alarm_handler:get_alarms()).

until(Fun, Wanted) -> until(Fun, Wanted, 20 * list_to_integer(os:getenv("SECONDS_MOST"))).
until(Fun, Wanted, N) ->
    case Fun() of
        Wanted -> io:format("true~n");
        Is when N =:= 0 -> io:format("~p~n", [Is]);
        _ -> timer:sleep(50), until(Fun, Wanted, N - 1)
    end.
LIMITED
mkfifo "$dir/in" "$dir/out"
bad=0
says() { # what is said of it, the line
  echo "$2" >&3
  answer=
  read -r answer <&4
  printf '%-7s %-58s %s\n' "$side" "$1" "$([ "$answer" = true ] && echo yes || echo "no: $answer")"
  [ "$side" = stock ] || [ "$answer" = true ] || bad=1
}
for side in ${SIDES:-purlin stock}; do
  for file in $files; do
    case $side in stock) set -- env SECONDS_MOST=1 escript ;; *) set -- "$PURLIN" escript ;; esac
    limit "$file" none
    # shellcheck disable=SC2016
    sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@" "$dir/limited.escript" <"$dir/in" >"$dir/out" &
    pid=$!
    exec 3>"$dir/in" 4<"$dir/out"
    says "$file: none at first" "limit none"
    limit "$file" 1073741824
    says "1 GiB: told" "limit 1073741824"
    says "100 MiB are held" hold
    says "no alarm" "alarm false"
    # What is free is given back first, so that less is used than before.
    for again in 1 2; do lower=$(tight 82); limit "$file" "$lower"; sleep $((again * (1 + SECONDS_MOST / 60))); done
    says "lowered, so that 82 of 100 are used: told" "limit $lower"
    says "the alarm is set" "alarm true"
    says "what holds them lives" lives
    limit "$file" 536870912
    says "raised: told" "limit 536870912"
    says "the alarm is cleared" "alarm false"
    says "they are dropped" drop
    says "100 MiB of garbage, in a process that sleeps" garbage
    lower=$(tight 78)
    limit "$file" "$lower"
    says "lowered, so that 78 of 100 are used: told" "limit $lower"
    says "it is collected" small
    says "no alarm" "alarm false"
    limit "$file" none
    says "none again" "limit none"
    exec 3>&- 4<&-
    # Its input has ended, and so does it.
    left=$SECONDS_MOST
    while kill -0 $pid 2>/dev/null && [ "$left" -gt 0 ]; do sleep 1 && left=$((left - 1)); done
    if kill -0 $pid 2>/dev/null; then
      echo "FAILED: $side does not end; its threads, what each does, and its state:"
      for thread in /proc/$pid/task/*; do echo "  $(cat "$thread/comm" "$thread/wchan" "$thread/syscall" | tr '\n' ' ') $(cut -d' ' -f3,14,15 "$thread/stat")"; done
      bad=1
      kill -9 $pid
    fi
    wait $pid
    pid=
  done
done
exit $bad
