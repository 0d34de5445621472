# Checks GenServer, Agent, Task, Registry and DynamicSupervisor.
defmodule Counter do
  use GenServer
  def start_link(n), do: GenServer.start_link(__MODULE__, n, name: __MODULE__)
  def init(n), do: {:ok, n}
  def handle_call(:get, _from, n), do: {:reply, n, n}
  def handle_call({:add, k}, _from, n), do: {:reply, :ok, n + k}
  def handle_cast(:reset, _), do: {:noreply, 0}
  def handle_info(:tick, n), do: {:noreply, n + 1}
end

{:ok, pid} = Counter.start_link(5)
IO.inspect(GenServer.call(Counter, :get))
GenServer.call(pid, {:add, 3})
send(pid, :tick)
IO.inspect(GenServer.call(pid, :get))
GenServer.cast(pid, :reset)
IO.inspect(:sys.get_state(pid))
{:ok, a} = Agent.start_link(fn -> %{} end)
Agent.update(a, &Map.put(&1, :k, 1))
IO.inspect(Agent.get_and_update(a, &{&1.k, %{}}))
IO.inspect(Agent.get(a, & &1))
IO.inspect(Task.await(Task.async(fn -> 42 end)))
IO.inspect(Task.await_many(for(i <- 1..10, do: Task.async(fn -> i * i end))))
IO.inspect(Task.async_stream(1..5, &(&1 * 2), max_concurrency: 2) |> Enum.to_list())
IO.inspect(Task.yield(Task.async(fn -> Process.sleep(:infinity) end), 10))
{:ok, _} = Registry.start_link(keys: :unique, name: Reg)
{:ok, _} = Registry.register(Reg, "key", :value)
IO.inspect(Registry.lookup(Reg, "key") == [{self(), :value}])
IO.inspect(Registry.register(Reg, "key", :other) == {:error, {:already_registered, self()}})
{:ok, _} = Registry.start_link(keys: :duplicate, name: Pub)
for i <- 1..3, do: Registry.register(Pub, "topic", i)
Registry.dispatch(Pub, "topic", fn es -> for {p, i} <- es, do: send(p, {:msg, i}) end)
IO.inspect(for _ <- 1..3, do: (receive do {:msg, i} -> i end))
{:ok, sup} = DynamicSupervisor.start_link(strategy: :one_for_one)
{:ok, c} = DynamicSupervisor.start_child(sup, {Agent, fn -> :child end})
IO.inspect(Agent.get(c, & &1))
IO.inspect(DynamicSupervisor.count_children(sup))
ref = Process.monitor(c)
DynamicSupervisor.terminate_child(sup, c)
receive do {:DOWN, ^ref, _, _, reason} -> IO.inspect(reason) end
{:ok, s} = Supervisor.start_link([{Task.Supervisor, name: TS}], strategy: :one_for_one)
IO.inspect(Task.Supervisor.async_nolink(TS, fn -> :under end) |> Task.await())
t = Task.Supervisor.async_nolink(TS, fn -> exit(:broken) end)
IO.inspect(Task.yield(t, 1000))
IO.inspect(length(Supervisor.which_children(s)))
Process.flag(:trap_exit, true)
spawn_link(fn -> exit(:linked) end)
receive do {:EXIT, _, r} -> IO.inspect(r) end
IO.inspect(Process.info(self(), :trap_exit))
Process.send_after(self(), :later, 10)
receive do :later -> IO.puts("later") end
