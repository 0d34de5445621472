# Checks data types, pattern matching, pipes, comprehensions, sigils and `inspect`.
IO.puts("hello #{1 + 1} #{inspect({:ok, [1, 2], %{:a => 1, "b" => 2}})}")
IO.inspect(for(x <- 1..5, y <- [:a, :b], rem(x, 2) == 1, do: {x, y}))
IO.inspect(for(<<c <- "abc">>, into: "", do: <<c + 1>>))
IO.inspect(for(x <- [1, 2, 3], reduce: 0, do: (acc -> acc + x)))
IO.inspect(%{a: 1} |> Map.put(:b, 2) |> Map.to_list())
IO.inspect(~w(a b c)a)
IO.inspect(~s(string with "quotes"))
IO.inspect(~D[2024-02-29])
IO.inspect(~T[12:34:56.789])
IO.inspect(~U[2024-02-29 12:00:00Z])
IO.inspect(~N[2024-02-29 12:00:00])
IO.inspect(~r/a.c/i)
IO.inspect(1..10//3)
IO.inspect('charlist')
IO.inspect("binary\0with\x01control")
IO.inspect(<<1, 2, 3>>)
IO.inspect(<<5::3>>)
IO.inspect([a: 1, b: [c: 2]])
IO.inspect(MapSet.new([3, 1, 2]))
IO.inspect({1.0, 1.0e30, -0.0, 1_000_000})
IO.inspect(:"quoted atom")
IO.inspect(nil)
IO.inspect(String)
IO.inspect(&String.upcase/1)
IO.inspect(Enum.to_list(1..200))
IO.inspect(Map.new(1..40, &{&1, &1 * &1}))
case {1, {2, [3 | [4]]}} do
  {a, {b, [c | d]}} when a < b -> IO.inspect({a, b, c, d})
end
with {:ok, x} <- {:ok, 5}, {:error, e} <- {:error, x} do
  IO.inspect(e)
end
result = try do
  raise ArgumentError, "bad"
rescue
  e in ArgumentError -> {:rescued, Exception.message(e)}
after
  IO.puts("after")
end
IO.inspect(result)
IO.inspect(try do throw(:ball) catch :throw, x -> x end)
IO.inspect(catch_exit = try do exit(:bye) catch :exit, x -> x end)
IO.inspect(binding() |> Keyword.keys() |> Enum.sort())
IO.inspect(if(catch_exit == :bye, do: "yes", else: "no"))
