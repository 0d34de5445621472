# Compares all stages of a log with sums: SHA-256 of the whole, CRC-32 of each block, so that the
# first block that differs is known.
#
# `sums` is a directory with NAME.tsv for each log: lines of output, frames, bytes per frame,
# SHA-256, frames per block, CRC-32 of blocks.
defmodule Vgm.Check do
  alias Vgm.{Log, Song, Sound}

  # `:ok`, or `{:error, ["what differs", ...]}`.
  def check(file, sums, loops) do
    name = file |> Path.basename() |> Path.rootname()

    with {:ok, text} <- File.read(Path.join(sums, name <> ".tsv")),
         {:ok, log} <- Log.read(file) do
      rows =
        for line <- String.split(text, "\n", trim: true), not String.starts_with?(line, "#"), into: %{} do
          [output, frames, size, sha, block, crcs] = String.split(line, "\t")
          {output, %{bytes: String.to_integer(frames) * String.to_integer(size), sha: sha, block: String.to_integer(block) * String.to_integer(size), crcs: String.split(crcs)}}
        end

      {:ok, table} = {:ok, :ets.new(:stages, [:public])}
      feed = fn output, bytes -> if Map.has_key?(rows, output), do: feed(table, output, bytes, rows[output].block) end

      sink = fn frames, :ok ->
        feed.("mix44.s16", Sound.bytes(frames, :little))
        {:ok, :ok}
      end

      stages = fn {{kind, index}, stage, bytes} -> if stage != "begin", do: feed.("#{kind}#{index}.#{stage}", IO.iodata_to_binary(bytes)) end
      result = Song.render(log, sink, :ok, loops: loops, stages: stages)
      wrong = for {output, row} <- Enum.sort(rows), text = compare(table, output, row), do: "#{name} #{output}: #{text}"
      :ets.delete(table)

      case result do
        {:ok, _, _} when wrong == [] -> {:ok, map_size(rows)}
        {:ok, _, _} -> {:error, wrong}
        {:error, reason, _} -> {:error, ["#{name}: #{reason}"]}
      end
    else
      {:error, reason} -> {:error, ["#{name}: #{if is_atom(reason), do: :file.format_error(reason), else: reason}"]}
    end
  end

  defp feed(table, output, bytes, block) do
    {sha, size, crcs, rest} =
      case :ets.lookup(table, output) do
        [{_, sha, size, crcs, rest}] -> {sha, size, crcs, rest}
        [] -> {:crypto.hash_init(:sha256), 0, [], <<>>}
      end

    {crcs, rest} = blocks(rest <> bytes, block, crcs)
    :ets.insert(table, {output, :crypto.hash_update(sha, bytes), size + byte_size(bytes), crcs, rest})
  end

  # All is one block.
  defp blocks(bytes, 0, crcs), do: {crcs, bytes}

  defp blocks(bytes, block, crcs) do
    if byte_size(bytes) >= block do
      rest = binary_part(bytes, block, byte_size(bytes) - block)
      blocks(rest, block, [:erlang.crc32(binary_part(bytes, 0, block)) | crcs])
    else
      {crcs, :binary.copy(bytes)}
    end
  end

  defp compare(table, output, row) do
    case :ets.lookup(table, output) do
      [] when row.bytes == 0 -> nil
      [] -> "missing"
      [{_, sha, size, crcs, rest}] ->
        crcs = if rest == <<>>, do: crcs, else: [:erlang.crc32(rest) | crcs]
        crcs = crcs |> Enum.reverse() |> Enum.map(&(&1 |> Integer.to_string(16) |> String.downcase() |> String.pad_leading(8, "0")))
        sha = sha |> :crypto.hash_final() |> Base.encode16(case: :lower)
        first = Enum.find_index(Enum.zip(crcs ++ List.duplicate(nil, max(0, length(row.crcs) - length(crcs))), row.crcs), fn {a, b} -> a != b end)

        cond do
          sha == row.sha and crcs == row.crcs and size == row.bytes -> nil
          first -> "block #{first} differs"
          true -> "#{size} bytes, not #{row.bytes}"
        end
    end
  end
end
