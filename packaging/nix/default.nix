# Purlin of this tree: nix-build packaging/nix
{ pkgs ? import <nixpkgs> { } }:

pkgs.rustPlatform.buildRustPackage {
  pname = "purlin";
  version = (builtins.fromTOML (builtins.readFile ../../Cargo.toml)).workspace.package.version;
  src = pkgs.lib.cleanSource ../..;
  cargoLock.lockFile = ../../Cargo.lock;
  cargoBuildFlags = [ "-p" "purlin" ];
  nativeBuildInputs = [ pkgs.pkg-config ];
  nativeCheckInputs = [ pkgs.erlang ];
  # The tests compare with stock's emulator and take long: `sh test` in a clone runs them.
  doCheck = false;
  postInstall = ''
    mkdir -p $out/share/man/man1
    $out/bin/purlin help man > $out/share/man/man1/purlin.1
  '';
  meta = {
    description = "Runtime system for Erlang/OTP and Elixir";
    license = pkgs.lib.licenses.asl20;
    platforms = [ "x86_64-linux" ];
    mainProgram = "purlin";
  };
}
