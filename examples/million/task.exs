# Sleepers, step "task": Task.async in a comprehension, then Task.await_many.
#
#     purlin run examples/million/task.exs 1000000 10000        (how many, and how many milliseconds each sleeps)
#
# Every task has its place in the dictionary, its link, its monitor and an answer to send; the
# parent holds a list of structs.
[n, _nap] = Enum.map(System.argv(), &String.to_integer/1)

defmodule Sleepers do
  @nap System.argv() |> List.last() |> String.to_integer()

  def run(n) do
    before = :erlang.system_info(:process_count)
    tasks = for _ <- 1..n, do: Task.async(fn -> Process.sleep(@nap) end)
    IO.puts("alive #{:erlang.system_info(:process_count) - before}")
    Task.await_many(tasks, :infinity)
  end
end

Sleepers.run(n)
IO.puts("done")
