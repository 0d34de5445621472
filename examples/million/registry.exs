# Sleepers, step "registry": as "count", the parent registered by name, so that the processes
# capture nothing.
#
#     purlin run examples/million/registry.exs 1000000 10000    (how many, and how many milliseconds each sleeps)
[n, _nap] = Enum.map(System.argv(), &String.to_integer/1)

defmodule Sleepers do
  @nap System.argv() |> List.last() |> String.to_integer()

  def run(n) do
    before = :erlang.system_info(:process_count)
    Process.register(self(), :parent)

    Enum.each(1..n, fn _ ->
      spawn(fn ->
        Process.sleep(@nap)
        send(:parent, :done)
      end)
    end)

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
