# The YM2610 (OPNB) and YM2610B: four or six FM channels with an LFO, SSG, six channels of ADPCM-A
# and one of ADPCM-B. Its native frames are clock / 144. A block is made as in `Vgm.Opm`.
defmodule Vgm.Opnb do
  import Bitwise
  alias Vgm.{AdpcmA, AdpcmB, Events, Fm, Queue, Rom, Sound, Ssg, Tables}

  # `freqs`: frequency of each channel; `three`: those of the third channel's operators 1 to 3 in
  # its special mode. `latches`: high bytes that wait for their low ones, by port and kind.
  defstruct frames: 0,
            channels: [1, 2, 4, 5],
            voices: nil,
            freqs: {0, 0, 0, 0, 0, 0},
            three: {0, 0, 0},
            special: false,
            latches: %{},
            lfo: %{count: 0, on: false, rate: 0},
            timer: %{period: 0, left: nil, csm: false},
            csm: [],
            ssg: %Ssg{},
            a: nil,
            b: %AdpcmB{}

  def divider, do: 144

  def new(variant) do
    voices = List.duplicate(Fm.new(__MODULE__, Fm.pan(1, 1)), 6) |> List.to_tuple()
    channels = if variant == :b, do: [0, 1, 2, 3, 4, 5], else: [1, 2, 4, 5]
    %__MODULE__{voices: voices, channels: channels, a: Tuple.duplicate(AdpcmA.new(), 6)}
  end

  # A part of the ROM of ADPCM-A or of ADPCM-B, which is there at once.
  def rom(chip, :a, size, start, bytes) do
    rom = Rom.add(elem(chip.a, 0).rom, size, start, bytes)
    %{chip | a: chip.a |> Tuple.to_list() |> Enum.map(&%{&1 | rom: rom}) |> List.to_tuple()}
  end

  def rom(chip, :b, size, start, bytes), do: put_in(chip.b.rom, Rom.add(chip.b.rom, size, start, bytes))

  def block(chip, n, writes, stages \\ false) do
    {due, writes} = Queue.take(writes, chip.frames, n)
    lfo = lfo?(chip, due)
    {after_due, events, spans} = script(due, 0, n, %{chip | csm: []}, Events.carried(chip.csm, chip.frames, [{:fm, 2}]), [], lfo)
    spans = if lfo, do: spans, else: [{n, 63, 0}]

    {sum, voices} =
      Enum.reduce(chip.channels, {Queue.silence(n), chip.voices}, fn i, {sum, voices} ->
        {sum, v} = Fm.run(elem(voices, i), n, sum, Events.of(events, {:fm, i}, n), spans, [], chip.frames)
        {sum, put_elem(voices, i, v)}
      end)

    {mixed, a} = adpcm_a(chip, n, sum, events)
    {mixed, b} = AdpcmB.run(chip.b, n, mixed, Events.of(events, :b, n))
    {out, ssg} = Ssg.run(chip.ssg, n, mixed, Events.of(events, :ssg, n), chip.frames)

    next = %{after_due | voices: voices, a: a, b: b, ssg: ssg, frames: chip.frames + n, csm: Events.carry(events, n, chip.frames)}
    stages = if stages, do: stages(chip, n, due, events, sum, mixed, out), else: []
    {out, next, writes, stages}
  end

  defp adpcm_a(chip, n, input, events) do
    Enum.reduce(0..5, {input, chip.a}, fn i, {input, a} ->
      {input, channel} = AdpcmA.run(elem(a, i), n, input, Events.of(events, {:a, i}, n), chip.frames)
      {input, put_elem(a, i, channel)}
    end)
  end

  # Each stage alone.
  defp stages(chip, n, due, events, sum, mixed, out) do
    {a, _} = adpcm_a(chip, n, Queue.silence(n), events)
    {b, _} = AdpcmB.run(chip.b, n, Queue.silence(n), Events.of(events, :b, n))
    {ssg, _} = Ssg.run(chip.ssg, n, Queue.silence(n), Events.of(events, :ssg, n), chip.frames)

    [
      {"trace", Queue.trace(due, chip.frames)},
      {"fm.s16", Sound.s16(sum)},
      {"adpcma.s16", Sound.s16(a)},
      {"adpcmb.s16", Sound.s16(b)},
      {"fmadpcm.s16", Sound.s16(mixed)},
      {"ssg3.s16", Ssg.steps3(chip.ssg, n, Events.of(events, :ssg, n), chip.frames)},
      {"ssg.s16", Sound.left(ssg)},
      {"s16", Sound.s16(out)}
    ]
  end

  defp lfo?(chip, due) do
    Enum.any?(chip.channels, fn i -> elem(chip.voices, i).ams > 0 or elem(chip.voices, i).pms > 0 end) or
      Enum.any?(due, fn {_, _, reg, _} -> reg in 0xB4..0xB7 end)
  end

  defp script([], at, n, chip, events, spans, lfo) do
    {chip, events, spans} = pass(chip, at, n - at, events, spans, lfo)
    {chip, events, Enum.reverse(spans)}
  end

  # LFO, timer and mode are of all channels.
  defp script([{at, 0, reg, value} | due], was, n, chip, events, spans, lfo) when reg in [0x22, 0x24, 0x25, 0x27] do
    {chip, events, spans} = pass(chip, was, at - was, events, spans, lfo)
    {chip, events} = global(chip, reg, value, at, events)
    script(due, at, n, chip, events, spans, lfo)
  end

  defp script([{at, port, reg, value} | due], was, n, chip, events, spans, lfo) do
    {chip, list} = write(chip, port, reg, value)
    events = Enum.reduce(list, events, fn {voice, event}, events -> Events.add(events, voice, at, event) end)
    script(due, was, n, chip, events, spans, lfo)
  end

  defp global(chip, 0x22, value, _, events) do
    on = (value &&& 8) > 0
    count = if on and chip.lfo.on, do: chip.lfo.count, else: 0
    {%{chip | lfo: %{count: count, on: on, rate: value &&& 7}}, events}
  end

  defp global(chip, 0x24, value, _, events), do: {update_in(chip.timer.period, &((&1 &&& 3) ||| value <<< 2)), events}
  defp global(chip, 0x25, value, _, events), do: {update_in(chip.timer.period, &((&1 &&& 0x3FC) ||| (value &&& 3))), events}

  defp global(chip, 0x27, value, at, events) do
    chip = %{chip | timer: Events.mode(chip.timer, value, value >>> 6 == 2), special: value >= 0x40}
    {chip, Events.add(events, {:fm, 2}, at, {:freqs, freqs(chip, 2)})}
  end

  # The events of a write, by voice.
  defp write(chip, 0, reg, value) when reg < 0x0E, do: {chip, [{:ssg, {:reg, reg, value}}]}

  defp write(chip, 0, reg, value) when reg in 0x10..0x1B do
    event =
      case reg do
        0x10 -> {:control, value}
        0x11 -> {:set, pan: Fm.pan(value >>> 7, value >>> 6 &&& 1)}
        0x12 -> {:low, :start, value}
        0x13 -> {:high, :start, value}
        0x14 -> {:low, :till, value}
        0x15 -> {:high, :till, value}
        0x19 -> {:low, :delta, value}
        0x1A -> {:high, :delta, value}
        0x1B -> {:set, level: value}
        _ -> nil
      end

    {chip, if(event, do: [{:b, event}], else: [])}
  end

  defp write(chip, 0, 0x28, value) do
    channel = (value &&& 3) + if((value &&& 4) > 0, do: 3, else: 0)
    {chip, if((value &&& 3) == 3, do: [], else: [{{:fm, channel}, {:key, value >>> 4}}])}
  end

  defp write(chip, 1, 0x00, value) do
    {chip, for(i <- 0..5, (value >>> i &&& 1) == 1, do: {{:a, i}, {:key, value < 0x80}})}
  end

  defp write(chip, 1, 0x01, value), do: {chip, for(i <- 0..5, do: {{:a, i}, {:set, total: bxor(value &&& 63, 63)}})}

  defp write(chip, 1, reg, value) when reg < 0x30 do
    i = reg &&& 7

    event =
      case reg >>> 3 do
        _ when i > 5 -> nil
        1 -> {:set, level: bxor(value &&& 31, 31), pan: Fm.pan(value >>> 7, value >>> 6 &&& 1)}
        2 -> {:low, :start, value}
        3 -> {:high, :start, value}
        4 -> {:low, :till, value}
        5 -> {:high, :till, value}
        _ -> nil
      end

    {chip, if(event, do: [{{:a, i}, event}], else: [])}
  end

  # FM: four registers of which the fourth belongs to no channel, operators in the order 1, 3, 2, 4.
  defp write(chip, port, reg, value) when reg >= 0x30 and (reg &&& 3) != 3 do
    i = (reg &&& 3) + 3 * port
    operator = elem({0, 2, 1, 3}, reg >>> 2 &&& 3)

    case reg >>> 4 do
      high when high < 9 -> {chip, [{{:fm, i}, {:op, operator, high - 3, value}}]}
      9 -> {chip, [{{:fm, i}, {:op, operator, 6, value}}]}
      10 -> frequency(chip, port, reg, value)
      11 when reg < 0xB4 -> {chip, [{{:fm, i}, {:alg, value &&& 7, value >>> 3 &&& 7, nil}}]}
      11 when reg < 0xB8 -> {chip, [{{:fm, i}, {:lfo, value >>> 4 &&& 3, value &&& 7, Fm.pan(value >>> 7, value >>> 6 &&& 1)}}]}
      _ -> {chip, []}
    end
  end

  defp write(chip, _, _, _), do: {chip, []}

  # A high byte waits for a low one, of whatever channel of its kind.
  defp frequency(chip, port, reg, value) do
    latch = {port, reg >>> 3 &&& 1}
    high = Map.get(chip.latches, latch)

    cond do
      (reg &&& 4) > 0 -> {%{chip | latches: Map.put(chip.latches, latch, value &&& 63)}, []}
      high == nil -> {chip, []}
      true -> commit(%{chip | latches: Map.delete(chip.latches, latch)}, port, reg, high <<< 8 ||| value)
    end
  end

  defp commit(chip, port, reg, freq) when reg < 0xA8 do
    i = (reg &&& 3) + 3 * port
    chip = %{chip | freqs: put_elem(chip.freqs, i, freq)}
    {chip, [{{:fm, i}, {:freqs, freqs(chip, i)}}]}
  end

  # A9, AA and A8 are for operators 1, 2 and 3.
  defp commit(chip, 0, reg, freq) do
    chip = %{chip | three: put_elem(chip.three, elem({2, 0, 1}, reg &&& 3), freq)}
    {chip, [{{:fm, 2}, {:freqs, freqs(chip, 2)}}]}
  end

  defp commit(chip, 1, _, _), do: {chip, []}

  defp freqs(%{special: true, three: {f1, f2, f3}} = chip, 2), do: {f1, f2, f3, elem(chip.freqs, 2)}
  defp freqs(chip, i), do: Tuple.duplicate(elem(chip.freqs, i), 4)

  defp pass(chip, _, 0, events, spans, _), do: {chip, events, spans}

  defp pass(chip, at, len, events, spans, lfo) do
    {timer, events} = Events.timer(chip.timer, at, len, events, [{:fm, 2}])
    {l, spans} = spans(chip.lfo, len, spans, lfo)
    {%{chip | timer: timer, lfo: l}, events, spans}
  end

  # The LFO's spans of constant value. Off, it leaves AM at its middle and stays at its beginning.
  defp spans(lfo, 0, spans, _), do: {lfo, spans}
  defp spans(%{on: false} = lfo, len, spans, _), do: {lfo, [{len, 63, 0} | spans]}

  defp spans(lfo, len, spans, wanted) do
    sub = lfo.count &&& 255
    period = elem({109, 78, 72, 68, 63, 45, 9, 6}, lfo.rate)

    {run, lfo} =
      cond do
        # The value goes on with this frame.
        sub >= period -> {1, %{lfo | count: (lfo.count - sub + 0x102) &&& 0x7FFF}}
        true ->
          run = min(len, period - sub)
          {run, %{lfo | count: lfo.count + run}}
      end

    spans = if wanted, do: [value(run, lfo.count) | spans], else: spans
    spans(lfo, len - run, spans, wanted)
  end

  defp value(run, count) do
    am = count >>> 8 &&& 63
    am = if (count >>> 14 &&& 1) == 0, do: bxor(am, 63), else: am
    pm = count >>> 10 &&& 7
    pm = if (count >>> 13 &&& 1) == 1, do: bxor(pm, 7), else: pm
    {run, am, if((count >>> 14 &&& 1) == 1, do: -pm, else: pm)}
  end

  # What follows from an operator's registers, as in `Vgm.Opm.op/2`.
  def op({dtmul, tl, ksar, amdr, sr, slrr, ssg}, freq) do
    top = freq >>> 10 &&& 1
    low = freq >>> 7 &&& 7
    code = (freq >>> 11) * 4 + 2 * top + if(top == 1, do: if(low > 0, do: 1, else: 0), else: if(low == 7, do: 1, else: 0))
    keyed = code >>> bxor(ksar >>> 6, 3)
    sl = slrr >>> 4
    detune = elem(elem(Tables.detune(), code), dtmul >>> 4 &&& 3)
    mul = dtmul &&& 15

    {rate(2 * (ksar &&& 31), keyed), rate(2 * (amdr &&& 31), keyed), rate(2 * (sr &&& 31), keyed), rate(4 * (slrr &&& 15) + 2, keyed),
     if(sl == 15, do: 31, else: sl) * 32, if((ssg &&& 8) > 0, do: ssg &&& 15, else: 0), amdr >>> 7, (tl &&& 127) * 8, freq, 0,
     if((dtmul &&& 0x40) > 0, do: -detune, else: detune), if(mul == 0, do: 1, else: 2 * mul)}
  end

  defp rate(0, _), do: 0
  defp rate(rate, keyed), do: min(63, rate + keyed)

  def step({_, _, _, _, _, _, _, _, freq, _, detune, mul}, pms, pm) do
    fnum = 2 * (freq &&& 0x7FF)

    fnum =
      if pms == 0 or pm == 0 do
        fnum
      else
        by = elem(elem(Tables.opn_pm(), 8 * pms + abs(pm)), freq >>> 4 &&& 127)
        (if pm < 0, do: fnum - by, else: fnum + by) &&& 0xFFF
      end

    ((fnum <<< (freq >>> 11)) >>> 2) + detune
    |> band(0x1FFFF)
    |> Kernel.*(mul)
    |> bsr(1)
  end

  def am(ams, am), do: (am <<< 1) >>> elem({7, 3, 1, 0}, ams)
end
