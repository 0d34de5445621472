# What trains a build of `make dist` in Elixir: structs, protocols, streams, text, pipelines,
# macros. See train.erl.
defmodule Train do
  defmodule Line do
    defstruct [:name, :price, count: 1, tags: []]
  end

  defprotocol Priced do
    def price(item)
  end

  defimpl Priced, for: Line do
    def price(%Line{price: p, count: c}), do: p * c
  end

  defimpl Priced, for: Map do
    def price(%{"price" => p} = m), do: p * Map.get(m, "count", 1)
  end

  def repeat(n, f), do: Enum.each(1..(8 * n), f)

  def structs do
    repeat(60, fn k ->
      lines = for i <- 1..200, do: %Line{name: "item #{i}", price: i, count: rem(i, 4) + k, tags: [:a, "b"]}
      total = lines |> Enum.map(&%{&1 | count: &1.count - k}) |> Enum.map(&Priced.price/1) |> Enum.sum()
      ^total = Enum.reduce(1..200, 0, fn i, s -> s + Priced.price(%{"price" => i, "count" => rem(i, 4)}) end)
    end)
  end

  def text do
    repeat(40, fn k ->
      words = String.split("the quick brown fox, naïve and über, jumps over #{k} dogs", [" ", ","], trim: true)
      line = words |> Enum.map(&String.capitalize/1) |> Enum.join("-") |> String.replace("-", "_")
      true = String.length(line) > 40 and String.starts_with?(line, "The") and String.contains?(line, "Über")
      for w <- words, do: {String.reverse(w), String.upcase(w), String.slice(w, 1..2), String.pad_leading(w, 12)}
      "#{inspect(%{:a => [1, 2.5, :b], "k" => {k, line}}, pretty: true)}" |> String.graphemes() |> Enum.frequencies()
    end)
  end

  def with_steps do
    parse = fn m ->
      with {:ok, id} <- Map.fetch(m, "id"),
           {:ok, n} <- Map.fetch(m, "n"),
           true <- is_integer(n) || {:error, :n},
           {n, ""} <- Integer.parse("#{n}") do
        {:ok, %{id: id, n: n}}
      else
        :error -> {:error, :missing}
        other -> other
      end
    end

    repeat(4000, fn k ->
      {:ok, %{n: ^k}} = parse.(%{"id" => k, "n" => k})
      {:error, :missing} = parse.(%{"id" => k})
      {:error, :n} = parse.(%{"id" => k, "n" => "x"})
    end)
  end

  def streams do
    repeat(30, fn _ ->
      1..2000
      |> Stream.map(&(&1 * 3))
      |> Stream.filter(&(rem(&1, 2) == 0))
      |> Stream.chunk_every(10)
      |> Stream.with_index()
      |> Enum.reduce(%{}, fn {c, i}, acc -> Map.put(acc, i, Enum.sum(c)) end)
      |> Enum.sort_by(fn {_, v} -> -v end)
      |> Keyword.new(fn {i, v} -> {:"k#{rem(i, 20)}", v} end)
      |> Keyword.get(:k3)
    end)
  end

  def tasks do
    repeat(10, fn _ ->
      200 = 1..200 |> Task.async_stream(fn i -> Enum.reduce(1..i, 0, &+/2) end, ordered: false) |> Enum.count()
      {:ok, a} = Agent.start_link(fn -> MapSet.new() end)
      for i <- 1..200, do: Agent.update(a, &MapSet.put(&1, rem(i, 50)))
      50 = Agent.get(a, &MapSet.size/1)
      Agent.stop(a)
    end)
  end

  def rescues do
    repeat(2000, fn k ->
      :caught =
        try do
          if rem(k, 2) == 0, do: raise(ArgumentError, "no #{k}"), else: Map.fetch!(%{}, k)
        rescue
          e in [ArgumentError, KeyError] -> if Exception.message(e) != "", do: :caught
        end
    end)
  end

  def modules do
    for k <- 1..12 do
      Code.compile_string("""
      defmodule Trained#{k} do
        defstruct [:a, b: #{k}]
        @doc "Adds."
        def add(x, y \\\\ 1) when is_integer(x), do: x + y
        def pick(%{kind: kind} = m) do
          case kind do
            :one -> Enum.map(m.list, &(&1 + #{k}))
            k when k in [:two, :three] -> for x <- m.list, x > 1, into: %{}, do: {x, "\#{x}"}
            _ -> with {:ok, v} <- Map.fetch(m, :v), do: v |> to_string() |> String.upcase()
          end
        end
        defimpl String.Chars do
          def to_string(t), do: "t\#{t.b}"
        end
      end
      """)
    end
  end
end

# A failure ends the script with its report and status 1.
for f <- [:structs, :text, :with_steps, :streams, :tasks, :rescues, :modules], do: apply(Train, f, [])
