#!/usr/bin/env bash
# Installs what building and testing Headway needs: Debian packages that are missing, and .venv with the pinned
# Python packages, and the Jinja engine. Does nothing where all is in place already.
#   tools/setup.sh         what `make demo` and `make test` need
#   tools/setup.sh --dev   also the formatter, the linter and the benchmark library
set -euo pipefail
cd "$(dirname "$0")/.."

package_lists=(tools/debian-packages.txt)
case "${1:-}" in
  "") ;;
  --dev) package_lists+=(tools/debian-packages-dev.txt) ;;
  *) echo "usage: tools/setup.sh [--dev]" >&2; exit 2 ;;
esac

install_debian_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "setup: not a Debian system; these must be there already: $(cat "${package_lists[@]}" | tr '\n' ' ')" >&2
    return
  fi
  local missing=() package
  while read -r package; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done < <(cat "${package_lists[@]}")
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup: needs root or sudo to install: ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}" >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" \
    </dev/null
}

install_python_packages() {
  local python=${HEADWAY_SETUP_PYTHON:-python3}
  if [ ! -x .venv/bin/python ]; then
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
      { echo "setup: $python is older than Python 3.11; name another one in HEADWAY_SETUP_PYTHON" >&2; exit 1; }
    "$python" -m venv .venv
  fi
  local stamp=.venv/headway-requirements.sha256 wanted
  wanted=$(cat tools/requirements.txt tools/requirements-data.txt | sha256sum)
  [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
  local pip=(.venv/bin/python -m pip --disable-pip-version-check --no-input)
  "${pip[@]}" install -q -r tools/requirements.txt
  "${pip[@]}" install -q --no-deps -r tools/requirements-data.txt
  echo "$wanted" >"$stamp"
}

install_debian_packages
install_python_packages
.venv/bin/python tools/fetch_jinja.py
