# What differs in a random list of integers, how often each is there, and the list in another order:
# one after another, or in three tasks that each get the list and send their result back.
#
#     purlin run examples/careful/tasks.exs sequence|tasks SIZE [ROUNDS]
#
# Prints the best time of the rounds in milliseconds.
[how, size | rounds] = System.argv()
size = String.to_integer(size)
rounds = rounds |> List.first("3") |> String.to_integer()

:rand.seed(:exsss, {1, 2, 3})
list = for _ <- 1..size, do: :rand.uniform(size)
works = [fn -> Enum.uniq(list) end, fn -> Enum.frequencies(list) end, fn -> Enum.shuffle(list) end]

run =
  case how do
    "sequence" -> fn -> Enum.map(works, & &1.()) end
    "tasks" -> fn -> works |> Enum.map(&Task.async/1) |> Task.await_many(:infinity) end
  end

times =
  for _ <- 1..rounds do
    {time, [unique, counts, shuffled]} = :timer.tc(run)
    true = length(unique) == map_size(counts) and length(shuffled) == size
    time
  end

IO.puts(Float.round(Enum.min(times) / 1000, 1))
