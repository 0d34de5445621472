# VGM logs: what a header says, and the commands, read as far as is wanted. Everything is little
# endian.
defmodule Vgm.Log do
  import Bitwise

  # More than this unpacked is not taken from a compressed file.
  @most 64 * 1024 * 1024

  # `chips`: `[%{id: {kind, index}, clock, variant, volume}]`; `data`, `loop`: where commands begin
  # and where the loop does (nil: none); `total`, `loop_samples`: as the header says.
  defstruct bytes: <<>>, version: 0, chips: [], data: 0, loop: nil, total: 0, loop_samples: 0, factor: nil, base: 0, modifier: 0, tags: %{}

  def read(file) do
    with {:ok, bytes} <- File.read(file) |> error(),
         {:ok, bytes} <- unpacked(bytes) do
      parse(bytes)
    end
  end

  defp error({:error, reason}), do: {:error, List.to_string(:file.format_error(reason))}
  defp error(ok), do: ok

  # A compressed log may have either name.
  defp unpacked(<<0x1F, 0x8B, _::binary>> = bytes) do
    z = :zlib.open()

    try do
      :zlib.inflateInit(z, 31)
      inflate(z, :zlib.safeInflate(z, bytes), [], 0)
    rescue
      ErlangError -> {:error, "damaged: its compressed data can't be unpacked"}
    after
      :zlib.close(z)
    end
  end

  defp unpacked(bytes), do: {:ok, bytes}

  defp inflate(z, {:continue, more}, all, size) do
    size = size + IO.iodata_length(more)

    if size > @most do
      {:error, "unpacks to more than #{div(@most, 1024 * 1024)} MiB"}
    else
      inflate(z, :zlib.safeInflate(z, []), [all | more], size)
    end
  end

  defp inflate(z, {:finished, more}, all, _) do
    # Raises where the data end too early, or a sum is wrong.
    :zlib.inflateEnd(z)
    {:ok, IO.iodata_to_binary([all | more])}
  end

  def parse(<<"Vgm ", eof::32-little, version::32-little, _::binary>> = bytes) when byte_size(bytes) >= 64 do
    start = if version >= 0x150, do: relative(bytes, 0x34, byte_size(bytes)), else: nil
    start = start || 0x40
    # The end that the header gives is of use only if it lies within the file, behind the beginning.
    bytes = if eof + 4 > start and eof + 4 < byte_size(bytes), do: binary_part(bytes, 0, eof + 4), else: bytes

    cond do
      start > byte_size(bytes) -> {:error, "damaged: its data begin behind its end"}
      start < 0x38 -> {:error, "damaged: its data begin within its header"}
      true -> header(bytes, version, start)
    end
  end

  def parse(<<"Vgm ", _::binary>>), do: {:error, "truncated: its header is not whole"}
  def parse(<<>>), do: {:error, "empty"}
  def parse(_), do: {:error, "not a VGM log"}

  defp header(bytes, version, start) do
    word = fn at -> word(bytes, at, start) end
    byte = fn at -> if at < start, do: :binary.at(bytes, at), else: 0 end
    opm = if version < 0x110, do: word.(0x10), else: word.(0x30)
    opnb = if version < 0x151, do: 0, else: word.(0x4C)
    {clocks, volumes} = if version >= 0x170, do: extra(bytes, start), else: {%{}, []}
    chips = chips(:opm, 3, opm, clocks, volumes) ++ chips(:opnb, 8, opnb, clocks, volumes)
    loop = relative(bytes, 0x1C, byte_size(bytes))
    signed = fn b -> if b > 127, do: b - 256, else: b end

    cond do
      chips == [] ->
        {:error, "no chip in it that is rendered here (YM2151, YM2610)"}

      loop != nil and (loop < start or loop >= byte_size(bytes)) ->
        {:error, "damaged: its loop begins outside of its data"}

      Enum.any?(chips, &(&1.clock < 1000 or &1.clock > 100_000_000)) ->
        {:error, "damaged: a chip's clock is #{hd(Enum.filter(chips, &(&1.clock < 1000 or &1.clock > 100_000_000))).clock} Hz"}

      true ->
        {:ok,
         %__MODULE__{
           bytes: bytes,
           version: version,
           chips: chips,
           data: start,
           loop: loop,
           total: word(bytes, 0x18, start),
           loop_samples: word(bytes, 0x20, start),
           factor: factor(byte.(0x7C)),
           base: signed.(byte.(0x7E)),
           modifier: byte.(0x7F),
           tags: tags(bytes)
         }}
    end
  end

  # Bytes of the header behind the beginning of the data count as zero.
  defp word(bytes, at, start) when at + 4 <= start and at + 4 <= byte_size(bytes), do: raw(bytes, at)
  defp word(_, _, _), do: 0

  defp raw(bytes, at), do: bytes |> binary_part(at, 4) |> :binary.decode_unsigned(:little)
  defp from(bytes, at), do: binary_part(bytes, at, byte_size(bytes) - at)

  # An offset counts from its own place; 0 is none.
  defp relative(bytes, at, limit) do
    if at + 4 <= limit do
      case raw(bytes, at) do
        0 -> nil
        offset -> at + offset
      end
    end
  end

  defp chips(_, _, 0, _, _), do: []

  defp chips(kind, id, word, clocks, volumes) do
    clock = word &&& 0x3FFFFFFF
    variant = if word >= 0x80000000, do: :b
    both = if (word &&& 0x40000000) > 0, do: [0, 1], else: [0]

    for index <- both, clock > 0 do
      clock = if index == 1, do: Map.get(clocks, id, clock), else: clock

      volume =
        Enum.find_value(volumes, fn
          # A relative volume is a factor; what it is relative to is 256 here.
          {^id, ^index, volume} -> volume &&& 0x7FFF
          _ -> nil
        end)

      %{id: {kind, index}, clock: clock &&& 0x3FFFFFFF, variant: variant, volume: volume}
    end
  end

  # Clocks of second chips by chip, and volumes.
  defp extra(bytes, start) do
    with true <- start >= 0xC0,
         at when at != nil <- relative(bytes, 0xBC, start),
         true <- at + 4 <= byte_size(bytes) do
      size = raw(bytes, at)
      clocks = if size >= 8, do: relative(bytes, at + 4, byte_size(bytes))
      volumes = if size >= 12, do: relative(bytes, at + 8, byte_size(bytes))
      {Map.new(list(bytes, clocks, 5, fn <<id, clock::32-little>> -> {id, clock} end)),
       list(bytes, volumes, 4, fn <<id, flags, volume::16-little>> -> {id, flags &&& 1, volume} end)}
    else
      _ -> {%{}, []}
    end
  end

  defp list(_, nil, _, _), do: []

  defp list(bytes, at, size, fun) when at < byte_size(bytes) do
    count = min(:binary.at(bytes, at), div(byte_size(bytes) - at - 1, size))
    for i <- 0..(count - 1)//1, do: fun.(binary_part(bytes, at + 1 + i * size, size))
  end

  defp list(_, _, _, _), do: []

  defp factor(0), do: nil
  defp factor(m) when m <= 0xC0, do: round(65536 * :math.pow(2, m / 32))
  defp factor(0xC1), do: round(65536 * :math.pow(2, -64 / 32))
  defp factor(m), do: round(65536 * :math.pow(2, (m - 256) / 32))

  @names ~w(title title_jp game game_jp system system_jp author author_jp date converter notes)a
  defp tags(bytes) do
    with at when at != nil <- relative(bytes, 0x14, byte_size(bytes)),
         true <- at + 12 <= byte_size(bytes),
         <<"Gd3 ", _::32, size::32-little, rest::binary>> <- from(bytes, at) do
      Map.new(Enum.zip(@names, strings(binary_part(rest, 0, min(size, byte_size(rest))), <<>>)))
    else
      _ -> %{}
    end
  end

  defp strings(<<0, 0, rest::binary>>, acc), do: [text(acc) | strings(rest, <<>>)]
  defp strings(<<a, b, rest::binary>>, acc), do: strings(rest, <<acc::binary, a, b>>)
  defp strings(_, _), do: []

  defp text(bytes) do
    case :unicode.characters_to_binary(bytes, {:utf16, :little}) do
      text when is_binary(text) -> text
      _ -> ""
    end
  end

  # How often the body of the loop is played for a wish of so many times.
  def plays(%{loop: nil}, _), do: 1

  def plays(log, wish) do
    modifier = if log.modifier == 0, do: 16, else: log.modifier
    max(1, div(wish * modifier + 8, 16) - log.base)
  end

  # Where a reader stands: the place, the time, and how often it still goes back.
  def start(log, plays), do: {log.data, 0, plays - 1, nil}

  # Reads until time `limit` and gives `{:more, writes, reader}`, at a part of a ROM `{:rom, which,
  # chip, size, start, bytes, writes, reader}`, or at the end `{:end, writes, time}`. Writes are
  # `[{time, chip, port, register, value}]`, the last one first.
  def read(log, {at, now, plays, began}, limit), do: command(log.bytes, at, now, plays, began, log, limit, [])

  defp command(_, at, now, plays, began, _, limit, writes) when now >= limit, do: {:more, writes, {at, now, plays, began}}

  defp command(bytes, at, now, plays, began, log, limit, writes) do
    cond do
      at < byte_size(bytes) -> command(:binary.at(bytes, at), from(bytes, at + 1), at, now, plays, began, log, limit, writes)
      began == nil and now < log.total -> {:error, "truncated: it ends after #{now} of #{log.total} samples"}
      true -> ended(at, now, plays, began, log, limit, writes)
    end
  end

  # A loop that takes no time would never end, so it is played once.
  defp ended(_, now, plays, began, %{loop: loop} = log, limit, writes) when loop != nil and plays > 0 and now != began do
    command(log.bytes, loop, now, plays - 1, now, log, limit, writes)
  end

  defp ended(_, now, _, _, _, _, writes), do: {:end, writes, now}

  defp command(op, rest, at, now, plays, began, log, limit, writes) do
    size = size(op, log.version)

    case rest do
      _ when op == 0x66 ->
        ended(at, now, plays, began, log, limit, writes)

      <<0x66, type, word::32-little, more::binary>> when op == 0x67 ->
        block(type, word, more, at, now, plays, began, log, limit, writes)

      _ when op == 0x67 ->
        if byte_size(rest) < 6, do: cut(at), else: {:error, "damaged: no data block at #{at}"}

      _ when size == nil ->
        {:error, "damaged: no command 0x#{Integer.to_string(op, 16)} (at #{at})"}

      _ when byte_size(rest) < size - 1 ->
        cut(at)

      <<n::16-little, _::binary>> when op == 0x61 ->
        command(log.bytes, at + 3, now + n, plays, began, log, limit, writes)

      _ when op in 0x70..0x7F ->
        command(log.bytes, at + 1, now + op - 0x6F, plays, began, log, limit, writes)

      _ when op in 0x80..0x8F ->
        command(log.bytes, at + 1, now + op - 0x80, plays, began, log, limit, writes)

      _ when op == 0x62 ->
        command(log.bytes, at + 1, now + 735, plays, began, log, limit, writes)

      _ when op == 0x63 ->
        command(log.bytes, at + 1, now + 882, plays, began, log, limit, writes)

      <<reg, value, _::binary>> when op in [0x54, 0x58, 0x59, 0xA4, 0xA8, 0xA9] ->
        index = op >>> 7
        {chip, port} = if (op &&& 0x0F) == 4, do: {:opm, 0}, else: {:opnb, op &&& 1}
        command(log.bytes, at + 3, now, plays, began, log, limit, [{now, {chip, index}, port, reg, value} | writes])

      _ ->
        command(log.bytes, at + size, now, plays, began, log, limit, writes)
    end
  end

  defp cut(at), do: {:error, "truncated: it ends within a command (at #{at})"}

  defp block(type, word, more, at, now, plays, began, log, limit, writes) do
    size = word &&& 0x7FFFFFFF

    case more do
      <<whole::32-little, start::32-little, _::binary>> when type in [0x82, 0x83] and size >= 8 and byte_size(more) >= size ->
        bytes = binary_part(more, 8, size - 8)
        which = if type == 0x82, do: :a, else: :b
        {:rom, which, {:opnb, word >>> 31}, whole, start, bytes, writes, {at + 7 + size, now, plays, began}}

      _ when byte_size(more) < size ->
        {:error, "truncated: it ends within a data block (at #{at})"}

      _ when type in [0x82, 0x83] ->
        {:error, "damaged: a data block of #{size} bytes (at #{at})"}

      _ ->
        command(log.bytes, at + 7 + size, now, plays, began, log, limit, writes)
    end
  end

  # Bytes of a command, with itself. Commands that are reserved have a length too.
  defp size(op, version) do
    cond do
      op in 0x30..0x3F -> 2
      op in 0x40..0x4E -> if version >= 0x160, do: 3, else: 2
      op in [0x4F, 0x50] -> 2
      op in 0x51..0x5F -> 3
      op == 0x61 -> 3
      op in [0x62, 0x63, 0x66] -> 1
      op == 0x67 -> 7
      op == 0x68 -> 12
      op in 0x70..0x8F -> 1
      op in [0x90, 0x91, 0x95] -> 5
      op == 0x92 -> 6
      op == 0x93 -> 11
      op == 0x94 -> 2
      op in 0xA0..0xBF -> 3
      op in 0xC0..0xDF -> 4
      op in 0xE0..0xFF -> 5
      true -> nil
    end
  end
end
