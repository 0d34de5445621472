# Runs thousands of tasks and processes whose results do not depend on their order.
IO.inspect(1..2000 |> Enum.map(&Task.async(fn -> &1 * 2 end)) |> Task.await_many() |> Enum.sum())
parent = self()
pids = for i <- 1..1000, do: spawn(fn -> receive do :go -> send(parent, {:done, i}) end end)
Enum.each(pids, &send(&1, :go))
IO.inspect(for(_ <- 1..1000, do: receive(do: ({:done, i} -> i))) |> Enum.sum())
IO.inspect(1..100 |> Task.async_stream(fn x -> Enum.sum(1..x) end, ordered: false) |> Enum.reduce(0, fn {:ok, x}, a -> a + x end))
ring = fn n ->
  first = self()
  last = Enum.reduce(1..n, first, fn _, next -> spawn(fn -> receive do x -> send(next, x + 1) end end) end)
  send(last, 0)
  receive do x -> x end
end
IO.inspect(ring.(500))
{:ok, agent} = Agent.start_link(fn -> 0 end)
1..200 |> Enum.map(fn _ -> Task.async(fn -> Agent.update(agent, &(&1 + 1)) end) end) |> Task.await_many()
IO.inspect(Agent.get(agent, & &1))
:ets.new(:tab, [:named_table, :public, write_concurrency: true])
1..50 |> Enum.map(fn i -> Task.async(fn -> for j <- 1..50, do: :ets.insert(:tab, {{i, j}, i * j}) end) end) |> Task.await_many()
IO.inspect(:ets.info(:tab, :size))
IO.inspect(:ets.foldl(fn {_, v}, a -> a + v end, 0, :tab))
