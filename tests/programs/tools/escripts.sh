# Checks escript: arguments, status, options in the source, errors, compiled archives.
cat >one <<'X'
#!/usr/bin/env escript
%% -*- erlang -*-
%%! -kernel mine 5
main(Args) ->
    io:format("~p ~p ~p~n", [Args, escript:script_name(), application:get_env(kernel, mine)]),
    case Args of ["fail"] -> error(failed); ["halt"] -> halt(9); ["throw"] -> throw(x); _ -> ok end.
X
chmod +x one
escript one a "b c"; echo "status $?"
./one; echo "status $?"
escript one fail; echo "status $?"
escript one halt; echo "status $?"
escript one throw; echo "status $?"
printf '#!/usr/bin/env escript\nmain(_) -> X = , ok.\n' >bad; escript bad; echo "status $?"
printf '#!/usr/bin/env escript\nfoo(_) -> ok.\n' >nomain; escript nomain; echo "status $?"
escript -s one x; echo "status $?"
escript -c one x; echo "status $?"
escript missing; echo "status $?"
cat >mod.erl <<'X'
-module(mod).
-export([main/1]).
main(A) -> io:format("archive ~p~n", [A]).
X
erlc mod.erl
erl -noshell -eval '{ok, B} = file:read_file("mod.beam"), ok = escript:create("arch", [shebang, {emu_args, "-escript main mod"}, {archive, [{"mod.beam", B}], []}]), halt().'
escript arch 1 2; echo "status $?"
