# Pieces of whole applications in Elixir, for `scripts/bench-applications.sh`: see applications.erl.
defmodule ElixirApplications do
  def names, do: [:eex, :mix_modules, :ex_unit, :code_format, :streams, :changesets]

  def main([name]) do
    {:ok, _} = Application.ensure_all_started(:elixir)
    result = apply(__MODULE__, List.to_existing_atom(name), [])
    :io.format(~c"~b ~b ~b~n", [used_ms(), :erlang.phash2(result), most_kb()])
    :erlang.halt(0, flush: true)
  end

  defp used_ms do
    [_, rest] = :binary.split(File.read!("/proc/self/stat"), ") ")
    fields = String.split(rest, " ")
    10 * (String.to_integer(Enum.at(fields, 11)) + String.to_integer(Enum.at(fields, 12)))
  end

  defp most_kb do
    [_, n] = Regex.run(~r/VmHWM:\s+(\d+)/, File.read!("/proc/self/status"))
    String.to_integer(n)
  end

  require EEx

  EEx.function_from_string(
    :defp,
    :page,
    """
    <html><head><title><%= escape(@title) %></title></head><body>
    <ul><%= for item <- @items do %>
      <li class="<%= if item.id in @chosen, do: "on", else: "off" %>"><%= escape(item.name) %>: <%= item.price %>
      <%= for {k, v} <- item.fields do %><b><%= k %></b>=<%= escape(v) %> <% end %></li>
    <% end %></ul></body></html>
    """,
    [:assigns]
  )

  defp escape(text), do: escape(text, "")
  defp escape("<" <> t, acc), do: escape(t, acc <> "&lt;")
  defp escape("&" <> t, acc), do: escape(t, acc <> "&amp;")
  defp escape(<<c, t::binary>>, acc), do: escape(t, <<acc::binary, c>>)
  defp escape("", acc), do: acc

  def eex do
    items = for i <- 1..150, do: %{id: i, name: "item <#{i}> & more", price: i / 4, fields: [a: "x<y", b: "#{i * i}"]}

    for round <- 1..500 do
      byte_size(page(%{title: "Round #{round}", items: items, chosen: Enum.to_list(1..10)}))
    end
  end

  defp source(i) do
    """
    defprotocol Part#{i}.Shown do
      def shown(x)
    end
    defmodule Part#{i} do
      @moduledoc "Part #{i}"
      defstruct id: #{i}, name: "part", tags: [], next: nil
      @type t :: %__MODULE__{id: integer, name: String.t(), tags: [atom], next: t | nil}
      @spec new(keyword) :: t
      def new(fields \\\\ []), do: struct!(__MODULE__, fields)
      defmacro twice(x), do: quote(do: unquote(x) + unquote(x))
      def rename(%__MODULE__{next: nil} = p, name) when is_binary(name), do: %{p | name: String.trim(name)}
      def rename(%__MODULE__{next: n} = p, name), do: %{p | name: name, next: rename(n, name)}
      for {word, number} <- [one: 1, two: 2, three: 3, four: 4, five: 5] do
        def number(unquote(word)), do: unquote(number) + #{i}
      end
      def summary(list) do
        with [_ | _] <- list, numbers = Enum.map(list, &number/1), {low, high} <- Enum.min_max(numbers) do
          numbers |> Enum.filter(&(&1 > low)) |> Enum.group_by(&rem(&1, 3)) |> Map.put(:span, high - low)
        else
          [] -> %{}
        end
      end
      def classify(n) do
        cond do
          n < #{i} -> {:below, "\#{n} is below #{i}"}
          n == #{i} -> {:same, inspect(n)}
          true ->
            try do
              {:above, String.to_integer(to_string(n))}
            rescue
              e in ArgumentError -> {:error, e.message}
            end
        end
      end
    end
    defimpl Part#{i}.Shown, for: Part#{i} do
      def shown(p), do: "\#{p.id} \#{p.name} \#{Enum.join(p.tags, ",")}"
    end
    """
  end

  def mix_modules do
    Code.compiler_options(ignore_module_conflict: true)
    for i <- 1..25, do: length(Code.compile_string(source(i), "part#{i}.ex"))
  end

  def code_format do
    for i <- 1..120, do: source(i) |> Code.format_string!() |> IO.iodata_length()
  end

  def ex_unit do
    ExUnit.start(autorun: false, formatters: [], seed: 1)

    for i <- 1..8 do
      Code.compile_string("""
      defmodule Some#{i}Test do
        use ExUnit.Case, async: true
        setup do
          {:ok, list: Enum.to_list(1..50)}
        end
        for n <- 1..30 do
          test "case \#{n}", %{list: list} do
            assert Enum.sum(list) == 1275
            assert %{a: [_ | _]} = %{a: list}
            assert_raise ArgumentError, fn -> String.to_integer("x\#{unquote(n)}") end
            refute Enum.member?(list, 50 + unquote(n))
          end
        end
      end
      """)
    end

    %{total: total, failures: 0} = ExUnit.run()
    total
  end

  def streams do
    rows = for i <- 1..4000, do: "#{i},name #{rem(i, 97)},#{i * 3}.5,#{rem(i, 5)}"

    for _ <- 1..25 do
      rows
      |> Stream.map(&String.split(&1, ","))
      |> Stream.reject(fn [_, _, _, k] -> k == "0" end)
      |> Stream.map(fn [id, name, price, kind] ->
        %{id: String.to_integer(id), name: String.upcase(name), price: String.to_float(price), kind: kind}
      end)
      |> Enum.group_by(& &1.name)
      |> Enum.map(fn {name, all} -> {name, Enum.count(all), all |> Enum.map(& &1.price) |> Enum.sum()} end)
      |> Enum.sort_by(&elem(&1, 2), :desc)
      |> Enum.take(10)
    end
    |> hd()
  end

  defmodule User do
    defstruct [:name, :mail, :age, valid?: true, errors: [], changes: %{}]
  end

  def changesets do
    given = for i <- 1..800, do: %{"name" => " User #{i} ", "mail" => if(rem(i, 3) == 0, do: "none", else: "u#{i}@x.example"), "age" => "#{rem(i, 130)}"}

    for _ <- 1..150 do
      Enum.frequencies_by(given, fn params ->
        with {:ok, u} <- cast(%User{}, params, ~w(name mail age)),
             u = u |> required([:name, :mail]) |> matches(:mail, "@") |> number(:age, 18..120),
             %User{valid?: true} <- u do
          :ok
        else
          %User{errors: errors} -> Enum.map(errors, &elem(&1, 0))
        end
      end)
    end
    |> hd()
  end

  defp cast(user, params, allowed) do
    {:ok,
     Enum.reduce(allowed, user, fn key, u ->
       case params do
         %{^key => value} -> %{u | changes: Map.put(u.changes, String.to_existing_atom(key), String.trim(value))}
         _ -> u
       end
     end)}
  end

  defp required(u, keys) do
    Enum.reduce(keys, u, fn k, u -> if Map.get(u.changes, k, "") == "", do: add(u, k, "is missing"), else: u end)
  end

  defp matches(u, key, part), do: if(String.contains?(Map.get(u.changes, key, ""), part), do: u, else: add(u, key, "is wrong"))

  defp number(u, key, range) do
    case Integer.parse(u.changes[key]) do
      {n, ""} -> if n in range, do: put_in(u.changes[key], n), else: add(u, key, "is not in #{inspect(range)}")
      _ -> add(u, key, "is no number")
    end
  end

  defp add(u, key, text), do: %{u | valid?: false, errors: [{key, text} | u.errors]}
end
