# Checks Logger on the console, and the crash reports of tasks and servers in Elixir's format.
# @seconds 60
require Logger
Logger.configure_backend(:console, colors: [enabled: false])
Logger.error("an error")
Logger.warning("a warning")
Logger.info("info #{1 + 1}", key: :value)
Logger.debug(fn -> "lazy" end)
Logger.configure(level: :error)
Logger.info("not shown")
Process.flag(:trap_exit, true)
defmodule Bad do
  use GenServer
  def init(s), do: {:ok, s}
  def handle_cast(:crash, _), do: raise("server crashed")
end
{:ok, p} = GenServer.start_link(Bad, :state)
GenServer.cast(p, :crash)
receive do {:EXIT, ^p, {%RuntimeError{}, _}} -> :ok end
t = Task.async(fn -> raise "task crashed" end)
receive do {:EXIT, p, _} when p == t.pid -> :ok end
spawn(fn -> raise "plain crashed" end)
Process.sleep(200)
Logger.flush()
