# The Template of Doom: a page that repeats a text of 300 bytes very many times is rendered and sent
# over TCP to a client that throws it away. The template is compiled to I/O lists, so the page is a
# list with one element for each repetition. With "whole" that element is a constant of the module.
# With "split" a value that is known at run time only stands in the middle of the text: each
# repetition makes a list of the first half, the value (which is empty) and the second half.
#
#     purlin run examples/doom/doom.exs 10000000 whole|split
#
# Prints how large the page is, how many bytes came to the client, and the peak of this program's
# resident memory in MiB: before, when the page is rendered, and when it is sent.

defmodule IoEngine do
  @behaviour EEx.Engine
  def init(_), do: %{parts: [], bindings: []}
  def handle_begin(state), do: %{state | parts: [], bindings: []}
  def handle_text(state, _meta, text), do: %{state | parts: [text | state.parts]}
  def handle_end(state), do: body(state)
  def handle_body(state), do: body(state)

  # A value is turned to text when the page is rendered. A comprehension gives a list of parts,
  # which is kept.
  def handle_expr(state, "=", expr) do
    var = Macro.unique_var(:part, __MODULE__)
    value = quote(do: unquote(var) = unquote(__MODULE__).part(unquote(expr)))
    %{state | parts: [var | state.parts], bindings: [value | state.bindings]}
  end

  def handle_expr(state, "", expr), do: %{state | bindings: [expr | state.bindings]}

  def part(parts) when is_list(parts), do: parts
  def part(value), do: String.Chars.to_string(value)

  defp body(%{parts: [part], bindings: []}), do: part
  defp body(%{parts: parts, bindings: bindings}), do: {:__block__, [], Enum.reverse([Enum.reverse(parts) | bindings])}
end

defmodule Doom do
  require EEx
  @half String.duplicate("Doom, ", 25)
  EEx.function_from_string(:def, :whole, "<%= for _ <- 1..n do %>#{@half}#{@half}<% end %>", [:n], engine: IoEngine)
  EEx.function_from_string(:def, :split, "<%= for _ <- 1..n do %>#{@half}<%= value %>#{@half}<% end %>", [:n, :value], engine: IoEngine)

  def peak do
    status = File.read!("/proc/self/status")
    [_, kb] = Regex.run(~r/VmHWM:\s+(\d+)/, status)
    div(String.to_integer(kb), 1024)
  end

  def main(n, which) do
    before = peak()
    {:ok, listener} = :gen_tcp.listen(0, [:binary, active: false, ip: {127, 0, 0, 1}])
    {:ok, port} = :inet.port(listener)
    client = Port.open({:spawn_executable, "/bin/bash"}, [:binary, args: ["-c", "wc -c < /dev/tcp/127.0.0.1/#{port}"]])
    {:ok, socket} = :gen_tcp.accept(listener)

    started = System.monotonic_time(:millisecond)
    page = if which == "split", do: split(n, ""), else: whole(n)
    rendered = System.monotonic_time(:millisecond)
    after_rendering = peak()
    :ok = :gen_tcp.send(socket, page)
    sent = System.monotonic_time(:millisecond)
    :ok = :gen_tcp.close(socket)

    receive do
      {^client, {:data, count}} ->
        count = String.trim(count)
        IO.puts("#{which}: #{n * 300} bytes, #{count} came")
        IO.puts("rendered in #{rendered - started} ms, sent in #{sent - rendered} ms")
        IO.puts("peak MiB: before #{before}, rendered #{after_rendering}, sent #{peak()}")
        if String.to_integer(count) != n * 300, do: System.halt(1)
    after
      300_000 -> System.halt(1)
    end
  end
end

[n, which] = System.argv()
Doom.main(String.to_integer(n), which)
