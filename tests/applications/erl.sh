#!/bin/sh
# A project of erlang.mk, without its fetching: its sources and those of what it needs
# (APPLICATIONS_WITH, folders in APPLICATIONS_DEPS) are compiled as erlang.mk does, and its suites
# run. In the project's folder: `erl.sh build`, then `erl.sh test ct:SUITE … eunit`.
set -u
compile() {
  mkdir -p "$1/ebin"
  [ ! -e "$1/.compiled" ] || return 0
  rm -f "$1"/ebin/*.beam
  : >"$1/.compiled"
  # All at once is quickest. Transformations of its own come first where others need them: what
  # fails then is compiled file by file, twice.
  ! erlc +debug_info $2 -pa "$1/ebin" -I "$1/include" -I "$1/src" -o "$1/ebin" "$1"/src/*.erl || return 0
  for f in "$1"/src/*.erl "$1"/src/*.erl; do
    [ -e "$1/ebin/$(basename "$f" .erl).beam" ] || erlc +debug_info $2 -pa "$1/ebin" -I "$1/include" -I "$1/src" -o "$1/ebin" "$f"
  done
}
paths=
for d in ${APPLICATIONS_WITH:-}; do paths="$paths -pa $APPLICATIONS_DEPS/$d/ebin"; done
export ERL_LIBS="$APPLICATIONS_DEPS"
case $1 in
  build)
    for d in ${APPLICATIONS_WITH:-}; do [ ! -d "$APPLICATIONS_DEPS/$d/src" ] || compile "$APPLICATIONS_DEPS/$d" ''; done
    rm -f .compiled
    compile . '-DTEST=1 +nowarn_export_all +{parse_transform,eunit_autoexport}'
    if [ -d test ]; then find test -name '*.erl' -exec erlc +debug_info +nowarn_export_all -DTEST=1 -I include -I src -pa ebin -pa test $paths -o test {} +; fi ;;
  test)
    shift
    suites= unit=
    for word in "$@"; do
      case $word in
        ct:*) suites="$suites,'${word#ct:}'" ;;
        eunit) unit=1 ;;
      esac
    done
    mkdir -p logs
    # The hook that starts the application, where there is one.
    hook=$(cd test 2>/dev/null && ls ./*_ct_hook.erl 2>/dev/null | head -1)
    if [ -n "$suites" ]; then
      erl -sname "applications_$$" -noshell -pa "$PWD/ebin" -pa "$PWD/test" $paths -eval "
        {Ok, Failed, {_, Auto}} = ct:run_test([{dir, \"test\"}, {suite, [${suites#,}]}, {logdir, \"logs\"}, {auto_compile, false}${hook:+, {ct_hooks, [$(basename "${hook%.erl}")]}}]),
        io:format(\"counts: ~b ~b~n\", [Ok, Failed + Auto]), halt()."
    fi
    if [ -n "$unit" ]; then
      erl -noshell -pa "$PWD/ebin" -pa "$PWD/test" $paths -eval '
        Modules = [list_to_atom(filename:basename(F, ".beam")) || F <- filelib:wildcard("ebin/*.beam")],
        eunit:test(Modules), halt().'
    fi ;;
esac
