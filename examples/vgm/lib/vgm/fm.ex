# A channel of four operators, as in the YM2151 and in the YM2610: phases, envelopes and the eight
# algorithms.
#
# A channel is run over a block of frames at a time, not frame by frame with the others. Its
# registers change at the events of the block only, its attenuations at the ticks of its envelopes
# that move something, so between two of these only phases advance: that is a loop of one function
# for each algorithm, whose arguments are all that it needs. Each channel adds its output to the
# list of the channels before it. Both sides are one integer: left + right * 2^24.
#
# A frame does, in this order: the write that is due, keys, SSG-EG, the tick of the envelopes if it
# is the third, phases, output. Frames are counted from the reset; ticks are in frames 3, 6, 9, ...
# and numbered 1, 2, 3, ...
defmodule Vgm.Fm do
  import Bitwise
  alias Vgm.Tables

  # `raw`: registers of each operator {detune and multiple, level, key scale and attack, AM and
  # decay, sustain rate, sustain level and release, SSG-EG}. `ops`: what follows from them, see
  # `Vgm.Op`. `envs`: {state, attenuation, inverted, key} of each operator, bit 0 of key being the
  # key's and bit 1 a timer's.
  # `last`: the two outputs of operator 1 before, older one first. `noise`: operator 4 is noise
  # (YM2151).
  defstruct chip: nil,
            raw: nil,
            freqs: {0, 0, 0, 0},
            ops: nil,
            envs: nil,
            phases: {0, 0, 0, 0},
            steps: nil,
            last: {0, 0},
            alg: 0,
            feedback: 0,
            pan: 0,
            ams: 0,
            pms: 0,
            ssg: false,
            noise: false

  @attack 0
  @decay 1
  @sustain 2
  @release 3
  @right 1 <<< 24
  @never 1 <<< 40
  @silent 832

  def pan(left, right), do: left + right * @right

  # `chip` says what differs: `step(op, pms, pm)`, `am(ams, am)` and `op(raw, freq)`.
  def new(chip, pan) do
    raw = {0, 0, 0, 0, 0, 0, 0}
    off = {@release, 1023, 0, 0}
    refresh(%__MODULE__{chip: chip, raw: {raw, raw, raw, raw}, envs: {off, off, off, off}, pan: pan})
  end

  # What follows from registers, anew.
  defp refresh(%{chip: chip, raw: {r1, r2, r3, r4}, freqs: {f1, f2, f3, f4}, envs: {v1, v2, v3, v4}} = v) do
    o1 = chip.op(r1, f1)
    o2 = chip.op(r2, f2)
    o3 = chip.op(r3, f3)
    o4 = chip.op(r4, f4)
    steps = {chip.step(o1, 0, 0), chip.step(o2, 0, 0), chip.step(o3, 0, 0), chip.step(o4, 0, 0)}
    ssg = elem(o1, 5) + elem(o2, 5) + elem(o3, 5) + elem(o4, 5) > 0
    envs = {upright(v1, o1), upright(v2, o2), upright(v3, o3), upright(v4, o4)}
    %{v | ops: {o1, o2, o3, o4}, steps: steps, ssg: ssg, envs: envs}
  end

  # Only SSG-EG inverts.
  defp upright({st, e, 1, key}, o) when elem(o, 5) == 0, do: {st, e, 0, key}
  defp upright(env, _), do: env

  # Events: what a write changes.
  def event(v, {:op, i, field, value}), do: refresh(%{v | raw: put_elem(v.raw, i, put_elem(elem(v.raw, i), field, value))})
  def event(v, {:freqs, freqs}), do: refresh(%{v | freqs: freqs})
  def event(v, {:alg, alg, feedback, pan}), do: %{v | alg: alg, feedback: feedback, pan: pan || v.pan}
  def event(v, {:lfo, ams, pms, pan}), do: %{v | ams: ams, pms: pms, pan: pan || v.pan}
  def event(v, {:noise, on}), do: %{v | noise: on}

  def event(v, {:key, mask}), do: keys(v, fn key, i -> (key &&& 2) ||| (mask >>> i &&& 1) end)
  # A timer keys all operators for a frame.
  def event(v, :csm_on), do: keys(v, fn key, _ -> key ||| 2 end)
  def event(v, :csm_off), do: keys(v, fn key, _ -> key &&& 1 end)

  # Only a key that goes down or up says anything.
  defp keys(v, now) do
    Enum.reduce(0..3, v, fn i, v ->
      {st, e, inv, key} = elem(v.envs, i)
      down = now.(key, i)
      v = %{v | envs: put_elem(v.envs, i, {st, e, inv, down})}

      cond do
        key == 0 and down > 0 -> attack(v, i)
        key > 0 and down == 0 -> %{v | envs: put_elem(v.envs, i, released({st, e, inv, 0}))}
        true -> v
      end
    end)
  end

  defp attack(v, i) do
    {st, e, _, key} = elem(v.envs, i)
    o = elem(v.ops, i)

    if st == @attack do
      v
    else
      e = if elem(o, 0) >= 62, do: 0, else: e
      # SSG-EG on, and a mode that begins inverted.
      inv = if elem(o, 5) >= 12, do: 1, else: 0
      %{v | envs: put_elem(v.envs, i, {@attack, e, inv, key}), phases: put_elem(v.phases, i, 0)}
    end
  end

  defp released({@release, _, _, _} = env), do: env
  defp released({_, e, 1, key}), do: {@release, 0x200 - e &&& 0x3FF, 0, key}
  defp released({_, e, 0, key}), do: {@release, e, 0, key}

  # Runs a channel over a block of `n` frames, `f` having been made before: `{the list with its
  # output, the channel}`. Events are `[{frame of the block, event}]` in order, spans of the LFO
  # `[{frames, AM, PM}]`, and `signs` those of the noise by frame, for the channel that has it.
  def run(v, n, input, events, spans, signs, f) do
    if events == [] and idle?(v.envs) do
      {_, l1} = v.last
      {input, %{v | last: if(n == 1, do: {l1, 0}, else: {0, 0})}}
    else
      spread(v, 0, n, input, [], events, spans, signs, f)
    end
  end

  # Nothing but a key makes it sound again, and that sets phases to 0.
  defp idle?({{@release, 1023, _, _}, {@release, 1023, _, _}, {@release, 1023, _, _}, {@release, 1023, _, _}}), do: true
  defp idle?(_), do: false

  defp spread(v, at, n, _, acc, _, _, _, _) when at == n, do: {:lists.reverse(acc), v}

  defp spread(v, at, n, input, acc, [{at, event} | events], spans, signs, f) do
    spread(event(v, event), at, n, input, acc, events, spans, signs, f)
  end

  defp spread(v, at, n, input, acc, events, [{len, am, pm} | spans], signs, f) do
    until =
      case events do
        [{next, _} | _] when next < n -> next
        _ -> n
      end

    run = min(until - at, len)
    {v, input, acc, signs} = span(v, run, input, acc, am, pm, signs, f + at)
    spans = if run == len, do: spans, else: [{len - run, am, pm} | spans]
    spread(v, at + run, n, input, acc, events, spans, signs, f)
  end

  # A run in which registers and LFO stay.
  defp span(%{envs: {v1, v2, v3, v4}, phases: {p1, p2, p3, p4}, last: {l0, l1}} = v, n, input, acc, am, pm, signs, f) do
    {o1, o2, o3, o4} = ops = v.ops

    {s1, s2, s3, s4} =
      if v.pms == 0 or pm == 0 do
        v.steps
      else
        chip = v.chip
        {chip.step(o1, v.pms, pm), chip.step(o2, v.pms, pm), chip.step(o3, v.pms, pm), chip.step(o4, v.pms, pm)}
      end

    am = v.chip.am(v.ams, am)
    levels = {level(o1, am), level(o2, am), level(o3, am), level(o4, am)}
    loop = loop(v.chip, v.alg, v.feedback)
    shift = 10 - v.feedback
    c = {loop, shift, v.pan, {s1, s2, s3, s4}, ops, levels, Tables.all_waves()}

    {input, acc, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, rest} =
      cond do
        v.noise -> noisy(n, input, acc, f, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c, signs, active?(v.envs))
        v.ssg -> inverting(n, input, acc, f, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c)
        true -> plain(n, input, acc, 2 - rem(f, 3), div(f, 3), v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c)
      end

    rest = if v.noise, do: rest, else: :lists.nthtail(min(n, length(signs)), signs)
    phases = {p1 &&& 0xFFFFF, p2 &&& 0xFFFFF, p3 &&& 0xFFFFF, p4 &&& 0xFFFFF}
    {%{v | envs: {v1, v2, v3, v4}, phases: phases, last: {l0, l1}}, input, acc, rest}
  end

  # What is added to an operator's envelope.
  defp level(o, am), do: if(elem(o, 6) == 1, do: elem(o, 7) + am, else: elem(o, 7))

  # The attenuation that is heard.
  defp heard({_, e, _, _}, _) when e > 0x380, do: @silent
  defp heard({_, e, 0, _}, a), do: min(e + a, @silent)
  defp heard({_, e, 1, _}, a), do: min((0x200 - e &&& 0x3FF) + a, @silent)

  # `g` frames may be made before the next tick, which has the number `t` + 1.
  defp plain(n, input, acc, g, t, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c) do
    {_, _, _, _, {o1, o2, o3, o4}, _, _} = c
    k = min(min(next(v1, o1, t), next(v2, o2, t)), min(next(v3, o3, t), next(v4, o4, t)))
    run = g + 3 * (k - 1)

    if run >= n do
      {input, acc, p1, p2, p3, p4, l0, l1} = frames(n, input, acc, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c)
      {input, acc, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, []}
    else
      {input, acc, p1, p2, p3, p4, l0, l1} = frames(run, input, acc, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c)
      t = t + k
      v1 = tick(v1, o1, t)
      v2 = tick(v2, o2, t)
      v3 = tick(v3, o3, t)
      v4 = tick(v4, o4, t)
      plain(n - run, input, acc, 3, t, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c)
    end
  end

  # With SSG-EG, which looks at the envelopes before each frame.
  defp inverting(0, input, acc, _, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, _) do
    {input, acc, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, []}
  end

  defp inverting(n, input, acc, f, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c) do
    {_, _, _, _, {o1, o2, o3, o4}, _, _} = c
    {v1, p1} = invert(v1, o1, p1)
    {v2, p2} = invert(v2, o2, p2)
    {v3, p3} = invert(v3, o3, p3)
    {v4, p4} = invert(v4, o4, p4)

    if rem(f, 3) == 2 do
      t = div(f + 1, 3)
      inverted(n, 3, t, input, acc, f, tick(v1, o1, t), tick(v2, o2, t), tick(v3, o3, t), tick(v4, o4, t), p1, p2, p3, p4, l0, l1, c)
    else
      inverted(n, 2 - rem(f, 3), div(f, 3), input, acc, f, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c)
    end
  end

  defp inverted(n, g, t, input, acc, f, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c) do
    {_, _, _, _, {o1, o2, o3, o4}, _, _} = c

    run =
      if restless?(v1, o1) or restless?(v2, o2) or restless?(v3, o3) or restless?(v4, o4) do
        1
      else
        k = min(min(next(v1, o1, t), next(v2, o2, t)), min(next(v3, o3, t), next(v4, o4, t)))
        min(n, g + 3 * (k - 1))
      end

    {input, acc, p1, p2, p3, p4, l0, l1} = frames(run, input, acc, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c)
    inverting(n - run, input, acc, f + run, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c)
  end

  # SSG-EG has to look at the next frame: only past the middle, and not where it is off for good.
  defp restless?({@release, 1023, _, _}, _), do: false
  defp restless?({_, e, _, _}, o), do: elem(o, 5) != 0 and e >= 0x200

  defp invert({_, e, _, _} = env, o, p) when elem(o, 5) == 0 or e < 0x200, do: {env, p}

  defp invert({st, e, inv, key}, o, p) do
    mode = elem(o, 5) &&& 7

    {st, e, inv, p} =
      if (mode &&& 1) == 1 do
        # Once: then high or low for good.
        inv = bxor(mode >>> 2, mode >>> 1) &&& 1
        e = if st == @attack, do: e, else: if(inv == 1, do: 0x200, else: 0x3FF)
        {st, e, inv, p}
      else
        inv = bxor(inv, mode >>> 1 &&& 1)
        {st, e} =
          cond do
            st != @decay and st != @sustain -> {st, e}
            elem(o, 0) >= 62 -> {@attack, 0}
            true -> {@attack, e}
          end

        {st, e, inv, if((mode &&& 2) == 0, do: 0, else: p)}
      end

    {{st, if(st == @release, do: 0x3FF, else: e), inv, key}, p}
  end

  # With noise in the place of operator 4: linear in its envelope, signed by the noise. A channel
  # whose operators have all faded at the start of a frame gives nothing; `was` is whether it was
  # active then.
  defp noisy(n, input, acc, f, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c, signs, was) do
    {_, _, pan, _, {o1, o2, o3, o4}, levels, _} = c
    g = 2 - rem(f, 3)
    t = div(f, 3)
    noisy(n, input, acc, g, t, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c, signs, was, {o1, o2, o3, o4}, pan, elem(levels, 3))
  end

  defp noisy(n, input, acc, g, t, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c, signs, was, {o1, o2, o3, o4} = ops, pan, a4) do
    k = min(min(next(v1, o1, t), next(v2, o2, t)), min(next(v3, o3, t), next(v4, o4, t)))
    is = active?({v1, v2, v3, v4})
    {_, e4, _, _} = v4
    amount = if was, do: 2 * (1023 - min(1023, e4 + a4)) * pan, else: 0
    # The frame of a tick sounds though the tick has ended it.
    most = if was and not is and g > 0, do: 1, else: g + 3 * (k - 1)
    run = min(n, most)
    {mixed, input, signs} = sign(run, input, signs, amount, [])
    mute = {@release, 1023, 0, 0}
    {_, acc, p1, p2, p3, p4, l0, l1} = frames(run, mixed, acc, v1, v2, v3, mute, p1, p2, p3, p4, l0, l1, c)

    cond do
      run == n ->
        {input, acc, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, signs}

      run < g + 3 * (k - 1) ->
        noisy(n - run, input, acc, g - run, t, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c, signs, is, ops, pan, a4)

      true ->
        t = t + k
        noisy(n - run, input, acc, 3, t, tick(v1, o1, t), tick(v2, o2, t), tick(v3, o3, t), tick(v4, o4, t), p1, p2, p3, p4, l0, l1, c, signs, is, ops, pan, a4)
    end
  end

  defp sign(0, input, signs, _, acc), do: {:lists.reverse(acc), input, signs}
  defp sign(n, [x | input], [0 | signs], amount, acc), do: sign(n - 1, input, signs, amount, [x + amount | acc])
  defp sign(n, [x | input], [1 | signs], amount, acc), do: sign(n - 1, input, signs, amount, [x - amount | acc])

  defp active?({v1, v2, v3, v4}), do: active(v1) or active(v2) or active(v3) or active(v4)
  defp active({st, e, _, _}), do: st != @release or e < 0x380

  # In how many ticks an envelope may move.
  defp next({@attack, 0, _, _}, _, _), do: 1
  defp next({@decay, e, _, _}, o, _) when e >= elem(o, 4), do: 1
  defp next({@attack, _, _, _}, o, _) when elem(o, 0) >= 62, do: @never
  defp next({st, 1023, _, _}, _, _) when st != @attack, do: @never
  defp next({st, e, _, _}, o, _) when st != @attack and e >= 0x200 and elem(o, 5) != 0, do: @never

  defp next({st, _, _, _}, o, t) do
    rate = elem(o, st)

    cond do
      rate >= 44 -> 1
      rate < 2 -> @never
      true -> (1 <<< (11 - (rate >>> 2))) - (t &&& (1 <<< (11 - (rate >>> 2))) - 1)
    end
  end

  # An envelope after tick `t`.
  defp tick({@attack, 0, inv, key}, o, t), do: tick({@decay, 0, inv, key}, o, t)
  defp tick({@decay, e, inv, key}, o, t) when e >= elem(o, 4), do: tick({@sustain, e, inv, key}, o, t)

  defp tick({st, e, inv, key} = env, o, t) do
    rate = elem(o, st)
    shift = rate >>> 2
    m = t <<< shift

    if (m &&& 0x7FF) != 0 do
      env
    else
      by = elem(elem(unquote(Macro.escape(Tables.eg_increment())), rate), m >>> max(11, shift) &&& 7)

      cond do
        st == @attack -> if rate < 62, do: {st, e + ((-(e + 1) * by) >>> 4), inv, key}, else: env
        elem(o, 5) == 0 -> {st, min(e + by, 1023), inv, key}
        e < 0x200 -> {st, min(e + 4 * by, 1023), inv, key}
        true -> env
      end
    end
  end

  # `n` frames of constant attenuations.
  defp frames(0, input, acc, _, _, _, _, p1, p2, p3, p4, l0, l1, _), do: {input, acc, p1, p2, p3, p4, l0, l1}

  defp frames(n, input, acc, v1, v2, v3, v4, p1, p2, p3, p4, l0, l1, c) do
    {loop, shift, pan, {s1, s2, s3, s4}, _, {a1, a2, a3, a4}, waves} = c
    e1 = heard(v1, a1)
    e2 = heard(v2, a2)
    e3 = heard(v3, a3)
    e4 = heard(v4, a4)
    w1 = elem(waves, e1)

    if e4 == @silent and quiet?(loop, e1, e2, e3) do
      acc = pass(n, input, acc)
      input = :lists.nthtail(n, input)
      {l0, l1} = unheard(n, p1, s1, e1, w1, shift, l0, l1)
      {input, acc, p1 + n * s1, p2 + n * s2, p3 + n * s3, p4 + n * s4, l0, l1}
    else
      sound(loop, n, input, acc, p1, p2, p3, p4, s1, s2, s3, s4, w1, elem(waves, e2), elem(waves, e3), elem(waves, e4), shift, l0, l1, pan)
    end
  end

  defp pass(0, _, acc), do: acc
  defp pass(n, [x | rest], acc), do: pass(n - 1, rest, [x | acc])

  # The other carriers than operator 4.
  defp quiet?(loop, e1, e2, e3) do
    case loop &&& 7 do
      4 -> e2 == @silent
      5 -> e2 == @silent and e3 == @silent
      6 -> e2 == @silent and e3 == @silent
      7 -> e1 == @silent and e2 == @silent and e3 == @silent
      _ -> true
    end
  end

  # Operator 1 alone, which its own past modulates.
  defp unheard(1, _, _, @silent, _, _, _, l1), do: {l1, 0}
  defp unheard(_, _, _, @silent, _, _, _, _), do: {0, 0}
  defp unheard(n, p, s, _, w, 10, _, l1), do: unfed(n, p + n * s, s, w, l1)
  defp unheard(n, p, s, _, w, shift, l0, l1), do: fed(n, p, s, w, shift, l0, l1)

  defp fed(0, _, _, _, _, l0, l1), do: {l0, l1}

  defp fed(n, p, s, w, shift, l0, l1) do
    p = p + s
    fed(n - 1, p, s, w, shift, l1, :erlang.element(((p >>> 10) + ((l0 + l1) >>> shift) &&& 1023) + 1, w))
  end

  # The last two outputs of operator 1 without feedback, `p` being its phase at the last frame.
  defp unfed(n, p, s, w, l1) do
    before = if n == 1, do: l1, else: :erlang.element(((p - s) >>> 10 &&& 1023) + 1, w)
    {before, :erlang.element((p >>> 10 &&& 1023) + 1, w)}
  end

  # One function for each algorithm, with feedback and without, for each of the two kinds of output:
  # 8 halves the carriers (YM2610), 16 has feedback.
  defp loop(chip, alg, feedback), do: alg + if(chip == Vgm.Opnb, do: 8, else: 0) + if(feedback > 0, do: 16, else: 0)

  # An operator's output: `m` is added to its phase.
  osc = fn
    p, w, nil -> quote do: :erlang.element((unquote(p) >>> 10 &&& 1023) + 1, unquote(w))
    p, w, m -> quote do: :erlang.element(((unquote(p) >>> 10) + (unquote(m) >>> 1) &&& 1023) + 1, unquote(w))
  end

  [n, x, input, acc, p1, p2, p3, p4, s1, s2, s3, s4, w1, w2, w3, w4, shift, l0, l1, pan, o1, o2, o3, o4] =
    for name <- ~w(n x input acc p1 p2 p3 p4 s1 s2 s3 s4 w1 w2 w3 w4 shift l0 l1 pan o1 o2 o3 o4)a, do: Macro.var(name, __MODULE__)

  plus = fn a, b -> quote do: unquote(a) + unquote(b) end

  # What modulates operators 2, 3 and 4, and the carriers.
  algorithms = [
    {o1, o2, o3, [o4]},
    {nil, plus.(o1, o2), o3, [o4]},
    {nil, o2, plus.(o1, o3), [o4]},
    {o1, nil, plus.(o2, o3), [o4]},
    {o1, nil, o3, [o2, o4]},
    {o1, o1, o1, [o2, o3, o4]},
    {o1, nil, nil, [o2, o3, o4]},
    {nil, nil, nil, [o1, o2, o3, o4]}
  ]

  for {{m2, m3, m4, carriers}, alg} <- Enum.with_index(algorithms), half <- [0, 1], feedback <- [0, 1] do
    name = :"loop_#{alg}_#{half}_#{feedback}"
    number = alg + 8 * half + 16 * feedback
    carriers = if half == 1, do: Enum.map(carriers, fn o -> quote(do: unquote(o) >>> 1) end), else: carriers
    sum = Enum.reduce(tl(carriers), hd(carriers), fn o, sum -> plus.(sum, o) end)
    # Without feedback operator 1 may be left out of the loop's look-ups only if nobody listens: all
    # algorithms do.
    heard = [w1, w2, w3, w4]

    common = [p1, p2, p3, p4, s1, s2, s3, s4] ++ heard

    body =
      quote do
        unquote(p2) = unquote(p2) + unquote(s2)
        unquote(o2) = unquote(osc.(p2, w2, m2))
        unquote(p3) = unquote(p3) + unquote(s3)
        unquote(o3) = unquote(osc.(p3, w3, m3))
        unquote(p4) = unquote(p4) + unquote(s4)
        unquote(o4) = unquote(osc.(p4, w4, m4))
        unquote(acc) = [unquote(x) + unquote(sum) * unquote(pan) | unquote(acc)]
      end

    if feedback == 1 do
      defp sound(unquote(number), n, input, acc, unquote_splicing(common), shift, l0, l1, pan) do
        unquote(name)(n, input, acc, unquote_splicing(common), pan, shift, l0, l1)
      end

      defp unquote(name)(0, unquote(input), unquote(acc), unquote_splicing(common), _, _, unquote(l0), unquote(l1)) do
        _ = {unquote_splicing([s1, s2, s3, s4] ++ heard)}
        {unquote(input), unquote(acc), unquote(p1), unquote(p2), unquote(p3), unquote(p4), unquote(l0), unquote(l1)}
      end

      defp unquote(name)(unquote(n), [unquote(x) | unquote(input)], unquote(acc), unquote_splicing(common), unquote(pan), unquote(shift), unquote(l0), unquote(l1)) do
        unquote(p1) = unquote(p1) + unquote(s1)
        unquote(o1) = :erlang.element(((unquote(p1) >>> 10) + ((unquote(l0) + unquote(l1)) >>> unquote(shift)) &&& 1023) + 1, unquote(w1))
        unquote(body)
        unquote(name)(unquote(n) - 1, unquote(input), unquote(acc), unquote_splicing(common), unquote(pan), unquote(shift), unquote(l1), unquote(o1))
      end
    else
      defp sound(unquote(number), n, input, acc, unquote_splicing(common), _shift, _l0, l1, pan) do
        {input, acc, q1, p2, p3, p4} = unquote(name)(n, input, acc, unquote_splicing(common), pan)
        {l0, l1} = unfed(n, q1, unquote(s1), unquote(w1), l1)
        {input, acc, q1, p2, p3, p4, l0, l1}
      end

      defp unquote(name)(0, unquote(input), unquote(acc), unquote_splicing(common), _) do
        _ = {unquote_splicing([s1, s2, s3, s4] ++ heard)}
        {unquote(input), unquote(acc), unquote(p1), unquote(p2), unquote(p3), unquote(p4)}
      end

      defp unquote(name)(unquote(n), [unquote(x) | unquote(input)], unquote(acc), unquote_splicing(common), unquote(pan)) do
        unquote(p1) = unquote(p1) + unquote(s1)
        unquote(o1) = unquote(osc.(p1, w1, nil))
        unquote(body)
        unquote(name)(unquote(n) - 1, unquote(input), unquote(acc), unquote_splicing(common), unquote(pan))
      end
    end
  end
end
