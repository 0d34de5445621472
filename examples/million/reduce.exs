# Sleepers, step "reduce": as "spawn", the processes gathered by Enum.reduce in place of
# comprehensions.
#
#     purlin run examples/million/reduce.exs 1000000 10000      (how many, and how many milliseconds each sleeps)
[n, _nap] = Enum.map(System.argv(), &String.to_integer/1)

defmodule Sleepers do
  @nap System.argv() |> List.last() |> String.to_integer()

  def run(n) do
    before = :erlang.system_info(:process_count)

    refs =
      Enum.reduce(1..n, [], fn _, refs ->
        pid = spawn(fn -> Process.sleep(@nap) end)
        [Process.monitor(pid) | refs]
      end)

    IO.puts("alive #{:erlang.system_info(:process_count) - before}")

    Enum.each(refs, fn _ ->
      receive do
        {:DOWN, _, _, _, _} -> :ok
      end
    end)
  end
end

Sleepers.run(n)
IO.puts("done")
