# Runs mix without a network: new, compile, test, run, format, a task, an escript. @seconds 120
export MIX_HOME="$PWD/.mix" HEX_HOME="$PWD/.hex" HOME="$PWD"
mix new demo --sup 2>&1; echo "status $?"
cd demo
cat >lib/demo.ex <<'X'
defmodule Demo do
  @moduledoc "Demo."
  @doc """
  Adds.

      iex> Demo.add(1, 2)
      3
  """
  def add(a, b), do: a + b
  def main(args), do: IO.inspect(args)
end
X
cat >test/demo_test.exs <<'X'
defmodule DemoTest do
  use ExUnit.Case
  doctest Demo

  test "adds" do
    assert Demo.add(1, 1) == 2
  end

  test "fails" do
    assert Demo.add(1, 1) == 3
  end
end
X
mix compile 2>&1; echo "status $?"
mix compile 2>&1; echo "status $?"
mix test --seed 0 2>&1; echo "status $?"
mix run -e 'IO.inspect(Demo.add(2, 3)); IO.inspect(Process.whereis(Demo.Supervisor) != nil)'; echo "status $?"
printf 'defmodule  X   do\ndef f( a ),do: a\nend\n' >lib/x.ex
mix format --check-formatted >/dev/null 2>&1; echo "status $?"
mix format; cat lib/x.ex
mkdir -p lib/mix/tasks
cat >lib/mix/tasks/hi.ex <<'X'
defmodule Mix.Tasks.Hi do
  use Mix.Task
  def run(args), do: Mix.shell().info("hi #{inspect(args)}")
end
X
mix hi there 2>&1; echo "status $?"
sed -i 's/deps: deps()/deps: deps(), escript: [main_module: Demo]/' mix.exs
mix escript.build 2>&1; ./demo a b; echo "status $?"
mix no.such.task 2>&1; echo "status $?"
