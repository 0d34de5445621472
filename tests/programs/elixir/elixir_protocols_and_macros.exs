# Checks protocols, structs, behaviours, macros, quoting, `use` and module attributes.
defprotocol Area do
  @fallback_to_any true
  def area(shape)
end

defmodule Square do
  @enforce_keys [:side]
  defstruct [:side, color: :red]
end

defmodule Circle do
  @derive {Inspect, only: [:r]}
  defstruct r: 1, secret: 2
end

defimpl Area, for: Square do
  def area(s), do: s.side * s.side
end

defimpl Area, for: Integer do
  def area(n), do: n
end

defimpl Area, for: Any do
  def area(_), do: :unknown
end

defimpl String.Chars, for: Square do
  def to_string(s), do: "square of #{s.side}"
end

defmodule Shapes do
  def run do
    IO.inspect(Enum.map([%Square{side: 3}, 7, "x", %Circle{}], &Area.area/1))
    IO.inspect(%Square{side: 1})
    IO.inspect(%Circle{})
    IO.inspect(%{%Square{side: 1} | side: 5}.side)
    IO.puts("#{%Square{side: 4}}")
  end
end

Shapes.run()

defmodule Macros do
  defmacro unless_zero(x, do: block) do
    quote do
      if unquote(x) != 0, do: unquote(block), else: :zero
    end
  end

  defmacro __using__(opts) do
    quote do
      def used, do: unquote(opts[:value])
    end
  end
end

defmodule User do
  use Macros, value: 99
  require Macros
  @list [1, 2, 3]
  Module.register_attribute(__MODULE__, :acc, accumulate: true)
  @acc 1
  @acc 2
  def f(x), do: Macros.unless_zero(x, do: 10 / x)
  def attrs, do: {@list, @acc}
  for n <- 1..3, do: def(unquote(:"gen_#{n}")(), do: unquote(n))
end

IO.inspect({User.f(0), User.f(5), User.used(), User.attrs(), User.gen_2()})
IO.inspect(quote(do: 1 + foo(x, [a: 1])))
IO.puts(Macro.to_string(quote(do: if(x, do: y, else: z))))
IO.inspect(Code.eval_string("a * 2", a: 21))
IO.inspect(Macro.expand(quote(do: unless(true, do: 1)), __ENV__) |> elem(0))
try do
  struct!(Square, [])
rescue
  e -> IO.puts(Exception.message(e))
end
try do
  apply(Enumerable, :count, [1])
rescue
  e -> IO.puts(Exception.message(e))
end
IO.inspect(Enum.member?(User.__info__(:functions), {:f, 1}))
IO.inspect(Access.get([a: 1], :a))
IO.inspect(get_in(%{a: %{b: [1, 2]}}, [:a, :b, Access.at(1)]))
IO.inspect(update_in(%{a: %{b: 1}}, [:a, :b], &(&1 + 1)))
