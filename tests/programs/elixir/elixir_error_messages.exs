# Checks the messages of Elixir's own exceptions, and the output and exit status of a failing
# script.
f = fn g ->
  try do
    g.()
  rescue
    e -> IO.puts("#{inspect(e.__struct__)}: #{Exception.message(e)}")
  catch
    k, v -> IO.inspect({k, v})
  end
end
f.(fn -> raise "runtime" end)
f.(fn -> 1 + :a end)
f.(fn -> Map.fetch!(%{a: 1}, :b) end)
f.(fn -> %{a: 1}.b end)
f.(fn -> hd([]) end)
f.(fn -> String.to_integer("x") end)
f.(fn -> String.to_existing_atom("never seen before atom") end)
f.(fn -> NoModule.no_function(1) end)
f.(fn -> Enum.map(1, & &1) end)
f.(fn -> {:ok, _} = :error end)
f.(fn -> case 1 do 2 -> 3 end end)
f.(fn -> File.read!("missing") end)
f.(fn -> Keyword.fetch!([a: 1], :b) end)
f.(fn -> (fn 1 -> 1 end).(2) end)
f.(fn -> (fn _ -> 1 end).() end)
f.(fn -> List.first(:a) end)
f.(fn -> String.upcase(nil) end)
f.(fn -> Process.exit(:x, :y) end)
f.(fn -> GenServer.call(:nobody, :x) end)
f.(fn -> :ets.lookup(:no_table, 1) end)
f.(fn -> Integer.parse(1) end)
f.(fn -> throw(:thrown) end)
f.(fn -> exit({:shutdown, 1}) end)
f.(fn -> Code.eval_string("1 +") end)
f.(fn -> Code.eval_string("undefined_variable") end)
f.(fn -> Date.new!(2023, 2, 30) end)
IO.puts(Exception.format(:error, %RuntimeError{message: "m"}, []))
IO.puts(Exception.format_exit({:noproc, {GenServer, :call, [:x, :y, 5000]}}))
IO.puts(:stderr, "to stderr")
defmodule Deep do
  def a(x), do: b(x) + 1
  def b(x), do: :erlang.list_to_integer(x) + 1
end
Deep.a(:not_a_list)
