# The YM2151 (OPM): eight channels, an LFO of four waves, noise, timer A. Its native frames are
# clock / 64.
#
# A block of frames is made in two steps. First the writes that are due are told apart, one a frame,
# as events of the channels; LFO, noise and timer are run alongside, as spans and as more events.
# Then each channel runs through the block.
defmodule Vgm.Opm do
  import Bitwise
  alias Vgm.{Fm, Tables}

  defstruct frames: 0,
            voices: nil,
            freqs: nil,
            lfo: %{count: 0, rate: 0, wave: 0, am: 0, pm: 0, hold: false, value: 0, first: 0},
            noise: %{count: 0, rate: 31, sign: 0, on: false},
            timer: %{period: 0, left: nil, csm: false},
            csm: []

  def divider, do: 64
  # Events are a channel's, so a value of all channels is none of theirs.
  def new(_variant \\ nil) do
    %__MODULE__{voices: List.duplicate(Fm.new(__MODULE__, Fm.pan(1, 1)), 8) |> List.to_tuple(), freqs: Tuple.duplicate({0, 0}, 8)}
  end

  def rom(chip, _, _, _, _), do: chip

  # A block of `n` frames from `writes`, `[{frame, port, register, value}]` in order: the sums of
  # the channels (left + right * 2^24 + 2^23), the chip, what writes are left, and the stages if
  # these are wanted.
  def block(chip, n, writes, stages \\ false) do
    {due, writes} = Vgm.Queue.take(writes, chip.frames, n)
    lfo = lfo?(chip, due)
    noise = chip.noise.on or Enum.any?(due, fn {_, _, reg, value} -> reg == 0x0F and value >= 0x80 end)
    {chip, events, spans, signs} = script(due, 0, n, %{chip | csm: []}, Vgm.Events.carried(chip.csm, chip.frames, 0..7), [], [], lfo, noise)
    spans = if lfo, do: spans, else: [{n, 0, 0}]

    {sum, voices} =
      Enum.reduce(0..7, {Vgm.Queue.silence(n), []}, fn i, {sum, voices} ->
        signs = if i == 7, do: signs, else: []
        {sum, v} = Fm.run(elem(chip.voices, i), n, sum, Vgm.Events.of(events, i, n), spans, signs, chip.frames)
        {sum, [v | voices]}
      end)

    csm = Vgm.Events.carry(events, n, chip.frames)
    next = %{chip | voices: voices |> Enum.reverse() |> List.to_tuple(), frames: chip.frames + n, csm: csm}
    stages = if stages, do: [{"trace", Vgm.Queue.trace(due, chip.frames)}, {"raw.s32", Vgm.Sound.s32(sum)}, {"s16", Vgm.Sound.dac(sum)}], else: []
    {sum, next, writes, stages}
  end

  defp lfo?(chip, due) do
    sensitive = fn v -> v.ams > 0 or v.pms > 0 end
    Enum.any?(0..7, fn i -> sensitive.(elem(chip.voices, i)) end) or Enum.any?(due, fn {_, _, reg, _} -> reg in 0x38..0x3F end)
  end

  # The writes of a block in turn, with LFO, noise and timer up to each that is theirs.
  defp script([], at, n, chip, events, spans, signs, lfo, noise) do
    {chip, events, spans, signs} = pass(chip, at, n - at, events, spans, signs, lfo, noise)
    {chip, events, Enum.reverse(spans), Enum.reverse(signs)}
  end

  defp script([{at, _, reg, value} | due], was, n, chip, events, spans, signs, lfo, noise) when reg < 0x20 and reg != 0x08 do
    {chip, events, spans, signs} = pass(chip, was, at - was, events, spans, signs, lfo, noise)
    {chip, event} = global(chip, reg, value)
    events = if event, do: Vgm.Events.add(events, 7, at, event), else: events
    script(due, at, n, chip, events, spans, signs, lfo, noise)
  end

  defp script([{at, _, reg, value} | due], was, n, chip, events, spans, signs, lfo, noise) do
    {chip, channel, event} = write(chip, reg, value)
    script(due, was, n, chip, Vgm.Events.add(events, channel, at, event), spans, signs, lfo, noise)
  end

  # Registers of a channel, as its event.
  defp write(chip, 0x08, value), do: {chip, value &&& 7, {:key, value >>> 3 &&& 15}}

  defp write(chip, reg, value) when reg < 0x28 do
    {chip, reg &&& 7, {:alg, value &&& 7, value >>> 3 &&& 7, Fm.pan(value >>> 6 &&& 1, value >>> 7)}}
  end

  defp write(chip, reg, value) when reg < 0x38 do
    channel = reg &&& 7
    {code, fraction} = elem(chip.freqs, channel)
    {code, fraction} = freq = if reg < 0x30, do: {value &&& 127, fraction}, else: {code, value >>> 2}
    f = code <<< 6 ||| fraction
    {%{chip | freqs: put_elem(chip.freqs, channel, freq)}, channel, {:freqs, {f, f, f, f}}}
  end

  defp write(chip, reg, value) when reg < 0x40, do: {chip, reg &&& 7, {:lfo, value &&& 3, value >>> 4 &&& 7, nil}}

  # Operators lie in the order 1, 3, 2, 4.
  defp write(chip, reg, value), do: {chip, reg &&& 7, {:op, elem({0, 2, 1, 3}, reg >>> 3 &&& 3), (reg >>> 5) - 2, value}}

  # Those of all channels.
  defp global(chip, 0x01, value), do: {put_in(chip.lfo.hold, (value &&& 2) > 0), nil}

  defp global(chip, 0x0F, value) do
    on = value >= 0x80
    {%{chip | noise: %{chip.noise | rate: bxor(value &&& 31, 31), on: on}}, {:noise, on}}
  end

  defp global(chip, 0x10, value), do: {update_in(chip.timer.period, &((&1 &&& 3) ||| value <<< 2)), nil}
  defp global(chip, 0x11, value), do: {update_in(chip.timer.period, &((&1 &&& 0x3FC) ||| (value &&& 3))), nil}
  defp global(chip, 0x14, value), do: {%{chip | timer: Vgm.Events.mode(chip.timer, value, value >= 0x80)}, nil}
  defp global(chip, 0x18, value), do: {put_in(chip.lfo.rate, value), nil}
  defp global(chip, 0x19, value) when value >= 0x80, do: {put_in(chip.lfo.pm, value &&& 127), nil}
  defp global(chip, 0x19, value), do: {put_in(chip.lfo.am, value), nil}
  defp global(chip, 0x1B, value), do: {put_in(chip.lfo.wave, value &&& 3), nil}
  defp global(chip, _, _), do: {chip, nil}

  # LFO, noise and timer over `len` frames from frame `at` of the block.
  defp pass(chip, _, 0, events, spans, signs, _, _), do: {chip, events, spans, signs}

  defp pass(chip, at, len, events, spans, signs, lfo, noise) do
    f = chip.frames + at
    {timer, events} = Vgm.Events.timer(chip.timer, at, len, events, 0..7)
    {l, spans} = if lfo, do: spans(chip.lfo, len, f, spans), else: {move(chip.lfo, len, f), spans}
    {noise, signs} = if noise, do: signs(chip.noise, len, 2 * f, signs), else: {latch(chip.noise, 2 * len, 2 * f), signs}
    {%{chip | timer: timer, lfo: l, noise: noise}, events, spans, signs}
  end

  # The LFO's spans of constant position.
  defp spans(lfo, 0, _, spans), do: {lfo, spans}

  defp spans(%{hold: true} = lfo, len, f, spans) do
    lfo = move(lfo, len, f)
    {am, pm} = depth(lfo)
    {lfo, [{len, am, pm} | spans]}
  end

  defp spans(lfo, len, f, spans) do
    step = speed(lfo)
    position = (lfo.count + step) >>> 22
    run = min(len, div(((position + 1) <<< 22) - lfo.count - 1, step))
    lfo = move(lfo, run, f)
    {am, pm} = depth(lfo)
    spans(lfo, len - run, f + run, [{run, am, pm} | spans])
  end

  defp speed(lfo), do: (16 + (lfo.rate &&& 15)) <<< (lfo.rate >>> 4)

  # Moves the LFO over `len` frames, after frame `f`. Its fourth wave is noise: each frame writes
  # the noise where the position after this one will read. So what counts is the last frame before
  # this position began (`value`), and for position 0, to which the LFO may be set, the last frame
  # in which it was at 255 (`first`).
  defp move(%{hold: true} = lfo, _, _) do
    %{lfo | count: 0, value: if(lfo.count >>> 22 == 0, do: lfo.value, else: lfo.first)}
  end

  defp move(%{count: count} = lfo, len, f) do
    step = speed(lfo)
    later = count + len * step
    from = count >>> 22
    to = later >>> 22
    value = if to == from, do: lfo.value, else: random(f + div((to <<< 22) - count + step - 1, step) - 1)
    last = to - (to + 1 &&& 255)

    first =
      cond do
        last == to -> random(f + len)
        last < from -> lfo.first
        true ->
          run = div(((last + 1) <<< 22) - count - 1, step)
          if run > 0, do: random(f + run), else: lfo.first
      end

    %{lfo | count: later &&& 0x3FFFFFFF, value: value, first: first}
  end

  # AM and PM with their depths.
  defp depth(lfo) do
    p = lfo.count >>> 22

    {am, pm} =
      case lfo.wave do
        0 -> {255 - p, p}
        1 when p < 128 -> {255, 127}
        1 -> {0, 128}
        2 ->
          am = if p < 128, do: 254 - 2 * p, else: 2 * (p - 128)
          {am, if((p &&& 64) > 0, do: am, else: bxor(am, 255))}
        3 -> {lfo.value, lfo.value}
      end

    pm = if pm < 128, do: pm, else: pm - 256
    {am * lfo.am >>> 7, pm * lfo.pm >>> 7}
  end

  # Bits 17 to 24 of the noise register after frame `f`.
  defp random(f) do
    at = place(2 * f)
    <<word::16>> = binary_part(Tables.opm_noise(), at >>> 3, 2)
    word >>> (8 - (at &&& 7)) &&& 255
  end

  defp bit17(steps) do
    at = place(steps) + 7
    :binary.at(Tables.opm_noise(), at >>> 3) >>> (7 - (at &&& 7)) &&& 1
  end

  defp place(steps) when steps <= 131_071, do: steps
  defp place(steps), do: rem(steps - 25, 131_071) + 25

  # What the noise has last latched, `len` steps after step `s`.
  defp latch(noise, len, s) do
    first = max(noise.rate - noise.count, 0) + 1

    if len < first do
      %{noise | count: noise.count + len}
    else
      past = rem(len - first, noise.rate + 1)
      %{noise | count: past, sign: bit17(s + len - past)}
    end
  end

  # The same for each frame, which has two steps.
  defp signs(noise, 0, _, signs), do: {noise, signs}

  defp signs(noise, len, s, signs) do
    noise = latch(noise, 2, s)
    signs(noise, len - 1, s + 2, [noise.sign | signs])
  end

  # What follows from an operator's registers: {rates of the four states, sustain level, SSG-EG, AM,
  # level, frequency, more detune, detune, multiple}.
  def op({dtmul, tl, ksar, amdr, dt2sr, slrr, _}, freq) do
    code = freq >>> 8
    keyed = code >>> bxor(ksar >>> 6, 3)
    sl = slrr >>> 4
    detune = elem(elem(Tables.detune(), code), dtmul >>> 4 &&& 3)
    mul = dtmul &&& 15

    {rate(2 * (ksar &&& 31), keyed), rate(2 * (amdr &&& 31), keyed), rate(2 * (dt2sr &&& 31), keyed), rate(4 * (slrr &&& 15) + 2, keyed),
     if(sl == 15, do: 31, else: sl) * 32, 0, amdr >>> 7, (tl &&& 127) * 8, freq, elem({0, 384, 500, 608}, dt2sr >>> 6),
     if((dtmul &&& 0x40) > 0, do: -detune, else: detune), if(mul == 0, do: 1, else: 2 * mul)}
  end

  defp rate(0, _), do: 0
  defp rate(rate, keyed), do: min(63, rate + keyed)

  def step({_, _, _, _, _, _, _, _, freq, more, detune, mul}, pms, pm) do
    shift =
      cond do
        pms == 0 -> 0
        pms < 6 -> pm >>> (6 - pms)
        true -> pm <<< (pms - 5)
      end

    block = freq >>> 10
    note = (freq >>> 6 &&& 15) - (freq >>> 8 &&& 3)
    (base(block, note * 64 + (freq &&& 63) + more + shift) + detune) * mul >>> 1
  end

  defp base(block, note) when note >= 768 and block < 7, do: base(block + 1, note - 768)
  defp base(_, note) when note >= 768, do: elem(Tables.opm_step(), 767)
  defp base(block, note) when note < 0 and block > 0, do: base(block - 1, note + 768)
  defp base(_, note) when note < 0, do: elem(Tables.opm_step(), 0) >>> 7
  defp base(block, note), do: elem(Tables.opm_step(), note) >>> (7 - block)

  def am(0, _), do: 0
  def am(ams, am), do: am <<< (ams - 1)
end
