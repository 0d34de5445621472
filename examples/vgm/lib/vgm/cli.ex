# The command: songs from arguments and playlists, so many at once, each in a process of its own; a
# printer tells how far they are.
defmodule Vgm.CLI do
  alias Vgm.{Check, Log, Picture, Playlist, Song, Sound, SoundFile}

  @usage """
  render.exs [OPTION ...] FILE ...

  FILE is a VGM or VGZ log (YM2151, YM2610, YM2610B) or an XSPF playlist.

    --jobs N         songs rendered at once (default: the schedulers that are online)
    --format wav|au  what is written (wav)
    --out DIR        where (the working directory)
    --loops N        how often what a song repeats is played (2)
    --fade S         seconds of fading after that (0: none)
    --picture        a PNG of the wave and the spectrum beside each file
    --check DIR      write nothing, compare each stage with the sums in DIR
    --quiet          no progress
    --help           this

  Status: 0, or 1 if a song or a track was left out, or 2 if the command was not understood.
  """

  @switches [jobs: :integer, format: :string, out: :string, loops: :integer, fade: :float, picture: :boolean, check: :string, quiet: :boolean, help: :boolean]

  # What the command ends with.
  def main(args) do
    case OptionParser.parse(args, strict: @switches) do
      {options, files, []} ->
        cond do
          options[:help] -> IO.write(@usage) && 0
          files == [] -> misused("no file")
          reason = wrong(options) -> misused(reason)
          true -> run(files, options)
        end

      {_, _, [{option, nil} | _]} ->
        misused("#{option} isn't known or wants a value")

      {_, _, [{option, value} | _]} ->
        misused("#{option} doesn't take #{value}")
    end
  end

  defp wrong(options) do
    cond do
      Keyword.get(options, :jobs, 1) < 1 -> "--jobs wants one at least"
      Keyword.get(options, :loops, 1) < 1 -> "--loops wants one at least"
      Keyword.get(options, :fade, 0.0) < 0 or Keyword.get(options, :fade, 0.0) > 3600 -> "--fade wants 0 to 3600 seconds"
      Keyword.get(options, :format, "wav") not in ["wav", "au"] -> "--format wants wav or au"
      true -> nil
    end
  end

  defp misused(reason) do
    say("render: #{reason}; --help tells what there is")
    2
  end

  defp say(text), do: IO.puts(:stderr, text)

  defp run(files, options) do
    {songs, left_out} = songs(files)
    Vgm.Tables.prepare()

    if check = options[:check] do
      check(songs, check, options, left_out)
    else
      out = Keyword.get(options, :out, ".")

      case File.mkdir_p(out) do
        :ok ->
          render(songs, out, options, left_out)

        {:error, reason} ->
          say("render: #{out}: #{:file.format_error(reason)}")
          1
      end
    end
  end

  # Playlists by name. A track that is no file is told and left out.
  defp songs(files) do
    Enum.reduce(files, {[], 0}, fn file, {songs, left_out} ->
      if file |> Path.extname() |> String.downcase() == ".xspf" do
        case Playlist.read(file) do
          {:ok, tracks} ->
            {found, lost} = Enum.split_with(tracks, &(elem(&1, 0) == :file))
            for {:skipped, what} <- lost, do: say("#{file}: skipped: #{what}")
            {songs ++ Enum.map(found, &elem(&1, 1)), left_out + length(lost)}

          {:error, reason} ->
            say("#{file}: #{reason}")
            {songs, left_out + 1}
        end
      else
        {songs ++ [file], left_out}
      end
    end)
  end

  defp check(songs, sums, options, left_out) do
    checked = fn song -> {song, Check.check(song, sums, Keyword.get(options, :loops, 2))} end
    jobs = Keyword.get(options, :jobs, :erlang.system_info(:schedulers_online))

    wrong =
      for {:ok, {song, result}} <- Task.async_stream(songs, checked, max_concurrency: jobs, timeout: :infinity), reduce: left_out do
        wrong ->
          case result do
            {:ok, stages} ->
              IO.puts("#{song}: #{stages} stages agree")
              wrong

            {:error, texts} ->
              for text <- texts, do: IO.puts(text)
              wrong + 1
          end
      end

    if wrong > 0, do: 1, else: 0
  end

  # A song's file has its name; one of the same name has a number.
  defp named(songs, out, format) do
    {named, _} =
      Enum.map_reduce(songs, %{}, fn song, taken ->
        base = song |> Path.basename() |> Path.rootname()
        n = Map.get(taken, base, 0) + 1
        name = if n == 1, do: base, else: "#{base}-#{n}"
        {{song, Path.join(out, "#{name}.#{format}")}, taken |> Map.put(base, n) |> Map.put_new(name, 1)}
      end)

    named
  end

  defp render(songs, out, options, left_out) do
    format = if Keyword.get(options, :format, "wav") == "au", do: :au, else: :wav
    jobs = min(Keyword.get(options, :jobs, :erlang.system_info(:schedulers_online)), max(1, length(songs)))
    printer = spawn_link(fn -> print(Keyword.get(options, :quiet, false), length(songs), 0) end)
    settings = %{format: format, loops: Keyword.get(options, :loops, 2), fade: Keyword.get(options, :fade, 0.0), picture: options[:picture], printer: printer}
    computed = computed()
    began = System.monotonic_time(:nanosecond)
    results = work(named(songs, out, format), jobs, %{}, settings, [])
    took = System.monotonic_time(:nanosecond) - began
    computed = computed && computed() - computed
    ref = make_ref()
    send(printer, {:end, self(), ref})
    receive do: (^ref -> :ok)
    report(results, jobs, took, computed)
    if left_out > 0 or Enum.any?(results, &(&1 == :failed)), do: 1, else: 0
  end

  # As many processes as there are jobs; each renders one song and ends.
  defp work([], _, running, _, results) when running == %{}, do: results

  defp work([{song, name} | songs], jobs, running, settings, results) when map_size(running) < jobs do
    {pid, ref} = spawn_monitor(fn -> exit({:done, song(song, name, settings)}) end)
    work(songs, jobs, Map.put(running, ref, {pid, song}), settings, results)
  end

  defp work(songs, jobs, running, settings, results) do
    receive do
      {:DOWN, ref, :process, _, reason} ->
        {{_, song}, running} = Map.pop(running, ref)

        result =
          case reason do
            {:done, {:ok, frames}} ->
              send(settings.printer, {:done, song, frames})
              frames

            {:done, {:error, text}} ->
              send(settings.printer, {:failed, song, text})
              :failed

            reason ->
              send(settings.printer, {:failed, song, "the job died: #{Exception.format_exit(reason) |> String.split("\n") |> hd()}"})
              :failed
          end

        work(songs, jobs, running, settings, [result | results])
    end
  end

  defp song(song, name, settings) do
    with :ok <- SoundFile.free(name) |> told(name),
         {:ok, log} <- Log.read(song),
         {:ok, file} <- SoundFile.create(name, settings.format) |> told(name) do
      expected = max(1, log.total + (Log.plays(log, settings.loops) - 1) * log.loop_samples)
      send(settings.printer, {:begun, song, name, title(log)})

      sink = fn frames, {file, told, made} ->
        made = made + length(frames)
        now = System.monotonic_time(:millisecond)
        due = now - told >= 500
        if due, do: send(settings.printer, {:made, song, min(99, div(100 * made, expected))})
        told = if due, do: now, else: told

        case SoundFile.write(file, frames) do
          {:ok, file} -> {:ok, {file, told, made}}
          {:error, reason} -> {:error, reason}
        end
      end

      case Song.render(log, sink, {file, System.monotonic_time(:millisecond), 0}, loops: settings.loops, fade: settings.fade) do
        {:ok, frames, {file, _, _}} ->
          with :ok <- SoundFile.finish(file) |> told(name),
               :ok <- picture(settings, name, frames) do
            {:ok, frames}
          end

        {:error, reason, {file, _, _}} ->
          SoundFile.abandon(file, {:error, reason}) |> told(if is_atom(reason), do: name)
      end
    end
  end

  defp picture(%{picture: true, format: format}, name, frames) do
    picture = Path.rootname(name) <> ".png"
    with :ok <- SoundFile.free(picture) |> told(picture), do: Picture.write(name, format, frames, picture) |> told(picture)
  end

  defp picture(_, _, _), do: :ok

  # Errors of files as text that names the file.
  defp told({:error, :eexist}, name), do: {:error, "#{name} is there already"}
  defp told({:error, reason}, name) when is_atom(reason), do: {:error, "#{name}: #{:file.format_error(reason)}"}
  defp told(other, _), do: other

  defp title(log) do
    case Enum.filter([log.tags[:game], log.tags[:title]], &(&1 not in [nil, ""])) do
      [] -> ""
      parts -> " (#{parts |> Enum.join(": ") |> String.replace(~r/[[:cntrl:]]/u, " ")})"
    end
  end

  # The one who writes while songs are made.
  defp print(quiet, songs, ended) do
    receive do
      {:begun, song, name, title} ->
        quiet || say("#{song}#{title} -> #{name}")
        print(quiet, songs, ended)

      {:made, song, percent} ->
        quiet || say("#{song}: #{percent}%")
        print(quiet, songs, ended)

      {:done, song, frames} ->
        quiet || say("#{song}: done, #{seconds(frames)} of sound; #{ended + 1} of #{songs}")
        print(quiet, songs, ended + 1)

      {:failed, song, text} ->
        say("#{song}: #{text}")
        print(quiet, songs, ended + 1)

      {:end, pid, ref} ->
        send(pid, ref)
    end
  end

  defp seconds(frames), do: "#{div(frames, Sound.rate())}.#{rem(div(frames * 10, Sound.rate()), 10)} s"

  defp report(results, jobs, took, computed) do
    frames = results |> Enum.reject(&(&1 == :failed)) |> Enum.sum()
    failed = Enum.count(results, &(&1 == :failed))
    IO.puts("Songs:              #{length(results) - failed}#{if failed > 0, do: ", and #{failed} failed"}")
    IO.puts("Jobs:               #{jobs} on #{:erlang.system_info(:schedulers_online)} schedulers")
    IO.puts("Time:               #{clock(took)}")
    if computed, do: IO.puts("Processor time:     #{clock(computed)}")
    IO.puts("Samples per second: #{thousands(div(frames * 1_000_000_000, max(1, took)))}")
    IO.puts("Memory:             #{memory()}")
  end

  defp clock(ns) do
    parts = [div(ns, 3_600_000_000_000), rem(div(ns, 60_000_000_000), 60), rem(div(ns, 1_000_000_000), 60)]
    "#{Enum.map_join(parts, ":", &String.pad_leading("#{&1}", 2, "0"))}.#{String.pad_leading("#{rem(ns, 1_000_000_000)}", 9, "0")}"
  end

  defp thousands(n), do: n |> Integer.to_string() |> String.reverse() |> String.replace(~r/\d{3}(?=\d)/, "\\0,") |> String.reverse()

  # What the threads of this process have computed, in nanoseconds, where the system tells it.
  defp computed do
    with {:ok, threads} <- File.ls("/proc/self/task") do
      Enum.sum(
        for thread <- threads, {:ok, text} <- [File.read("/proc/self/task/#{thread}/schedstat")] do
          text |> String.split() |> hd() |> String.to_integer()
        end
      )
    else
      _ -> nil
    end
  end

  # The most that was resident, where the system tells it.
  defp memory do
    with {:ok, text} <- File.read("/proc/self/status"),
         [_, kb] <- Regex.run(~r/^VmHWM:\s*(\d+) kB/m, text) do
      "#{Float.round(String.to_integer(kb) / 1024, 1)} MiB at most"
    else
      _ -> "#{Float.round(:erlang.memory(:total) / 1_048_576, 1)} MiB now"
    end
  end
end
