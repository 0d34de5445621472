# Three computations over one random list, one after another and in three tasks, measured with
# Benchee as it comes.
#
#     purlin run examples/careful/benchee.exs [SECONDS [SIZE ...]]        (of each measurement: 2; elements: 10000 1000000)
#
# A task gets the list by the closure that is spawned, and sends its result back. Where that copies,
# the tasks lose to the sequence; Benchee's own formatters, which get the whole suite in tasks, lose
# with them.
# Benchee is fetched by Mix unless it is on the code path (`-pa`) already.
unless Code.ensure_loaded?(Benchee), do: Mix.install([{:benchee, "~> 1.3"}])
{:ok, _} = Application.ensure_all_started(:benchee)

{seconds, sizes} =
  case Enum.map(System.argv(), &String.to_integer/1) do
    [] -> {2, [10_000, 1_000_000]}
    [seconds] -> {seconds, [10_000, 1_000_000]}
    [seconds | sizes] -> {seconds, sizes}
  end

random_list = fn size -> for _ <- 1..size, do: :rand.uniform(size) end

Benchee.run(
  %{
    "in sequence" => fn list ->
      [Enum.uniq(list), Enum.frequencies(list), Enum.shuffle(list)]
    end,
    "three tasks" => fn list ->
      [
        Task.async(fn -> Enum.uniq(list) end),
        Task.async(fn -> Enum.frequencies(list) end),
        Task.async(fn -> Enum.shuffle(list) end)
      ]
      |> Task.await_many(:infinity)
    end
  },
  inputs: Map.new(sizes, fn size -> {"#{size} elements", size} end),
  before_scenario: random_list,
  warmup: min(seconds, 1),
  time: seconds,
  memory_time: min(seconds, 1),
  formatters: [{Benchee.Formatters.Console, extended_statistics: true}]
)
