# Checks `elixir` and its options.
elixir -e 'IO.puts("e"); IO.inspect(System.argv())' -- a b; echo "status $?"
elixir -e 'raise "x"'; echo "status $?"
elixir -e 'System.halt(4)'; echo "status $?"
elixir -e 'exit({:shutdown, 3})'; echo "status $?"
elixir -e 'exit(:other)'; echo "status $?"
elixir -e 'throw(:ball)'; echo "status $?"
elixir missing.exs; echo "status $?"
elixir --version | tail -1; echo "status $?"
printf 'defmodule M do\n  def f, do: :compiled\nend\n' >m.ex
elixirc m.ex; ls *.beam
elixir -pa . -e 'IO.inspect(M.f())'
elixir --erl '-kernel mine 7' -e 'IO.inspect(Application.get_env(:kernel, :mine))'
elixir -r m.ex -e 'IO.inspect(M.f())'
printf 'defmodule W do\n  def f(x), do: 1\nend\n' >w.ex; elixirc --warnings-as-errors w.ex; echo "status $?"
printf '1 + 1\nx = [1, 2]\nEnum.sum(x)\nraise "oops"\nSystem.halt(2)\n' | iex --dot-iex "" 2>&1 | grep -v Interactive | grep -v Erlang/OTP; echo done
