# A WAV or AU file that is written in blocks. It has another name until it is whole, so that nothing
# half-written is ever found under its own; sizes are written at the end.
defmodule Vgm.SoundFile do
  import Bitwise

  defstruct file: nil, temporary: nil, name: nil, format: :wav, waiting: [], size: 0, bytes: 0

  # Bytes that wait for a write.
  @least 65536
  @header %{wav: 44, au: 24}

  def header(format), do: @header[format]
  def order(:wav), do: :little
  def order(:au), do: :big

  def create(name, format) do
    temporary = Path.join(Path.dirname(name), ".#{Path.basename(name)}.#{System.pid()}.part")

    with {:ok, file} <- :file.open(temporary, [:raw, :binary, :write, :exclusive]) do
      f = %__MODULE__{file: file, temporary: temporary, name: name, format: format}

      case :file.write(file, head(format, 0)) do
        :ok -> {:ok, f}
        error -> abandon(f, error)
      end
    end
  end

  def write(%{format: format} = f, frames) do
    bytes = Vgm.Sound.bytes(frames, order(format))
    f = %{f | waiting: [f.waiting | bytes], size: f.size + byte_size(bytes), bytes: f.bytes + byte_size(bytes)}

    cond do
      format == :wav and f.bytes > 0xFFFFFFFF - 36 -> {:error, "longer than a WAV file can be"}
      f.size < @least -> {:ok, f}
      true -> flush(f)
    end
  end

  defp flush(f) do
    with :ok <- :file.write(f.file, f.waiting), do: {:ok, %{f | waiting: [], size: 0}}
  end

  # Gives the file its name.
  def finish(f) do
    with {:ok, f} <- flush(f),
         :ok <- :file.pwrite(f.file, 0, head(f.format, f.bytes)),
         :ok <- :file.close(f.file),
         :ok <- free(f.name),
         :ok <- :file.rename(f.temporary, f.name) do
      :ok
    else
      error -> abandon(f, error)
    end
  end

  def free(name), do: if(File.exists?(name), do: {:error, :eexist}, else: :ok)

  def abandon(f, error) do
    :file.close(f.file)
    :file.delete(f.temporary)
    error
  end

  defp head(:wav, bytes) do
    <<"RIFF", bytes + 36::32-little, "WAVEfmt ", 16::32-little, 1::16-little, 2::16-little, 44_100::32-little, 176_400::32-little, 4::16-little, 16::16-little, "data",
      bytes::32-little>>
  end

  # A size that has no room is unknown.
  defp head(:au, bytes), do: <<".snd", 24::32, min(bytes, (1 <<< 32) - 1)::32, 3::32, 44_100::32, 2::32>>
end
