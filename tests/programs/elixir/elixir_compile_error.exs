# Runs a script that does not compile.
defmodule Broken do
  def f(x), do: undefined_function(x)
end
