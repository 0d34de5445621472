# Sleepers, step "remote": as "registry", with a named function in place of a closure. The step
# "flags" is this program with `--erl "+hms 1 +L +ec"`: the least heap, no line numbers, compressed
# tables.
#
#     purlin run examples/million/remote.exs 1000000 10000      (how many, and how many milliseconds each sleeps)
[n, _nap] = Enum.map(System.argv(), &String.to_integer/1)

defmodule Sleepers do
  @nap System.argv() |> List.last() |> String.to_integer()

  def sleeper do
    Process.sleep(@nap)
    send(:parent, :done)
  end

  def run(n) do
    before = :erlang.system_info(:process_count)
    Process.register(self(), :parent)
    Enum.each(1..n, fn _ -> spawn(&Sleepers.sleeper/0) end)
    IO.puts("alive #{:erlang.system_info(:process_count) - before}")
    wait(n)
  end

  defp wait(0), do: :ok

  defp wait(n) do
    receive do
      :done -> wait(n - 1)
    end
  end
end

Sleepers.run(n)
IO.puts("done")
