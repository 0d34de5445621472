# Samples in a chip's ROM, as the parts that a log has given.
defmodule Vgm.Rom do
  # Addresses have 24 bits.
  @most 0x1000000
  @parts 32
  defstruct size: 0, parts: []

  # A part of a ROM of `size` bytes. Later ones cover earlier ones. They are kept as they are,
  # unless there are many.
  def add(rom, size, start, bytes) do
    part = {start, min(start + byte_size(bytes), @most), bytes}
    rom = %{rom | size: min(size, @most), parts: [part | rom.parts]}
    if length(rom.parts) > @parts, do: %{rom | parts: [joined(rom.parts)]}, else: rom
  end

  defp joined(parts) do
    till = parts |> Enum.map(&elem(&1, 1)) |> Enum.max()

    bytes =
      Enum.reduce(Enum.reverse(parts), <<>>, fn {start, till, bytes}, all ->
        all = if byte_size(all) < start, do: <<all::binary, 0::size((start - byte_size(all)) * 8)>>, else: all
        rest = if byte_size(all) > till, do: binary_part(all, till, byte_size(all) - till), else: <<>>
        binary_part(all, 0, start) <> binary_part(bytes, 0, max(0, till - start)) <> rest
      end)

    {0, till, bytes}
  end

  # What is not there is 0.
  def at(%{size: size}, address) when address >= size, do: 0
  def at(%{parts: parts}, address), do: find(parts, address)

  defp find([{start, till, bytes} | _], address) when address >= start and address < till, do: :binary.at(bytes, address - start)
  defp find([_ | parts], address), do: find(parts, address)
  defp find([], _), do: 0
end

# A channel of ADPCM-A (YM2610): a nibble every third frame, decoded to 12 bits that wrap.
defmodule Vgm.AdpcmA do
  import Bitwise
  alias Vgm.{Rom, Tables}

  # `low`: the second nibble of the byte, if that is next.
  defstruct on: false, address: 0, low: nil, value: 0, index: 0, start: 0, till: 0, level: 0, total: 63, pan: 0, rom: %Rom{}

  def new, do: %__MODULE__{pan: Vgm.Fm.pan(1, 1)}

  def event(a, {:key, true}), do: %{a | on: true, address: a.start <<< 8, low: nil, value: 0, index: 0}
  def event(a, {:key, false}), do: %{a | on: false}
  def event(a, {:set, values}), do: struct(a, values)
  def event(a, {:low, field, value}), do: Map.update!(a, field, &((&1 &&& 0xFF00) ||| value))
  def event(a, {:high, field, value}), do: Map.update!(a, field, &((&1 &&& 0xFF) ||| value <<< 8))

  def run(%{on: false, value: 0} = a, _, input, [], _), do: {input, a}
  def run(a, n, input, events, f), do: spread(a, 0, n, input, [], events, f)

  defp spread(a, n, n, _, acc, _, _), do: {:lists.reverse(acc), a}
  defp spread(a, at, n, input, acc, [{at, event} | events], f), do: spread(event(a, event), at, n, input, acc, events, f)

  defp spread(a, at, n, input, acc, events, f) do
    until =
      case events do
        [{next, _} | _] when next < n -> next
        _ -> n
      end

    {a, input, acc} = frames(until - at, 2 - rem(f + at, 3), a, input, acc)
    spread(a, until, n, input, acc, events, f)
  end

  # `g` frames may be made before the next nibble.
  defp frames(n, g, a, input, acc) when n <= g do
    {input, acc} = hold(n, sound(a), input, acc)
    {a, input, acc}
  end

  defp frames(n, g, a, input, acc) do
    {input, acc} = hold(g, sound(a), input, acc)

    if a.on do
      nibbles(n - g, a, input, acc, a.address, a.low, a.value, a.index, volume(a), a.till + 1 <<< 8)
    else
      {input, acc} = hold(n - g, 0, input, acc)
      {%{a | value: 0}, input, acc}
    end
  end

  # Three frames for each nibble.
  defp nibbles(0, a, input, acc, address, low, value, index, _, _), do: {%{a | address: address, low: low, value: value, index: index}, input, acc}

  defp nibbles(n, a, input, acc, address, nil, value, index, volume, till) do
    if (bxor(address, till) &&& 0xFFFFF) == 0 do
      {input, acc} = hold(n, 0, input, acc)
      {%{a | on: false, address: address, low: nil, value: 0, index: index}, input, acc}
    else
      byte = Rom.at(a.rom, address)
      nibble(n, a, input, acc, address + 1, byte &&& 15, value, index, volume, till, byte >>> 4)
    end
  end

  defp nibbles(n, a, input, acc, address, low, value, index, volume, till), do: nibble(n, a, input, acc, address, nil, value, index, volume, till, low)

  defp nibble(n, a, input, acc, address, low, value, index, volume, till, nibble) do
    {steps, moves, _} = Tables.adpcm()
    size = nibble &&& 7
    by = (2 * size + 1) * elem(steps, index) >>> 3
    value = if nibble > 7, do: value - by &&& 0xFFF, else: value + by &&& 0xFFF
    index = max(0, min(48, index + elem(moves, size)))
    s = scale(value, volume)

    case input do
      [x, y, z | rest] when n >= 3 ->
        nibbles(n - 3, a, rest, [z + s, y + s, x + s | acc], address, low, value, index, volume, till)

      _ ->
        {input, acc} = hold(n, s, input, acc)
        {%{a | address: address, low: low, value: value, index: index}, input, acc}
    end
  end

  defp hold(0, _, input, acc), do: {input, acc}
  defp hold(n, s, [x | input], acc), do: hold(n - 1, s, input, [x + s | acc])

  defp sound(a), do: scale(a.value, volume(a))

  # {multiplier, shift, pan} or silence.
  defp volume(%{level: level, total: total, pan: pan}) do
    v = level + total
    if v >= 63, do: nil, else: {15 - (v &&& 7), 5 + (v >>> 3), pan}
  end

  defp scale(_, nil), do: 0

  defp scale(value, {by, shift, pan}) do
    value = if value >= 0x800, do: value - 0x1000, else: value
    ((value <<< 4) * by >>> shift &&& -4) * pan
  end
