# Runs a script with a syntax error.
defmodule Broken do
  def f(x, do: 1 + 
end
