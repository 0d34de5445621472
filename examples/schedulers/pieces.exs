# Pieces of work that have nothing to do with each other, on a number of schedulers that the program
# sets after it has read its arguments: with fewer schedulers than pieces, all but the first of them
# wait, ready, for a turn.
#
#     purlin run examples/schedulers/pieces.exs SCHEDULERS PIECES [STEPS]
[schedulers, pieces | steps] = Enum.map(System.argv(), &String.to_integer/1)
steps = List.first(steps) || 200_000
:erlang.system_flag(:schedulers_online, schedulers)

defmodule Pieces do
  # A sample of a sound, and the next: what one piece of work is made of.
  def render(0, phase), do: phase
  def render(n, phase), do: render(n - 1, rem(phase * 1_103_515_245 + 12_345, 2_147_483_648))

  def run(pieces, steps) do
    1..pieces
    |> Enum.map(fn i -> Task.async(fn -> render(steps, i) end) end)
    |> Task.await_many(:infinity)
  end
end

{time, results} = :timer.tc(fn -> Pieces.run(pieces, steps) end)
IO.puts("#{length(results)} pieces on #{:erlang.system_info(:schedulers_online)} schedulers: #{div(time, 1000)} ms")
