# Sourced by `bench.sh`: compiles the programs of benches/programs into the folder `dir`, and sets
# `modules` to the names of their modules. Where Elixir is installed, those in Elixir are among
# them, and ERL_LIBS has its libraries.
erlc -o "$dir" benches/programs/*.erl || exit 1
modules="sequential ordinary idioms toolchain pieces processes sharing again terms"
libraries=$(elixir -e 'IO.puts(Path.dirname(:code.lib_dir(:elixir)))' 2>/dev/null)
if [ -n "$libraries" ] && elixirc -o "$dir" examples/vgm/lib/vgm/*.ex benches/programs/*.ex >"$dir/err" 2>&1; then
  modules="$modules pipelines chips"
  ERL_LIBS=$libraries${ERL_LIBS:+:$ERL_LIBS}
  export ERL_LIBS
fi
