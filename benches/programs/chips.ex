defmodule :chips do
  # Computation in loops of many small integers: a block of sound of each chip of examples/vgm,
  # again and again.
  import Bitwise

  def names, do: [:ym2151, :ym2610]

  # CRC-32 of all blocks; stock gives the same.
  def expected(:ym2151), do: 593_425_975
  def expected(:ym2610), do: 633_026_852

  # All eight channels sound, each with another algorithm.
  def ym2151 do
    Vgm.Tables.prepare()

    writes =
      for channel <- 0..7,
          {reg, value} <-
            [{0x20, 0xC0 + 8 * channel + channel}, {0x28, 0x3A + 4 * channel}] ++
              for(op <- 0..3, {base, value} <- [{0x40, op + 1}, {0x60, 12 + 8 * op}, {0x80, 0x1F}, {0xA0, 5}, {0xC0, 2}, {0xE0, 0x23}], do: {base + 8 * op, value}) do
        {0, 0, reg + channel, value}
      end

    keys = for channel <- 0..7, do: {0, 0, 0x08, 0x78 + channel}
    blocks(Vgm.Opm, Vgm.Opm.new(nil), writes ++ keys, 4_000_000, 60)
  end

  # Four FM channels, three tones with noise, six channels of ADPCM-A and one of ADPCM-B.
  def ym2610 do
    Vgm.Tables.prepare()
    rom = for i <- 0..65_535, into: <<>>, do: <<i * 37 + (i >>> 3)>>
    chip = Vgm.Opnb.new(nil) |> Vgm.Opnb.rom(:a, 65_536, 0, rom) |> Vgm.Opnb.rom(:b, 65_536, 0, rom)

    fm =
      for {channel, i} <- Enum.with_index([1, 2, 5, 6]),
          port = div(channel, 4),
          low = rem(channel, 4),
          {reg, value} <-
            [{0xB0, 9 * i + 2}, {0xB4, 0xC0}, {0xA4, 0x1A + i}, {0xA0, 0x69}] ++
              for(op <- 0..3, {base, value} <- [{0x30, op + 1}, {0x40, 10 + 8 * op}, {0x50, 0x1F}, {0x60, 5}, {0x70, 2}, {0x80, 0x23}], do: {base + 4 * op, value}) do
        {0, port, reg + low, value}
      end

    keys = for channel <- [1, 2, 5, 6], do: {0, 0, 0x28, 0xF0 + channel}
    ssg = for {reg, value} <- [{0, 200}, {2, 150}, {3, 1}, {4, 90}, {6, 12}, {7, 0x1C}, {8, 13}, {9, 12}, {10, 11}], do: {0, 0, reg, value}
    a = for c <- 0..5, {reg, value} <- [{0x08, 0xDF}, {0x10, c}, {0x20, 200}], do: {0, 1, reg + c, value}
    b = for {reg, value} <- [{0x11, 0xC0}, {0x14, 250}, {0x19, 0x55}, {0x1A, 0x55}, {0x1B, 200}, {0x10, 0x90}], do: {0, 0, reg, value}
    blocks(Vgm.Opnb, chip, fm ++ keys ++ ssg ++ a ++ [{0, 1, 0x01, 63}, {0, 1, 0x00, 0x3F}] ++ b, 8_000_000, 60)
  end

  defp blocks(module, chip, writes, clock, n) do
    {_, _, _, crc} =
      Enum.reduce(1..n, {chip, writes, Vgm.Sound.resampler(module, clock), 0}, fn _, {chip, writes, sound, crc} ->
        {frames, chip, writes, _} = module.block(chip, 1024, writes)
        {samples, sound} = Vgm.Sound.resample(sound, frames)
        {chip, writes, sound, :erlang.crc32(crc, Vgm.Sound.bytes(samples, :little))}
      end)

    crc
  end
end
