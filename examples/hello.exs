# A first program: purlin run examples/hello.exs
IO.puts("Hello from Elixir #{System.version()} on Erlang/OTP #{System.otp_release()}")
answers = 1..5 |> Enum.map(&Task.async(fn -> &1 * &1 end)) |> Task.await_many()
IO.inspect(answers, label: "five tasks answered")
