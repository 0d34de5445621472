# Renders chip music: VGM and VGZ logs for the YM2151, YM2610 and YM2610B to WAV or AU. README.md
# tells more.
#
#     purlin run examples/vgm/render.exs [--jobs N] [--format wav|au] [--out DIR] [--loops N] [--fade S] FILE|PLAYLIST ...
#
# `elixir` in the place of `purlin run` does the same on stock. The modules of `lib` are compiled
# when this is run for the first time, and kept in the user's cache by their content and the release
# of Erlang and Elixir; where that can't be written, they are compiled each time.
defmodule Render do
  @lib Path.join(__DIR__, "lib")

  def load do
    sources = Path.wildcard(Path.join(@lib, "**/*.ex")) |> Enum.sort()
    tables = Path.wildcard(Path.join(__DIR__, "tables/*.tsv")) |> Enum.sort()
    contents = for file <- sources ++ tables, do: File.read!(file)
    key = Base.encode16(:erlang.md5([System.version(), System.otp_release(), __DIR__ | contents]), case: :lower)
    ebin = Path.join(:filename.basedir(:user_cache, "purlin-examples"), "vgm-#{key}")

    unless File.dir?(ebin) do
      temporary = "#{ebin}.#{System.pid()}"

      with :ok <- File.mkdir_p(temporary),
           {:ok, _, _} <- Kernel.ParallelCompiler.compile_to_path(sources, temporary, return_diagnostics: true) do
        # Whoever is first gives it its name; the others' are the same.
        File.rename(temporary, ebin)
      end

      File.rm_rf(temporary)
    end

    if File.dir?(ebin), do: Code.prepend_path(ebin), else: {:ok, _, _} = Kernel.ParallelCompiler.require(sources, return_diagnostics: true)
  end
end

Render.load()
System.halt(Vgm.CLI.main(System.argv()))
