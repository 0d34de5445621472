# A song's wave and spectrum as a PNG, from its file: above, what lies between the least and the
# largest sample of each column; below, how strong each frequency is over time, 0 at the bottom and
# 22 kHz at the top, by a Fourier transform for each column.
defmodule Vgm.Picture do
  alias Vgm.SoundFile

  @width 960
  @wave 200
  @gap 8
  @points 1024
  @spectrum div(@points, 2)
  @chunk 262_144

  def write(sound, format, frames, picture) do
    with {:ok, file} <- :file.open(sound, [:raw, :binary, :read]) do
      try do
        with {:ok, waves} <- waves(file, format, frames),
             {:ok, spectra} <- spectra(file, format, frames) do
          temporary = Path.join(Path.dirname(picture), ".#{Path.basename(picture)}.#{System.pid()}.part")

          with :ok <- :file.write_file(temporary, png(waves, spectra), [:raw, :exclusive]),
               :ok <- SoundFile.free(picture),
               :ok <- :file.rename(temporary, picture) do
            :ok
          else
            error ->
              :file.delete(temporary)
              error
          end
        end
      after
        :file.close(file)
      end
    end
  end

  # {least, largest} of each column, both sides together.
  defp waves(file, format, frames), do: waves(file, format, frames, 0, [])
  defp waves(_, _, _, @width, acc), do: {:ok, Enum.reverse(acc)}

  defp waves(file, format, frames, column, acc) do
    from = div(column * frames, @width)
    till = max(from + 1, div((column + 1) * frames, @width))

    with {:ok, peak} <- peak(file, format, from, min(till, frames), {0, 0}), do: waves(file, format, frames, column + 1, [peak | acc])
  end

  defp peak(_, _, from, till, peak) when from >= till, do: {:ok, peak}

  defp peak(file, format, from, till, peak) do
    n = min(till - from, div(@chunk, 4))

    with {:ok, bytes} <- :file.pread(file, SoundFile.header(format) + 4 * from, 4 * n) do
      peak(file, format, from + n, till, Enum.reduce(samples(bytes, format), peak, fn x, {low, high} -> {min(low, x), max(high, x)} end))
    end
  end

  defp samples(bytes, :wav), do: for(<<x::16-signed-little <- bytes>>, do: x)
  defp samples(bytes, :au), do: for(<<x::16-signed-big <- bytes>>, do: x)

  # Decibels below full scale of each frequency, for each column.
  defp spectra(file, format, frames) do
    window = for i <- 0..(@points - 1), do: 0.5 - 0.5 * :math.cos(2 * :math.pi() * i / @points)
    turns = turns(@points)

    # Two columns at once, as the real and the imaginary part.
    Enum.reduce_while(0..(@width - 1)//2, {:ok, []}, fn column, {:ok, acc} ->
      with {:ok, one} <- column(file, format, frames, column, window),
           {:ok, other} <- column(file, format, frames, column + 1, window) do
        {one, other} = levels(fourier(Enum.zip(one, other), @points, turns))
        {:cont, {:ok, [other, one | acc]}}
      else
        error -> {:halt, error}
      end
    end)
    |> case do
      {:ok, columns} -> {:ok, Enum.reverse(columns)}
      error -> error
    end
  end

  # The samples around the middle of a column, both sides together, through the window.
  defp column(file, format, frames, column, window) do
    at = max(0, min(frames - @points, div((2 * column + 1) * frames, 2 * @width) - div(@points, 2)))

    case :file.pread(file, SoundFile.header(format) + 4 * at, 4 * @points) do
      {:ok, bytes} -> {:ok, weighed(samples(bytes, format), window)}
      :eof -> {:ok, weighed([], window)}
      error -> error
    end
  end

  defp weighed([left, right | rest], [w | window]), do: [(left + right) / 65536 * w | weighed(rest, window)]
  defp weighed(_, window), do: Enum.map(window, fn _ -> 0.0 end)

  # The two spectra, in decibels.
  defp levels([first | rest]) do
    mirrored = [first | Enum.reverse(rest)]
    levels([first | rest], mirrored, @spectrum, [], [])
  end

  defp levels(_, _, 0, one, other), do: {Enum.reverse(one), Enum.reverse(other)}

  defp levels([{a, b} | forth], [{c, d} | back], n, one, other) do
    levels(forth, back, n - 1, [level((a + c) / 2, (b - d) / 2) | one], [level((b + d) / 2, (c - a) / 2) | other])
  end

  defp level(re, im), do: 10 * :math.log10((re * re + im * im) / (@points * @points / 16) + 1.0e-10)

  # e^(-2 pi i k / n) for each half of a transform.
  defp turns(1), do: %{}
  defp turns(n), do: Map.put(turns(div(n, 2)), n, for(k <- 0..(div(n, 2) - 1), do: {:math.cos(-2 * :math.pi() * k / n), :math.sin(-2 * :math.pi() * k / n)}))

  defp fourier([x], 1, _), do: [x]

  defp fourier(list, n, turns) do
    {even, odd} = halves(list)
    half = div(n, 2)
    {low, high} = butterflies(fourier(even, half, turns), fourier(odd, half, turns), Map.fetch!(turns, n), [], [])
    low ++ high
  end

  defp halves([a, b | rest]) do
    {even, odd} = halves(rest)
    {[a | even], [b | odd]}
  end

  defp halves([]), do: {[], []}

  defp butterflies([{a, b} | even], [{c, d} | odd], [{x, y} | turns], low, high) do
    re = c * x - d * y
    im = c * y + d * x
    butterflies(even, odd, turns, [{a + re, b + im} | low], [{a - re, b - im} | high])
  end

  defp butterflies([], [], [], low, high), do: {Enum.reverse(low), Enum.reverse(high)}

  # Colours by level: black, blue, red, yellow, white.
  @colours for level <- 0..255, into: <<>>, do: (
             x = level / 255
             channel = fn from, till -> round(255 * max(0.0, min(1.0, (x - from) / (till - from)))) end
             blue = if x < 0.5, do: channel.(0.0, 0.35), else: 255 - channel.(0.5, 0.7) + channel.(0.85, 1.0)
             <<channel.(0.25, 0.6), channel.(0.55, 0.85), max(0, min(255, blue))>>
           )

  defp png(waves, spectra) do
    waves = for {low, high} <- waves, do: {row(high), row(low)}

    above =
      for y <- 0..(@wave - 1) do
        [0 | for({top, bottom} <- waves, do: if(y >= top and y <= bottom, do: <<64, 160, 255>>, else: if(y == div(@wave, 2), do: <<48, 48, 56>>, else: <<16, 16, 24>>)))]
      end

    between = List.duplicate([0, :binary.copy(<<255, 255, 255>>, @width)], @gap)

    below =
      spectra
      |> Enum.zip_with(fn levels -> [0 | for(level <- levels, do: binary_part(@colours, 3 * shade(level), 3))] end)
      |> Enum.reverse()

    height = @wave + @gap + @spectrum
    data = :zlib.compress([above, between, below])

    [<<137, "PNG\r\n", 26, "\n">>, chunk("IHDR", <<@width::32, height::32, 8, 2, 0, 0, 0>>), chunk("IDAT", data), chunk("IEND", <<>>)]
  end

  # Full scale is at the edges.
  defp row(sample), do: min(@wave - 1, div((32767 - sample) * @wave, 65536))
  # 90 dB.
  defp shade(level), do: max(0, min(255, round(255 * (level + 90) / 90)))
  defp chunk(name, data), do: [<<byte_size(data)::32>>, name, data, <<:erlang.crc32([name, data])::32>>]
end
