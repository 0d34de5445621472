# A log to samples: reads commands up to the end of a block, has the chips make the native frames
# that this allows, and brings these to 44.1 kHz. Whatever the length of a song, no more than a
# block of it is in memory.
#
# A write at time t is applied before native frame floor(t * clock / (divider * 44100)), or later if
# others are before it.
defmodule Vgm.Song do
  alias Vgm.{Log, Sound}

  # Samples of a block, and native frames that a chip makes at once.
  @block 512
  @frames 1024

  # `{:ok, samples}` after `sink` has been given each block with what it has answered to the last:
  # `{:ok, next}` goes on, `{:error, reason}` ends. Options: `loops`, `fade` (seconds). With
  # `stages` it is given `{name, bytes}` of each stage, too.
  def render(log, sink, acc, opts \\ []) do
    Vgm.Tables.prepare()
    stages = Keyword.get(opts, :stages)
    fade = if log.loop, do: round(Keyword.get(opts, :fade, 0) * Sound.rate()), else: 0
    plays = Log.plays(log, Keyword.get(opts, :loops, 2))

    chips =
      for %{id: {kind, _}} = chip <- log.chips do
        module = if kind == :opm, do: Vgm.Opm, else: Vgm.Opnb
        state = module.new(chip.variant)
        Map.merge(chip, %{module: module, state: state, writes: [], sound: Sound.resampler(module, chip.clock), ready: [], made: 0, den: module.divider() * Sound.rate()})
      end

    s = %{log: log, chips: chips, sink: sink, acc: acc, stages: stages, written: 0, rest: plays * 1.0, fade: fade, fades: nil, until: nil}
    # The fade needs one more pass, or as many as it lasts.
    reader = Log.start(log, if(fade > 0, do: 1_000_000_000, else: plays))
    s = if fade > 0, do: %{s | fades: fade_at(log, plays), until: fade_at(log, plays) + fade}, else: s
    if stages, do: Enum.each(chips, &stages.({&1.id, "begin", []}))
    go(s, reader, @block)
  end

  # When the wished plays are over, as the header has it.
  defp fade_at(log, plays), do: log.total + (plays - 1) * log.loop_samples

  defp go(%{until: until} = s, _, limit) when until != nil and limit - @block >= until, do: finish(s, until)

  defp go(s, reader, limit) do
    case Log.read(s.log, reader, limit) do
      {:more, writes, reader} ->
        with {:ok, s} <- s |> queue(writes) |> advance(limit), do: go(s, reader, limit + @block)

      {:rom, which, id, size, start, bytes, writes, {_, now, _, _} = reader} ->
        with {:ok, s} <- s |> queue(writes) |> advance(now) do
          chips = for c <- s.chips, do: if(c.id == id, do: %{c | state: c.module.rom(c.state, which, size, start, bytes)}, else: c)
          go(%{s | chips: chips}, reader, limit)
        end

      {:end, writes, now} ->
        # A long wait may have gone past the limit.
        s |> queue(writes) |> last(now, limit)

      {:error, reason} ->
        {:error, reason, s.acc}
    end
  end

  # Blocks up to the end, so that a long wait before it is made in blocks, too.
  defp last(s, now, limit) do
    if limit < now do
      with {:ok, s} <- advance(s, limit), do: last(s, now, limit + @block)
    else
      finish(s, now)
    end
  end

  defp queue(s, []), do: s

  defp queue(s, writes) do
    by = Enum.reduce(writes, %{}, fn {now, id, port, reg, value}, by -> Map.update(by, id, [{now, port, reg, value}], &[{now, port, reg, value} | &1]) end)

    chips =
      for c <- s.chips do
        case Map.get(by, c.id, []) do
          [] -> c
          new -> %{c | writes: c.writes ++ for({now, port, reg, value} <- new, do: {div(now * c.clock, c.den), port, reg, value})}
        end
      end

    %{s | chips: chips}
  end

  # All frames before time `now`.
  defp advance(s, now) do
    chips = for c <- s.chips, do: make(c, div(now * c.clock, c.den), s.stages)
    write(%{s | chips: chips})
  end

  defp finish(s, now) do
    chips =
      for c <- s.chips do
        c = make(c, div(now * c.clock, c.den) + 1, s.stages)
        missing = max(0, now - c.made)
        %{c | ready: c.ready ++ Sound.rest(c.sound, missing), made: c.made + missing}
      end

    with {:ok, s} <- write(%{s | chips: chips}), do: {:ok, s.written, s.acc}
  end

  defp make(c, until, stages) do
    case until - c.state.frames do
      n when n > 0 ->
        n = min(n, @frames)
        {frames, state, writes, parts} = c.module.block(c.state, n, c.writes, stages != nil)
        for {name, bytes} <- parts, do: stages.({c.id, name, bytes})
        {out, sound} = Sound.resample(c.sound, frames)
        make(%{c | state: state, writes: writes, sound: sound, ready: c.ready ++ out, made: c.made + length(out)}, until, stages)

      _ ->
        c
    end
  end

  defp write(s) do
    {frames, left} = Sound.mix(for(c <- s.chips, do: {c.ready, c.volume}), s.log.factor)
    chips = for {c, ready} <- Enum.zip(s.chips, left), do: %{c | ready: ready}
    # Nothing behind the end of a fade.
    frames = if s.until && s.written + length(frames) > s.until, do: Enum.take(frames, s.until - s.written), else: frames
    n = length(frames)
    frames = if s.fades && s.written + n > s.fades, do: Sound.fade(frames, s.written - s.fades, s.fade), else: frames

    case s.sink.(frames, s.acc) do
      {:ok, acc} -> {:ok, %{s | chips: chips, acc: acc, written: s.written + n}}
      {:error, reason} -> {:error, reason, s.acc}
    end
  end
end
