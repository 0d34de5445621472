# The square waves of the YM2610 (SSG): three tones, noise and an envelope, a step every 32 clocks. Two native frames have nine
# steps: the even frame five, of which it takes the last by half, the odd one that half and four more.
#
# Toggles are rare against steps, so a run computes how long nothing changes that is heard and makes all frames of that time at
# once. It is the last voice of its chip: it takes what the others have made within 16 bits, adds itself and does so again.
defmodule Vgm.Ssg do
  import Bitwise
  alias Vgm.Tables

  # `tones`: {count, state} of each; `noise`: {count, steps of its register}; `env`: {count, state}; `last`: the sum at the last step.
  defstruct regs: {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, tones: {{0, 0}, {0, 0}, {0, 0}}, noise: {0, 0}, env: {0, 0}, last: 0

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

    c = constants(ssg.regs)
    {t1, t2, t3} = ssg.tones
    {t1, t2, t3, noise, env, last, input, acc} = frames(until - at, f + at &&& 1, t1, t2, t3, ssg.noise, ssg.env, ssg.last, c, input, acc)
    spread(%{ssg | tones: {t1, t2, t3}, noise: noise, env: env, last: last}, until, n, input, acc, events, f)
  end

  # What follows from registers: the periods of tones, noise and envelope, the gates that are open for good, levels (-1: by the
  # envelope), the envelope's shape, and for each voice what moves it.
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

  defp frames(0, _, t1, t2, t3, noise, env, last, _, input, acc), do: {t1, t2, t3, noise, env, last, input, acc}

  defp frames(n, odd, t1, t2, t3, noise, env, last, c, input, acc) do
    now = level(t1, t2, t3, noise, env, c)
    # Steps until something changes that is heard.
    steps = change(t1, t2, t3, noise, env, c) - 1

    cond do
      now == last and steps >= 5 ->
        run = min(n, even(steps, odd))
        passed = steps(run, odd)
        {acc, input} = constant(run, input, div(now * 18, 27), acc)
        {t1, t2, t3, noise, env} = skip(passed, t1, t2, t3, noise, env, c)
        frames(n - run, bxor(odd, run &&& 1), t1, t2, t3, noise, env, now, c, input, acc)

      odd == 0 ->
        {sum, t1, t2, t3, noise, env, now} = sum(5, 0, t1, t2, t3, noise, env, now, steps, c)
        {acc, input} = constant(1, input, div((sum - now) * 2, 27), acc)
        frames(n - 1, 1, t1, t2, t3, noise, env, now, c, input, acc)

      true ->
        {sum, t1, t2, t3, noise, env, now} = sum(4, last, t1, t2, t3, noise, env, now, steps, c)
        {acc, input} = constant(1, input, div(sum * 2, 27), acc)
        frames(n - 1, 0, t1, t2, t3, noise, env, now, c, input, acc)
    end
  end

  # Whole frames of so many steps, and steps of so many frames.
  defp even(steps, 0), do: 2 * div(steps, 9) + if(rem(steps, 9) >= 5, do: 1, else: 0)
  defp even(steps, 1), do: 2 * div(steps, 9) + if(rem(steps, 9) >= 4, do: 1, else: 0)
  defp steps(run, 0), do: 9 * (run >>> 1) + 5 * (run &&& 1)
  defp steps(run, 1), do: 9 * (run >>> 1) + 4 * (run &&& 1)

  # The weighted sum of `n` steps; the first `same` of them change nothing.
  defp sum(0, sum, t1, t2, t3, noise, env, now, _, _), do: {sum, t1, t2, t3, noise, env, now}

  defp sum(n, sum, t1, t2, t3, noise, env, now, same, c) when same > 0 do
    run = min(n, same)
    {t1, t2, t3, noise, env} = skip(run, t1, t2, t3, noise, env, c)
    sum(n - run, sum + 2 * run * now, t1, t2, t3, noise, env, now, same - run, c)
  end

  defp sum(n, sum, t1, t2, t3, noise, env, _, _, c) do
    {t1, t2, t3, noise, env} = skip(1, t1, t2, t3, noise, env, c)
    now = level(t1, t2, t3, noise, env, c)
    same = if n > 1, do: change(t1, t2, t3, noise, env, c) - 1, else: 0
    sum(n - 1, sum + 2 * now, t1, t2, t3, noise, env, now, same, c)
  end

  # How many steps until the first change that may be heard.
  defp change({n1, _}, {n2, _}, {n3, _}, {n, _}, {e, _}, {{p1, p2, p3, p, pe}, _, _, _, {h1, h2, h3, hn, he}}) do
    least(h1, p1 - n1, least(h2, p2 - n2, least(h3, p3 - n3, least(hn, p - n, least(he, pe - e, @never)))))
  end

  defp least(false, _, least), do: least
  defp least(true, by, least) when by < least, do: max(1, by)
  defp least(true, _, least), do: least

  # All counters `m` steps on.
  defp skip(m, t1, t2, t3, noise, env, {{p1, p2, p3, p, pe}, _, _, _, _}) do
    {tone(t1, p1, m), tone(t2, p2, m), tone(t3, p3, m), count(noise, p, m), count(env, pe, m)}
  end

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

  # The three channels at one step, together and each.
  defp level(t1, t2, t3, noise, env, c) do
    {a, b, d} = levels(t1, t2, t3, noise, env, c)
    a + b + d
  end

  defp levels({_, s1}, {_, s2}, {_, s3}, {_, steps}, {_, state}, {_, off, {l1, l2, l3}, shape, {_, _, _, noisy, enveloped}}) do
    noise = if noisy, do: noise(steps), else: 0
    e = if enveloped, do: envelope(shape, state), else: 0
    {gate(s1, noise, off, l1, e), gate(s2, noise, off >>> 1, l2, e), gate(s3, noise, off >>> 2, l3, e)}
  end

  defp gate(_, _, _, 0, _), do: 0
  defp gate(0, _, off, _, _) when (off &&& 1) == 0, do: 0
  defp gate(_, 0, off, _, _) when (off &&& 8) == 0, do: 0
  defp gate(_, _, _, -1, e), do: e
  defp gate(_, _, _, level, _), do: level

  defp noise(steps) do
    at = rem(steps, 131_071)
    <<_::size(at), bit::1, _::bitstring>> = Tables.ssg_noise()
    bit
  end

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

  # The three channels at every step of a block, one after another: what the chip has before it mixes them.
  def steps3(ssg, n, events, f) do
    {out, _} =
      Enum.map_reduce(0..(n - 1)//1, {ssg, events}, fn at, {ssg, events} ->
        {now, events} = Enum.split_while(events, fn {t, _} -> t <= at end)
        ssg = Enum.reduce(now, ssg, fn {_, event}, ssg -> event(ssg, event) end)
        c = constants(ssg.regs)

        {out, ssg} =
          Enum.map_reduce(1..(5 - (f + at &&& 1)), ssg, fn _, %{tones: {t1, t2, t3}} = ssg ->
            {t1, t2, t3, noise, env} = skip(1, t1, t2, t3, ssg.noise, ssg.env, c)
            {l1, l2, l3} = levels(t1, t2, t3, noise, env, c)
            {<<l1::16-little, l2::16-little, l3::16-little>>, %{ssg | tones: {t1, t2, t3}, noise: noise, env: env}}
          end)

        {out, {ssg, events}}
      end)

    out
  end
end
