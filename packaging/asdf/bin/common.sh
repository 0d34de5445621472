# What the scripts of the plugin share. `PURLIN_REPOSITORY` names the repository: an address or a
# folder. The plugin has no other default than the repository it is a part of.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
repository=${PURLIN_REPOSITORY:-$(cd "$here" && git rev-parse --show-toplevel 2>/dev/null || :)}
if [ -z "$repository" ]; then
  echo "purlin: set PURLIN_REPOSITORY to the address or the folder of Purlin's repository" >&2
  exit 1
fi
