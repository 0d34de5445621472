# The square waves of the YM2610 (SSG): three tones, noise and an envelope, a step every 32 clocks.
# Two native frames have nine steps: the even frame five, of which it takes the last by half, the
# odd one that half and four more.
#
# Toggles are rare against steps, so a run knows for each tone, noise and envelope that is heard the
# step of its next change, and makes all frames up to the first of them at once. Those that are not
# heard are brought up to date at the run's end. It is the last voice of its chip: it takes what the
# others have made within 16 bits, adds itself and does so again.
defmodule Vgm.Ssg do
  import Bitwise
  alias Vgm.Tables

  # `tones`: {count, state} of each; `noise`: {count, steps of its register, the register or nil};
  # `env`: {count, state}; `last`: the sum at the last step.
  defstruct regs: {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, tones: {{0, 0}, {0, 0}, {0, 0}}, noise: {0, 0, 1}, env: {0, 0}, last: 0

  @never 1 <<< 40
  @bias Vgm.Queue.bias()

  def event(ssg, {:reg, reg, value}) do
    ssg = %{ssg | regs: put_elem(ssg.regs, reg, value)}
    if reg == 13, do: %{ssg | env: {elem(ssg.env, 0), 0}}, else: ssg
  end

  # Runs through a block of `n` frames after frame `f`.
  def run(ssg, n, input, events, f), do: spread(ssg, 0, n, input, [], events, f)

  defp spread(ssg, n, n, _, acc, _, _), do: {:lists.reverse(acc), ssg}
  defp spread(ssg, at, n, input, acc, [{at, event} | events], f), do: spread(event(ssg, event), at, n, input, acc, events, f)

  defp spread(ssg, at, n, input, acc, events, f) do
    until =
      case events do
        [{next, _} | _] when next < n -> next
        _ -> n
      end

    {ssg, input, acc} = segment(ssg, until - at, f + at &&& 1, input, acc)
    spread(ssg, until, n, input, acc, events, f)
  end

  defp segment(%{tones: {t1, t2, t3}, noise: noise, env: env} = ssg, n, odd, input, acc) do
    {{p1, p2, p3, pn, pe}, off, levels, shape, {h1, h2, h3, hn, he}} = constants(ssg.regs)
    {{_, s1}, {_, s2}, {_, s3}, {_, state}} = {t1, t2, t3, env}
    {noise, register} = register(noise, hn)
    envelope = {shape, off, levels}
    table = table(envelope, state)
    index = s1 + 2 * s2 + 4 * s3 + 8 * (register &&& 1)
    n1 = due(h1, t1, p1)
    n2 = due(h2, t2, p2)
    n3 = due(h3, t3, p3)
    nn = due(hn, {elem(noise, 0), 0}, pn)
    ne = due(he, env, pe)
    next = min(min(min(n1, n2), min(n3, nn)), ne)

    {input, acc, steps, index, last, n1, n2, n3, register, ne, state} =
      frames(n, odd, input, acc, 0, next, index, elem(table, index), ssg.last, table, n1, p1, n2, p2, n3, p3, nn, pn, register, ne, pe, state, envelope)

    tones = {
      if(h1, do: {p1 - n1 + steps, index &&& 1}, else: tone(t1, p1, steps)),
      if(h2, do: {p2 - n2 + steps, index >>> 1 &&& 1}, else: tone(t2, p2, steps)),
      if(h3, do: {p3 - n3 + steps, index >>> 2 &&& 1}, else: tone(t3, p3, steps))
    }

    {count, shifts, _} = noise
    {count, shifts} = count({count, shifts}, pn, steps)
    noise = {count, shifts, if(hn, do: register)}
    env = if he, do: {pe - ne + steps, state}, else: count(env, pe, steps)
    {%{ssg | tones: tones, noise: noise, env: env, last: last}, input, acc}
  end

  # The step of the first change of what is heard.
  defp due(false, _, _), do: @never
  defp due(true, {count, _}, period), do: max(1, period - count)

  # The register of the noise, which is made anew where it was not heard for a while.
  defp register({_, _, nil} = noise, false), do: {noise, 0}
  defp register({_, _, register} = noise, _) when register != nil, do: {noise, register}

  defp register({count, shifts, nil}, true) do
    at = rem(shifts, 131_071)
    <<word::32>> = binary_part(Tables.ssg_noise(), at >>> 3, 4)
    bits = word >>> (15 - (at &&& 7)) &&& 0x1FFFF
    register = Enum.reduce(0..16, 0, fn i, register -> register ||| (bits >>> (16 - i) &&& 1) <<< i end)
    {{count, shifts, register}, register}
  end

  # The sum of the three channels for each state of the three tones and the noise, in one envelope.
  defp table({shape, off, {l1, l2, l3}}, state) do
    e = if l1 == -1 or l2 == -1 or l3 == -1, do: envelope(shape, state), else: 0

    List.to_tuple(
      for noise <- 0..1, s3 <- 0..1, s2 <- 0..1, s1 <- 0..1 do
        gate(s1, noise, off, l1, e) + gate(s2, noise, off >>> 1, l2, e) + gate(s3, noise, off >>> 2, l3, e)
      end
    )
  end

  # What follows from registers: the periods of tones, noise and envelope, the gates that are open
  # for good, levels (-1: by the envelope), the envelope's shape, and for each voice what moves it.
  defp constants({a0, a1, b0, b1, c0, c1, n, off, la, lb, lc, e0, e1, shape}) do
    levels = {loud(la), loud(lb), loud(lc)}
    tone = fn i -> elem(levels, i) != 0 and (off >>> i &&& 1) == 0 end
    noise = Enum.any?(0..2, fn i -> elem(levels, i) != 0 and (off >>> (i + 3) &&& 1) == 0 end)
    heard = {tone.(0), tone.(1), tone.(2), noise, -1 in Tuple.to_list(levels)}
    periods = {max(1, a0 + 256 * (a1 &&& 15)), max(1, b0 + 256 * (b1 &&& 15)), max(1, c0 + 256 * (c1 &&& 15)), 2 * max(1, n &&& 31), max(1, e0 + 256 * e1)}
    {periods, off, levels, shape, heard}
  end

  defp loud(level) when (level &&& 16) > 0, do: -1
  defp loud(level) when (level &&& 15) == 0, do: 0
  defp loud(level), do: elem(Tables.ssg_level(), 2 * (level &&& 15) + 1)

  # `pos` steps are made; `next` is the step with the first change.
  defp frames(0, _, input, acc, pos, _, index, _, last, _, n1, _, n2, _, n3, _, _, _, register, ne, _, state, _) do
    {input, acc, pos, index, last, n1, n2, n3, register, ne, state}
  end

  defp frames(n, odd, input, acc, pos, next, index, level, last, table, n1, p1, n2, p2, n3, p3, nn, pn, register, ne, pe, state, envelope) do
    till = pos + 5 - odd

    cond do
      next <= till ->
        sum = if odd == 1, do: last, else: 0
        changes(till, sum, n, odd, input, acc, pos, next, index, level, table, n1, p1, n2, p2, n3, p3, nn, pn, register, ne, pe, state, envelope)

      odd == 1 and last != level ->
        {acc, input} = constant(1, input, div((last + 8 * level) * 2, 27), acc)
        frames(n - 1, 0, input, acc, till, next, index, level, level, table, n1, p1, n2, p2, n3, p3, nn, pn, register, ne, pe, state, envelope)

      true ->
        run = min(n, even(next - 1 - pos, odd))
        {acc, input} = constant(run, input, div(level * 18, 27), acc)
        pos = pos + steps(run, odd)
        frames(n - run, bxor(odd, run &&& 1), input, acc, pos, next, index, level, level, table, n1, p1, n2, p2, n3, p3, nn, pn, register, ne, pe, state, envelope)
    end
  end

  # A frame with changes, up to step `till`.
  defp changes(till, sum, n, odd, input, acc, pos, next, index, level, table, n1, p1, n2, p2, n3, p3, nn, pn, register, ne, pe, state, envelope) when next > till do
    sum = sum + 2 * level * (till - pos)
    sum = if odd == 0, do: sum - level, else: sum
    {acc, input} = constant(1, input, div(sum * 2, 27), acc)
    frames(n - 1, 1 - odd, input, acc, till, next, index, level, level, table, n1, p1, n2, p2, n3, p3, nn, pn, register, ne, pe, state, envelope)
  end

  defp changes(till, sum, n, odd, input, acc, pos, next, index, level, table, n1, p1, n2, p2, n3, p3, nn, pn, register, ne, pe, state, envelope) do
    sum = sum + 2 * level * (next - 1 - pos)
    index = if n1 == next, do: bxor(index, 1), else: index
    n1 = if n1 == next, do: n1 + p1, else: n1
    index = if n2 == next, do: bxor(index, 2), else: index
    n2 = if n2 == next, do: n2 + p2, else: n2
    index = if n3 == next, do: bxor(index, 4), else: index
    n3 = if n3 == next, do: n3 + p3, else: n3
    register = if nn == next, do: shift(register), else: register
    index = if nn == next, do: (index &&& 7) ||| (register &&& 1) <<< 3, else: index
    nn = if nn == next, do: nn + pn, else: nn
    state = if ne == next, do: state + 1, else: state
    table = if ne == next, do: table(envelope, state), else: table
    ne = if ne == next, do: ne + pe, else: ne
    pos = next - 1
    next = if n1 < n2, do: n1, else: n2
    next = if n3 < next, do: n3, else: next
    next = if nn < next, do: nn, else: next
    next = if ne < next, do: ne, else: next
    changes(till, sum, n, odd, input, acc, pos, next, index, elem(table, index), table, n1, p1, n2, p2, n3, p3, nn, pn, register, ne, pe, state, envelope)
  end

  defp shift(register), do: register >>> 1 ||| (bxor(register, register >>> 3) &&& 1) <<< 16

  # Whole frames of so many steps, and steps of so many frames.
  defp even(steps, 0), do: 2 * div(steps, 9) + if(rem(steps, 9) >= 5, do: 1, else: 0)
  defp even(steps, 1), do: 2 * div(steps, 9) + if(rem(steps, 9) >= 4, do: 1, else: 0)
  defp steps(run, 0), do: 9 * (run >>> 1) + 5 * (run &&& 1)
  defp steps(run, 1), do: 9 * (run >>> 1) + 4 * (run &&& 1)

  # Counters `m` steps on.
  defp tone({count, state}, period, m) when count + m < period, do: {count + m, state}

  defp tone({count, state}, period, m) do
    past = m - max(1, period - count)
    {rem(past, period), state + 1 + div(past, period) &&& 1}
  end

  defp count({count, state}, period, m) when count + m < period, do: {count + m, state}

  defp count({count, state}, period, m) do
    past = m - max(1, period - count)
    {rem(past, period), state + 1 + div(past, period)}
  end

  defp gate(_, _, _, 0, _), do: 0
  defp gate(0, _, off, _, _) when (off &&& 1) == 0, do: 0
  defp gate(_, 0, off, _, _) when (off &&& 8) == 0, do: 0
  defp gate(_, _, _, -1, e), do: e
  defp gate(_, _, _, level, _), do: level

  # Bits of the shape: 8 continue, 4 attack, 2 alternate, 1 hold.
  defp envelope(shape, state) do
    attack = shape >>> 2 &&& 1
    alternate = shape >>> 1 &&& 1

    index =
      if state >= 32 and ((shape &&& 1) == 1 or (shape &&& 8) == 0) do
        if (shape &&& 8) > 0 and bxor(attack, alternate) == 1, do: 31, else: 0
      else
        if bxor(attack, alternate &&& state >>> 5) == 1, do: state &&& 31, else: 31 - (state &&& 31)
      end

    elem(Tables.ssg_level(), index)
  end

  # `n` frames to which `s` is added on both sides.
  defp constant(0, input, _, acc), do: {acc, input}

  defp constant(n, [x | rest], s, acc) do
    left = (x &&& 0xFFFFFF) - @bias
    right = x >>> 24
    left = if left > 32767, do: 32767, else: if(left < -32768, do: -32768, else: left)
    right = if right > 32767, do: 32767, else: if(right < -32768, do: -32768, else: right)
    left = if left + s > 32767, do: 32767, else: left + s
    right = if right + s > 32767, do: 32767, else: right + s
    constant(n - 1, rest, s, [(right <<< 24) + left + @bias | acc])
  end

  # The three channels at every step of a block, one after another: what the chip has before it
  # mixes them.
  def steps3(ssg, n, events, f) do
    {out, _} =
      Enum.map_reduce(0..(n - 1)//1, {ssg, events}, fn at, {ssg, events} ->
        {now, events} = Enum.split_while(events, fn {t, _} -> t <= at end)
        ssg = Enum.reduce(now, ssg, fn {_, event}, ssg -> event(ssg, event) end)
        {{p1, p2, p3, pn, pe}, off, {l1, l2, l3}, shape, _} = constants(ssg.regs)

        {out, ssg} =
          Enum.map_reduce(1..(5 - (f + at &&& 1)), ssg, fn _, %{tones: {t1, t2, t3}, noise: {count, shifts, _}} = ssg ->
            {_, s1} = t1 = tone(t1, p1, 1)
            {_, s2} = t2 = tone(t2, p2, 1)
            {_, s3} = t3 = tone(t3, p3, 1)
            {count, shifts} = count({count, shifts}, pn, 1)
            {_, state} = env = count(ssg.env, pe, 1)
            {_, register} = register({count, shifts, nil}, true)
            noise = register &&& 1
            e = envelope(shape, state)
            three = {gate(s1, noise, off, l1, e), gate(s2, noise, off >>> 1, l2, e), gate(s3, noise, off >>> 2, l3, e)}
            {l1, l2, l3} = three
            {<<l1::16-little, l2::16-little, l3::16-little>>, %{ssg | tones: {t1, t2, t3}, noise: {count, shifts, nil}, env: env}}
          end)

        {out, {ssg, events}}
      end)

    out
  end
end
