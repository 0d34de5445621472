# The limit of processes leaves no room for the emulator's threads. The emulator ends instead of
# waiting forever. @seconds 60
if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null || ! command -v prlimit >/dev/null; then
  echo "skipped: only root can become a user who has no processes"
  exit 0
fi
chmod 755 .
for n in 4 5 6 7 8; do
  timeout 20 setpriv --reuid 64321 --regid 64321 --clear-groups prlimit --nproc=$n \
    erl -noshell -noinput -eval 'io:format("up~n"), halt().' >out 2>&1
  status=$?
  case $status in
    0) echo "$n: runs" ;;
    124) echo "$n: stays" ;;
    *) echo "$n: ends" ;;
  esac
done 2>/dev/null
