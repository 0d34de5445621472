# Senders that live long, and one receiver: where its messages wait, `on_heap` or `off_heap`.
#
#     purlin run examples/queues/senders.exs SENDERS MESSAGES on_heap|off_heap
[senders, messages, where] = System.argv()
{senders, messages} = {String.to_integer(senders), String.to_integer(messages)}

defmodule Queue do
  def send_all(_to, 0), do: :ok

  def send_all(to, n) do
    send(to, {:item, n, {n, [n]}})
    send_all(to, n - 1)
  end

  def receive_all(0, sum), do: sum

  def receive_all(n, sum) do
    receive do
      {:item, i, {i, [i]}} -> receive_all(n - 1, sum + i)
    end
  end
end

Process.flag(:message_queue_data, String.to_atom(where))
me = self()
for _ <- 1..senders, do: spawn(fn -> Queue.send_all(me, messages) end)
IO.puts(Queue.receive_all(senders * messages, 0))
