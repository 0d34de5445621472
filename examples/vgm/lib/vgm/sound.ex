# From native frames to samples. Frames of a chip are left + right * 2^24 + 2^23; frames at 44.1 kHz
# are the 32 bits that a file holds, left in the lower half, as a signed integer.
defmodule Vgm.Sound do
  import Bitwise

  @bias Vgm.Queue.bias()
  @rate 44_100

  def rate, do: @rate

  # The converter of the YM2151: ten bits and an exponent, rounded downwards. Element `v >>> 9` of a
  # value of 16 bits is what it keeps, from -64 on.
  @kept List.to_tuple(
          for high <- -64..63 do
            size = if high < 0, do: -high - 1, else: high
            if size == 0, do: -1, else: -(1 <<< length(Integer.digits(size, 2)))
          end
        )

  defmacrop clamped(x) do
    quote do
      case unquote(x) do
        x when x > 32767 -> 32767
        x when x < -32768 -> -32768
        x -> x
      end
    end
  end

  defmacrop converted(x) do
    quote do
      case unquote(x) do
        x when x > 32767 -> 32767
        x when x < -32768 -> -32768
        x -> x &&& :erlang.element((x >>> 9) + 65, @kept)
      end
    end
  end

  defmacrop as_is(x), do: x

  # Where a chip stands between its frames and those of 44.1 kHz: the frame before, and how far the
  # next output is from it, in parts of which a native frame has `den` and an output `clock`.
  def resampler(chip, clock) do
    den = chip.divider() * @rate
    common = Integer.gcd(clock, den)
    {if(chip == Vgm.Opm, do: :converted, else: :plain), div(clock, common), div(den, common), nil}
  end

  # The outputs that `frames` complete, in order.
  def resample({_, _, _, nil} = r, []), do: {[], r}

  def resample({kind, clock, den, nil}, [x | frames]) do
    {left, right} = pair(kind, x)
    resample({kind, clock, den, {left, right, 0}}, frames)
  end

  def resample({:converted, clock, den, {left, right, at}}, frames) do
    {out, state} = converted(frames, left, right, at, clock, den, [])
    {out, {:converted, clock, den, state}}
  end

  def resample({:plain, clock, den, {left, right, at}}, frames) do
    {out, state} = plain(frames, left, right, at, clock, den, [])
    {out, {:plain, clock, den, state}}
  end

  # The last frame stands for those that are not there.
  def rest({_, _, _, {left, right, _}}, n), do: List.duplicate(word(left, right), n)

  defp pair(:converted, x), do: {converted((x &&& 0xFFFFFF) - @bias), converted(x >>> 24)}
  defp pair(:plain, x), do: {(x &&& 0xFFFFFF) - @bias, x >>> 24}

  defp word(left, right), do: (left &&& 0xFFFF) + (right <<< 16)

  # A chip's clock is above 44.1 kHz, as a rule, so a frame completes one output or none.
  for kind <- [:plain, :converted] do
    value = if kind == :plain, do: :as_is, else: :converted

    defp unquote(kind)([], left, right, at, _, _, acc), do: {:lists.reverse(acc), {left, right, at}}

    defp unquote(kind)([x | frames], left, right, at, clock, den, acc) do
      l = unquote(value)((x &&& 0xFFFFFF) - @bias)
      r = unquote(value)(x >>> 24)

      if at < den do
        w = div(at <<< 16, den)
        acc = [(left + ((l - left) * w >>> 16) &&& 0xFFFF) + ((right + ((r - right) * w >>> 16)) <<< 16) | acc]

        if at + clock >= den do
          unquote(kind)(frames, l, r, at + clock - den, clock, den, acc)
        else
          {at, acc} = more(at + clock, left, right, l, r, clock, den, acc)
          unquote(kind)(frames, l, r, at - den, clock, den, acc)
        end
      else
        unquote(kind)(frames, l, r, at - den, clock, den, acc)
      end
    end
  end

  # A clock below 44.1 kHz: more outputs of the same two frames.
  defp more(at, _, _, _, _, _, den, acc) when at >= den, do: {at, acc}

  defp more(at, left, right, l, r, clock, den, acc) do
    w = div(at <<< 16, den)
    more(at + clock, left, right, l, r, clock, den, [word(left + ((l - left) * w >>> 16), right + ((r - right) * w >>> 16)) | acc])
  end

  # All chips together: their volumes (of 256, nil: as they are), the log's (of 65536), within 16
  # bits. `chips` are `{frames, volume}`; what one has more than another is left.
  def mix([{frames, nil}], nil), do: {frames, [[]]}

  def mix(chips, factor) do
    {lists, volumes} = Enum.unzip(chips)
    mix(lists, volumes, factor, [])
  end

  defp mix(lists, volumes, factor, acc) do
    if Enum.any?(lists, &(&1 == [])) do
      {:lists.reverse(acc), lists}
    else
      {left, right} = sum(lists, volumes, 0, 0)
      left = if factor, do: left * factor >>> 16, else: left
      right = if factor, do: right * factor >>> 16, else: right
      mix(Enum.map(lists, &tl/1), volumes, factor, [word(clamped(left), clamped(right)) | acc])
    end
  end

  defp sum([], [], left, right), do: {left, right}

  defp sum([[x | _] | lists], [volume | volumes], left, right) do
    l = low(x)
    r = x >>> 16
    sum(lists, volumes, left + if(volume, do: l * volume >>> 8, else: l), right + if(volume, do: r * volume >>> 8, else: r))
  end

  # The left sample, with its sign.
  def low(x) do
    case x &&& 0xFFFF do
      l when l > 32767 -> l - 65536
      l -> l
    end
  end

  # A fade: frame `at` of `of` from all to nothing.
  def fade(frames, at, of) do
    {out, _} =
      Enum.map_reduce(frames, at, fn x, at ->
        by = max(0, of - max(0, at))
        {word(div(low(x) * by, of), div((x >>> 16) * by, of)), at + 1}
      end)

    out
  end

  # Bytes of a file: WAV has them low end first, AU high end first.
  def bytes(frames, :little), do: little(frames, <<>>)
  def bytes(frames, :big), do: big(frames, <<>>)

  defp little([a, b, c, d, e, f, g, h | rest], acc) do
    little(rest, <<acc::binary, a::32-little, b::32-little, c::32-little, d::32-little, e::32-little, f::32-little, g::32-little, h::32-little>>)
  end

  defp little([a | rest], acc), do: little(rest, <<acc::binary, a::32-little>>)
  defp little([], acc), do: acc

  defp big([a, b, c, d | rest], acc) do
    big(rest, <<acc::binary, a::16, (a >>> 16)::16, b::16, (b >>> 16)::16, c::16, (c >>> 16)::16, d::16, (d >>> 16)::16>>)
  end

  defp big([a | rest], acc), do: big(rest, <<acc::binary, a::16, (a >>> 16)::16>>)
  defp big([], acc), do: acc

  # Stages, as they are compared.
  def s32(frames), do: for(x <- frames, into: <<>>, do: <<(x &&& 0xFFFFFF) - @bias::32-little, x >>> 24::32-little>>)
  def s16(frames), do: for(x <- frames, into: <<>>, do: <<clamped((x &&& 0xFFFFFF) - @bias)::16-little, clamped(x >>> 24)::16-little>>)
  def dac(frames), do: for(x <- frames, into: <<>>, do: <<converted((x &&& 0xFFFFFF) - @bias)::16-little, converted(x >>> 24)::16-little>>)
  def left(frames), do: for(x <- frames, into: <<>>, do: <<(x &&& 0xFFFFFF) - @bias::16-little>>)
end