end

# The one channel of ADPCM-B (YM2610): 16 bits, any rate, interpolated.
defmodule Vgm.AdpcmB do
  import Bitwise
  alias Vgm.{Rom, Tables}

  defstruct on: false, run: false, repeat: false, address: 0, low: nil, value: 0, before: 0, step: 127, position: 0, start: 0, till: 0, delta: 0, level: 0, pan: 0, rom: %Rom{}

  def event(b, {:control, value}) do
    b = %{b | run: value >= 0x80, repeat: (value &&& 0x10) > 0}
    b = if b.run, do: %{begin(b) | on: true}, else: b
    if (value &&& 1) > 0, do: %{b | on: false, low: nil, value: 0, before: 0, position: 0, step: 127, address: 0}, else: b
  end

  def event(b, {:set, values}), do: struct(b, values)
  def event(b, {:low, field, value}), do: Map.update!(b, field, &((&1 &&& 0xFF00) ||| value))
  def event(b, {:high, field, value}), do: Map.update!(b, field, &((&1 &&& 0xFF) ||| value <<< 8))

  defp begin(b), do: %{b | address: b.start <<< 8, low: nil, value: 0, before: 0, position: 0, step: 127}

  def run(%{on: false, value: 0, before: 0} = b, _, input, []), do: {input, b}
  def run(b, n, input, events), do: spread(b, 0, n, input, [], events)

  defp spread(b, n, n, _, acc, _), do: {:lists.reverse(acc), b}
  defp spread(b, at, n, input, acc, [{at, event} | events]), do: spread(event(b, event), at, n, input, acc, events)

  defp spread(b, at, n, input, acc, events) do
    until =
      case events do
        [{next, _} | _] when next < n -> next
        _ -> n
      end

    # Once stopped it does not go on by itself.
    b = if b.run, do: b, else: %{b | on: false}
    {b, input, acc} = if b.on, do: frames(until - at, input, acc, b.position, b.before, b.value, b.delta, b.level, b.pan, b), else: hold(until - at, input, acc, b)
    spread(b, until, n, input, acc, events)
  end

  defp hold(n, input, acc, b) do
    s = sound(b.position, b.before, b.value, b.level) * b.pan
    {input, acc} = hold_at(n, s, input, acc)
    {b, input, acc}
  end

  defp hold_at(0, _, input, acc), do: {input, acc}
  defp hold_at(n, s, [x | input], acc), do: hold_at(n - 1, s, input, [x + s | acc])

  defp sound(position, before, value, level), do: ((before * (65536 - position) + value * position) >>> 16) * level >>> 9

  defp frames(0, input, acc, position, before, value, _, _, _, b), do: {%{b | position: position, before: before, value: value}, input, acc}

  defp frames(n, [x | rest] = input, acc, position, before, value, delta, level, pan, b) do
    position = position + delta

    if position < 65536 do
      s = ((before * (65536 - position) + value * position) >>> 16) * level >>> 9
      frames(n - 1, rest, [x + s * pan | acc], position, before, value, delta, level, pan, b)
    else
      b = nibble(%{b | position: position - 65536, before: before, value: value})

      if b.on do
        s = sound(b.position, b.before, b.value, level)
        frames(n - 1, rest, [x + s * pan | acc], b.position, b.before, b.value, delta, level, pan, b)
      else
        hold(n, input, acc, b)
      end
    end
  end

  # At the end without repeating the last nibble is not played; repeating, it is, on a state that
  # has begun anew.
  defp nibble(%{low: nil} = b) do
    byte = Rom.at(b.rom, b.address)
    decode(%{b | low: byte &&& 15}, byte >>> 4)
  end

  defp nibble(%{low: low} = b) do
    b = %{b | low: nil}

    cond do
      b.address != (b.till + 1 <<< 8) - 1 -> decode(%{b | address: b.address + 1 &&& 0xFFFFFF}, low)
      b.repeat -> decode(begin(b), low)
      true -> %{b | value: 0, before: 0, on: false}
    end
  end

  defp decode(b, nibble) do
    {_, _, factors} = Tables.adpcm()
    size = nibble &&& 7
    by = (2 * size + 1) * b.step >>> 3
    value = if nibble > 7, do: max(-32768, b.value - by), else: min(32767, b.value + by)
    %{b | before: b.value, value: value, step: max(127, min(24576, b.step * elem(factors, size) >>> 6))}
  end
end
