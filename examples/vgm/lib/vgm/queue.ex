# The writes that wait for a chip, and lists of frames that are silent.
defmodule Vgm.Queue do
  @bias 0x800000
  # The longest block.
  @most 2048
  @silence List.duplicate(@bias, @most)

  def most, do: @most
  # Frames are left + right * 2^24 with this added, so that both sides can be told apart without a
  # sign.
  def bias, do: @bias
  def silence(n), do: :lists.nthtail(@most - n, @silence)

  # The writes that a block of `n` frames after frame `f` applies, as `{frame of the block, port,
  # register, value}`: in order, and no more than one before each frame.
  def take(writes, f, n), do: take(writes, f, n, 0, [])

  defp take([{frame, port, reg, value} | rest] = writes, f, n, free, due) do
    at = max(frame - f, free)
    if at < n, do: take(rest, f, n, at + 1, [{at, port, reg, value} | due]), else: {Enum.reverse(due), writes}
  end

  defp take([], _, _, _, due), do: {Enum.reverse(due), []}

  def trace(due, f), do: for({at, port, reg, value} <- due, into: <<>>, do: <<f + at::32-little, port, reg, value, 0>>)
end

# Events of a chip's voices within a block, and timer A, which may key voices for a frame (CSM).
defmodule Vgm.Events do
  import Bitwise

  # Lists by voice, later events first.
  def add(events, voice, at, event), do: Map.update(events, voice, [{at, event}], &[{at, event} | &1])

  # A voice's events before frame `n`. Within a frame: registers, a timer's keys, keys, and the end
  # of a timer's keys, for these are looked at together once the frame's write is applied.
  def of(events, voice, n) do
    events |> Map.get(voice, []) |> Enum.reverse() |> Enum.filter(fn {at, _} -> at < n end) |> Enum.sort_by(fn {at, event} -> {at, rank(event)} end)
  end

  defp rank(:csm_on), do: 1
  defp rank({:key, _}), do: 2
  defp rank(:csm_off), do: 3
  defp rank(_), do: 0

  # Events of the timer that the next block begins with: `[{frame, event}]` counted from the reset.
  def carry(events, n, f) do
    events |> Map.values() |> List.flatten() |> Enum.filter(fn {at, _} -> at >= n end) |> Enum.map(fn {at, event} -> {at + f, event} end) |> Enum.uniq()
  end

  def carried(carry, f, voices) do
    for {frame, event} <- Enum.reverse(carry), voice <- voices, reduce: %{}, do: (events -> add(events, voice, frame - f, event))
  end

  # The mode register: a timer that runs goes on.
  def mode(timer, value, csm) do
    left = if (value &&& 1) == 0, do: nil, else: timer.left || 1024 - timer.period
    %{timer | left: left, csm: csm}
  end

  # Timer A over `len` frames from frame `at` of the block. It keys voices before the frame after
  # the one in which it ends, for that frame. One that ends each frame keeps them keyed.
  def timer(%{left: nil} = timer, _, _, events, _), do: {timer, events}
  def timer(%{left: left} = timer, _, len, events, _) when left > len, do: {%{timer | left: left - len}, events}

  def timer(%{left: left} = timer, at, len, events, voices) do
    at = at + left

    events =
      if timer.csm do
        Enum.reduce(voices, events, fn voice, events ->
          case Map.get(events, voice, []) |> Enum.split_with(&(&1 == {at, :csm_off})) do
            {[], all} -> Map.put(events, voice, [{at + 1, :csm_off}, {at, :csm_on} | all])
            {_, others} -> Map.put(events, voice, [{at + 1, :csm_off} | others])
          end
        end)
      else
        events
      end

    timer(%{timer | left: 1024 - timer.period}, at, len - left, events, voices)
  end
end
