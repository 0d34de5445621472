# Runs the interactive shell on a terminal: line editing, history, completion, job control, the menu
# of Ctrl-C, window sizes. The screen is compared, without the banner. Needs tmux; without it there
# is nothing to compare.
command -v tmux >/dev/null || exit 0
export HOME="$PWD" LC_ALL=C.UTF-8
n=0
# A server of its own for each part: one that is ending still answers to its name.
server() { n=$((n + 1)); s="tmux -L purlin-$$-$n -f /dev/null"; }
screen() { $s capture-pane -p -e 2>/dev/null | sed -e '1,/^Eshell/d' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'; }
# start COLUMNS: the shell is up
start() {
  server
  $s new-session -d -x "$1" -y 40 erl
  for i in $(seq 100); do $s capture-pane -p 2>/dev/null | grep -q '^1>' && return; sleep 0.1; done
}
# keys KEY ...: one after the other, as somebody types
keys() { for k; do $s send-keys -- "$k"; sleep 0.3; done; }
end() { sleep 1; screen; $s display -p 'cursor #{cursor_x}' 2>/dev/null; $s kill-server 2>/dev/null; }

echo "-- editing"
start 80
keys 'hello' Left Left X C-a Y C-e Z BSpace C-k C-a C-k 'lists:se' Tab 'q(1,3).' Enter 'X = "åäö あ".' Left Left BSpace Enter Up Left Left Left W Enter
end
echo "-- lines longer than the screen"
start 30
keys '"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz' Left Left Left XX C-a YY C-e ZZ C-w BSpace BSpace
end
echo "-- job control"
start 80
keys 'timer:sleep(60000).' Enter C-g i Enter c Enter s Enter j Enter c Enter '1.' Enter
end
echo "-- the menu"
start 80
keys abc C-c v Enter '.' Enter C-c z Enter c Enter C-c d Enter '1.' Enter
end
echo "-- input and size"
start 60
keys 'io:get_line("name? ").' Enter bob Enter 'io:columns().' Enter
$s resize-window -x 40 -y 40 2>/dev/null
keys 'io:columns().' Enter
end
echo "-- the terminal afterwards"
server
$s new-session -d -x 80 -y 40 "sh -c 'stty -a >before; erl; stty -a >after; sleep 30'"
for i in $(seq 100); do $s capture-pane -p 2>/dev/null | grep -q '^1>' && break; sleep 0.1; done
keys 'halt().' Enter
for i in $(seq 50); do [ -s after ] && break; sleep 0.1; done
cmp before after && echo "as before"
$s kill-server 2>/dev/null
