defmodule :pipelines do
  # What Elixir programs do most: pipelines over structs, captured functions, templates, Unicode
  # text, parsing and compiling.
  defmodule User do
    defstruct id: 0, name: "", age: 0, tags: []
  end

  require EEx

  EEx.function_from_string(
    :defp,
    :page,
    "<ul><%= for u <- users do %><li id=\"<%= u.id %>\"><%= u.name %> (<%= u.age %>)</li>\n<% end %></ul>",
    [:users]
  )

  def names do
    [:structs, :captured, :template, :unicode, :struct_map, :frequencies, :quoted, :compiled, :formatted, :streams]
  end

  # Results that stock gives.
  def expected(:structs), do: {60, 5_222_880}
  def expected(:captured), do: 133_332_666_660
  def expected(:template), do: 3_168_400
  def expected(:unicode), do: {126_000, 8020}
  def expected(:struct_map), do: 300_000
  def expected(:frequencies), do: 200_000
  def expected(:quoted), do: 40
  def expected(:compiled), do: 20
  def expected(:formatted), do: 2_120_000
  def expected(:streams), do: 15_000_000_000

  defp users(n) do
    for i <- 1..n, do: %User{id: i, name: "user #{i}", age: rem(i * 7, 90), tags: [rem(i, 5), rem(i, 3)]}
  end

  def structs do
    all = users(2000)

    result =
      for _ <- 1..60 do
        all
        |> Enum.filter(&(&1.age >= 18))
        |> Enum.map(fn u -> %{u | name: String.upcase(u.name), age: u.age + 1} end)
        |> Enum.sort_by(& &1.age, :desc)
        |> Enum.group_by(& &1.age)
        |> Enum.map(fn {age, us} -> age * length(us) end)
        |> Enum.sum()
      end

    {length(result), Enum.sum(result)}
  end

  def captured do
    l = Enum.to_list(1..200_000)
    Enum.sum(for _ <- 1..10, do: l |> Enum.map(&(&1 * 2)) |> Enum.filter(&(rem(&1, 3) == 0)) |> Enum.reduce(0, &Kernel.+/2))
  end

  def template do
    all = users(1000)
    Enum.sum(for _ <- 1..100, do: byte_size(page(all)))
  end

  def unicode do
    text = String.duplicate("naïve 世界 plain text, ", 100)

    counts =
      for _ <- 1..20 do
        {String.length(String.upcase(text)) + length(String.graphemes(text)) + String.length(String.reverse(text)),
         length(String.split(text, " "))}
      end

    {Enum.sum(Enum.map(counts, &elem(&1, 0))), Enum.sum(Enum.map(counts, &elem(&1, 1)))}
  end

  def struct_map do
    m = Map.new(users(1000), &{&1.id, %{&1 | age: 0}})
    m = Enum.reduce(1..300_000, m, fn i, m -> Map.update!(m, 1 + rem(i * 7919, 1000), &%{&1 | age: &1.age + 1}) end)
    m |> Map.values() |> Enum.map(& &1.age) |> Enum.sum()
  end

  def frequencies do
    words = for i <- 1..200_000, do: "word#{rem(i * 7919, 1000)}"
    words |> Enum.frequencies() |> Map.values() |> Enum.sum()
  end

  defp source(i) do
    """
    defmodule BenchPipelinesMade#{i} do
      @moduledoc "Made"
      defstruct [:a, :b, c: %{x: 1}]
      def f(x, opts \\\\ []) when is_list(opts), do: x |> Enum.map(&(&1 + 1)) |> Enum.join(", ")
      def g(%{a: a} = m) do
        case a do
          {:ok, v} -> %{m | b: v}
          _ -> with {:ok, y} <- h(a), do: y
        end
      end
      defp h(t), do: if(t > 3, do: {:ok, "#{i} \#{t}"}, else: :error)
    end
    """
  end

  def quoted do
    {:ok, _} = :application.ensure_all_started(:elixir)
    Enum.count(for i <- 1..400, {:ok, _} <- [Code.string_to_quoted(source(i))], rem(i, 10) == 0, do: i)
  end

  def compiled do
    {:ok, _} = :application.ensure_all_started(:elixir)
    made = for i <- 1..20, [{m, _}] = Code.compile_string(source(i)), do: m
    for m <- made, do: {:code.purge(m), :code.delete(m), :code.purge(m)}
    length(made)
  end

  def formatted do
    pattern = Logger.Formatter.compile("$time $metadata[$level] $message\n")
    time = {{2026, 1, 2}, {3, 4, 5, 6}}
    line = fn i -> IO.iodata_length(Logger.Formatter.format(pattern, :info, ["message ", Integer.to_string(rem(i, 9))], time, request: 12, module: Enum)) end
    Enum.sum(for i <- 1..40_000, do: line.(i))
  end

  def streams do
    Stream.iterate(1, &(&1 + 1)) |> Stream.map(&(&1 * 2)) |> Stream.reject(&(rem(&1, 3) == 0)) |> Stream.take(100_000) |> Enum.sum()
  end
end
