# Sleepers, step "spawn": bare processes, a monitor for each, and a wait for each :DOWN.
#
#     purlin run examples/million/spawn.exs 1000000 10000       (how many, and how many milliseconds each sleeps)
[n, _nap] = Enum.map(System.argv(), &String.to_integer/1)

defmodule Sleepers do
  @nap System.argv() |> List.last() |> String.to_integer()

  def run(n) do
    before = :erlang.system_info(:process_count)
    pids = for _ <- 1..n, do: spawn(fn -> Process.sleep(@nap) end)
    IO.puts("alive #{:erlang.system_info(:process_count) - before}")
    refs = for pid <- pids, do: Process.monitor(pid)

    for _ <- refs do
      receive do
        {:DOWN, _, _, _, _} -> :ok
      end
    end
  end
end

Sleepers.run(n)
IO.puts("done")
