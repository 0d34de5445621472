# Numbers of the chips, as tuples. Those that a rule gives are computed here, the others come from
# `tables`.
#
# A wave is a period of the sine at one attenuation, a tuple of 1,024 signed values: an operator's
# output is then one look-up at its phase. There are 832 that are not all zero (6.7 MB); they are
# made once by `prepare/0` and kept as a persistent term, so that all jobs share them and no program
# carries them.
defmodule Vgm.Tables do
  import Bitwise

  @dir Path.expand("../../tables", __DIR__)
  for name <- ~w(eg_increment detune opm_step opn_pm ssg_level adpcm) do
    @external_resource Path.join(@dir, name <> ".tsv")
  end

  rows = fn name ->
    for line <- File.stream!(Path.join(@dir, name <> ".tsv")), not String.starts_with?(line, "#"), String.trim(line) != "" do
      line |> String.split() |> Enum.map(&String.to_integer/1)
    end
  end

  # Element `rate`: the eight increments of an envelope.
  @eg_increment rows.("eg_increment") |> Enum.map(fn [_ | row] -> List.to_tuple(row) end) |> List.to_tuple()
  @detune rows.("detune") |> Enum.map(fn [_ | row] -> List.to_tuple(row) end) |> List.to_tuple()
  @opm_step rows.("opm_step") |> List.flatten() |> List.to_tuple()
  # Element `sensitivity * 8 + size`: adjustments by the upper seven bits of a frequency number.
  @opn_pm rows.("opn_pm") |> Enum.map(fn [_, _ | row] -> List.to_tuple(row) end) |> List.to_tuple()
  @ssg_level rows.("ssg_level") |> Enum.map(fn [_, level] -> level end) |> List.to_tuple()
  @adpcm rows.("adpcm") |> Enum.map(&List.to_tuple/1)

  def eg_increment, do: @eg_increment
  def detune, do: @detune
  def opm_step, do: @opm_step
  def opn_pm, do: @opn_pm
  def ssg_level, do: @ssg_level
  # Steps of ADPCM-A by index, changes of the index and factors of ADPCM-B by magnitude.
  def adpcm, do: List.to_tuple(@adpcm)

  # From here on a wave is silent.
  @silent 832
  @key {__MODULE__, :made}

  # Makes what is too large for a program's literals. In processes of their own, whose garbage goes
  # with them.
  def prepare do
    if :persistent_term.get(@key, nil) == nil do
      apart(fn ->
        waves = for from <- 0..@silent//64, wave <- apart(fn -> waves(from, min(from + 63, @silent)) end), do: wave
        :persistent_term.put(@key, {List.to_tuple(waves), opm_bits(131_071 + 64, 1, <<1::25>>), ssg_bits(131_071 + 25, 1, <<>>)})
      end)
    end

    :ok
  end

  defp apart(fun) do
    {pid, ref} = spawn_monitor(fn -> exit({:made, fun.()}) end)

    receive do
      {:DOWN, ^ref, :process, ^pid, {:made, result}} -> result
      {:DOWN, ^ref, :process, ^pid, reason} -> exit(reason)
    end
  end

  # Element `attenuation`, 0 to 832; the last is silence.
  def all_waves, do: elem(:persistent_term.get(@key), 0)
  # The noise of the YM2151 and of the SSG as bits by step.
  def opm_noise, do: elem(:persistent_term.get(@key), 1)
  def ssg_noise, do: elem(:persistent_term.get(@key), 2)

  defp waves(from, till) do
    sine = for i <- 0..255, do: round(-:math.log2(:math.sin((2 * i + 1) * :math.pi() / 1024)) * 256)
    power = List.to_tuple(for i <- 0..255, do: 4 * (round((:math.pow(2, (255 - i) / 256) - 1) * 1024) + 1024))
    volume = List.to_tuple(for a <- 0..(Enum.max(sine) + 4 * @silent), do: elem(power, a &&& 255) >>> (a >>> 8))

    for e <- from..till do
      up = if e == @silent, do: List.duplicate(0, 256), else: volumes(sine, 4 * e, volume)
      down = negative(up)
      List.to_tuple(up ++ Enum.reverse(up, down ++ Enum.reverse(down)))
    end
  end

  defp volumes([s | sine], a, volume), do: [elem(volume, s + a) | volumes(sine, a, volume)]
  defp volumes([], _, _), do: []
  defp negative([x | rest]), do: [-x | negative(rest)]
  defp negative([]), do: []

  # The shift register of the YM2151 shifts left and begins as 1. Bits in the order in which they
  # enter, the first 25 being those of the beginning: the register after N steps is the 25 bits from
  # N on. The sequence repeats every 131,071 steps.
  defp opm_bits(0, _, bits), do: bits

  defp opm_bits(n, register, bits) do
    shifted = register <<< 1 &&& 0x1FFFFFF
    bit = bxor(bxor(shifted >>> 17, shifted >>> 14), 1) &&& 1
    opm_bits(n - 1, shifted ||| bit, <<bits::bitstring, bit::1>>)
  end

  # The SSG's register shifts right and begins as 1: its lowest bit after N steps, for one period
  # and those that follow it up to a whole byte.
  defp ssg_bits(0, _, bits), do: bits

  defp ssg_bits(n, register, bits) do
    top = bxor(register, register >>> 3) &&& 1
    ssg_bits(n - 1, register >>> 1 ||| top <<< 16, <<bits::bitstring, register &&& 1::1>>)
  end
end
