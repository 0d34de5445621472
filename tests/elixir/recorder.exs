# Required before a suite of Elixir's own, it writes a line per test to the file that RESULTS names,
# in the form of tests/otp/conformance.erl:
#
#     start MODULE.TEST              end MODULE.TEST passed|failed|skipped REASON              done
#
# Only the suite itself is recorded. Some of its tests run suites of their own, and those find
# ExUnit configured as usual.
defmodule Conformance.Recorder do
  use GenServer

  @impl true
  def init(_options) do
    Application.put_env(:ex_unit, :formatters, [ExUnit.CLIFormatter])
    {:ok, System.fetch_env!("RESULTS")}
  end

  @impl true
  def handle_cast({:test_started, test}, results), do: line(results, ["start ", name(test)])
  def handle_cast({:suite_finished, _}, results), do: line(results, "done")

  def handle_cast({:test_finished, test}, results) do
    {verdict, reason} =
      case test.state do
        nil -> {"passed", ""}
        {:excluded, reason} -> {"skipped", reason}
        {:skipped, reason} -> {"skipped", reason}
        {:invalid, _module} -> {"failed", "its module's setup failed"}
        {:failed, failures} -> {"failed", Enum.map_join(failures, " ", &failure/1)}
      end

    line(results, ["end ", name(test), " ", verdict, " ", reason])
  end

  def handle_cast(_event, results), do: {:noreply, results}

  defp name(test), do: String.replace("#{inspect(test.module)}.#{test.name}", ~r/\s+/u, "_")

  # What went wrong may be a term that can't be shown; that there was something is told all the
  # same.
  defp failure({kind, reason, _stack}) do
    Exception.format_banner(kind, reason)
  rescue
    _ -> "#{kind}"
  end

  # Opened anew for each line: nothing is lost with the runtime.
  defp line(results, text) do
    text = text |> IO.iodata_to_binary() |> String.replace(~r/\s+/, " ") |> String.slice(0, 600)
    File.write!(results, [text, ?\n], [:append])
    {:noreply, results}
  end
end

Application.load(:ex_unit)
Application.put_env(:ex_unit, :formatters, [ExUnit.CLIFormatter, Conformance.Recorder])
# In the order in which they are written: two runs are to differ in the runtime only.
Application.put_env(:ex_unit, :seed, 0)
